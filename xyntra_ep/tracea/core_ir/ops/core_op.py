"""What an op says of itself. Whoever handles ops of any kind asks here, so that a kind is one file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, ClassVar, NamedTuple, Self

from xyntra_ep.tracea.core_ir.dims import Dim, Size
from xyntra_ep.tracea.core_ir.expr import Expr, walk
from xyntra_ep.tracea.core_ir.ops.memory import Memory
from xyntra_ep.tracea.core_ir.ops.operand import Operand


class Body(NamedTuple):
    """An expression of an op over ``rank`` axes, which may read acc(0) to acc(``known`` - 1)."""

    expr: Expr
    rank: int
    known: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreOp(ABC):
    """An op: a frozen dataclass whose fields are its meaning, with what planning, pricing and people want to know of it."""

    inputs: tuple[Operand, ...]
    label: str = ""

    is_heavy: ClassVar[bool] = False  # its products are what an island's time goes to
    is_one_node: ClassVar[bool] = False  # each graph node is estimated as one such op
    naming_rank: ClassVar[int] = 0  # a group of nodes that several ops share is called after the highest
    narrows: ClassVar[bool] = True  # it computes in f32: what it reads and writes may be stored as any float
    shared_by_images: ClassVar[frozenset[int]] = frozenset()  # inputs read directly that have no axis of images

    # -- its parts

    @property
    @abstractmethod
    def written(self) -> tuple[Operand, ...]:
        """Every operand that it writes."""

    @abstractmethod
    def with_operands(self, inputs: tuple[Operand, ...], written: Sequence[Operand]) -> Self:
        """The same op on other operands, over the domain that these have."""

    @property
    def operands(self) -> tuple[Operand, ...]:
        """Inputs, then outputs."""
        return self.inputs + self.written

    @property
    def reads_directly(self) -> int:
        """How many leading inputs are read by the op itself, not through an expression."""
        return 0

    def expressions(self) -> list[Body]:
        """Its expressions, in order."""
        return []

    def further_sizes(self) -> tuple[Size, ...]:
        """Sizes that are neither its operands' nor its expressions'."""
        return ()

    def sizes(self) -> Iterator[Size]:
        """Every size that its meaning depends on."""
        for operand in self.operands:
            yield from operand.shape
            yield from operand.strides
            yield operand.offset
        yield from self.further_sizes()
        for e in walk(*(body.expr for body in self.expressions())):
            if e.kind == "size":
                yield e.attr

    @property
    def is_fixed(self) -> bool:
        """Whether no size depends on a symbol."""
        return not any(isinstance(size, Dim) for size in self.sizes())

    def problems(self) -> Iterator[str]:
        """What in its own fields cannot be: shapes that do not fit above all."""
        yield from ()

    # -- what it does

    @abstractmethod
    def interpret(self, memory: Memory) -> None:
        """Carry it out."""

    @abstractmethod
    def flops(self) -> Size:
        """Floating-point operations of its definition, see `work.py`."""

    def points(self) -> Size | None:
        """At how many points it reads operands: no more elements of each are looked up. None: all of them are read."""
        return None

    def known_bytes(self, position: int) -> int:
        """In how many bytes an element of an input may be kept that is known beforehand."""
        return self.inputs[position].dtype.bytes

    # -- how it may be carried out

    def reads_in_place(self, position: int) -> bool:
        """Whether elements of this input are each read only where that of the one result is written."""
        return False

    def images(self) -> Size | None:
        """The extent of its first axis, where it treats the indices of that alike."""
        return None

    # -- what it is known by

    def title(self) -> str:
        """For people, as part of a function's name."""
        return type(self).__name__

    def tuned_by(self) -> tuple[Any, ...]:
        """What its best configuration depends on, beside the types and shapes of its operands."""
        return ()


@cache
def field_names(kind: type) -> tuple[str, ...]:
    """The fields of an op, or of a part of one."""
    return tuple(field.name for field in fields(kind))


def unlike(what: str, got: Sequence[Size], wanted: Sequence[Size]) -> Iterator[str]:
    """The problem that a shape is not the wanted one, if it is not."""
    if tuple(got) != tuple(wanted):
        yield f"{what} has shape {tuple(got)}, not {tuple(wanted)}"


def calls(*bodies: Expr) -> int:
    """Functions of floating-point numbers; the arithmetic of indices is not counted."""
    return sum(e.kind == "call" and e.dtype.is_float for e in walk(*bodies))
