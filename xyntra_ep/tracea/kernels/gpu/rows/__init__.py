"""Reductions, scans and TopK on GPUs.

README.md has the idea and the variants. Read first: `row_reduce_block.py`.
"""
