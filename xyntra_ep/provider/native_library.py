"""The plugin library: where it is, and its functions as Python calls them."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path
from typing import Any

from xyntra_ep.errors import ConfigError
from xyntra_ep.system import library_name

_PACKAGE = Path(__file__).resolve().parent.parent
_LIBRARY = library_name("xyntra_ep")
_TEXT, _BYTES, _POINTER = ctypes.c_char_p, ctypes.c_uint64, ctypes.c_void_p
_PROTOTYPES: dict[str, tuple[Any, list[Any]]] = {  # what each function returns and takes (native/exports.h)
    "attach": (None, [_POINTER, *[_TEXT] * 5]),
    "reply": (None, [_POINTER, ctypes.c_int, _TEXT, _BYTES]),
    "say": (ctypes.c_int, [ctypes.c_int, _TEXT]),
    "version": (_TEXT, []),
    "api_version": (ctypes.c_uint32, []),
    "hash128": (None, [_POINTER, _BYTES, _TEXT]),
    "pool_bytes": (_BYTES, []),
    "counts": (_BYTES, [_TEXT, _BYTES]),
    "quiet_ms": (ctypes.c_int64, [ctypes.c_int64]),
    "give_back_file_pages": (_BYTES, [_POINTER, _BYTES]),
    "take_report": (_BYTES, [_TEXT, _TEXT, _BYTES]),
    "cuda_at_hand": (ctypes.c_int, [_TEXT]),
    "profile": (None, [ctypes.c_int]),
    "take_profile": (_BYTES, [_TEXT, _BYTES]),
    "trace": (ctypes.c_int, [ctypes.c_int, _BYTES]),
    "trace_ring": (ctypes.c_int, [ctypes.POINTER(ctypes.c_int)]),
    "trace_files": (_BYTES, []),
    "trace_stage": (None, [_TEXT, ctypes.c_int64, ctypes.c_int64]),
    "trace_unless_told": (None, [_TEXT]),
    "open_island": (
        _POINTER,
        [_TEXT, _BYTES, ctypes.c_uint32, _POINTER, _POINTER, ctypes.c_uint32, _TEXT, _BYTES],
    ),
    "output_dims": (
        ctypes.c_int,
        [*[_POINTER] * 4, ctypes.c_uint32, _POINTER, ctypes.c_uint32, _TEXT, _BYTES],
    ),
    "run_opened": (
        ctypes.c_int,
        [*[_POINTER] * 4, ctypes.c_uint32, _POINTER, ctypes.c_uint32, ctypes.c_uint32, _TEXT, _BYTES],
    ),
    "close_island": (None, [_POINTER]),
    "time_kernel": (
        ctypes.c_int,
        [
            *[_TEXT] * 4,
            ctypes.c_uint32,
            ctypes.c_int64,
            ctypes.POINTER(ctypes.c_uint64),
            ctypes.c_uint32,
            ctypes.POINTER(ctypes.c_int32),
            ctypes.c_uint32,
            ctypes.POINTER(ctypes.c_int64),
            ctypes.c_uint32,
            _TEXT,
            _BYTES,
        ],
    ),
}


def get_library_path() -> str:
    """The plugin library, for `onnxruntime.register_execution_provider_library`."""
    return str(_PACKAGE / _LIBRARY)


def get_include() -> str:
    """The folder to give to a C or C++ compiler for `#include "tracea/tracea.h"`."""
    installed, checkout = _PACKAGE / "include", _PACKAGE.parent / "include"
    return str(installed if installed.is_dir() else checkout)


def get_cmake_dir() -> str:
    """The folder for CMake's `tracea_DIR`, with which `find_package(tracea)` finds the installed package."""
    return str(_PACKAGE / "lib" / "cmake" / "tracea")


def open_library() -> ctypes.CDLL:
    """The library, its functions typed. Raises ConfigError where it is not there."""
    path = get_library_path()
    try:
        opened = ctypes.CDLL(path)
    except OSError as error:
        if not os.path.lexists(path) and (installed := _hidden_by(_PACKAGE)) is not None:
            raise ConfigError(
                f"this is the source folder, which has no library; the installed package is at {installed}",
                where=str(_PACKAGE),
                hint="run from another folder, or `make native` here",
            ) from error
        raise ConfigError(
            f"the library cannot be opened ({error})",
            where=path,
            hint="reinstall xyntra-ep, or `make native` in a checkout",
        ) from error
    for name, (result, arguments) in _PROTOTYPES.items():
        function = getattr(opened, f"xyntra_{name}")
        function.restype, function.argtypes = result, arguments
    return opened


def _hidden_by(package: Path) -> Path | None:
    """The installed package that an import would find if the source folder ``package`` did not come first."""
    found = (Path(entry or os.curdir).resolve() / package.name for entry in sys.path)
    return next((other for other in found if other != package and (other / _LIBRARY).is_file()), None)


def source_folder_here() -> Path | None:
    """The source folder without a library that `python` takes for the package where it is started in this directory."""
    here = Path.cwd() / _PACKAGE.name
    shadows = here != _PACKAGE and (here / "__init__.py").is_file() and not (here / _LIBRARY).exists()
    return here if shadows else None
