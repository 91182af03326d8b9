"""Running values of reductions: how they start, take in a value, and are put together. The order is fixed by the shape."""

from __future__ import annotations

from collections.abc import Sequence

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr, call
from xyntra_ep.tracea.core_ir.ops import ReduceKind
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder
from xyntra_ep.tracea.semantic_ir.math_library import convert_mask_to_float
from xyntra_ep.tracea.semantic_ir.nodes import (
    Const,
    Convert,
    Elem,
    Iota,
    Reduce,
    Rvalue,
    Select,
    Var,
    binary,
    i32,
    i64,
    index,
    splat,
    vmax,
    vmin,
)
from xyntra_ep.tracea.semantic_ir.scalar_code import value_type

_ARG = frozenset({ReduceKind.ARGMAX, ReduceKind.ARGMIN, ReduceKind.ARGMAX_LAST, ReduceKind.ARGMIN_LAST})
_MINIMUM = frozenset({ReduceKind.MIN, ReduceKind.ARGMIN, ReduceKind.ARGMIN_LAST})
_LAST = frozenset({ReduceKind.ARGMAX_LAST, ReduceKind.ARGMIN_LAST})


def is_arg(kind: ReduceKind) -> bool:
    """Whether the result is a position."""
    return kind in _ARG


def reduced_body(kind: ReduceKind, body: Expr) -> Expr:
    """``body`` in the type it is reduced in: truth values are counted and compared as numbers, but or-ed and and-ed as such."""
    logical = kind in (ReduceKind.MAX, ReduceKind.MIN, ReduceKind.ANY_NAN_MAX)
    return call("to_i", body) if body.dtype is DType.BOOL and not logical else body


def identity(kind: ReduceKind, dtype: DType) -> float | int:
    """What changes no result, also the result over nothing."""
    if kind is ReduceKind.SUM:
        return 0
    if kind is ReduceKind.PROD:
        return 1
    low = kind not in _MINIMUM
    if dtype is DType.F32:
        return float("-inf") if low else float("inf")
    if dtype is DType.BOOL:
        return 0 if low else -1
    return -(2**63) if low else 2**63 - 1


class Accumulator:
    """The running value of one stage in some lanes. Extremes leave NaN out (see ``plan_rows`` for the first element)."""

    def __init__(self, b: KernelBuilder, kind: ReduceKind, dtype: DType, lanes: int) -> None:
        self._b = b
        self.kind = kind
        self.dtype = dtype
        self.lanes = lanes
        start = Const(value_type(dtype, lanes), identity(kind, dtype))
        self._best = b.variable("acc", start)
        self._at: Var | None = b.variable("at", Const(i64(lanes), -1 if kind in _LAST else 0)) if is_arg(kind) else None

    def update(self, value: Rvalue, position: Rvalue | None = None, count: Rvalue | None = None) -> None:
        """Take in one vector: all lanes or those below ``count``. Arg kinds want the i64 ``position`` of each lane."""
        b = self._b
        if count is not None:
            active = binary("lt", Iota(i32(self.lanes)), splat(Convert(i32(1), count), self.lanes))
            neutral = Const(value.type, identity(self.kind, self.dtype))
            value = b.let("active", Select(active, value, neutral))
        if is_arg(self.kind):
            assert position is not None
            self._take_arg(value, splat(position, self.lanes) if self.lanes > 1 else position)
            return
        b.assign(self._best, self._combined(b.let("next", value), self._best))

    @property
    def state(self) -> list[Var]:
        """What is known so far; not for arg kinds."""
        assert not is_arg(self.kind)
        return [self._best]

    def take(self, state: Sequence[Rvalue]) -> None:
        """Take in the ``state`` of another one with as many lanes."""
        [best] = state
        self._b.assign(self._best, self._combined(best, self._best))

    def merge(self, other: Accumulator) -> None:
        """Take in another one with as many lanes (not for arg kinds, whose ``result`` merges)."""
        self.take(other.state)

    def fold(self, wide: Accumulator) -> None:
        """Take in all lanes of ``wide``; this one has a single lane."""
        b, kind = self._b, self.kind
        if is_arg(kind):
            assert wide._at is not None
            values = b.array("best", DType.F32 if self.dtype is DType.F32 else DType.I64, wide.lanes)
            positions = b.array("where", DType.I64, wide.lanes)
            b.store(values, 0, wide._best)
            b.store(positions, 0, wide._at)
            with b.loop("l", 0, index(wide.lanes)) as lane:
                self._take_arg(b.load(values, lane), b.load(positions, lane))
            return
        b.assign(self._best, self._combined(Reduce(self._tree(), wide._best), self._best))

    def result(self, dtype: DType) -> Rvalue:
        """The value per lane, as ``dtype``."""
        value: Rvalue = self._best if self._at is None else vmax(self._at, 0)
        return self._b.let("result", converted(value, dtype))

    def _combined(self, value: Rvalue, best: Rvalue) -> Rvalue:
        # A NaN in ``value`` is dropped by the order of the operands, see semantic_ir.nodes.ARITHMETIC.
        match self.kind:
            case ReduceKind.SUM:
                return best + value
            case ReduceKind.PROD:
                return best * value
        low = self.kind in _MINIMUM
        if self.dtype is DType.BOOL:
            return binary("and" if low else "or", best, value)
        return vmin(value, best) if low else vmax(value, best)

    def _tree(self) -> str:
        match self.kind:
            case ReduceKind.SUM:
                return "add"
            case ReduceKind.PROD:
                return "mul"
        low = self.kind in _MINIMUM
        if self.dtype is DType.BOOL:
            return "and" if low else "or"
        return "min" if low else "max"

    def _take_arg(self, value: Rvalue, position: Rvalue) -> None:
        b, best, at = self._b, self._best, self._at
        assert at is not None
        value, position = b.let("next", value), b.let("pos", position)
        last = self.kind in _LAST
        pair = (value, best) if self.kind in _MINIMUM else (best, value)
        tie = binary("lt", at, position) if last else binary("lt", position, at)
        better = b.let("better", binary("or", binary("lt", *pair), binary("and", binary("eq", value, best), tie)))
        b.assign(best, Select(better, value, best))
        b.assign(at, Select(better, position, at))


def converted(value: Rvalue, dtype: DType) -> Rvalue:
    """``value`` as a value of the compute type ``dtype``."""
    want = value_type(dtype, value.type.lanes)
    if value.type == want:
        return value
    if want.elem is Elem.I32:
        return binary("ne", value, Const(value.type, 0))
    if value.type.elem is Elem.I32:
        return convert_mask_to_float(value) if want.elem is Elem.F32 else Convert(want, binary("and", value, 1))
    return Convert(want, value)
