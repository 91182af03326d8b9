"""Products: MatMul, Gemm and Einsum as sums of products, everything around them as epilogue."""

from __future__ import annotations

from dataclasses import replace

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.fusion.checks import broadcast_shapes
from xyntra_ep.fusion.graph import Node
from xyntra_ep.fusion.onnx_ops._operands import Inputs, all_of, as_float, f, maybe, one
from xyntra_ep.fusion.onnx_ops.quantised._absorbed import product_of_quantised
from xyntra_ep.fusion.onnx_ops.quantised._blocks import product_of_blocks
from xyntra_ep.fusion.onnx_ops.rows.reduction import per_row, rows
from xyntra_ep.fusion.op_spec import FLOATS, OpSpec, takes
from xyntra_ep.fusion.tensor import GemmNode, Tensor
from xyntra_ep.fusion.trace import Context
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dims import Size, either, eq, product
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import ReduceKind, Stage


def matmul(c: Context, a: Tensor, b: Tensor) -> Tensor:
    """NumPy's matmul for operands of rank >= 2, f32 out for float operands."""
    as_float(a)
    as_float(b)
    of_integers = product_of_quantised(c, a, b)
    if of_integers is not None:
        return of_integers
    of_blocks = product_of_blocks(c, a, b)
    if of_blocks is not None:
        return of_blocks
    c.require_equal(a.shape[-1], b.shape[-2], "inner dimensions differ")
    batch = broadcast_shapes(c.checks, a.shape[:-2], b.shape[:-2])
    depth = c.checks.root(a.shape[-1])  # that of constant weights, where a model does not say a's
    a = c.checks.fit(a, (*batch, a.shape[-2], depth))
    b = c.checks.fit(b, (*batch, depth, b.shape[-1]))
    return Tensor((*batch, a.shape[-2], b.shape[-1]), DType.F32, GemmNode(a=a, b=b))


def as_dtype(t: Tensor, dtype: DType) -> Tensor:
    """``t`` (f32) as ``dtype``: computed in f32 all the same, rounded where it is stored."""
    return replace(t, dtype=dtype)


def scaled(c: Context, t: Tensor, factor: float) -> Tensor:
    """``t`` (f32) times a number."""
    return t if factor == 1.0 else c.map([t], lambda v: E.call("mul", v, f(factor)), DType.F32)


def product_of(c: Context, a: Tensor, b: Tensor, alpha: float = 1.0) -> Tensor:
    """ONNX MatMul (vectors too), times ``alpha``, in the type of ``a``."""
    if a.rank == 0 or b.rank == 0:
        raise UnsupportedError("MatMul of a scalar")
    a2 = a.reshape((1, *a.shape)) if a.rank == 1 else a
    b2 = b.reshape((*b.shape, 1)) if b.rank == 1 else b
    out = as_dtype(scaled(c, matmul(c, a2, b2), alpha), a.dtype)
    shape = list(out.shape)
    if a.rank == 1:
        del shape[-2]
    if b.rank == 1:
        del shape[-1]
    return out.reshape(shape)


def _matmul(c: Context, node: Node, inputs: Inputs) -> Tensor:
    return product_of(c, one(inputs, 0), one(inputs, 1))


def _gemm(c: Context, node: Node, inputs: Inputs) -> Tensor:
    a, b, bias = one(inputs, 0), one(inputs, 1), maybe(inputs, 2)
    a = a.permute((1, 0)) if node.attr("transA", 0) else a
    b = b.permute((1, 0)) if node.attr("transB", 0) else b
    alpha, beta = float(node.attr("alpha", 1.0)), float(node.attr("beta", 1.0))
    out = scaled(c, matmul(c, a, b), alpha)
    if bias is not None:
        if bias.rank > 2:
            raise UnsupportedError(f"Gemm with a bias of rank {bias.rank}")
        shape = out.shape
        for have, want in zip(reversed(bias.shape), reversed(shape), strict=False):
            c.require(either(eq(have, want), eq(have, 1)), "Gemm: the bias does not broadcast to the product")
        if beta != 0.0:
            out = c.map([out, bias], lambda v, w: E.call("add", v, E.call("mul", w, f(beta))), DType.F32).named(shape)
    return as_dtype(out, a.dtype)


