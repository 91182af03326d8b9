"""PyTorch: a backend of torch.compile, convolutions, exported models.

    compiled = torch.compile(model, backend="xyntra")

Needs `pip install 'xyntra-ep[torch]'`. Read first: docs/pytorch.md, then `backend.py`.
"""

from importlib import import_module
from typing import Any

_WHERE = {
    "xyntra": "backend",
    "explain": "record",
    "reset": "record",
}

__all__ = [*sorted(_WHERE)]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
