"""What each ONNX operator means, in lazy tensors: a row of `OPS` for each operator, in a file for each family.

Comes in: a node and its input tensors, from `fusion/trace.py`. Goes out: its output tensors, or `UnsupportedError` with the
reason. Read first: README.md, then `elementwise/activation.py`. A file whose name begins with `_` has no rows.
"""
