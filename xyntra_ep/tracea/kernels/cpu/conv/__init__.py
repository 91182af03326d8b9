"""Convolutions in f32 on CPUs, channels last.

README.md has the idea and the variants. Read first: `nhwc_direct.py`.
"""
