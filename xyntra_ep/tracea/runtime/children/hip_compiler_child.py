"""Compiles kernels for AMD's GPUs to a code object, as a program of its own.

hip_compiler_child.py ARCHITECTURE SOURCE OUTPUT [CLANG]      by hipRTC, or by the command of a Clang; exit status 1 and the log
                                                              when it fails
"""

from __future__ import annotations

import os
import sys
from pathlib import Path


def main(architecture: str, source: str, output: str, *clang: str) -> int:
    os.environ.update(XYNTRA_REGISTER="0")  # a compiler needs no provider
    sys.path.insert(0, str(Path(__file__).resolve().parents[4]))
    from xyntra_ep.errors import CompileError
    from xyntra_ep.tracea.runtime.hip import code_object, compilers
    from xyntra_ep.tracea.runtime.kernel_report import attached

    text = Path(source).read_text(encoding="utf-8")
    try:
        code = compilers.code_of(Path(source).stem, text, architecture, clang)
        reports = code_object.reports(code)
    except CompileError as error:
        print(error.what, error.log, sep="\n", file=sys.stderr)
        return 1
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    Path(output).write_bytes(attached(code, reports))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
