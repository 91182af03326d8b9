"""Products, and what usually stands around them."""

from __future__ import annotations

import numpy as np

from tests.hunt.generation.builder import Builder, Extent, Value
from tests.hunt.recipes._row import FLOATS, Recipe

ONE: Extent = (1, 1, 1)


def _right(b: Builder, x: Value) -> Value:
    """What ``x`` can be multiplied with: a vector, a matrix, a stack that broadcasts."""
    if x.rank == 1 and b.chance(0.5):
        return b.tensor([x.extents[0]], x.dtype)
    if b.chance(0.1):
        return b.tensor([x.extents[-1]], x.dtype)
    batch = [ONE if b.chance(0.3) else e for e in x.extents[:-2]][b.whole(0, max(0, x.rank - 2)) :] if x.rank > 2 else []
    return b.tensor([*batch, x.extents[-1], b.extent()], x.dtype)


def _matmul(b: Builder) -> None:
    x = b.any(FLOATS, least=1)
    y = b.one("MatMul", [x, _right(b, x)])
    if b.chance(0.4) and y.rank:
        y = b.one("Add", [y, b.partner(y)])
        if b.chance(0.5):
            b.one(b.pick(("Relu", "Tanh", "Sigmoid")), [y])


def _gemm(b: Builder) -> None:
    x = b.any(FLOATS, least=2, most=2)
    trans_a, trans_b = b.pick((None, 0, 1)), b.pick((None, 0, 1))
    m, k = reversed(x.extents) if trans_a else x.extents
    n = b.extent()
    w = b.tensor([n, k] if trans_b else [k, n], x.dtype)
    shapes: list[list[Extent] | None] = [None, [n], [m, n], [m, ONE], [ONE, n], [], [ONE]]
    bias = b.pick(shapes) if b.opset >= 11 else b.pick(shapes[1:])
    c = None if bias is None else b.tensor(bias, x.dtype)
    factors = {name: b.pick((None, None, 0.5, 2.0, 0.0)) for name in ("alpha", "beta")}
    b.one("Gemm", [x, w, c], transA=trans_a, transB=trans_b, **factors)


_EQUATIONS = (
    "ij,jk->ik", "bij,bjk->bik", "bhid,bhjd->bhij", "ij->ji", "ij->i", "ij->", "i,j->ij", "bij,jk->bik", "bshd,bthd->bhst",
    "ij,ij->", "ij,ij->ij", "ij,jk", "bij,bij->b", "ij,kj->ik", "i,i->", "abc->cab", "ij,i->j",
)  # fmt: skip


def _einsum(b: Builder) -> None:
    equation = b.pick(_EQUATIONS)
    sizes: dict[str, Extent] = {}
    operands = []
    for term in equation.partition("->")[0].split(","):
        wanted = [sizes.setdefault(letter, b.extent()) for letter in term]
        if b.chance(0.1):
            wanted[b.whole(0, len(wanted) - 1)] = ONE
        while np.prod([max(e) for e in wanted]) > 3000:
            wanted = [tuple(min(n, 4) for n in e) for e in wanted]
            sizes |= dict(zip(term, wanted, strict=True))
        operands.append(b.tensor(wanted, fixed=0.3))
    b.one("Einsum", operands, equation=equation)


def _fused_matmul(b: Builder) -> None:
    x = b.any((np.float32,), least=2)
    trans_a, trans_b = b.pick((None, 0, 1)), b.pick((None, 0, 1))
    k = x.extents[-2] if trans_a else x.extents[-1]
    n = b.extent()
    batch = x.extents[:-2] if b.chance(0.7) else []
    y = b.tensor([*batch, *([n, k] if trans_b else [k, n])])
    b.one("FusedMatMul", [x, y], domain="com.microsoft", transA=trans_a, transB=trans_b, alpha=b.pick((None, 0.5)))


def _attention_by_hand(b: Builder) -> None:
    """softmax(q k^T * scale + mask) v, as exporters write it."""
    x = b.any((np.float32,), least=3)
    order = [*range(x.rank - 2), x.rank - 1, x.rank - 2]
    k = x if b.chance(0.3) else b.tensor([*x.extents[:-2], b.extent(), x.extents[-1]], fixed=0)
    scores = b.one("MatMul", [x, b.one("Transpose", [k], perm=order)])
    if b.chance(0.7):
        scores = b.one(b.pick(("Mul", "Div")), [scores, b.constant(np.float32(0.5))])
    if b.chance(0.6):
        scores = b.one("Add", [scores, b.partner(scores, wider=0)])
    weights = b.one("Softmax", [scores], axis=-1 if b.opset >= 13 else x.rank - 1)
    b.one("MatMul", [weights, b.tensor([*k.extents[:-1], b.extent()], fixed=0) if b.chance(0.6) else k])