# -- Einsum


def _einsum(c: Context, node: Node, inputs: Inputs) -> Tensor:
    """One or two operands without repeated or elided subscripts: sums, a permutation, a product."""
    operands = [as_float(t) for t in all_of(inputs)]
    terms, result = _subscripts(str(node.need("equation")))
    if len(terms) != len(operands) or len(operands) > 2:
        raise UnsupportedError("Einsum of more than two operands")
    sizes: dict[str, Size] = {}
    for term, t in zip(terms, operands, strict=True):
        if len(term) != t.rank or len(set(term)) != len(term):
            raise UnsupportedError("Einsum over a diagonal")
        for axis, (letter, extent) in enumerate(zip(term, t.shape, strict=True)):
            sizes[letter] = c.checks.broadcast(sizes.get(letter, 1), extent, axis)
    if len(set(result)) != len(result) or not set(result) <= set(sizes):
        raise UnsupportedError("Einsum with an unknown result")
    operands = [c.checks.fit(t, [sizes[letter] for letter in term]) for t, term in zip(operands, terms, strict=True)]
    dtype = operands[0].dtype
    if len(operands) == 1:
        return _summed(operands[0], terms[0], result)
    reduced = []
    for i, (term, t) in enumerate(zip(terms, operands, strict=True)):
        kept = "".join(letter for letter in term if letter in result or letter in terms[1 - i])
        reduced.append((_summed(t, term, kept), kept))
    (a, left), (b, right) = reduced
    batch = [x for x in left if x in right and x in result]
    inner = [x for x in left if x in right and x not in result]
    rows_, columns = ([x for x in term if x not in batch and x not in inner] for term in (left, right))
    a = _arranged(a, left, batch, rows_, inner, sizes)
    b = _arranged(b, right, batch, inner, columns, sizes)
    order = [*batch, *rows_, *columns]
    out = as_dtype(matmul(c, a, b), dtype).reshape([sizes[x] for x in order])
    return out.permute([order.index(x) for x in result])


def _subscripts(equation: str) -> tuple[list[str], str]:
    """(terms, result); the result is implied where it is not written: letters that occur once, sorted."""
    text = equation.replace(" ", "")
    if "." in text:
        raise UnsupportedError("Einsum with an ellipsis")
    left, arrow, result = text.partition("->")
    letters = left.replace(",", "")
    implied = "".join(sorted(x for x in set(letters) if letters.count(x) == 1))
    return left.split(","), result if arrow else implied


def _summed(t: Tensor, term: str, kept: str) -> Tensor:
    """``t`` summed over the letters that are not kept, in the order of ``kept``."""
    gone = [i for i, letter in enumerate(term) if letter not in kept]
    if gone:
        _, _, _, x = rows(t, gone)
        t = per_row(t, gone, [Stage(kind=ReduceKind.SUM, body=x)], E.acc(0), False, t.dtype)
    rest = [letter for letter in term if letter in kept]
    return t.permute([rest.index(letter) for letter in kept])


def _arranged(t: Tensor, term: str, batch: list[str], first: list[str], second: list[str], sizes: dict[str, Size]) -> Tensor:
    """[batch..., product of ``first``, product of ``second``]"""
    moved = t.permute([term.index(x) for x in (*batch, *first, *second)])
    return moved.reshape((*(sizes[x] for x in batch), *(product(sizes[x] for x in group) for group in (first, second))))


OPS = [
    OpSpec(name="MatMul", lower=_matmul, versions=(1, 13), inputs=2, types=(FLOATS,)),
    OpSpec(
        name="Gemm",
        lower=_gemm,
        versions=(7, 13),
        inputs=3,
        attributes=takes("alpha", "beta", "transA", "transB"),
        types=(FLOATS,),
    ),
    OpSpec(
        name="Einsum",
        lower=_einsum,
        versions=(1, 28),
        inputs=None,
        attributes=takes("equation"),
        types=(FLOATS,),
        note="of one or two operands, without an ellipsis or a diagonal",
    ),
]
