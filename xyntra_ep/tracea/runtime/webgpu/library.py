"""Where WebGPU's library is: wgpu-native, which the package wgpu brings. It is asked at import, so it imports next to nothing."""

from __future__ import annotations

import ctypes
import importlib.util
from pathlib import Path

from xyntra_ep import knobs

VARIABLE = "XYNTRA_WGPU_LIBRARY"  # where native code looks for it (native/webgpu/webgpu_api.h)


def library_path() -> str:
    """The library that the environment names, or that of the package wgpu; empty without either. It is not loaded."""
    if (given := knobs.current().wgpu_library) is not None:
        return str(given)
    try:
        found = importlib.util.find_spec("wgpu")
    except (ImportError, ValueError):
        return ""
    folders = (found.submodule_search_locations if found is not None else None) or ()
    paths = [path for folder in folders for path in sorted(Path(folder, "resources").glob("*wgpu_native*.so"))]
    return str(paths[0]) if paths else ""


def tell(library: ctypes.CDLL) -> str:
    """Say to native code where it is. Its path, empty where there is none to be named."""
    if path := library_path():
        library.xyntra_webgpu_library(path.encode())
    return path
