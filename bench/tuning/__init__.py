"""Searches compared on kernels of which every configuration was measured, and the cost model that is learned from those.

Read first: `searches.py`.
"""
