"""What kernels for CPUs and for GPUs have in common: loops over elements, addresses, epilogues, masks. No file here has variants.

Variants of both call it while they build semantic IR. Read first: `loops/nest.py`, `epilogue.py`, `address.py`.
"""
