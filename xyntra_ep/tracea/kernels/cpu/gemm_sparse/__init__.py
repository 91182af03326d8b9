"""Products that leave out zeros of constant weights.

Gemm -> semantic IR
"""
