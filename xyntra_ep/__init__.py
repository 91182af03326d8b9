"""XyntraEP: an ONNX Runtime execution provider. Importing this package registers it.

Packages, from the top: `provider` plans a session's graph, `fusion` decides which nodes become which operations, `tracea`
compiles them; `diagnostics` answers questions about all of it. Read first: docs/architecture.md.

import onnxruntime as ort, xyntra_ep
session = ort.InferenceSession("model.onnx", providers=["XyntraEP", "CPUExecutionProvider"])
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from xyntra_ep.diagnostics.explain import explain
    from xyntra_ep.diagnostics.machine import doctor
    from xyntra_ep.diagnostics.trace.tracing import tracing
    from xyntra_ep.frameworks.torch.exported import from_torch, from_torchscript
    from xyntra_ep.provider.native_library import get_cmake_dir, get_include
    from xyntra_ep.provider.registration import get_ep_name, get_ep_names, get_library_path, register

__version__ = "0.1.0"

__all__ = [
    "__version__",
    "doctor",
    "explain",
    "from_torch",
    "from_torchscript",
    "get_cmake_dir",
    "get_ep_name",
    "get_ep_names",
    "get_include",
    "get_library_path",
    "register",
    "tracing",
]

# Read on first use: importing the package costs the registration and nothing else.
_FACE = {
    "register": "xyntra_ep.provider.registration",
    "get_library_path": "xyntra_ep.provider.registration",
    "get_include": "xyntra_ep.provider.native_library",
    "get_cmake_dir": "xyntra_ep.provider.native_library",
    "get_ep_name": "xyntra_ep.provider.registration",
    "get_ep_names": "xyntra_ep.provider.registration",
    "explain": "xyntra_ep.diagnostics",
    "doctor": "xyntra_ep.diagnostics",
    "tracing": "xyntra_ep.diagnostics.trace.tracing",
    "from_torch": "xyntra_ep.frameworks.torch",
    "from_torchscript": "xyntra_ep.frameworks.torch",
}


def __getattr__(name: str) -> Any:
    if name not in _FACE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_FACE[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _on_import() -> None:
    from xyntra_ep import ending
    from xyntra_ep.provider.registration import register_on_import

    register_on_import()
    ending.at_end(_write_traces)


def _write_traces() -> None:
    """Files that sessions asked for; a process in which none did imports nothing for it."""
    from xyntra_ep.provider import registration

    if not registration.asks_for_files():
        return
    try:
        from xyntra_ep.diagnostics.trace.at_end import write_files

        write_files()
    except Exception as error:  # whatever it is, the process ends as it would have
        registration.say(2, f"XyntraEP: no trace was written: {error}")


_on_import()
