"""Attention on GPUs: softmax(q k^T) v without storing the scores.

README.md has the idea and the variants. Read first: `block.py`.
"""
