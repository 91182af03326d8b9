"""Convolutions of 8-bit integers on CPUs, exact: sums in 32 bits.

README.md has the idea and the variants. Read first: `_words.py`.
"""
