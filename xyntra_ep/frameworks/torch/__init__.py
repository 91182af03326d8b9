"""PyTorch: a backend of torch.compile, convolutions, exported models.

    compiled = torch.compile(model, backend="xyntra")

Needs `pip install 'xyntra-ep[torch]'`. Read first: docs/pytorch.md, then `backend.py`.
"""

from importlib import import_module
from typing import Any

_WHERE = {
    "TraceaConv2d": "conv2d",
    "check_gradients": "check.gradients",
    "explain": "record",
    "from_torch": "exported",
    "from_torchscript": "exported",
    "patch_conv2d": "conv2d",
    "reset": "record",
    "xyntra": "backend",
}

__all__ = [*_WHERE]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ImportError(f"{name} needs PyTorch: pip install 'xyntra-ep[torch]'", name="torch") from error
