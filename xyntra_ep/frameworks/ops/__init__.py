"""Single operations on arrays of NumPy, PyTorch and whatever speaks DLPack: `from xyntra_ep.tracea import ops`.

>>> import numpy as np
>>> from xyntra_ep.tracea import ops
>>> ops.softmax(np.zeros((1, 4), np.float32)).tolist()
[[0.25, 0.25, 0.25, 0.25]]

Names of arguments and what is refused are PyTorch's, for `matmul` NumPy's. The result is an array of the library that the
operands are of. The first call of an operation compiles it for all sizes; read next: docs/pytorch.md.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from xyntra_ep.frameworks.ops.compiled import interpreted
    from xyntra_ep.frameworks.ops.formula import fused
    from xyntra_ep.frameworks.ops.functions import attention, conv2d, gelu, layer_norm, linear, matmul, rms_norm, softmax

__all__ = [
    "attention",
    "conv2d",
    "fused",
    "gelu",
    "interpreted",
    "layer_norm",
    "linear",
    "matmul",
    "rms_norm",
    "softmax",
]

_ELSEWHERE = {"fused": "formula", "interpreted": "compiled"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_ELSEWHERE.get(name, 'functions')}"), name)
