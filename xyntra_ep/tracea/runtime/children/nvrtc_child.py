"""Compiles CUDA C++ to a cubin, as a program of its own.

nvrtc_child.py ARCHITECTURE SOURCE OUTPUT      exit status 1 and the log when it fails, or when several
                                               kernels are to be compiled one by one
"""

from __future__ import annotations

import os
import sys
from pathlib import Path


def main(architecture: str, source: str, output: str) -> int:
    os.environ.update(XYNTRA_REGISTER="0")  # a compiler needs no provider
    sys.path.insert(0, str(Path(__file__).resolve().parents[4]))
    from xyntra_ep.errors import CompileError
    from xyntra_ep.tracea.runtime import nvrtc
    from xyntra_ep.tracea.runtime.kernel_report import attached

    text = Path(source).read_text(encoding="utf-8")
    try:
        cubin = nvrtc.load().compile(Path(source).stem, text, architecture)
    except CompileError as error:
        print(error.what, error.log, sep="\n", file=sys.stderr)
        return 1
    if cubin.spilled_bytes and len(cubin.reports) > 1:
        # What a kernel's code is must not depend on who is compiled beside it.
        print("a kernel needs more registers: each is compiled by itself", file=sys.stderr)
        return 1
    Path(output).write_bytes(attached(cubin.code, cubin.reports))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
