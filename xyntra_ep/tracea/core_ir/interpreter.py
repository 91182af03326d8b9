"""What every core-IR op means, in float64 (int64, bool): the reference that all kernels are checked against."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xyntra_ep.tracea.core_ir.dims import Size, evaluate
from xyntra_ep.tracea.core_ir.dtypes import DType, from_float64, to_float64
from xyntra_ep.tracea.core_ir.expr import SCALAR_OPS, Expr, walk
from xyntra_ep.tracea.core_ir.ops import (
    Attention,
    Conv,
    CoreOp,
    Gemm,
    NoSoftmax,
    Operand,
    Pointwise,
    Product,
    Program,
    Recurrence,
    ReduceKind,
    RowReduce,
    Scan,
    TopK,
    ValueKind,
)

Array = NDArray[Any]


class Memory:
    """The flat contents of every value of a program while it is interpreted, in stored types."""

    def __init__(self, program: Program, symbols: Mapping[str, int], keep_float64: bool = False) -> None:
        self.program = program
        self.symbols = symbols
        self.keep_float64 = keep_float64
        self.flat: dict[int, Array] = {}

    def size(self, value: Size) -> int:
        return evaluate(value, self.symbols)

    def shape(self, sizes: Sequence[Size]) -> tuple[int, ...]:
        return tuple(self.size(s) for s in sizes)

    def positions(self, operand: Operand) -> Array:
        """Flat element positions of a view, as an int64 array of its shape."""
        at = np.asarray(self.size(operand.offset), dtype=np.int64)
        shape = self.shape(operand.shape)
        for i, (extent, stride) in enumerate(zip(shape, operand.strides, strict=True)):
            step = np.arange(extent, dtype=np.int64) * self.size(stride)
            at = at + step.reshape((-1,) + (1,) * (len(shape) - 1 - i))
        return np.broadcast_to(at, shape)

    def read(self, operand: Operand) -> Array:
        return self.flat[operand.value][self.positions(operand)]

    def write(self, operand: Operand, data: Array) -> None:
        value = self.program.values[operand.value]
        if operand.value not in self.flat:
            count = int(np.prod(self.shape(value.shape), dtype=np.int64))
            self.flat[operand.value] = to_float64(np.zeros(count, dtype=value.dtype.numpy), value.dtype)
        rounded = np.asarray(data)
        if not self.keep_float64 or not value.dtype.is_float:
            rounded = to_float64(from_float64(rounded, value.dtype), value.dtype)
        self.flat[operand.value][self.positions(operand)] = np.broadcast_to(rounded, self.shape(operand.shape))


def interpret(
    program: Program,
    inputs: Sequence[Array],
    constants: Sequence[Array] = (),
    *,
    keep_float64: bool = True,
) -> list[Array]:
    """Run ``program``; returns the island's outputs (float64 when ``keep_float64``, else rounded to their stored types)."""
    symbols: dict[str, int] = {}
    for b in program.bindings:
        source = inputs[b.input]
        symbols[b.name] = int(source.shape[b.index] if b.kind == "dim" else source.reshape(-1)[b.index])
    memory = Memory(program, program.with_definitions(symbols), keep_float64)
    for i, value in enumerate(program.values):
        if value.kind is ValueKind.INPUT:
            memory.flat[i] = to_float64(np.ascontiguousarray(inputs[value.index]).reshape(-1), value.dtype)
        elif value.kind is ValueKind.CONST:
            memory.flat[i] = to_float64(np.ascontiguousarray(constants[value.index]).reshape(-1), value.dtype)
        elif value.kind is ValueKind.LITERAL:
            memory.flat[i] = to_float64(np.frombuffer(value.literal, dtype=value.dtype.numpy), value.dtype)
    with np.errstate(all="ignore"):
        for op in program.ops:
            interpret_op(memory, op)
    outputs = sorted((v.index, i) for i, v in enumerate(program.values) if v.kind is ValueKind.OUTPUT)
    results = []
    for _, i in outputs:
        value = program.values[i]
        array = memory.flat[i].reshape(memory.shape(value.shape))
        results.append(array if keep_float64 else from_float64(array, value.dtype))
    return results


