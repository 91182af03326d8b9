"""Kernel variants for CPUs, a folder for each family; each has a README with its idea and its variants.

A kernel is a function over a range of work units, which ONNX Runtime's threads share. Read first: `gemm` and `pointwise`.
"""
