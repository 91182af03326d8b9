"""Matrix products in f32 on CPUs.

README.md has the idea and the variants. Read first: `packed_b.py`, then `_tile.py`.
"""
