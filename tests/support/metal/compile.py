"""Metal's text to a shared object of the host, as a program too: compile.py SOURCE OUTPUT. See shim.h."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

HERE = Path(__file__).resolve().parent
_KERNEL = re.compile(r"\[\[max_total_threads_per_threadgroup\((\d+)\)\]\] kernel void (\w+)\(")
_SHARED = re.compile(r"^( +alignas\(\d+\)) threadgroup (?=[\w ]+\[\d+\];$)", re.MULTILINE)
_FLAGS = ("-std=c++17", "-O1", "-w", "-ffp-contract=off", "-fno-strict-aliasing", "-shared", "-fPIC", f"-I{HERE / 'include'}")


def host_text(texts: Iterable[str]) -> str:
    """Several programs as one: each in a namespace, for they define the same helpers."""
    parts = ["#include <metal_stdlib>"]
    for number, text in enumerate(texts):
        exported = [f"XY_METAL_KERNEL({name}, {threads})" for threads, name in _KERNEL.findall(text)]
        parts += [f"namespace program{number} {{", _SHARED.sub(r"\1 static ", text), *exported, "}"]
    return "\n".join(parts) + "\n"


def compile_texts(texts: Iterable[str], output: Path) -> str:
    """The compiler's complaint; empty when ``output`` is made."""
    source = output.with_suffix(".cc")
    source.write_text(host_text(texts), encoding="utf-8")
    done = subprocess.run(["g++", *_FLAGS, "-o", str(output), str(source)], capture_output=True, text=True, check=False)
    return done.stderr if done.returncode else ""


if __name__ == "__main__":
    complaint = compile_texts([Path(sys.argv[1]).read_text(encoding="utf-8")], Path(sys.argv[2]))
    print(complaint, file=sys.stderr, end="")
    sys.exit(bool(complaint))
