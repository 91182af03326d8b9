"""Matrix products on CPUs with constant weights in 4 or 8 bits, scaled in blocks along k, computed in f32.

README.md has the idea and the variants. Read first: `block_weights.py`.
"""
