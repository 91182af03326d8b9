"""Reductions, scans and TopK on CPUs.

README.md has the idea and the variants. Read first: `row_reduce.py`.
"""
