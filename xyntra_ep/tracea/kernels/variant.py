"""The row by which one way to compute a core-IR op is declared. One file per variant; doctor, tuner, tests and docs read it.

A variant states which ops it *admits* (legality: None, or the reason why not), its search space and an analytic default
configuration where there is something to choose, what it costs, and how it is *built*: a list of ``KernelCall``, each one
semantic-IR kernel with the buffers and sizes of this op. Kernels take symbolic sizes as run-time parameters, so one kernel
serves all shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Generic, TypeVar

from xyntra_ep.tracea.core_ir.dims import Size
from xyntra_ep.tracea.core_ir.ops import CoreOp, Program
from xyntra_ep.tracea.semantic_ir.capabilities import Capabilities
from xyntra_ep.tracea.semantic_ir.gpu.capabilities import Gpu
from xyntra_ep.tracea.semantic_ir.nodes import Kernel

Op = TypeVar("Op", bound=CoreOp)
Config = Mapping[str, int]
FALLBACK_RANK = 100  # a variant of this rank or above is always legal and never fast


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueBuffer:
    """The buffer of ``Program.values[value]`` at an element-free byte offset."""

    value: int
    offset_bytes: Size = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TempBuffer:
    """A buffer that lives between the calls of one op; ``name`` identifies it within the op."""

    name: str
    size_bytes: Size


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorView:
    """A tensor in the call's buffer number ``buffer``, from a byte offset on: ``extents`` with the contiguous axis first, and the
    strides of the others. All are multiples of 16 bytes."""

    buffer: int
    offset_bytes: Size
    extents: tuple[Size, ...]
    strides_bytes: tuple[Size, ...]

    @property
    def sizes(self) -> tuple[Size, ...]:
        return (self.offset_bytes, *self.extents, *self.strides_bytes)


class Phase(StrEnum):
    PREPARE = "prepare"  # once, when the session is created: only constants and prepared buffers are read (weight packing)
    RUN = "run"


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelCall:
    """One launch. ``params`` follow the kernel's parameter list, ``tensors`` its maps; ``units`` are independent work items:
    blocks, on a GPU."""

    kernel: Kernel
    buffers: tuple[ValueBuffer | TempBuffer, ...]
    params: tuple[Size, ...]
    units: Size
    cost_ns: Size  # estimate for the whole call on one core
    phase: Phase = Phase.RUN
    tensors: tuple[TensorView, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildContext:
    """What ``build`` may look at beside the op."""

    caps: Capabilities
    program: Program
    gpu: Gpu | None = None  # what GPU variants build for; ``caps`` is then the machine around it
    strict: bool = False  # option fp32_strict: NaN and Inf show where they do in ONNX Runtime, and nowhere else

    def is_constant(self, value: int) -> bool:
        """Whether a value is known when the session is created (planning then offers PREPARE for it)."""
        return value in self.constants

    constants: frozenset[int] = field(default_factory=frozenset)


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One dimension of a search space: a name and the values it may take."""

    name: str
    values: tuple[int, ...]


def _no_axes(op: CoreOp, context: BuildContext) -> Sequence[Axis]:
    return ()


def _no_refusal(op: CoreOp, config: Config, context: BuildContext) -> str:
    return ""


def _no_choice(op: CoreOp, context: BuildContext) -> Config:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant(Generic[Op]):
    """See the module's docstring. Lower ``rank`` wins among admitted variants of equal estimated cost."""

    name: str
    op: type[Op]
    admits: Callable[[Op, BuildContext], str | None]
    cost_ns: Callable[[Op, Config, BuildContext], float]  # for symbolic sizes: at a typical value
    build: Callable[[Op, Config, BuildContext], list[KernelCall]]
    space: Callable[[Op, BuildContext], Sequence[Axis]] = _no_axes
    default: Callable[[Op, BuildContext], Config] = _no_choice
    # What a point of ``space`` violates that is not worth trying: registers, caches. Empty for one that is; it is right all the
    # same.
    refuses: Callable[[Op, Config, BuildContext], str] = _no_refusal
    given: tuple[str, ...] = ()  # values of a configuration that kernels can be given when they run: no code depends on them
    rank: int = 0
    parts: tuple[str, ...] = ()  # other variants whose kernels it launches: it is as right as they are
    needs: str = ""  # the capability, of a processor, without which it admits nothing
    may_hang: bool = False  # its threads wait for what others do, not only at barriers: it is tried after those that cannot
    extra: Mapping[str, Any] = field(default_factory=dict)
