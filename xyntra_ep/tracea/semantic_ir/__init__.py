"""Semantic IR: how an operation is computed, as loops over typed scalars and vectors, and on GPUs threads and shared memory.

`kernels` write it with a builder, `check.py` proves that it is legal, `emitters` print it.
Read first: `nodes.py`, then `builder.py`. What only GPUs have is described in docs/gpu.md.
"""
