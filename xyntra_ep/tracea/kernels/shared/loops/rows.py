"""A RowReduce made ready for code: its loops, its expressions without loads, and the values kept from one pass to the next."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from xyntra_ep.tracea.core_ir.dims import Size, product
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr, axis, call, const, load, rewrite, walk
from xyntra_ep.tracea.core_ir.index_range import scaled
from xyntra_ep.tracea.core_ir.ops import ReduceKind, RowReduce
from xyntra_ep.tracea.kernels.shared.index import AccessTable
from xyntra_ep.tracea.kernels.shared.loops.nest import Scope
from xyntra_ep.tracea.kernels.shared.loops.plan import Domain, Loop
from xyntra_ep.tracea.kernels.shared.loops.reduce import is_arg, reduced_body
from xyntra_ep.tracea.kernels.shared.operation_cost import operation_cycles
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder
from xyntra_ep.tracea.semantic_ir.nodes import Rvalue, index

_KEPT_ELEMENTS = 4096  # 16 KiB of stack
_EXTREMES = frozenset(ReduceKind) - {ReduceKind.SUM, ReduceKind.PROD, ReduceKind.ANY_NAN_MAX}
_WORTH_KEEPING = 8.0  # cycles per vector; a load from the first-level cache costs about one

ZERO = index(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowStage:
    """``keep``: a part of ``body`` that later passes read back from the access ``kept_in``."""

    kind: ReduceKind
    dtype: DType
    body: Expr
    keep: Expr | None = None
    kept_in: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class RowResult:
    """A body and the access it is written to."""

    body: Expr
    access: int
    per_row: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """The parts; ``outer`` and ``inner`` loops are merged and ordered where that changes nothing."""

    table: AccessTable
    outer: tuple[Loop, ...]
    inner: tuple[Loop, ...]
    stages: tuple[RowStage, ...]
    results: tuple[RowResult, ...]

    @property
    def roots(self) -> list[Expr]:
        return [s.body for s in self.stages] + [r.body for r in self.results]

    @property
    def full(self) -> list[tuple[Expr, int]]:
        """Bodies and accesses of the results that have an element for each of a row."""
        return [(r.body, r.access) for r in self.results if not r.per_row]

    @property
    def elements_per_row(self) -> Size:
        return product(loop.extent for loop in self.inner)


def plan_rows(op: RowReduce, b: KernelBuilder) -> Rows:
    """Loads become accesses, loops are put in memory order and merged. Loops leave NaN out of an extreme; where the first element
    is NaN, what reads the extreme is told so."""
    table = AccessTable(b, op.outer + op.inner)
    stage_bodies = [reduced_body(s.kind, _below_maximum(s.body, op)) for s in op.stages]
    result_bodies = [_below_maximum(_by_reciprocal(o.body, op), op) for o in op.outputs]
    firsts = {j: first for j in range(len(op.stages)) if (first := _decisive(j, stage_bodies, result_bodies, op)) is not None}
    stage_bodies = [_after_first(body, firsts) for body in stage_bodies]
    result_bodies = [_after_first(body, firsts) for body in result_bodies]
    stages = [table.reading(body, op.inputs) for body in stage_bodies]
    bodies = [table.reading(body, op.inputs) for body in result_bodies]
    outputs = [table.writing(o.operand) for o in op.outputs]
    loops = [Loop(i, extent) for i, extent in enumerate(op.outer + op.inner)]
    domain = Domain(table, loops, stages + bodies)
    outer = len(op.outer)
    reads = range(outputs[0])
    domain.order([*outputs, *reads], 0, outer)
    if not any(is_arg(s.kind) for s in op.stages):  # positions count the inner domain in its own order
        full = [k for k, o in zip(outputs, op.outputs, strict=True) if not o.per_row]
        domain.order([*full, *reads], outer)
    domain.simplify(outer)
    return Rows(
        table=table,
        outer=tuple(loop for loop in domain.loops if loop.axis < outer),
        inner=tuple(loop for loop in domain.loops if loop.axis >= outer),
        stages=tuple(RowStage(kind=s.kind, dtype=s.dtype, body=body) for s, body in zip(op.stages, domain.roots, strict=False)),
        results=tuple(
            RowResult(body=body, access=k, per_row=o.per_row)
            for o, body, k in zip(op.outputs, domain.roots[len(stages) :], outputs, strict=True)
        ),
    )


def _decisive(j: int, stages: Sequence[Expr], results: Sequence[Expr], op: RowReduce) -> Expr | None:
    """The first element of what stage ``j`` finds the extreme of, where it matters that it is NaN."""
    kind, body = op.stages[j].kind, stages[j]
    if kind not in _EXTREMES or body.dtype is not DType.F32 or _repeats_nan(j, stages, results, op):
        return None
    inner = {axis(len(op.outer) + i) for i in range(len(op.inner))}
    return rewrite(body, lambda e: const(0) if e in inner else None)


def _after_first(body: Expr, firsts: Mapping[int, Expr]) -> Expr:
    """``body`` with the extremes of stages as they are where the first element is NaN: NaN, or the place of that element."""

    def leaf(e: Expr) -> Expr | None:
        if e.kind != "acc" or e.attr not in firsts:
            return None
        otherwise = const(math.nan) if e.dtype is DType.F32 else const(0)
        return call("where", call("isnan", firsts[e.attr]), otherwise, e)

    return rewrite(body, leaf) if firsts else body


def _by_reciprocal(body: Expr, op: RowReduce) -> Expr:
    """x / y as x * (1 / y) where y is the same for the row and its reciprocal neither overflows nor vanishes: a square root (of
    a normalisation), and the sum of a softmax, one of whose exponentials is that of its maximum: 1."""
    inner = range(len(op.outer), len(op.outer) + len(op.inner))

    def is_safe(y: Expr) -> bool:
        if y.kind == "acc":
            stage = op.stages[y.attr]
            return stage.kind is ReduceKind.SUM and _below_maximum(stage.body, op).attr == "exp_nonpositive"
        if y.kind == "call" and y.attr == "where" and y.args[1].kind == "const":  # a root as a power of 0.5, see ``_root``
            y = y.args[2]
        return y.kind == "call" and y.attr == "sqrt" and not any(e.kind == "axis" and e.attr in inner for e in walk(y))

    def leaf(e: Expr) -> Expr | None:
        if e.kind == "call" and e.attr == "div" and is_safe(e.args[1]):
            return call("mul", rewrite(e.args[0], leaf), call("div", const(1.0), e.args[1]))
        return None

    return rewrite(body, leaf)


def _repeats_nan(maximum: int, stages: Sequence[Expr], results: Sequence[Expr], op: RowReduce) -> bool:
    """Whether every result takes in a sum of exp(x - maximum), which is NaN when an x is: the maximum itself may leave it out."""
    sums = {
        j
        for j, body in enumerate(stages)
        if op.stages[j].kind is ReduceKind.SUM and body.attr == "exp_nonpositive" and body.args[0].args[1].attr == maximum
    }
    used = [{e.attr for e in walk(body) if e.kind == "acc"} for body in results]
    return all(accs & sums for accs in used)


def _below_maximum(body: Expr, op: RowReduce) -> Expr:
    """exp(x - acc) where acc is the maximum of x over the row: the exponential of something <= 0 is half the work."""

    def leaf(e: Expr) -> Expr | None:
        if e.kind == "call" and e.attr == "exp" and e.args[0].kind == "call" and e.args[0].attr == "sub":
            x, top = e.args[0].args
            if top.kind == "acc" and op.stages[top.attr].kind is ReduceKind.MAX and op.stages[top.attr].body is x:
                return call("exp_nonpositive", e.args[0])
        return None

    return rewrite(body, leaf)


def keep_values(rows: Rows, b: KernelBuilder, on_stack: bool) -> Rows:
    """Let later passes over a row read what an earlier one computed at some cost: from the stack (one row at a time), or
    from the output that is going to be written at the same place anyway."""
    inner = {axis(loop.axis) for loop in rows.inner}
    stages, results = list(rows.stages), list(rows.results)
    homes = [r.access for r in results if not r.per_row and rows.table.accesses[r.access].dtype is DType.F32]
    for t, stage in enumerate(stages):
        later = [s.body for s in stages[t + 1 :]] + [r.body for r in results if not r.per_row]
        value = _worth_keeping(rows.table, stage.body, later, inner)
        if value is None:
            continue
        home = _home(rows, b, homes, on_stack)
        if home is None:
            continue
        kept = load(home, dtype=DType.F32)

        def swap(body: Expr, value: Expr = value, kept: Expr = kept) -> Expr:
            return rewrite(body, lambda e: kept if e is value else None)

        stages[t] = replace(stage, keep=value, kept_in=home)
        stages[t + 1 :] = [replace(s, body=swap(s.body)) for s in stages[t + 1 :]]
        results = [r if r.per_row else RowResult(body=swap(r.body), access=r.access, per_row=False) for r in results]
    return Rows(table=rows.table, outer=rows.outer, inner=rows.inner, stages=tuple(stages), results=tuple(results))


def _worth_keeping(table: AccessTable, body: Expr, later: Sequence[Expr], inner: set[Expr]) -> Expr | None:
    """The largest expensive float below ``body`` that ``later`` uses too."""
    again = {id(e) for root in later for e in walk(root)}
    for e in reversed(walk(body)):
        if e.kind == "call" and e.dtype is DType.F32 and id(e) in again and table.deps(e) & inner:
            cost = sum(operation_cycles(x) for x in walk(e) if table.deps(x) & inner)
            if cost >= _WORTH_KEEPING:
                return e
    return None


def _home(rows: Rows, b: KernelBuilder, homes: list[int], on_stack: bool) -> int | None:
    """An access for one float per element of a row."""
    count = rows.elements_per_row
    if on_stack and isinstance(count, int) and 0 < count <= _KEPT_ELEMENTS:
        position = const(0)
        for loop in rows.inner:
            position = call("add", scaled(position, loop.extent), axis(loop.axis))
        return rows.table.add(b.array("kept", DType.F32, count), DType.F32, position)
    return homes.pop() if homes else None


@contextmanager
def loops_around(scope: Scope, loops: Sequence[Loop], position: Rvalue = ZERO) -> Iterator[tuple[Scope, Rvalue]]:
    """Scalar loops, one scope each, so that what an outer one knows is computed there; and the row-major position."""
    if not loops:
        yield scope, position
        return
    first = loops[0]
    extent = scope.size(first.extent)
    with (
        scope.b.loop("k", 0, extent) as at,
        loops_around(scope.bind({first.axis: at}), loops[1:], position * extent + at) as inner,
    ):
        yield inner
