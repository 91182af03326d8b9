"""The fused operators as ONNX functions: any runtime can run them, for each carries its body in plain ONNX.

They are in domain `ai.xyntra`, version 1, and import nothing else of this project. `custom_ops/<op>.py` holds one operator, a row
of `CUSTOM_OPS`. `xyntra fuse` writes models with them, and tests compare kernels with them. Read first: `_row.py`, then
`silu.py`.
"""

from xyntra_custom_ops._row import DOMAIN, ONNX_OPSET, VERSION, XYNTRA, CustomOp, Example, to_model

__all__ = ["DOMAIN", "ONNX_OPSET", "VERSION", "XYNTRA", "CustomOp", "Example", "to_model"]
