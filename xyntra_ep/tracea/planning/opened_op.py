"""An op whose sizes are given to its kernels when they run, so that one compiled kernel serves all ops of its kind.

Rows, images and pixels become symbols, of which kernels know nothing, as they are in a model with dynamic shapes. Channels, and
what else kernels are built around, become given sizes (`given_size.py`): they decide, and are parameters all the same. Taps of
convolutions and extents of 1 stay as they are, since loops are left out for them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from xyntra_ep.tracea.core_ir.dims import Dim, Size, symbol
from xyntra_ep.tracea.core_ir.given_size import GivenSize
from xyntra_ep.tracea.core_ir.ops import Attention, Conv, CoreOp, Gemm, Operand, Pointwise, RowReduce
from xyntra_ep.tracea.core_ir.ops.core_op import field_names

Op = TypeVar("Op", bound=CoreOp)
_PREFIX = "open_"


@dataclass(frozen=True, slots=True)
class OpenedOp:
    """``op`` with the ``sizes`` that its new symbols stand for."""

    op: CoreOp
    sizes: dict[str, int]


def open_op(op: CoreOp) -> OpenedOp:
    """``op`` with its sizes as symbols and given sizes."""
    names = _Names(_open_axes(op))
    made = {name: names.part(getattr(op, name)) for name in field_names(type(op)) if name in _SIZED}
    if isinstance(op, Conv):
        x, w, *others = made["inputs"]
        made["inputs"] = (x, replace(w, shape=(*w.shape[:2], *op.inputs[1].shape[2:])), *others)
    return OpenedOp(replace(op, **made), names.sizes)


_SIZED = frozenset({"inputs", "output", "outputs", "domain", "outer", "inner", "values", "indices"})
_OpenAxes = Callable[[int, int, int, int], bool]  # (position of an operand, axis, rank, extent): whether it becomes a symbol


def _open_axes(op: CoreOp) -> _OpenAxes:
    if isinstance(op, Gemm):
        right = range(1, op.reads_directly, 2)  # b, and right of a low-rank product
        return lambda position, axis, rank, extent: axis < rank - (2 if position in right else 1)
    if isinstance(op, Conv):
        return lambda position, axis, rank, extent: position != 1 and axis != 1 and rank == len(op.domain)
    if isinstance(op, Attention):
        return lambda position, axis, rank, extent: axis < 3 or position not in (0, 1, 2, len(op.inputs))
    if isinstance(op, RowReduce):
        fixed = frozenset(op.inner)
        return lambda position, axis, rank, extent: extent not in fixed
    if isinstance(op, Pointwise):
        return lambda position, axis, rank, extent: True
    return lambda position, axis, rank, extent: False


@dataclass(slots=True)
class _Names:
    is_open: _OpenAxes
    sizes: dict[str, int] = field(default_factory=dict)
    count: int = 0
    position: int = 0

    def part(self, part: Any) -> Any:
        if isinstance(part, tuple):
            if all(isinstance(size, (int, Dim)) for size in part):
                return tuple(self.extent(size, axis, len(part)) for axis, size in enumerate(part))
            return tuple(self.part(p) for p in part)
        if isinstance(part, Operand):
            return self.operand(part)
        if hasattr(part, "operand"):
            return replace(part, operand=self.part(part.operand))
        return self.given(part) if isinstance(part, int) else part

    def operand(self, operand: Operand) -> Operand:
        rank = len(operand.shape)
        shape = tuple(self.extent(size, axis, rank) for axis, size in enumerate(operand.shape))
        self.position += 1
        return replace(operand, shape=shape, strides=self.strides(operand, shape), offset=self.given(operand.offset))

    def strides(self, operand: Operand, shape: Sequence[Size]) -> tuple[Size, ...]:
        """Those of axes that lie in memory one within the other, as products."""
        made: list[Size] = [self.given(stride) for stride in operand.strides]
        if any(isinstance(stride, Dim) for stride in operand.strides):
            return tuple(made)
        axes = [i for i, (n, stride) in enumerate(zip(operand.shape, operand.strides, strict=True)) if stride != 0 and n != 1]
        number: Size = 1
        size: Size = 1
        for i in sorted(axes, key=lambda i: (operand.strides[i], -i)):
            if operand.strides[i] == number:
                made[i] = size
            number, size = operand.strides[i] * operand.shape[i], made[i] * shape[i]
        return tuple(made)

    def extent(self, size: Size, axis: int, rank: int) -> Size:
        if not isinstance(size, int) or size <= 1 or not self.is_open(self.position, axis, rank, size):
            return self.given(size)
        name = next((name for name, other in self.sizes.items() if other == size), f"{_PREFIX}{len(self.sizes)}")
        self.sizes[name] = size
        return symbol(name)

    def given(self, size: Size) -> Size:
        self.count += 1
        return GivenSize(size, f"s{self.count}") if isinstance(size, int) and abs(size) > 1 else size