def interpret_op(memory: Memory, op: CoreOp) -> None:
    """Execute one op on ``memory``."""
    match op:
        case Pointwise():
            for body, out in zip(op.bodies, op.outputs, strict=True):
                memory.write(out, evaluate_expr(body, memory, op.inputs, memory.shape(op.domain)))
        case RowReduce():
            _row_reduce(memory, op)
        case Gemm():
            a, b = memory.read(op.inputs[0]), memory.read(op.inputs[1])
            if op.product is Product.INT8W:
                b = _as_int8(b)
            else:
                a, b = _rounded(a, op.product), _rounded(b, op.product)
            _epilogue(memory, op, np.matmul(a, b))
        case Conv():
            _epilogue(memory, op, _convolve(memory, op))
        case Attention():
            _attention(memory, op)
        case Scan():
            _scan(memory, op)
        case TopK():
            _top_k(memory, op)
        case Recurrence():
            _recurrence(memory, op)


def evaluate_expr(
    root: Expr,
    memory: Memory,
    inputs: Sequence[Operand],
    domain: tuple[int, ...],
    acc: Mapping[int, Array] | None = None,
    at: Mapping[int, Array] | None = None,
) -> Array:
    """``root`` for every index of ``domain``; ``acc`` holds arrays that broadcast to it, ``at`` those of axes that are not
    counted but given."""
    values: dict[int, Array] = {}
    for e in walk(root):
        args = [values[id(a)] for a in e.args]
        if e.kind == "axis" and at is not None and e.attr in at:
            result = at[e.attr]
        elif e.kind == "axis":
            shape = [1] * len(domain)
            shape[e.attr] = domain[e.attr]
            result = np.arange(domain[e.attr], dtype=np.int64).reshape(shape)
        elif e.kind == "const":
            result = np.asarray(e.attr)
        elif e.kind == "size":
            result = np.asarray(memory.size(e.attr), dtype=np.int64)
        elif e.kind == "acc":
            assert acc is not None
            result = acc[e.attr]
        elif e.kind == "load":
            operand = inputs[e.attr]
            place: Array = np.asarray(memory.size(operand.offset), dtype=np.int64)
            for index, stride in zip(args, operand.strides, strict=True):
                place = place + index * memory.size(stride)
            flat = memory.flat[operand.value]
            # A window's select may guard an index outside the buffer: what is read there is not used.
            result = flat[np.clip(place, 0, max(len(flat) - 1, 0))] if len(flat) else np.zeros(place.shape, flat.dtype)
        else:
            result = SCALAR_OPS[e.attr].reference(*args)
        values[id(e)] = np.asarray(result)
    return np.broadcast_to(values[id(root)], domain)


_REDUCE: dict[ReduceKind, Callable[[Array], Array]] = {
    ReduceKind.SUM: lambda x: x.sum(axis=-1),
    ReduceKind.PROD: lambda x: x.prod(axis=-1),
    ReduceKind.MAX: lambda x: _unless_first_is_nan(x, np.fmax.reduce(x, axis=-1, initial=_lowest(x)), np.nan),
    ReduceKind.MIN: lambda x: _unless_first_is_nan(x, np.fmin.reduce(x, axis=-1, initial=_highest(x)), np.nan),
    ReduceKind.ANY_NAN_MAX: lambda x: np.fmax.reduce(x, axis=-1, initial=_lowest(x)),
    ReduceKind.ARGMAX: lambda x: _place(x, np.fmax),
    ReduceKind.ARGMIN: lambda x: _place(x, np.fmin),
    ReduceKind.ARGMAX_LAST: lambda x: _place(x, np.fmax, last=True),
    ReduceKind.ARGMIN_LAST: lambda x: _place(x, np.fmin, last=True),
}


def _unless_first_is_nan(x: Array, result: Array, otherwise: Any) -> Array:
    return np.where(np.isnan(x[..., 0]), otherwise, result) if x.dtype.kind == "f" and x.shape[-1] else result


def _place(x: Array, best: np.ufunc, last: bool = False) -> Array:
    """Where the best of those that are no NaN is."""
    found = x == best.reduce(x, axis=-1, keepdims=True)
    place = x.shape[-1] - 1 - np.argmax(found[..., ::-1], axis=-1) if last else np.argmax(found, axis=-1)
    return _unless_first_is_nan(x, place, 0)


