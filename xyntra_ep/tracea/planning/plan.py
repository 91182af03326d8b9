"""What planning produces for one program: kernels, buffers with lifetimes, and steps. `manifest.py` gives it bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from xyntra_ep.errors import UnsupportedError, XyntraError
from xyntra_ep.tracea.core_ir.dims import Size
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Program
from xyntra_ep.tracea.core_ir.work import NO_WORK, SizedWork
from xyntra_ep.tracea.doctor.decision import Decision
from xyntra_ep.tracea.kernels.variant import TensorView
from xyntra_ep.tracea.runtime.kernel_source import KernelSource


class BufferKind(IntEnum):
    """The numbers are those of docs/plan-format.md."""

    INPUT = 0
    OUTPUT = 1
    CONSTANT = 2  # read by init steps only
    POOL = 3  # made by init steps, read by run steps
    ARENA = 4  # temporary of the run steps
    LITERAL = 5
    INIT = 6  # temporary of the init steps


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanBuffer:
    """``index``: position among the program's inputs, outputs or constants. ``first``, ``last``: run steps (ARENA)."""

    kind: BufferKind
    index: int = 0
    size_bytes: Size = 0
    first: int = 0
    last: int = 0
    literal: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferUse:
    buffer: int
    offset_bytes: Size = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanTensor:
    """A tensor that a launch copies in boxes: ``view`` of one of the step's buffers, as the kernel declares it."""

    view: TensorView
    dtype: DType
    box: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanStep:
    """One launch. ``kernel`` indexes PlannedProgram.kernels; ``op`` is the program's op it came from.

    ``work`` is what a profile divides by the time: that of the whole op, at its first run step; 0 at its others.
    """

    kernel: int
    label: str
    buffers: tuple[BufferUse, ...]
    params: tuple[Size, ...]
    units: Size
    cost_ns: Size
    op: int
    work: SizedWork = NO_WORK
    tensors: tuple[PlanTensor, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanLoop:
    """Run steps ``first`` to ``last`` are carried out for one of ``images`` after the other. ``strides_bytes``: from one image to
    the next, in each buffer that has them all."""

    first: int
    last: int
    images: Size
    strides_bytes: tuple[tuple[int, Size], ...]


@dataclass(frozen=True, slots=True)
class PlanWave:
    """Run steps ``first`` to ``last``, two or more, are carried out side by side."""

    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedProgram:
    """``decisions``: one per op that is carried out, by the op's index in the program. ``program``: as it is carried out, ops in
    ``loops`` being those of one image."""

    program: Program
    kernels: tuple[KernelSource, ...]
    buffers: tuple[PlanBuffer, ...]
    init: tuple[PlanStep, ...]
    run: tuple[PlanStep, ...]
    output_shapes: tuple[tuple[Size, ...], ...]
    decisions: tuple[tuple[int, Decision], ...]
    faults: tuple[tuple[int, str], ...] = ()  # buffers of bytes: one true after a run, it fails with the message
    loops: tuple[PlanLoop, ...] = ()
    waves: tuple[PlanWave, ...] = ()  # outside of loops

    def times_of_step(self, step: int) -> Size:
        """How often a run carries out a run step."""
        return next((loop.images for loop in self.loops if loop.first <= step <= loop.last), 1)

    def times_of_op(self) -> dict[int, Size]:
        """How often a run carries out each op that it does."""
        return {step.op: self.times_of_step(i) for i, step in enumerate(self.run)}

    def ops_of_kernel(self, kernel: int) -> tuple[int, ...]:
        """The ops that need a kernel: those that fail when it does not compile."""
        return tuple(sorted({s.op for s in (*self.init, *self.run) if s.kernel == kernel}))


@dataclass(frozen=True, slots=True, kw_only=True)
class OpFailure:
    """An op that cannot be carried out; ``program.sources[op]`` tells the graph nodes."""

    op: int
    error: XyntraError

    @property
    def reason(self) -> str:
        return self.error.what


class PlanError(UnsupportedError):
    """Some ops of a program have no kernel; all of them are listed, so that they can be un-claimed in one round."""

    def __init__(self, failures: Sequence[OpFailure]) -> None:
        super().__init__("; ".join(f"op {f.op}: {f.reason}" for f in failures), where="planning")
        self.failures = tuple(failures)
