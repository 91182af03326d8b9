"""What kernel variants are tried with (`trials.py`): small ops as networks have them, with sizes that no tile divides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from xyntra_ep.tracea.core_ir.dims import Size, evaluate, symbol
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import acc, acc_int, axis, call, load
from xyntra_ep.tracea.core_ir.ops import (
    Binding,
    CoreOp,
    Operand,
    Pointwise,
    Product,
    Program,
    ReduceKind,
    RowOutput,
    RowReduce,
    Scan,
    Stage,
    SymbolKind,
    TopK,
    Value,
    ValueKind,
)
from xyntra_ep.tracea.interface.named_ops import Draft, op_named, product_of, softmax_of

Build = Callable[[Draft], CoreOp]
_ROWS = "rows"
ROWS = symbol(_ROWS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One op that variants are tried with. ``build`` makes it in a draft; ``units``: of a device with so few, for the tiles
    that large sizes have (two, so that blocks that work together are tried too); 0: as many as it has. ``rows``: what the
    size `ROWS` of the first input's first axis is in the run; 0: there is no such size."""

    name: str
    build: Build
    product: Product = Product.F32
    units: int = 0
    rows: int = 0

    def program(self) -> Program:
        """All that the op reads is an input, so that nothing is computed before the run."""
        draft = Draft(self.product)
        op, program = self.build(draft), draft.program
        program.ops.append(op)
        program.sources.append(())
        if self.rows:
            program.bindings.append(Binding(name=_ROWS, kind=SymbolKind.DIM, input=0, index=0))
        count = sum(value.kind is ValueKind.INPUT for value in program.values)
        for i, value in enumerate(program.values):
            if value.kind is ValueKind.CONST:
                program.values[i] = replace(value, kind=ValueKind.INPUT, index=count + value.index)
        return program

    def extents(self, value: Value) -> tuple[int, ...]:
        """Of the run."""
        return tuple(evaluate(size, {_ROWS: self.rows}) for size in value.shape)


def named(op: str, **sizes: int) -> Build:
    """An op of `named_ops`."""
    known = op_named(op)
    return lambda d: known.build(d, **known.complete(sizes))


def _view(operand: Operand, *order: int) -> Operand:
    """Its axis i is the operand's axis order[i]."""
    shape, strides = (tuple(row[i] for i in order) for row in (operand.shape, operand.strides))
    return replace(operand, shape=shape, strides=strides)


def _repeated(operand: Operand, *shape: Size) -> Operand:
    """Broadcast as ONNX does it."""
    missing = len(shape) - len(operand.shape)
    strides = (*[0] * missing, *(0 if n == 1 else step for n, step in zip(operand.shape, operand.strides, strict=True)))
    return replace(operand, shape=shape, strides=strides)


def _of_heads(d: Draft) -> CoreOp:
    """Scores of attention whose parts are kernels of their own: heads lie between positions, in both operands."""
    q, k = d.input(2, 37, 3, 64), d.input(2, 75, 3, 64)
    return product_of(d, _view(q, 0, 2, 1, 3), _view(k, 0, 2, 3, 1))


def _by_one_matrix(d: Draft) -> CoreOp:
    """A batch whose right operand repeats."""
    return product_of(d, d.input(4, 70, 72), _repeated(d.input(72, 40), 4, 72, 40))


def _turned(d: Draft) -> CoreOp:
    """Both operands lie the other way round."""
    return product_of(d, _view(d.input(200, 300), 1, 0), _view(d.input(520, 200), 1, 0))


def _positions(d: Draft) -> CoreOp:
    """ArgMax."""
    x = d.input(3, 5, 90)
    stage = Stage(kind=ReduceKind.ARGMAX, body=load(0, axis(0), axis(1), axis(2), dtype=x.dtype), dtype=DType.I64)
    out = RowOutput(body=acc_int(0), operand=d.output(3, 5, dtype=DType.I64), per_row=True)
    return RowReduce(outer=(3, 5), inner=(90,), inputs=(x,), stages=(stage,), outputs=(out,))


def _columns(d: Draft) -> CoreOp:
    """Sums across rows, of each element of a batch."""
    x = d.input(3, 37, 70)
    stage = Stage(kind=ReduceKind.SUM, body=load(0, axis(0), axis(2), axis(1), dtype=x.dtype))
    out = RowOutput(body=acc(0), operand=d.output(3, 70), per_row=True)
    return RowReduce(outer=(3, 70), inner=(37,), inputs=(x,), stages=(stage,), outputs=(out,))


