"""Lazy tensors: what an ONNX node means, before anyone decided which kernels there will be.

An op's function (fusion/onnx_ops) takes and returns ``Tensor``s. A tensor is a shape of symbolic sizes, a dtype, and one of

    Leaf(kind, ...)              an island input, a constant, a literal
    Map(inputs, body)            one element as an expression over loads of the inputs (arbitrary index expressions)
    View(base, step)             permute | reshape | slice | expand of another tensor; costs nothing where strides can say it
    Anchor: GemmNode (LowRankNode), BlockGemmNode, ConvNode, AttentionNode, RowNode, ScanNode, TopKNode, RecurrentNode, ConcatNode

Small integer tensors also carry their ``content``, element by element as symbolic sizes: shape arithmetic is folded while the
graph is traced and never executed. Nothing is computed here; passes rewrite them and lower them to core-IR ops.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dims import Dim, Size, ne, product
from xyntra_ep.tracea.core_ir.dtypes import DType, to_float64
from xyntra_ep.tracea.core_ir.expr import Expr
from xyntra_ep.tracea.core_ir.ops import NoSoftmax, Product, RecurrentStage, ReduceKind, Stage

Content = NDArray[np.object_]  # elements are Size


@dataclass(slots=True, eq=False, kw_only=True)
class TNode:
    """Base: what is computed. Identity is meaning; ``sources`` are the graph nodes it came from (by index). ``quantised``: the
    integers that its floats were made of (`onnx_ops/quantised/_made_of.py`)."""

    sources: frozenset[int] = frozenset()
    quantised: Quantised | None = None


@dataclass(slots=True, eq=False, kw_only=True)
class Leaf(TNode):
    """``kind``: "input" (name of an island input), "const" (name of an initializer) or "literal" (array). ``sparse``: reads a
    constant that may have many zeros."""

    kind: str
    name: str = ""
    array: NDArray[Any] | None = None
    sparse: Callable[[], NDArray[Any]] | None = None


@dataclass(slots=True, eq=False, kw_only=True)
class Map(TNode):
    """out[i...] = body; Load(j, ...) reads inputs[j]. ``keep``: materialise as it is (a layout that a consumer asked for)."""

    inputs: tuple[Tensor, ...]
    body: Expr
    keep: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Permute:
    perm: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reshape:
    """Row-major order of elements is kept."""

    shape: tuple[Size, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """Element i of an axis is element start + i * step of the base; ``shape`` is the result's."""

    starts: tuple[Size, ...]
    steps: tuple[Size, ...]
    shape: tuple[Size, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Expand:
    """Same rank; axes of extent 1 are repeated. ``factors[i]`` is 0 (repeat), 1 (as it is) or a run-time 0/1."""

    shape: tuple[Size, ...]
    factors: tuple[Size, ...]


@dataclass(slots=True, eq=False, kw_only=True)
class View(TNode):
    base: Tensor
    step: Permute | Reshape | Slice | Expand


@dataclass(slots=True, eq=False, kw_only=True)
class GemmNode(TNode):
    """a [..., M, K] times b [..., K, N], equal batch dims (expanded where broadcast)."""

    a: Tensor
    b: Tensor


@dataclass(slots=True, eq=False, kw_only=True)
class LowRankNode(GemmNode):
    """a times b, and in the same sums ``left`` [..., M, r] times ``right`` [..., r, N]; see core_ir.ops.LowRankGemm."""

    left: Tensor
    right: Tensor


@dataclass(slots=True, eq=False, kw_only=True)
class BlockGemmNode(TNode):
    """See core_ir.ops.BlockGemm: ``a`` [..., M, K], the integers ``q`` in bytes, ``scales`` and ``zeros`` (one or none),
    ``allows``."""

    a: Tensor
    q: Tensor
    scales: Tensor
    zeros: tuple[Tensor, ...]
    bits: int
    block: int
    allows: Product = Product.F32


@dataclass(slots=True, eq=False, kw_only=True)
class ConvNode(TNode):
    """x [N, C, spatial...], w [M, C/group, kernel...]; the tensor is stored [N, spatial..., M] (channels last)."""

    x: Tensor
    w: Tensor
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[Size, ...]
    group: int


@dataclass(slots=True, eq=False, kw_only=True)
class AttentionNode(TNode):
    """See core_ir.ops.Attention; ``score`` loads ``extra`` as inputs 3, 4, ... The tensor is stored [B, S, H, E]: that is how
    the heads are read next, so the usual Transpose after attention costs nothing. ``by_head``: [B, H, S, E], as outputs are."""

    q: Tensor
    k: Tensor
    v: Tensor
    extra: tuple[Tensor, ...]
    score: Expr
    no_softmax: NoSoftmax
    by_head: bool = False


@dataclass(slots=True, eq=False, kw_only=True)
class RowNode(TNode):
    """Reduction stages over ``inner`` for each index of ``outer``; ``outputs`` are (body, per_row), one tensor each.

    Axis i of an output that has an element for each of a row is axis ``order[i]`` of (outer, inner): it is stored like that, as
    its neighbours lie in memory (channels last, mostly); without ``order`` rows are stored one after the other.
    ``softmax`` marks the plain form over one axis, which attention matching looks for, and what it gives where there is none.
    """

    outer: tuple[Size, ...]
    inner: tuple[Size, ...]
    inputs: tuple[Tensor, ...]
    stages: tuple[Stage, ...]
    outputs: tuple[tuple[Expr, bool], ...]
    order: tuple[int, ...] | None = None
    softmax: NoSoftmax | None = None

    @property
    def places(self) -> list[int]:
        """For each axis of (outer, inner) which one it is of a stored output."""
        rank = len(self.outer) + len(self.inner)
        return [i if self.order is None else self.order.index(i) for i in range(rank)]


@dataclass(slots=True, eq=False, kw_only=True)
class ScanNode(TNode):
    """Cumulative ``kind`` along the last axis."""

    x: Tensor
    kind: ReduceKind
    exclusive: bool
    reverse: bool


@dataclass(slots=True, eq=False, kw_only=True)
class TopKNode(TNode):
    """Along the last axis; two outputs: values, int64 indices."""

    x: Tensor
    k: int
    largest: bool


@dataclass(slots=True, eq=False, kw_only=True)
class RecurrentNode(TNode):
    """See core_ir.ops.Recurrence: ``weights`` and ``lengths`` (one or none) are its first inputs, ``extra`` the others. Output 0
    is the sequence, stored with the directions of a step side by side, as the next layer reads them; then the final states."""

    weights: Tensor
    lengths: tuple[Tensor, ...]
    extra: tuple[Tensor, ...]
    domain: tuple[Size, ...]
    reverse: tuple[bool, ...]
    initial: tuple[Expr, ...]
    stages: tuple[RecurrentStage, ...]
    batch_first: bool

    @property
    def shapes(self) -> list[tuple[Size, ...]]:
        """Of the outputs."""
        d, t, b, n = self.domain
        sequence = (b, t, d, n) if self.batch_first else (t, 1, b, n) if d == 1 else (t, b, d, n)
        return [sequence, *[(b, d, n) if self.batch_first else (d, b, n)] * len(self.initial)]


@dataclass(slots=True, eq=False, kw_only=True)
class ConcatNode(TNode):
    parts: tuple[Tensor, ...]
    axis: int


@dataclass(slots=True, eq=False)
class Tensor:
    """``output``: which result of a node with several."""

    shape: tuple[Size, ...]
    dtype: DType
    node: TNode
    output: int = 0
    content: Content | None = field(default=None)

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> Size:
        return product(self.shape)

    # -- known values

    def ints(self, what: str) -> list[Size]:
        """The elements, for an operand that decides a shape; declines when they depend on data."""
        if self.content is None:
            raise UnsupportedError(f"{what} depends on data")
        return list(self.content.reshape(-1))

    def const_ints(self, what: str) -> list[int]:
        values = self.ints(what)
        if any(isinstance(v, Dim) for v in values):
            raise UnsupportedError(f"{what} is not constant")
        return [int(v) for v in values if not isinstance(v, Dim)]

    def array(self, what: str) -> NDArray[Any]:
        """The constant's elements; declines when it is not a constant."""
        if isinstance(self.node, Leaf) and self.node.array is not None:
            return self.node.array.reshape([int(s) for s in self.shape if not isinstance(s, Dim)])
        if self.content is not None and not any(isinstance(v, Dim) for v in self.content.reshape(-1)):
            return self.content.astype(self.dtype.numpy)
        raise UnsupportedError(f"{what} is not constant")

    @property
    def is_const(self) -> bool:
        return isinstance(self.node, Leaf) and self.node.kind in ("const", "literal")

    def scalar(self) -> float | int | bool | None:
        """The value of a one-element constant that is known now, else None."""
        if self.content is not None and self.content.size == 1 and not isinstance(self.content.reshape(-1)[0], Dim):
            return int(self.content.reshape(-1)[0]) if self.dtype is not DType.BOOL else bool(self.content.reshape(-1)[0])
        if isinstance(self.node, Map) and self.node.body.kind == "const" and self.size == 1:  # a constant that was computed
            value: float | int | bool = self.node.body.attr
            return value
        if isinstance(self.node, Leaf) and self.node.array is not None and self.node.array.size == 1:
            element: float | int | bool = to_float64(self.node.array, self.dtype).reshape(-1)[0].item()  # bfloat16 comes as bits
            return element
        return None

    # -- views

    def _view(self, step: Permute | Reshape | Slice | Expand, shape: Sequence[Size], content: Content | None) -> Tensor:
        return Tensor(tuple(shape), self.dtype, View(base=self, step=step), content=content)

    def named(self, shape: Sequence[Size]) -> Tensor:
        """The same tensor with sizes that are known to be equal called otherwise."""
        if tuple(shape) == self.shape:
            return self
        if isinstance(self.node, Leaf) and self.node.kind != "input":  # the size of its buffer stays a number
            return self.slice([0] * self.rank, [1] * self.rank, shape)
        return Tensor(tuple(shape), self.dtype, self.node, self.output, content=self.content)

    def permute(self, perm: Sequence[int]) -> Tensor:
        perm = tuple(perm)
        if perm == tuple(range(self.rank)):
            return self
        if isinstance(self.node, View) and isinstance(self.node.step, Permute):
            inner = self.node.step.perm
            return self.node.base.permute([inner[p] for p in perm]).named([self.shape[p] for p in perm])
        content = None if self.content is None else self.content.transpose(perm)
        return self._view(Permute(perm=perm), [self.shape[p] for p in perm], content)

    def reshape(self, shape: Sequence[Size]) -> Tensor:
        """To a shape with the same number of elements (the caller has checked)."""
        shape = tuple(shape)
        if shape == self.shape:
            return self
        if isinstance(self.node, View) and isinstance(self.node.step, Reshape):
            return self.node.base.reshape(shape)
        regrouped = _regrouped(self, shape) if self.content is None else None
        if regrouped is not None:
            return regrouped
        content = None
        if self.content is not None:
            content = self.content.reshape([s if isinstance(s, int) else -1 for s in shape])
        return self._view(Reshape(shape=shape), shape, content)

    def slice(self, starts: Sequence[Size], steps: Sequence[Size], shape: Sequence[Size]) -> Tensor:
        if tuple(shape) == self.shape and all(s == 0 for s in starts) and all(s == 1 for s in steps):
            return self
        content = None
        if self.content is not None:
            index = np.ix_(
                *(
                    [int(b) + i * int(s) for i in range(int(n))]
                    for b, s, n in zip(starts, steps, shape, strict=True)
                    if not isinstance(b, Dim) and not isinstance(s, Dim) and not isinstance(n, Dim)
                )
            )
            content = self.content[index] if len(index) == self.rank else None
        return self._view(Slice(starts=tuple(starts), steps=tuple(steps), shape=tuple(shape)), shape, content)

    def expand(self, shape: Sequence[Size]) -> Tensor:
        """Repeat axes of extent 1 to ``shape`` (rank may grow); an axis that may be 1 at run time gets a run-time stride."""
        shape = tuple(shape)
        grown = self.reshape((1,) * (len(shape) - self.rank) + self.shape)
        if grown.shape == shape:
            return grown
        factors = tuple(
            1 if have == want else 0 if have == 1 else ne(have, 1) for have, want in zip(grown.shape, shape, strict=True)
        )
        content = None
        if grown.content is not None and all(isinstance(s, int) for s in shape):
            content = np.broadcast_to(grown.content, [int(s) for s in shape if not isinstance(s, Dim)])
        return grown._view(Expand(shape=shape, factors=factors), shape, content)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantised:
    """A float tensor is (``q`` - ``zero``) * ``scale``: one of each, or one for each index of ``axis``; with a ``block`` one for
    so many indices of ``axis`` and each of the other axes. No ``zero`` is 0. ``bits``: what elements of ``q`` are stored in."""

    q: Tensor
    scale: Tensor
    zero: Tensor | None
    axis: int | None
    block: int = 0
    bits: int = 8


def _regrouped(t: Tensor, shape: tuple[Size, ...]) -> Tensor | None:
    """Reshape(Permute(Reshape(x))) as a permutation of x, where the last step splits again what the first one joined:
    [b, h, s, d] -> [b*h, s, d] -> [b*h, d, s] -> [b, h, d, s]."""
    if not isinstance(t.node, View) or not isinstance(t.node.step, Permute):
        return None
    joined, perm = t.node.base, t.node.step.perm
    if not isinstance(joined.node, View) or not isinstance(joined.node.step, Reshape):
        return None
    base = joined.node.base
    extents = [s for s in base.shape if s != 1]
    before, after = _axis_groups(extents, joined.shape), _axis_groups(shape, t.shape)
    if before is None or after is None:
        return None
    if any([extents[i] for i in before[p]] != [shape[i] for i in after[j]] for j, p in enumerate(perm)):
        return None
    moved = base.reshape(extents).permute([i for p in perm for i in before[p]])
    return moved if moved.shape == shape else moved._view(Reshape(shape=shape), shape, None)


def _axis_groups(fine: Sequence[Size], coarse: Sequence[Size]) -> list[list[int]] | None:
    """For each axis of ``coarse`` the axes of ``fine`` (extents of 1 left out) that it joins, None when it is no such join."""
    groups: list[list[int]] = []
    i = 0
    for extent in coarse:
        members: list[int] = []
        have: Size = 1
        while have != extent:
            if i == len(fine):
                return None
            have = have * fine[i]
            members += [i] if fine[i] != 1 else []
            i += 1
        groups.append(members)
    return groups if all(s == 1 for s in fine[i:]) else None


def from_content(content: Any, dtype: DType = DType.I64) -> Tensor:
    """A tensor whose elements are known symbolically; it becomes data only where someone loads it."""
    array = np.empty(np.shape(content), dtype=object)
    flat = np.asarray(content, dtype=object).reshape(-1)
    array.reshape(-1)[:] = flat
    body: Expr = E.const(0, dtype) if dtype is not DType.BOOL else E.const(False, dtype)
    strides = np.cumprod([1, *array.shape[::-1]])[::-1][1:]
    linear: Expr = E.const(0)
    for i, stride in enumerate(strides):
        linear = E.call("add", linear, E.call("mul", E.axis(i), E.const(int(stride))))
    if array.size <= 64:
        for position, value in reversed(list(enumerate(flat))):
            here = E.size(value) if dtype is not DType.BOOL else E.call("to_b", E.size(value))
            last = position == len(flat) - 1
            body = here if last else E.call("where", E.call("eq", linear, E.const(position)), here, body)
        node: TNode = Map(inputs=(), body=body)
    else:
        if any(isinstance(v, Dim) for v in flat):
            raise UnsupportedError("a long list of symbolic sizes is used as data")
        node = Leaf(kind="literal", array=array.astype(dtype.numpy))
    return Tensor(tuple(array.shape), dtype, node, content=array)


def literal(array: NDArray[Any], dtype: DType) -> Tensor:
    """Constant data of our own making."""
    return Tensor(tuple(array.shape), dtype, Leaf(kind="literal", array=np.ascontiguousarray(array, dtype=dtype.numpy)))
