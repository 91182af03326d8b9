"""3x3 convolutions on CPUs by Winograd's minimal filtering.

README.md has the idea and the variant. Read first: `nhwc_winograd.py`.
"""
