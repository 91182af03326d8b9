"""Matrix products on CPUs with constant weights in 8 bits, computed in f32.

README.md has the idea and the variant. Read first: `int8_weights.py`.
"""