def _windowed(b: Builder) -> None:
    """Attention of queries that see a few keys before their place, as a constant, or in blocks that are an input.

    Tiles of the latter are listed where sizes are known in a run only."""
    is_fixed = b.chance(0.5)
    s, t = ((14,) * 3, (40,) * 3) if is_fixed else ((14, 30, 13), (40, 70, 33))
    q, v = (b.input([(1,) * 3, (1,) * 3, n, (2,) * 3]) for n in (s, t))
    scores = b.one("MatMul", [q, b.one("Transpose", [v], perm=[0, 1, 3, 2])])
    width, past, block = b.pick((1, 8, 1000)), b.whole(0, 26), b.pick((5, 32))
    masks = []
    for rows, columns in zip(s, t, strict=True):  # of each world
        gap = np.arange(columns) - np.arange(rows)[:, None] - past
        seen = (gap <= b.pick((0, 3))) & (gap > -width)
        if not is_fixed:
            blocks = b.rng.random((-(-rows // block), -(-columns // block))) < 0.3
            seen = seen | blocks.repeat(block, axis=0)[:rows].repeat(block, axis=1)[:, :columns]
        masks.append(seen)
    # -inf would make NaN of rows that see nothing
    hidden = b.constant(np.float32(b.pick((-1e4, float(np.finfo(np.float32).min)))))
    if is_fixed and b.chance(0.5):
        scores = b.one("Add", [scores, b.constant(np.where(masks[0], np.float32(0), hidden.first))])
    elif is_fixed:
        scores = b.one("Where", [b.constant(masks[0]), scores, hidden])
    else:
        mask = b.by_world([m.astype(np.int32) for m in masks], low=0, high=2)
        scores = b.one("Where", [b.one("Cast", [mask], to=9), scores, hidden])
    b.one("MatMul", [b.one("Softmax", [scores], axis=-1 if b.opset >= 13 else 3), v])


def _gelu_by_hand(b: Builder) -> None:
    x = b.any((np.float32,))
    half = b.one("Mul", [x, b.constant(np.float32(0.5))])
    erf = b.one("Erf", [b.one("Div", [x, b.constant(np.float32(np.sqrt(2)))])])
    b.one("Mul", [half, b.one("Add", [erf, b.constant(np.float32(1))])])


def _mlp(b: Builder) -> None:
    """Two products with a residual: fusion with several readers."""
    x = b.any((np.float32,), least=2)
    n = (b.pick((4, 8, 16)),) * 3
    inner = b.one("MatMul", [x, b.tensor([x.extents[-1], n])])
    inner = b.one("Relu", [b.one("Add", [inner, b.tensor([n])])])
    outer = b.one("MatMul", [inner, b.tensor([n, x.extents[-1]])])
    b.one("Add", [outer, x] if b.chance(0.5) else [x, outer])


def _shared_input(b: Builder) -> None:
    """Three products of one tensor, as the queries, keys and values of a layer: merged side by side."""
    x = b.any((np.float32,), least=2)
    for _ in range(b.whole(2, 3)):
        y = b.one("MatMul", [x, b.tensor([x.extents[-1], b.pick([(4, 4, 4), (8, 8, 8)])], fixed=0.9)])
        if b.chance(0.6):
            b.one("Add", [y, b.tensor([y.extents[-1]], fixed=0.9)])


def _low_rank(b: Builder) -> None:
    """A product with an adapter or two beside it, whose factors are constants or not; what has another reader, too."""
    x = b.any((np.float32,), least=2)
    k, n = x.extents[-1], b.pick([(5, 5, 5), (16, 16, 16), (24, 24, 24)])
    y = b.one("MatMul", [x, b.tensor([k, n], fixed=0.9)])
    if b.chance(0.5):
        y = b.one("Add", [y, b.tensor([n], fixed=0.9)])
    for _ in range(b.pick((1, 1, 2))):
        rank, known = b.pick([(1, 1, 1), (3, 3, 3), (8, 8, 8)]), b.pick((0.9, 0.9, 0.1))
        left = b.one("Mul", [x, b.constant(np.float32(0.5))]) if b.chance(0.2) else x
        t = b.one("MatMul", [left, b.tensor([k, rank], fixed=known)])
        t = b.one("Relu", [t]) if b.chance(0.1) else t
        u = b.one("MatMul", [t, b.tensor([rank, n], fixed=known)])
        if b.chance(0.6):
            u = b.one(b.pick(("Mul", "Div")), [u, b.constant(np.float32(b.pick((0.25, 2.0))))])
        y = b.one(b.pick(("Add", "Add", "Sub")), [y, u] if b.chance(0.7) else [u, y])
    if b.chance(0.4):
        b.one(b.pick(("Relu", "Tanh")), [y])


ROWS = [
    Recipe(name="MatMul", build=_matmul, weight=2),
    Recipe(name="Gemm", build=_gemm, weight=1.5),
    Recipe(name="Einsum", build=_einsum, since=12, weight=1.5),
    Recipe(name="com.microsoft.FusedMatMul", build=_fused_matmul),
    Recipe(name="chain.attention", build=_attention_by_hand),
    Recipe(name="chain.windowed_attention", build=_windowed, since=9),
    Recipe(name="chain.gelu", build=_gelu_by_hand, since=9),
    Recipe(name="chain.mlp", build=_mlp),
    Recipe(name="chain.low_rank", build=_low_rank),
    Recipe(name="chain.shared_input", build=_shared_input),
]
