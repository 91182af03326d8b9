"""Has a device's driver compile a program, as a program of its own that imports nothing of ours: a broken driver may end it.

driver_child.py LIBRARY DEVICE OPTIONS SOURCE OUTPUT      exit status 1 and the driver's log when it fails
"""

from __future__ import annotations

import ctypes
import sys

LOG_BYTES = 64 << 10


def main(library: str, device: str, options: str, source: str, output: str) -> int:
    compiler = ctypes.CDLL(library).xyntra_device_compile
    compiler.argtypes = [*[ctypes.c_char_p] * 5, ctypes.c_uint64]
    with open(source, encoding="utf-8") as file:
        text = file.read()
    why = ctypes.create_string_buffer(LOG_BYTES)
    if compiler(device.encode(), text.encode(), options.encode(), output.encode(), why, len(why)) == 1:
        return 0
    print(why.value.decode(errors="replace") or "the driver gave no reason", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
