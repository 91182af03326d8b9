"""The 128-bit hash of plans. Native code checks it, so native code also computes it."""

from __future__ import annotations

import ctypes
from typing import Any

from xyntra_ep.tracea.runtime.kernel_files import Hash128

HASH_BYTES = 16


def hash128_of(library: Any) -> Hash128:
    """``xyntra_hash128`` of the opened plugin library (a ctypes.CDLL) as a Python function."""
    function = library.xyntra_hash128
    function.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_char_p]
    function.restype = None

    def hash128(data: bytes) -> bytes:
        out = ctypes.create_string_buffer(HASH_BYTES)
        function(data, len(data), out)
        return out.raw

    return hash128
