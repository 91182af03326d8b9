"""Kernel variants for GPUs, a folder for each family; each has a README with its idea and its variants.

A kernel is the program of one thread, and a work unit is a block of threads; docs/gpu.md has the rest. Read first: `pointwise`.
"""
