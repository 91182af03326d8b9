"""Elementwise operations on CPUs, and operations that only move elements.

README.md has the idea and the variants. Read first: `vector.py`.
"""
