"""Lists the devices of a GPU driver, as a program of its own that imports nothing of ours: a broken one may end the process.

driver_child.py LIBRARY PREFIX      prints, after a mark, what libxyntra_ep.so found of the driver whose devices' identities begin
                                    with the prefix (native/driver/driver_device.h)
"""

from __future__ import annotations

import ctypes
import sys

MARK = "xyntra-devices "
_MOST_BYTES = 1 << 20


def main(library: str, prefix: str) -> None:
    ask = ctypes.CDLL(library).xyntra_devices
    ask.argtypes, ask.restype = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_uint64], ctypes.c_uint64
    found = ctypes.create_string_buffer(_MOST_BYTES)
    length = ask(prefix.encode(), found, len(found))
    print(MARK + found.raw[:length].decode(), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
