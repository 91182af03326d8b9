"""Metal's text to a shared object of the host, as a program too: compile.py SOURCE OUTPUT HEADERS. See shim.h."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

HERE = Path(__file__).resolve().parent
_KERNEL = re.compile(r"\[\[max_total_threads_per_threadgroup\((\d+)\)\]\] kernel void (\w+)\(")
_SHARED = re.compile(r"^( +alignas\(\d+\)) threadgroup (?=[\w ]+\[\d+\];$)", re.MULTILINE)
FLAGS = ("-std=c++17", "-O1", "-w", "-ffp-contract=off", "-fno-strict-aliasing", "-fPIC")


def precompiled(folder: Path) -> Path:
    """``folder``, with the shim ready for ``compile_programs``: half of its time."""
    header = folder / "metal_stdlib"
    header.write_text(f'#include "{HERE / "shim.h"}"\n', encoding="utf-8")
    subprocess.run(["g++", *FLAGS, "-x", "c++-header", "-o", f"{header}.gch", str(header)], check=True)
    return folder


def host_text(programs: Mapping[str, str]) -> str:
    """Several programs as one, by the names under which their kernels are exported: each in a namespace, for they define the
    same helpers."""
    parts = ["#include <metal_stdlib>"]
    for exported, text in programs.items():
        [(threads, name)] = _KERNEL.findall(text)
        kernel = f"XY_METAL_KERNEL({exported}, {name}, {threads})"
        parts += [f"namespace of_{exported} {{", _SHARED.sub(r"\1 static ", text), kernel, "}"]
    return "\n".join(parts) + "\n"


def compile_programs(programs: Mapping[str, str], output: Path, headers: Path = HERE / "include") -> str:
    """The compiler's complaint; empty when ``output`` is made."""
    source = output.with_suffix(".cc")
    source.write_text(host_text(programs), encoding="utf-8")
    done = subprocess.run(
        ["g++", *FLAGS, "-shared", f"-I{headers}", "-o", str(output), str(source)], capture_output=True, text=True, check=False
    )
    return done.stderr if done.returncode else ""


if __name__ == "__main__":
    program = Path(sys.argv[1]).read_text(encoding="utf-8")
    complaint = compile_programs({name: program for _, name in _KERNEL.findall(program)}, Path(sys.argv[2]), Path(sys.argv[3]))
    print(complaint, file=sys.stderr, end="")
    sys.exit(bool(complaint))
