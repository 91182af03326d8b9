"""RowReduce: softmax, normalisations, pooling, reductions.

A long row is one program's, read once where it fits a block and block by block in a loop where it does not, or may not. Of short
rows (a pooling window) a program has several, as a tile of rows and columns.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager

from xyntra_ep.frameworks.triton.expressions import Bodies, Running, Space
from xyntra_ep.frameworks.triton.kernel_text import KernelText, operand, python_size
from xyntra_ep.tracea.core_ir.dims import product
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr, acc, acc_int, axis, call, const, node, rewrite, size, walk
from xyntra_ep.tracea.core_ir.ops import ReduceKind, RowOutput, RowReduce, Stage, contiguous_strides
from xyntra_ep.tracea.kernels.shared.index import Group

WHOLE_AT_MOST = 8192  # columns that a program holds
LOOP_BLOCK = 1024
SHORT_AT_MOST = 128  # columns of which a program has several rows
TILE = 2048  # elements of such a tile
_BEST = 1000  # and a stage's number: where a search for a place keeps what it searches
_PLACE_IDENTITY = {ReduceKind.MIN: 2**31 - 1, ReduceKind.MAX: -1}
_PLACES = {ReduceKind.ARGMAX, ReduceKind.ARGMIN, ReduceKind.ARGMAX_LAST, ReduceKind.ARGMIN_LAST}


def rows(op: RowReduce) -> KernelText:
    return _Rows(op).kernel


class _Rows:
    def __init__(self, op: RowReduce) -> None:
        self.kernel = kernel = KernelText()
        self._op = op
        self._columns = product(op.inner)
        known = self._columns if isinstance(self._columns, int) else WHOLE_AT_MOST + 1
        self._looped = known > WHOLE_AT_MOST
        self._short = known <= SHORT_AT_MOST and bool(op.outer)
        block = LOOP_BLOCK if self._looped else 1 << (max(known, 1) - 1).bit_length()
        total = product(op.outer)
        if self._short:
            several = kernel.constexpr("ROWS", max(1, TILE // block))
            kernel.grid = (f"triton.cdiv({python_size(total)}, {TILE // block})",)
            kernel.line(f"rows = tl.program_id(0) * {several} + tl.arange(0, {several})[:, None]")
            kernel.line(f"rows_mask = rows < {operand(kernel.size(total))}")
        else:
            kernel.grid = (python_size(total),)
            kernel.line("rows = tl.program_id(0)")
        self._block = kernel.constexpr("BLOCK", block)
        running = Running(
            group=Group(axes=tuple(range(len(op.outer))), extents=op.outer),
            name="rows",
            mask="rows_mask" if self._short else "",
            is_block=self._short,
        )
        self._acc: dict[int, str] = {}
        self._pointers: dict[int, str] = {}
        self._space = Space(kernel, op.outer, [running])
        self._outer = range(len(op.outer))
        self._axis = 1 if self._short else 0
        self._write()

    def _write(self) -> None:
        op, kernel = self._op, self.kernel
        stages = list(_stages(op))
        every = [o for o in op.outputs if not o.per_row]
        whole = None if self._looped else self._bodies([s.body for _, s in stages] + [o.body for o in every], "")
        for number, stage in stages:
            self._acc[number] = self._reduced(stage, whole, number < _BEST and op.stages[number].kind in _PLACES)
            if whole is not None:
                whole.acc = dict(self._acc)
            if number < len(op.stages) and (settled := _settled(op, number)) is not None:
                body = Bodies(self._space, op.inputs, [settled], self._pointers, self._acc, self._outer)
                self._acc[number] = kernel.let("row", body.write(settled))
                if whole is not None:
                    whole.acc = dict(self._acc)
        per_row = [o for o in op.outputs if o.per_row]
        if per_row:
            self._store(
                Bodies(self._space, op.inputs, [o.body for o in per_row], self._pointers, self._acc, self._outer), per_row
            )
        if every and whole is not None:
            self._store(whole, every)
        elif every:
            with self._loop():
                self._store(self._bodies([o.body for o in every], "start + "), every)

    def _loop(self) -> AbstractContextManager[None]:
        return self.kernel.block(f"for start in range(0, {self.kernel.size(self._columns)}, BLOCK):")

    def _bodies(self, roots: Sequence[Expr], start: str) -> Bodies:
        """Over the columns of a block, which are counted here."""
        kernel, op = self.kernel, self._op
        lanes = "tl.arange(0, BLOCK)"
        kernel.line(f"cols = {start}{lanes}[None, :]" if self._short else f"cols = {start}{lanes}")
        mask = ""
        if not isinstance(self._columns, int) or self._columns % kernel.blocks["BLOCK"]:
            mask = "cols_mask"
            kernel.line(f"cols_mask = cols < {operand(kernel.size(self._columns))}")
        axes = tuple(range(len(op.outer), len(op.outer) + len(op.inner)))
        running = Running(group=Group(axes=axes, extents=op.inner), name="cols", mask=mask)
        return Bodies(self._space.within(running, op.inner), op.inputs, roots, self._pointers, self._acc, self._outer)

    def _reduced(self, stage: Stage, whole: Bodies | None, is_place: bool) -> str:
        kernel, form = self.kernel, _FORMS[stage.kind]
        identity = str(_PLACE_IDENTITY[stage.kind]) if is_place else form.identity(stage.dtype)
        if whole is not None:
            over = self._masked(stage, whole, identity, is_place)
        else:
            typed = {DType.F32: "tl.float32", DType.I64: "tl.int64", DType.BOOL: "tl.int32"}[stage.dtype]
            over = kernel.name(f"{form.name}s")
            kernel.line(f"{over} = tl.full([BLOCK], {identity}, {'tl.int32' if is_place else typed})")
            with self._loop():
                bodies = self._bodies([stage.body], "start + ")
                kernel.line(f"{over} = {form.joined(over, self._masked(stage, bodies, identity, is_place))}")
        return kernel.let(form.name, self._finished(stage, form.over(over, self._axis)))

    def _masked(self, stage: Stage, bodies: Bodies, identity: str, is_place: bool) -> str:
        """The value of the stage where there are columns, elsewhere what changes nothing."""
        value = bodies.write(stage.body, "value")
        if stage.dtype is not DType.F32 and not is_place:
            value = f"tl.cast({value}, tl.{'int32' if stage.dtype is DType.BOOL else 'int64'})"
        inner = range(len(self._op.outer), len(self._op.outer) + len(self._op.inner))
        masks = bodies.space.masks(inner)
        if not bodies.lanes(stage.body).intersection(inner):  # one number for all columns
            masks = [f"(cols < {operand(self.kernel.size(self._columns))})"]
        elif stage.kind is ReduceKind.SUM and stage.body.kind == "load" and value.isidentifier():
            return value  # there are zeros where no columns are
        return f"tl.where({masks[0]}, {value}, {identity})" if masks else value

    def _finished(self, stage: Stage, text: str) -> str:
        text = f"{text}[:, None]" if self._short else text
        return f"{text} != 0" if stage.dtype is DType.BOOL else text

    def _store(self, bodies: Bodies, outputs: Sequence[RowOutput]) -> None:
        for out in outputs:
            value = bodies.write(out.body)
            bodies.store(out.operand, self.kernel.pointer(out.operand, "out"), value)


class _Form:
    """How Triton reduces: over a block, block after block, and what changes nothing."""

    def __init__(self, name: str, over: str, joined: str, least: str) -> None:
        self.name, self._over, self._joined, self._least = name, over, joined, least

    def over(self, value: str, along: int) -> str:
        return self._over.format(value, along)

    def joined(self, total: str, value: str) -> str:
        return self._joined.format(total, value)

    def identity(self, dtype: DType) -> str:
        if self._least in ("0", "1"):
            return f"{self._least}.0" if dtype is DType.F32 else self._least
        integer = str(-(2**63)) if self._least == "-inf" else str(2**63 - 1)
        truth = "0" if self._least == "-inf" else "1"
        return {DType.F32: f'float("{self._least}")', DType.I64: integer, DType.BOOL: truth}[dtype]


_SUM = _Form("total", "tl.sum({0}, axis={1})", "{0} + {1}", "0")
_PROD = _Form("product", "tl.reduce({0}, {1}, multiply)", "{0} * {1}", "1")
_MAX = _Form("top", "tl.max({0}, axis={1})", "tl.maximum({0}, {1})", "-inf")
_MIN = _Form("least", "tl.min({0}, axis={1})", "tl.minimum({0}, {1})", "inf")
_FORMS = {
    ReduceKind.SUM: _SUM,
    ReduceKind.PROD: _PROD,
    ReduceKind.MAX: _MAX,
    ReduceKind.ANY_NAN_MAX: _MAX,
    ReduceKind.MIN: _MIN,
}


def _stages(op: RowReduce) -> Iterator[tuple[int, Stage]]:
    """The stages by the number of what they find. A search for a place is two: the best, then the first (last) that equals it."""
    for j, stage in enumerate(op.stages):
        if stage.kind not in _PLACES:
            yield j, stage
            continue
        largest = stage.kind in (ReduceKind.ARGMAX, ReduceKind.ARGMAX_LAST)
        yield _BEST + j, Stage(kind=ReduceKind.MAX if largest else ReduceKind.MIN, body=stage.body, dtype=stage.body.dtype)
        place: Expr = const(0)
        for i, stride in enumerate(contiguous_strides(op.inner)):
            place = call("add", place, call("mul", axis(len(op.outer) + i), size(stride)))
        last = stage.kind in (ReduceKind.ARGMAX_LAST, ReduceKind.ARGMIN_LAST)
        best = node("acc", (), _BEST + j, stage.body.dtype)
        nowhere = const(-1) if last else size(product(op.inner))
        body = call("where", call("eq", stage.body, best), place, nowhere)
        yield j, Stage(kind=ReduceKind.MAX if last else ReduceKind.MIN, body=body, dtype=DType.I64)


def _settled(op: RowReduce, number: int) -> Expr | None:
    """What a stage gives where its first element is NaN: NaN, or place 0. None where that need not be asked: of the maximum that
    a softmax takes off, whose sum is NaN then in any case."""
    stage = op.stages[number]
    decided = (ReduceKind.MAX, ReduceKind.MIN, *_PLACES)
    if stage.kind not in decided or stage.body.dtype is not DType.F32 or _is_taken_off(op, number):
        return None
    first = rewrite(stage.body, lambda e: const(0) if e.kind == "axis" and e.attr >= len(op.outer) else None)
    found = acc_int(number) if stage.kind in _PLACES else acc(number)
    return call("where", call("isnan", first), const(0) if stage.kind in _PLACES else const(math.nan), found)


def _is_taken_off(op: RowReduce, number: int) -> bool:
    exponents = (
        e.args[0] for s in op.stages[number + 1 :] for e in walk(s.body) if e.kind == "call" and e.attr.startswith("exp")
    )
    return any(e.kind == "call" and e.attr == "sub" and e.args[1] is acc(number) for e in exponents)
