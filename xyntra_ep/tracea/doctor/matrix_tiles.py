"""Whether the operating system lets this process use matrix tiles (Intel AMX).

A tile's state is 8 KiB a thread, so Linux (5.16 and newer) saves it only for processes that asked: once, before their first tile
instruction, for all of their threads. ONNX Runtime asks when it is loaded, native/matrix_tiles.cc when a kernel is loaded that
needs it. Numbers: Documentation/arch/x86/xstate.rst.
"""

from __future__ import annotations

import ctypes
import platform
import sys

_SYS_ARCH_PRCTL = 158  # x86-64
_REQUEST_PERMISSION = 0x1023
_TILE_DATA = 18  # number of the state component


def granted() -> bool:
    """Ask, again is harmless. Refused by older kernels, by sandboxes, and where a thread's signal stack is too small."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return False
    call = ctypes.CDLL(None).syscall
    return int(call(ctypes.c_long(_SYS_ARCH_PRCTL), ctypes.c_long(_REQUEST_PERMISSION), ctypes.c_ulong(_TILE_DATA))) == 0
