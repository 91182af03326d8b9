"""Matrix products on GPUs by fused multiply-adds.

README.md has the idea and the variants. Read first: `block_tiles.py`.
"""