def _lowest(x: Array) -> Any:
    return {"f": -np.inf, "i": np.iinfo(np.int64).min, "b": False}[x.dtype.kind]


def _highest(x: Array) -> Any:
    return {"f": np.inf, "i": np.iinfo(np.int64).max, "b": True}[x.dtype.kind]


def _row_reduce(memory: Memory, op: RowReduce) -> None:
    outer, inner = memory.shape(op.outer), memory.shape(op.inner)
    acc: dict[int, Array] = {}
    for j, stage in enumerate(op.stages):
        full = evaluate_expr(stage.body, memory, op.inputs, outer + inner, acc).reshape((*outer, math.prod(inner)))
        acc[j] = _REDUCE[stage.kind](full).reshape(outer + (1,) * len(inner))
    for out in op.outputs:
        domain = outer if out.per_row else outer + inner
        at = {j: a.reshape(outer) for j, a in acc.items()} if out.per_row else acc
        memory.write(out.operand, evaluate_expr(out.body, memory, op.inputs, domain, at))


def _rounded(x: Array, product: Product) -> Array:
    """``x`` (float64) as it is multiplied: rounded to a narrower float (through f32, as it is stored before), or as it is."""
    if product is Product.TF32:
        return _as_tf32(x.astype(np.float32)).astype(np.float64)
    half = product.half
    return x if half is None else to_float64(from_float64(x.astype(np.float32), half), half)


def _as_tf32(x: NDArray[np.float32]) -> NDArray[np.float32]:
    """To the nearest with 10 bits behind the leading one, of two the larger (PTX ISA, cvt.rna.tf32.f32)."""
    bits = x.view(np.uint32)
    rounded: NDArray[np.float32] = ((bits + 0x1000) & 0xFFFFE000).astype(np.uint32).view(np.float32)
    return np.where(np.isnan(x), x, rounded)


def _as_int8(b: Array) -> Array:
    """``b`` [..., k, n] after quantisation to 8 bits with a scale for each column."""
    scale = np.max(np.abs(b), axis=-2, keepdims=True, initial=0.0) / 127.0
    quantised: Array = np.rint(b / np.where(scale > 0, scale, 1.0)) * scale
    return quantised


def _epilogue(memory: Memory, op: Gemm | Conv, acc: Array) -> None:
    domain = memory.shape(op.domain)
    memory.write(op.output, evaluate_expr(op.epilogue, memory, op.inputs, domain, {0: np.broadcast_to(acc, domain)}))


