"""Attentions to test with: one op in a program, heads in any memory layout, masks of every kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xyntra_ep.tracea.core_ir.dims import Size, symbol
from xyntra_ep.tracea.core_ir.dtypes import DType, from_float64
from xyntra_ep.tracea.core_ir.expr import Expr, acc, axis, call, const, load, size
from xyntra_ep.tracea.core_ir.ops import Attention, Binding, NoSoftmax, Operand, Product, Program, SymbolKind, Value, ValueKind

Array = NDArray[Any]
LOWEST = float(np.finfo(np.float32).min)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionCase:
    """``layout``: how q, k, v and the result lie, as axes of (batch, head, row, d) from the outermost. ``shared``: k and v have
    one head for all. ``masks``: row, full, bool, bias (by head), relative (gathered by distance), causal (by ``past`` and
    ``masked``), added (the same as a number that is added), ends (row s sees ``window`` columns, 0: all, up to s mod
    ``queries`` + what is read for its batch: one of ``lasts``), window (row s sees the columns after s - ``window`` up to s +
    ``past``). ``symbolic``: of b, s and t, those that the program names."""

    b: int = 1
    h: int = 2
    s: int = 5
    t: int = 5
    d: int = 16
    e: int = 16
    layout: str = "bhsd"
    k_layout: str = ""
    v_layout: str = ""
    shared: bool = False
    masks: tuple[str, ...] = ()
    past: int = 0  # a causal mask lets row s see columns up to s + past
    masked: float = float("-inf")
    queries: int = 0  # 0: as many as there are rows
    lasts: tuple[int, ...] = ()
    window: int = 0
    swapped: bool = False  # the causal mask is written as where(row < column, number, score)
    no_softmax: NoSoftmax = NoSoftmax.NAN
    symbolic: str = "st"
    dtype: DType = DType.F32
    scale: float = 0.25
    product: Product = Product.F32
    out: DType | None = None  # of the result; as the operands

    def __str__(self) -> str:
        named = (f"{name}={getattr(self, name)}" for name in self.__dataclass_fields__)
        defaults = {f"{name}={f.default}" for name, f in self.__dataclass_fields__.items()}
        return " ".join(part for part in named if part not in defaults)


def attention_of(program: Program) -> Attention:
    [op] = program.ops
    assert isinstance(op, Attention)
    return op


def build(case: AttentionCase, seed: int = 0) -> tuple[Program, list[Array]]:
    """(program, its inputs)."""
    return _Builder(case, seed).build()


class _Builder:
    def __init__(self, case: AttentionCase, seed: int) -> None:
        self.case = case
        self.rng = np.random.default_rng(seed)
        self.program = Program()
        self.inputs: list[Array] = []

    def build(self) -> tuple[Program, list[Array]]:
        case = self.case
        b, s, t = (symbol(x) if x in case.symbolic else getattr(case, x) for x in "bst")
        heads = 1 if case.shared else case.h
        q = self.heads(case.layout, (b, case.h, s, case.d), (case.b, case.h, case.s, case.d))
        k = self.heads(case.k_layout or case.layout, (b, heads, t, case.d), (case.b, heads, case.t, case.d))
        v = self.heads(case.v_layout or case.layout, (b, heads, t, case.e), (case.b, heads, case.t, case.e))
        inputs = [q, *(self.all_heads(o) if case.shared else o for o in (k, v))]
        score = self.score(inputs, b, s, t)
        out = self.view(ValueKind.OUTPUT, case.layout, (b, case.h, s, case.e), case.out or case.dtype)
        op = Attention(
            inputs=tuple(inputs),
            score=score,
            no_softmax=case.no_softmax,
            output=out,
            product=case.product,
            label="attention",
        )
        self.program.ops.append(op)
        self.program.sources.append((0,))
        for letter, source, place in (("b", 0, "b"), ("s", 0, "s"), ("t", 1, "s")):
            if letter in case.symbolic:
                layout = case.layout if source == 0 else case.k_layout or case.layout
                binding = Binding(name=letter, kind=SymbolKind.DIM, input=source, index=layout.index(place))
                self.program.bindings.append(binding)
        return self.program, self.inputs

    # -- operands

    def view(self, kind: ValueKind, layout: str, shape: tuple[Size, ...], dtype: DType, index: int = 0) -> Operand:
        """A value stored in the order of ``layout``, seen as (batch, head, row, d)."""
        order = ["bhsd".index(letter) for letter in layout]
        stored = tuple(shape[i] for i in order)
        self.program.values.append(Value(kind=kind, dtype=dtype, shape=stored, index=index))
        plain = self.program.operand(len(self.program.values) - 1)
        strides = tuple(plain.strides[order.index(i)] for i in range(4))
        return Operand(value=plain.value, dtype=dtype, shape=shape, strides=strides)

    def heads(self, layout: str, shape: tuple[Size, ...], real: tuple[int, ...]) -> Operand:
        order = ["bhsd".index(letter) for letter in layout]
        data = self.rng.standard_normal(tuple(real[i] for i in order))
        self.inputs.append(from_float64(data, self.case.dtype))
        return self.view(ValueKind.INPUT, layout, shape, self.case.dtype, len(self.inputs) - 1)

    def all_heads(self, operand: Operand) -> Operand:
        shape = (operand.shape[0], self.case.h, *operand.shape[2:])
        strides = (operand.strides[0], 0, *operand.strides[2:])
        return Operand(value=operand.value, dtype=operand.dtype, shape=shape, strides=strides)

    def more(self, inputs: list[Operand], shape: tuple[Size, ...], data: Array, dtype: DType = DType.F32) -> int:
        self.inputs.append(data)
        self.program.values.append(Value(kind=ValueKind.INPUT, dtype=dtype, shape=shape, index=len(self.inputs) - 1))
        inputs.append(self.program.operand(len(self.program.values) - 1))
        return len(inputs) - 1

    # -- the score

    def score(self, inputs: list[Operand], b: Size, s: Size, t: Size) -> Expr:
        case = self.case
        score = call("mul", acc(), const(case.scale))
        zero = const(0)
        for mask in case.masks:
            match mask:
                case "row":
                    hidden = np.where(self.rng.random((case.b, 1, 1, case.t)) < 0.3, LOWEST, 0).astype(np.float32)
                    j = self.more(inputs, (b, 1, 1, t), hidden)
                    score = call("add", score, load(j, axis(0), zero, zero, axis(3), dtype=DType.F32))
                case "full":
                    data = self.rng.standard_normal((case.b, 1, case.s, case.t)).astype(np.float32)
                    j = self.more(inputs, (b, 1, s, t), data)
                    score = call("add", score, load(j, axis(0), zero, axis(2), axis(3), dtype=DType.F32))
                case "bool":
                    j = self.more(inputs, (s, t), self.rng.random((case.s, case.t)) < 0.8, DType.BOOL)
                    seen = load(j, axis(2), axis(3), dtype=DType.BOOL)
                    score = call("where", seen, score, const(-1e4))
                case "bias":
                    j = self.more(inputs, (case.h,), self.rng.standard_normal(case.h).astype(np.float32))
                    slope = load(j, axis(1), dtype=DType.F32)
                    distance = call("to_f", call("sub", axis(3), axis(2)))
                    score = call("add", score, call("mul", slope, call("mul", distance, const(0.05))))
                case "relative":
                    j = self.more(inputs, (9,), self.rng.standard_normal(9).astype(np.float32))
                    distance = call("add", call("sub", axis(3), axis(2)), const(4))
                    at = call("max", const(0), call("min", const(8), distance))
                    score = call("add", score, load(j, at, dtype=DType.F32))
                case "causal":
                    score = self.causal(score)
                case "ends":
                    j = self.more(inputs, (b,), np.asarray(case.lasts, np.int64), DType.I64)
                    query = call("mod", axis(2), const(case.queries)) if case.queries else axis(2)
                    last = call("add", query, load(j, axis(0), dtype=DType.I64))
                    score = call("where", call("le", axis(3), last), score, const(case.masked))
                    if case.window:
                        begins = call("lt", call("sub", last, const(case.window)), axis(3))
                        score = call("where", begins, score, const(case.masked))
                case "window":
                    first = call("sub", axis(2), const(case.window))
                    seen = call("and", call("le", axis(3), call("add", axis(2), size(case.past))), call("lt", first, axis(3)))
                    score = call("where", seen, score, const(case.masked))
                case "blocks" | "added blocks":
                    score = self.blocks(inputs, b, s, t, score, is_added=mask != "blocks")
                case "padding":
                    seen_columns = np.arange(case.t) < np.asarray(case.lasts)[:, None]
                    j = self.more(inputs, (b, t), seen_columns, DType.BOOL)
                    score = call("where", load(j, axis(0), axis(3), dtype=DType.BOOL), score, const(case.masked))
                case "added":
                    score = call("add", score, self.causal(const(0.0)))
        return score

    def blocks(self, inputs: list[Operand], b: Size, s: Size, t: Size, score: Expr, *, is_added: bool) -> Expr:
        """A table of squares of ``window``, a third of which are seen, and those of the diagonal."""
        case, side = self.case, self.case.window
        tiles = self.rng.random((case.b, 1, -(-case.s // side), -(-case.t // side))) < 1 / 3
        for i in range(min(tiles.shape[2:])):
            tiles[:, :, i, i] = True
        seen = tiles.repeat(side, axis=2)[:, :, : case.s].repeat(side, axis=3)[..., : case.t]
        if is_added:
            j = self.more(inputs, (b, 1, s, t), np.where(seen, 0, case.masked).astype(np.float32))
            return call("add", score, load(j, axis(0), const(0), axis(2), axis(3), dtype=DType.F32))
        j = self.more(inputs, (b, 1, s, t), seen, DType.BOOL)
        return call("where", load(j, axis(0), const(0), axis(2), axis(3), dtype=DType.BOOL), score, const(case.masked))

    def causal(self, score: Expr) -> Expr:
        last = call("add", axis(2), size(self.case.past))
        number = const(self.case.masked)
        if self.case.swapped:
            return call("where", call("lt", last, axis(3)), number, score)
        return call("where", call("le", axis(3), last), score, number)
