"""Lists AMD's GPUs, as a program of its own that imports nothing of ours: a broken driver may end the process.

hip_child.py LIBRARY      prints, after a mark, what libxyntra_ep.so found (native/hip/hip_api.h)
"""

from __future__ import annotations

import ctypes
import sys

MARK = "xyntra-hip "
_MOST_BYTES = 1 << 20


def main(library: str) -> None:
    ask = ctypes.CDLL(library).xyntra_hip_devices
    ask.argtypes, ask.restype = [ctypes.c_char_p, ctypes.c_uint64], ctypes.c_uint64
    found = ctypes.create_string_buffer(_MOST_BYTES)
    length = ask(found, len(found))
    print(MARK + found.raw[:length].decode(), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
