"""The smallest variants that can be: one element per unit, a handful of scalar ops. Planning is tested with
them, so that its tests say nothing about real kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xyntra_ep.tracea.core_ir.dims import Size, product
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr, walk
from xyntra_ep.tracea.core_ir.ops import Gemm, Operand, Pointwise
from xyntra_ep.tracea.kernels.variant import (
    Axis,
    BuildContext,
    Config,
    KernelCall,
    Phase,
    TempBuffer,
    ValueBuffer,
    Variant,
)
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder
from xyntra_ep.tracea.semantic_ir.nodes import Const, Rvalue, Var, binary, f32, index

KNOWN = {"add", "sub", "mul"}


def no_space(op: object, context: BuildContext) -> Sequence[Axis]:
    return ()


def no_config(op: object, context: BuildContext) -> Config:
    return {}


def admits_pointwise(op: Pointwise, context: BuildContext) -> str | None:
    unknown = {e.attr for e in walk(*op.bodies) if e.kind == "call"} - KNOWN
    return f"does not know {sorted(unknown)}" if unknown else None


def build_pointwise(op: Pointwise, config: Config, context: BuildContext) -> list[KernelCall]:
    b = KernelBuilder("toy_pointwise")
    ins = [b.buffer("x", o.dtype) for o in op.inputs]
    outs = [b.buffer("y", o.dtype, writable=True) for o in op.outputs]
    with b.units() as unit:
        here = b.split(unit, op.domain)
        for body, out, pointer in zip(op.bodies, op.outputs, outs, strict=True):
            value = _value(b, body, op, ins, here)
            b.store(pointer, _at(b, out, here), value)
    kernel, params = b.finish()
    return [
        KernelCall(
            kernel=kernel,
            buffers=tuple(ValueBuffer(value=o.value) for o in (*op.inputs, *op.outputs)),
            params=params,
            units=product(op.domain),
            cost_ns=product(op.domain) * 2,
        )
    ]


def _at(b: KernelBuilder, operand: Operand, here: Sequence[Rvalue]) -> Rvalue:
    at: Rvalue = b.param(operand.offset)
    for i, stride in zip(here, operand.strides, strict=True):
        at = at + i * b.param(stride)
    return at


def _value(b: KernelBuilder, e: Expr, op: Pointwise, ins: list[Var], here: Sequence[Rvalue]) -> Rvalue:
    match e.kind:
        case "load":
            indices = [_index(b, a, here) for a in e.args]
            return b.load(ins[e.attr], _at(b, op.inputs[e.attr], indices))
        case "const":
            return Const(f32(1), e.attr)
        case _:
            x, y = (_value(b, a, op, ins, here) for a in e.args)
            return binary(str(e.attr), x, y)


def _index(b: KernelBuilder, e: Expr, here: Sequence[Rvalue]) -> Rvalue:
    if e.kind == "axis":
        return here[int(e.attr)]
    assert e.kind == "const"
    return index(e.attr)


def build_gemm(op: Gemm, config: Config, context: BuildContext) -> list[KernelCall]:
    """[m, k] x [k, n]; a constant b is transposed once, when the session is created."""
    a, w = op.inputs
    m, k, n = a.shape[0], a.shape[1], w.shape[1]
    packed = TempBuffer(name="packed", size_bytes=k * n * 4)
    calls = []
    constant = context.is_constant(w.value)
    if constant:
        b = KernelBuilder("toy_pack")
        x, y = b.buffer("w", DType.F32), b.buffer("packed", DType.F32, writable=True)
        with b.units() as j, b.loop("k", 0, b.param(k)) as p:
            b.store(y, j * b.param(k) + p, b.load(x, p * b.param(w.strides[0]) + j * b.param(w.strides[1])))
        calls.append(_call(b, (ValueBuffer(value=w.value), packed), n, Phase.PREPARE))
    b = KernelBuilder("toy_gemm")
    x, z = b.buffer("a", DType.F32), b.buffer("b", DType.F32)
    y = b.buffer("out", DType.F32, writable=True)
    strides: tuple[Size, Size] = (1, k) if constant else (w.strides[0], w.strides[1])
    with b.units() as i, b.loop("j", 0, b.param(n)) as j:
        total = b.variable("sum", Const(f32(1), 0.0))
        with b.loop("k", 0, b.param(k)) as p:
            left = b.load(x, i * b.param(a.strides[0]) + p * b.param(a.strides[1]))
            right = b.load(z, p * b.param(strides[0]) + j * b.param(strides[1]))
            b.assign(total, total + left * right)
        b.store(y, i * b.param(op.output.strides[0]) + j * b.param(op.output.strides[1]), total)
    weights = packed if constant else ValueBuffer(value=w.value)
    calls.append(_call(b, (ValueBuffer(value=a.value), weights, ValueBuffer(value=op.output.value)), m))
    return calls


def _call(b: KernelBuilder, buffers: tuple[ValueBuffer | TempBuffer, ...], units: Size, phase: Phase = Phase.RUN) -> KernelCall:
    kernel, params = b.finish()
    return KernelCall(kernel=kernel, buffers=buffers, params=params, units=units, cost_ns=units * 100, phase=phase)


POINTWISE: Variant[Pointwise] = Variant(
    name="toy.pointwise",
    op=Pointwise,
    admits=admits_pointwise,
    space=no_space,
    default=no_config,
    cost_ns=lambda op, config, context: 100.0,
    build=build_pointwise,
)
GEMM: Variant[Gemm] = Variant(
    name="toy.gemm",
    op=Gemm,
    admits=lambda op, context: None if len(op.inputs) == 2 else "has an epilogue",
    space=no_space,
    default=no_config,
    cost_ns=lambda op, config, context: 1000.0,
    build=build_gemm,
)
TABLE: Mapping[type, tuple[Variant, ...]] = {Pointwise: (POINTWISE,), Gemm: (GEMM,)}  # type: ignore[type-arg]