def _elementwise(d: Draft, x: Operand, y: Operand) -> CoreOp:
    """The sum of what has the same shape."""
    body = call("add", *(load(j, *map(axis, range(len(x.shape))), dtype=x.dtype) for j in range(2)))
    return Pointwise(domain=x.shape, inputs=(x, y), bodies=(body,), outputs=(d.output(*x.shape),))


def _largest(d: Draft) -> CoreOp:
    x, k = d.input(3, 5, 700), 9
    indices = d.output(3, 5, k, dtype=DType.I64)
    return TopK(inputs=(x,), k=k, largest=True, values=d.output(3, 5, k), indices=indices)


def smallest_integers(d: Draft) -> CoreOp:
    """Many of which are equal."""
    x, k = d.input(7, 300, dtype=DType.I64), 70
    values, indices = (d.output(7, k, dtype=DType.I64) for _ in range(2))
    return TopK(inputs=(x,), k=k, largest=False, values=values, indices=indices)


def _cumulative(d: Draft) -> CoreOp:
    x = d.input(2, 3, 90)
    body = load(0, axis(0), axis(1), axis(2), dtype=x.dtype)
    return Scan(inputs=(x,), body=body, kind=ReduceKind.SUM, exclusive=True, reverse=True, output=d.output(2, 3, 90))


# Channels of convolutions are whole packets, else few variants are.
_MATRICES: tuple[tuple[str, Build], ...] = (
    ("a product", named("gemm", m=150, n=136, k=200)),
    ("a product of few rows", named("gemm", m=3, n=136, k=264)),
    ("products of heads", _of_heads),
    ("a convolution", named("conv", n=2, c=24, h=9, w=7, m=40, k=3, stride=2)),
    ("attention", named("attention", batch=2, heads=3, s=37, t=150, d_head=64)),
    ("attention of one row", named("attention", batch=1, heads=3, s=1, t=1100, d_head=64)),
)
_WIDE: tuple[tuple[str, Build], ...] = (("a product", named("gemm", m=300, n=520, k=200)), ("a product, turned", _turned))
_REST: tuple[tuple[str, Build], ...] = (
    ("products of few rows", lambda d: product_of(d, d.input(3, 2, 72), d.input(3, 72, 40))),
    ("a depthwise convolution", named("conv", n=2, c=24, h=9, w=7, m=24, k=3, group=24)),
    ("softmax", named("softmax", rows=7, columns=1500)),
    ("softmax of heads", lambda d: softmax_of(d, _view(d.input(2, 5, 3, 90), 0, 2, 1, 3))),
    ("argmax", _positions),
    ("sums of columns", _columns),
    ("a sum", named("add", n=5001)),
    ("a sum with a mask", lambda d: _elementwise(d, d.input(2, 3, 5, 90), _repeated(d.input(2, 1, 1, 90), 2, 3, 5, 90))),
    ("a transposition", lambda d: _elementwise(d, _view(d.input(3, 70, 44), 0, 2, 1), d.input(3, 44, 70))),
    ("the largest", _largest),
    ("the smallest integers", smallest_integers),
    ("cumulative sums", _cumulative),
)


def _of(product: Product, *rows: tuple[str, Build], units: int = 0) -> tuple[Sample, ...]:
    return tuple(Sample(name=name, build=build, product=product, units=units) for name, build in rows)


def _of_any_rows(product: Product, rows: int) -> Sample:
    name = f"a product of any number of rows, {rows}"
    return Sample(name=name, build=lambda d: product_of(d, d.input(ROWS, 264), d.weights(264, 136)), product=product, rows=rows)


SAMPLES: tuple[Sample, ...] = (
    *_of(Product.F32, *_MATRICES, *_REST),
    *_of(Product.BF16, *_MATRICES, ("products by one matrix", _by_one_matrix)),
    *_of(Product.TF32, *_MATRICES),
    *_of(Product.F16, _MATRICES[0]),
    *(sample for product in (Product.F32, Product.TF32, Product.BF16) for sample in _of(product, *_WIDE, units=2)),
    _of_any_rows(Product.F32, 5),
    _of_any_rows(Product.BF16, 5),
    _of_any_rows(Product.BF16, 150),
)
