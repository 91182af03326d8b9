"""Elementwise results, each in the *frame* of its operands.

Relu(Transpose(x)) becomes Transpose(Relu(x)) when x is not materialised anyway, so that chains stay beside the anchor that feeds
them and layouts (NHWC) spread by themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xyntra_ep.fusion.checks import Checks, broadcast_shapes
from xyntra_ep.fusion.tensor import Leaf, Map, Permute, Reshape, Tensor, View
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dims import Size
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr


def load_broadcast(j: int, tensor: Tensor, shape: Sequence[Size]) -> Expr:
    """Load of input j (already expanded where extents are unrelated) at the loop indices of ``shape``."""
    shift = len(shape) - tensor.rank
    index = [E.const(0) if extent == 1 else E.axis(i + shift) for i, extent in enumerate(tensor.shape)]
    return E.load(j, *index, dtype=tensor.dtype)


def elementwise(
    checks: Checks, inputs: Sequence[Tensor], body: Callable[..., Expr], dtype: DType, leader: int | None = None
) -> Tensor:
    """One result per index of the broadcast shape; ``body`` takes one loaded expression per input (compute types).

    ``leader``: the input whose frame the others were moved into. Only it may ask for another move, else two lazy operands in
    different frames would move each other for ever.
    """
    shape = broadcast_shapes(checks, *(t.shape for t in inputs))
    framed = _common_frame(inputs, shape, range(len(inputs)) if leader is None else [leader])
    if framed is not None:
        inner, back, leader = framed
        return back(elementwise(checks, inner, body, dtype, leader))
    operands: list[Tensor] = []
    loads: list[Expr] = []
    for t in inputs:
        value = t.scalar()
        if value is not None:
            loads.append(E.const(value, t.dtype))
            continue
        if t.content is not None and t.content.size == 1:  # one symbolic size
            element = E.size(t.content.reshape(-1)[0])
            loads.append(E.call("to_b", element) if t.dtype is DType.BOOL else element)
            continue
        shift = len(shape) - t.rank
        if any(have not in (1, want) for have, want in zip(t.shape, shape[shift:], strict=True)):
            t = checks.fit(t, shape)
        position = next((j for j, o in enumerate(operands) if o is t), len(operands))
        if position == len(operands):
            operands.append(t)
        loads.append(load_broadcast(position, t, shape))
    return Tensor(shape, dtype, Map(inputs=tuple(operands), body=body(*loads)))


def _is_lazy(t: Tensor) -> bool:
    return not isinstance(t.node, (Leaf, View))


def _is_inlined(t: Tensor) -> bool:
    """Whether the one element of ``t`` is known, so that it has no frame."""
    return t.scalar() is not None or (t.content is not None and t.content.size == 1)


Frame = tuple[list[Tensor], Callable[[Tensor], Tensor]]


def _common_frame(
    inputs: Sequence[Tensor], shape: tuple[Size, ...], candidates: Sequence[int]
) -> tuple[list[Tensor], Callable[[Tensor], Tensor], int] | None:
    """Operands moved into the frame of a permuted or reshaped, not yet stored one of ``candidates``; the way back; which."""
    for i in candidates:
        t = inputs[i]
        if isinstance(t.node, View) and t.shape == shape and _is_lazy(t.node.base) and not _is_inlined(t):
            step = t.node.step
            framed = (
                _permuted_frame(inputs, step.perm)
                if isinstance(step, Permute)
                else _reshaped_frame(inputs, shape, t.node.base.shape)
                if isinstance(step, Reshape)
                else None
            )
            if framed is not None:
                return (*framed, i)
    return None


def _permuted_frame(inputs: Sequence[Tensor], perm: tuple[int, ...]) -> Frame:
    inverse = [perm.index(i) for i in range(len(perm))]
    moved = []
    for t in inputs:
        if not _is_inlined(t):
            t = t.reshape((1,) * (len(perm) - t.rank) + t.shape).permute(inverse)
        moved.append(t)
    return moved, lambda result: result.permute(perm)


def _reshaped_frame(inputs: Sequence[Tensor], shape: tuple[Size, ...], base: tuple[Size, ...]) -> Frame | None:
    """Every operand must be full (reshaped along) or broadcast only over axes that the reshape leaves in place at the end."""
    same_tail = 0
    while same_tail < min(len(shape), len(base)) and shape[-1 - same_tail] == base[-1 - same_tail]:
        same_tail += 1
    moved: list[Tensor] = []
    for t in inputs:
        if _is_inlined(t):
            moved.append(t)
        elif t.shape == shape:
            moved.append(t.reshape(base))
        elif all(s == 1 for s in t.shape[: max(0, t.rank - same_tail)]):
            moved.append(t.reshape(t.shape[max(0, t.rank - same_tail) :]))
        else:
            return None
    return moved, lambda result: result.reshape(shape)


def order_of(t: Tensor) -> tuple[int, ...] | None:
    """The permutation through which ``t`` shows what is computed in another order of axes; None where it shows that as it is."""
    if isinstance(t.node, View) and isinstance(t.node.step, Permute) and _is_lazy(t.node.base):
        return t.node.step.perm
    return None


def in_order(perm: tuple[int, ...] | None, t: Tensor) -> Tensor:
    """``t``, a `Map`, stored so that ``perm`` shows it in its own order of axes: a neighbour of what lies in memory like that."""
    if perm is None or not isinstance(t.node, Map):
        return t
    shape = [t.shape[perm.index(i)] for i in range(t.rank)]
    body = E.rewrite(t.node.body, lambda e: E.axis(perm[e.attr]) if e.kind == "axis" else None)
    return Tensor(tuple(shape), t.dtype, Map(inputs=t.node.inputs, body=body, keep=t.node.keep)).permute(perm)


def materialise(t: Tensor) -> Tensor:
    """A copy of ``t`` stored contiguously in its own axis order (a Leaf or anchor that already is comes back as it is)."""
    if not isinstance(t.node, View):
        return t
    body = E.load(0, *(E.axis(i) for i in range(t.rank)), dtype=t.dtype)
    return Tensor(t.shape, t.dtype, Map(inputs=(t,), body=body, keep=True))


def cast_expr(x: Expr, source: DType, target: DType) -> Expr:
    """ONNX Cast between supported types, on the compute type: narrowing rounds or wraps as the stored type would."""
    if target.is_float:
        value = E.call("to_f", x)
        if target is DType.F32 or source is target:
            return value
        return E.call("round_f16" if target is DType.F16 else "round_bf16", value)
    if target is DType.BOOL:
        return E.call("to_b", x)
    value = _truncated(x, 63 if target is DType.I64 else 31) if source.is_float else E.call("to_i", x)
    wrap = f"wrap_{target}"
    return E.call(wrap, value) if wrap in E.SCALAR_OPS and source is not target else value


def _truncated(x: Expr, bits: int) -> Expr:
    """A float as an integer; what is too large for it, or NaN, becomes the lowest one, as x86 has it (and ONNX Runtime there).
    What is narrower is cut out of 32 bits."""
    limit = E.const(2.0**bits)
    fits = E.call("and", E.call("le", E.const(-(2.0**bits)), x), E.call("lt", x, limit))
    return E.call("where", fits, E.call("to_i", x), E.const(-(2**bits)))
