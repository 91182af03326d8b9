"""Kernel variants: the ways to compute each core-IR operation, for CPUs in `cpu` and for GPUs in `gpu`.

Comes in: an operation with symbolic sizes and a configuration, from `planning/builder.py`. Goes out: kernels in semantic IR, with
the buffers and sizes that each call needs. A variant is a row of `VARIANTS` in a file of its family.
Read first: `variant.py`, then the README of a family, as `cpu/gemm`.
"""
