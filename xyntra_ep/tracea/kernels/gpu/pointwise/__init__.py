"""Elementwise operations on GPUs, and operations that only move elements.

README.md has the idea and the variants. Read first: `packets.py`.
"""
