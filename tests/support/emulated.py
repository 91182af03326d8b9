"""Kernels of a processor that is not here: compiled by a cross compiler and carried out by QEMU's user mode, so that their
results are known and not only that they compile.

A driver in C (emulated_driver.c) reads what is to be done from a file, guards every buffer as memory.py does, and writes the
outputs; one process serves many calls, for starting one takes longer than a small kernel.
"""

from __future__ import annotations

import hashlib
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.support.work import Array, Buffer, Step, Work
from xyntra_ep import knobs
from xyntra_ep.tracea.doctor.profile import this_machine
from xyntra_ep.tracea.planning.plan import BufferKind
from xyntra_ep.tracea.runtime.cache_root import open_root
from xyntra_ep.tracea.runtime.compilers import Compiler, find_compiler
from xyntra_ep.tracea.runtime.kernel_files import CompiledKernel
from xyntra_ep.tracea.semantic_ir.capabilities import Isa

LIMIT_S = 240.0
_DRIVER = Path(__file__).with_name("emulated_driver.c")
_ENDS_AT_A_PAGE = (BufferKind.INPUT, BufferKind.OUTPUT, BufferKind.CONSTANT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Emulator:
    """``libraries``: where those of the other processor lie."""

    compiler: str
    program: str
    libraries: str

    @property
    def missing(self) -> str:
        """What of it this machine does not have; empty if it can be used."""
        programs = [name for name in (self.compiler, self.program) if shutil.which(name) is None]
        return " and ".join(programs) or ("" if Path(self.libraries).is_dir() else self.libraries)


EMULATORS = {
    Isa.NEON: Emulator(
        compiler="aarch64-linux-gnu-gcc", program="qemu-aarch64-static", libraries="/usr/aarch64-linux-gnu"
    ),
}  # fmt: skip


@cache
def cross_compiler(isa: Isa) -> Compiler:
    with knobs.scope(cc=EMULATORS[isa].compiler):
        return find_compiler(open_root(knobs.current().cache_root))


def run_emulated(isa: Isa, works: Sequence[tuple[Work, Sequence[CompiledKernel]]]) -> list[list[Array]]:
    """The outputs of each work, whose steps call the kernels beside it."""
    emulator = EMULATORS[isa]
    labels = [step.label for work, _ in works for step in (*work.init, *work.run)]
    with tempfile.TemporaryDirectory(prefix="xyntra-emulated-") as folder:
        file, results = Path(folder, "work"), Path(folder, "results")
        file.write_bytes(b"".join(_written(work, kernels) for work, kernels in works))
        with results.open("wb") as out:
            argv = [emulator.program, "-L", emulator.libraries, str(_driver(isa)), str(file)]
            done = subprocess.run(argv, stdout=out, stderr=subprocess.PIPE, text=True, timeout=LIMIT_S)
        if done.returncode:
            lines = done.stderr.splitlines()
            begun = sum(line == "step" for line in lines)
            said = [line for line in lines if line != "step"]
            raise AssertionError(f"{labels[max(begun - 1, 0)]} on {isa}: status {done.returncode}, {' '.join(said)}")
        data = results.read_bytes()
    answers: list[list[Array]] = []
    for work, _ in works:
        answers.append([])
        for output in work.outputs:
            size = work.buffers[output.buffer].size_bytes
            answers[-1].append(output.of(data[:size]))
            data = data[size:]
    assert not data
    return answers


@cache
def _driver(isa: Isa) -> Path:
    made = knobs.current().cache_root / f"emulated-{isa}-{hashlib.sha256(_DRIVER.read_bytes()).hexdigest()[:8]}"
    with tempfile.TemporaryDirectory(dir=made.parent) as folder:  # others may be at it
        new = Path(folder, made.name)
        argv = [EMULATORS[isa].compiler, "-O2", "-Wall", "-Werror", "-o", str(new), str(_DRIVER), "-ldl"]
        subprocess.run(argv, check=True)
        new.replace(made)
    return made


def _numbers(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}q", *values)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 8)


def _text(text: str) -> bytes:
    data = text.encode() + b"\0"
    return _numbers(len(data)) + _padded(data)


def _written(work: Work, kernels: Sequence[CompiledKernel]) -> bytes:
    steps = (*work.init, *work.run)
    return b"".join(
        (
            _numbers(len(work.buffers)),
            *map(_buffer, work.buffers),
            _numbers(len(steps)),
            *(_step(step, kernels[step.kernel]) for step in steps),
            _numbers(len(work.outputs), *(output.buffer for output in work.outputs)),
        )
    )


def _buffer(buffer: Buffer) -> bytes:
    head = _numbers(buffer.kind not in _ENDS_AT_A_PAGE, buffer.size_bytes, buffer.data is not None)
    return head + _padded(buffer.data or b"")


def _step(step: Step, kernel: CompiledKernel) -> bytes:
    return b"".join(
        (
            _text(str(kernel.path)),
            _text(kernel.symbol),
            _numbers(len(step.buffers), *(n for pair in step.buffers for n in pair)),
            _numbers(len(step.params), *step.params),
            _numbers(len(step.ranges), *(n for pair in step.ranges for n in pair)),
        )
    )


def main() -> int:
    """Whether tests of other processors' kernels can be carried out here."""
    isa, emulator = next(iter(EMULATORS.items()))
    if this_machine().isa is isa or not emulator.missing:
        return 0
    print(f"no {emulator.missing} here; on Debian: apt-get install gcc-aarch64-linux-gnu qemu-user-static", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
