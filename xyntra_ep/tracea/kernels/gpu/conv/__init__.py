"""Convolutions on GPUs.

README.md has the idea and the variants. Read first: `implicit_gemm.py`.
"""
