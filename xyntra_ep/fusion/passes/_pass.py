"""What a pass is, what passes work on, and the check of their order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from xyntra_ep.errors import ConfigError
from xyntra_ep.fusion.egraph import Algebra
from xyntra_ep.fusion.reason import Reason
from xyntra_ep.fusion.rules import built_in
from xyntra_ep.fusion.scheduling.dag import Dag
from xyntra_ep.fusion.trace import Context
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Applied, Product, Program


class Fact(StrEnum):
    """What holds of a draft at some point between two passes."""

    TENSORS = "lazy tensors"  # the island is a graph of lazy tensors, which may be rewritten
    REPEATS = "settled repeats"
    LOW_RANK = "merged low-rank products"
    PROJECTIONS = "joined projections"
    SOFTMAX = "found softmax"
    ATTENTION = "found attention"
    ROWS = "merged rows"
    OPS = "core-IR ops"
    NAMES = "one name for equal sizes"
    PRECISION = "chosen precision"
    INDICES = "limited indices"


AT_FIRST = frozenset({Fact.TENSORS})  # holds when tracing is done


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The machine that a program is for, as far as passes ask: ``product`` is what products multiply in, ``halves`` are the
    16-bit floats that it multiplies in, ``in_bytes`` whether it multiplies bytes by weights in blocks fast,
    ``counts_in_32_bits`` whether its kernels count elements so, ``strict`` whether nothing is rounded that need not be,
    ``continues_sums`` whether a product goes on with the sums of another one."""

    product: Product
    halves: frozenset[DType]
    in_bytes: bool = False
    counts_in_32_bits: bool = False
    strict: bool = False
    continues_sums: bool = False


@dataclass(slots=True, kw_only=True)
class Draft:
    """An island on its way from lazy tensors to core-IR ops; passes change it in place.

    ``inputs`` and ``outputs`` are graph names in the order of the island's own. ``target`` None: a program for any machine,
    as pictures and the interpreter want it.
    """

    context: Context
    inputs: Sequence[str]
    outputs: Sequence[str]
    dag: Dag
    target: Target | None = None
    algebra: Algebra = field(default_factory=built_in)
    rules: list[Applied] = field(default_factory=list)  # to lazy tensors
    lowered: Program | None = None
    refused: list[Reason] = field(default_factory=list)  # of what looked like the pattern of a pass

    @property
    def program(self) -> Program:
        """What the lowering made; no pass that is in its place asks before."""
        assert self.lowered is not None
        return self.lowered


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """One step. ``requires`` must hold before it; ``establishes``, which ``doc`` puts into words, holds after it, and ``ends`` no
    longer does."""

    name: str
    doc: str
    requires: tuple[Fact, ...]
    establishes: tuple[Fact, ...]
    run: Callable[[Draft], object]
    ends: tuple[Fact, ...] = ()


def in_order(*passes: Pass) -> tuple[Pass, ...]:
    """``passes``, after a look at their order. Raises ConfigError for a pass that comes too early or too late, and for two of
    one name."""
    holds = set(AT_FIRST)
    ended: dict[Fact, str] = {}
    for number, each in enumerate(passes):
        if any(each.name == other.name for other in passes[:number]):
            raise ConfigError("is there twice", where=f"pass {each.name}")
        for fact in each.requires:
            if fact in holds:
                continue
            if fact in ended:
                raise ConfigError(f"requires {fact}, which {ended[fact]} ends", where=f"pass {each.name}", hint="put it before")
            makers = [other.name for other in passes if fact in other.establishes]
            hint = f"put it after {makers[0]}" if makers else "no pass establishes that"
            raise ConfigError(f"requires {fact}, which does not hold there", where=f"pass {each.name}", hint=hint)
        holds = (holds | set(each.establishes)) - set(each.ends)
        ended |= dict.fromkeys(each.ends, each.name)
    return passes
