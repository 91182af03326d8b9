"""What several families of GPU kernels use; no file here has variants.

Costs of launches and tiles, packets, copies of operands, reductions in a block. README.md lists the files.
"""
