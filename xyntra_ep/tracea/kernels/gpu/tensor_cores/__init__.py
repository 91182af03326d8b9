"""Matrix products by NVIDIA's matrix units (tensor cores).

README.md has the idea and the variants. Read first: `gemm_fragments.py`.
"""
