"""Convolutions in bfloat16 on CPUs, channels last, with sums in f32.

README.md has the idea and the variants. Read first: `pairs_bf16.py`.
"""