def _convolve(memory: Memory, op: Conv) -> Array:
    x, w = memory.read(op.inputs[0]), memory.read(op.inputs[1])
    x, w = _rounded(x, op.product), _rounded(w, op.product)
    n, c = x.shape[:2]
    m, c_group = w.shape[:2]
    kernel, out_spatial = w.shape[2:], memory.shape(op.output.shape)[2:]
    rank = len(kernel)
    padded_extent = [
        (o - 1) * s + (k - 1) * d + 1 for o, s, k, d in zip(out_spatial, op.strides, kernel, op.dilations, strict=True)
    ]
    begin = memory.shape(op.pads)
    widths = [(b, max(0, e - b - i)) for b, e, i in zip(begin, padded_extent, x.shape[2:], strict=True)]
    padded = np.pad(x, [(0, 0), (0, 0), *widths])
    result = np.zeros((n, m, *out_spatial))
    for tap in np.ndindex(*kernel):
        window = tuple(
            slice(t * d, t * d + (o - 1) * s + 1, s)
            for t, d, o, s in zip(tap, op.dilations, out_spatial, op.strides, strict=True)
        )
        part = padded[(slice(None), slice(None), *window)].reshape(n, op.group, c_group, int(np.prod(out_spatial)))
        weights = w[(slice(None), slice(None), *tap)].reshape(op.group, m // op.group, c_group)
        result += np.einsum("ngcp,gmc->ngmp", part, weights).reshape(n, m, *out_spatial)
    assert rank == len(op.strides) and c == c_group * op.group
    return result


def _attention(memory: Memory, op: Attention) -> None:
    q, k, v = (memory.read(o) for o in op.inputs[:3])
    q, k, v = (_rounded(x, op.product) for x in (q, k, v))
    raw = np.matmul(q, np.swapaxes(k, -1, -2))
    score = evaluate_expr(op.score, memory, op.inputs, raw.shape, {0: raw})
    top = score.max(axis=-1, keepdims=True, initial=-np.inf)
    weight = np.exp(score - top)
    total = weight.sum(axis=-1, keepdims=True)
    probability = _rounded(weight, op.product) / total
    if op.no_softmax is NoSoftmax.ZERO:
        probability = np.where(np.isnan(probability), 0.0, probability)
    if op.no_softmax is NoSoftmax.UNSEEN_ZERO:
        probability = np.where(top == -np.inf, 0.0, probability)
    memory.write(op.output, np.matmul(probability, v))


def _scan(memory: Memory, op: Scan) -> None:
    x = evaluate_expr(op.body, memory, op.inputs, memory.shape(op.output.shape))
    x = x[..., ::-1] if op.reverse else x
    total = np.cumsum(x, axis=-1) if op.kind is ReduceKind.SUM else np.cumprod(x, axis=-1)
    if op.exclusive and total.shape[-1]:
        first = np.full_like(total[..., :1], 0 if op.kind is ReduceKind.SUM else 1)
        total = np.concatenate([first, total[..., :-1]], axis=-1)
    memory.write(op.output, total[..., ::-1] if op.reverse else total)


def _top_k(memory: Memory, op: TopK) -> None:
    x = memory.read(op.inputs[0])
    key = -x if op.largest else x
    order = np.argsort(key, axis=-1, kind="stable")[..., : op.k]
    if x.dtype.kind == "f":  # NaN counts as the largest, as numpy and ORT order it
        nan_key = np.where(np.isnan(x), -np.inf if op.largest else np.inf, key)
        order = np.argsort(nan_key, axis=-1, kind="stable")[..., : op.k]
    memory.write(op.values, np.take_along_axis(x, order, axis=-1))
    memory.write(op.indices, order)


def _recurrence(memory: Memory, op: Recurrence) -> None:
    directions, steps, rows, width = memory.shape(op.domain)
    r = memory.read(op.inputs[0])
    lengths = np.clip(memory.read(op.inputs[1]), 0, steps) if op.has_lengths else np.full(rows, steps)
    output = np.zeros((directions, steps, rows, width))
    finals = [np.zeros((directions, rows, width)) for _ in op.finals]
    domain = (1, 1, rows, width)
    for d in range(directions):
        at = {0: np.full((1, 1, 1, 1), d), 1: np.zeros((1, 1, 1, 1), np.int64)}
        states = [evaluate_expr(e, memory, op.inputs, domain, None, at) for e in op.initial]
        for step in range(steps):
            running = step < lengths
            time = np.where(running, lengths - 1 - step if op.reverse[d] else step, 0)
            at[1] = time.reshape(1, 1, rows, 1)
            vectors, gate = list(states), 0
            for stage in op.stages:
                acc = dict(enumerate(vectors, stage.gates))
                acc |= {g: np.matmul(vectors[stage.factor], r[d, gate + g]) for g in range(stage.gates)}
                results = [evaluate_expr(e, memory, op.inputs, domain, acc, at) for e in stage.bodies]
                vectors += results
                gate += stage.gates
            stays = ~running.reshape(1, 1, rows, 1)
            states = [np.where(stays, old, new) for old, new in zip(states, results, strict=True)]
            output[d, time[running], running] = states[0][0, 0, running]
        for final, state in zip(finals, states, strict=True):
            final[d, lengths > 0] = state[0, 0, lengths > 0]
    for operand, data in ((op.output, output), *zip(op.finals, finals, strict=True)):
        if operand is not None:
            memory.write(operand, data)


def random_like(shape: tuple[int, ...], dtype: DType, seed: int) -> Array:
    """Seeded test data in the stored type: normal floats, small integers, fair bools."""
    rng = np.random.default_rng(seed)
    if dtype.is_float:
        return from_float64(rng.standard_normal(shape), dtype)
    return rng.integers(0, 2 if dtype is DType.BOOL else 7, shape).astype(dtype.numpy)
