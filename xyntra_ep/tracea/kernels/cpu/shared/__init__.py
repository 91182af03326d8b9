"""What several families of CPU kernels use; no file here has variants.

Estimates of loops, rows cut into work units, weights fetched while others are multiplied. README.md lists the files.
"""
