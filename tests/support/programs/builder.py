"""Small programs to plan: a builder that keeps values, ops and sources in step."""

from __future__ import annotations

from xyntra_ep.tracea.core_ir.dims import Size, symbol
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr, acc, axis, call, load
from xyntra_ep.tracea.core_ir.ops import (
    Binding,
    CoreOp,
    Gemm,
    Operand,
    Pointwise,
    Program,
    SymbolKind,
    Value,
    ValueKind,
)


class ProgramBuilder:
    """p = ProgramBuilder(); x = p.input("s", 4); p.output(p.add(x, p.constant(4)))"""

    def __init__(self) -> None:
        self.program = Program()

    def value(self, kind: ValueKind, *shape: Size, dtype: DType = DType.F32, literal: bytes = b"") -> Operand:
        index = sum(v.kind is kind for v in self.program.values)
        name = f"{kind}{index}"
        self.program.values.append(Value(kind=kind, dtype=dtype, shape=shape, index=index, literal=literal, name=name))
        if kind is ValueKind.CONST:
            self.program.constants.append(name)
        return self.program.operand(len(self.program.values) - 1)

    def input(self, *shape: int | str, dtype: DType = DType.F32) -> Operand:
        """Names become symbols, bound to the dimensions of this input."""
        sizes = tuple(symbol(s) if isinstance(s, str) else s for s in shape)
        operand = self.value(ValueKind.INPUT, *sizes, dtype=dtype)
        index = self.program.values[operand.value].index
        known = {b.name for b in self.program.bindings}
        for i, s in enumerate(shape):
            if isinstance(s, str) and s not in known:
                self.program.bindings.append(Binding(name=s, kind=SymbolKind.DIM, input=index, index=i))
                known.add(s)
        return operand

    def constant(self, *shape: int) -> Operand:
        return self.value(ValueKind.CONST, *shape)

    def temp(self, *shape: Size) -> Operand:
        return self.value(ValueKind.TEMP, *shape)

    def op(self, op: CoreOp) -> int:
        """Append; its source node is numbered 100 + its index."""
        self.program.ops.append(op)
        self.program.sources.append((100 + len(self.program.ops) - 1,))
        return len(self.program.ops) - 1

    def pointwise(self, name: str, *inputs: Operand, out: Operand | None = None) -> Operand:
        """An elementwise scalar op; inputs of lower rank or extent 1 are broadcast by stride 0."""
        domain = max((o.shape for o in inputs), key=len)
        views = tuple(broadcast(o, domain) for o in inputs)
        out = out if out is not None else self.temp(*domain)
        here = [axis(i) for i in range(len(domain))]
        loads = [load(j, *here, dtype=o.dtype) for j, o in enumerate(views)]
        body: Expr = loads[0] if name == "copy" else call(name, *loads)
        self.op(Pointwise(domain=domain, inputs=views, bodies=(body,), outputs=(out,), label=name))
        return out

    def add(self, *inputs: Operand, out: Operand | None = None) -> Operand:
        return self.pointwise("add", *inputs, out=out)

    def mul(self, *inputs: Operand, out: Operand | None = None) -> Operand:
        return self.pointwise("mul", *inputs, out=out)

    def gemm(self, a: Operand, b: Operand, out: Operand | None = None) -> Operand:
        out = out if out is not None else self.temp(*a.shape[:-1], b.shape[-1])
        self.op(Gemm(inputs=(a, b), epilogue=acc(0), output=out))
        return out

    def output(self, operand: Operand) -> Operand:
        """Make the value of a temporary an output."""
        old = self.program.values[operand.value]
        index = sum(v.kind is ValueKind.OUTPUT for v in self.program.values)
        self.program.values[operand.value] = Value(kind=ValueKind.OUTPUT, dtype=old.dtype, shape=old.shape, index=index)
        return operand


def broadcast(operand: Operand, domain: tuple[Size, ...]) -> Operand:
    missing = len(domain) - len(operand.shape)
    strides: list[Size] = [0] * missing
    for wanted, extent, stride in zip(domain[missing:], operand.shape, operand.strides, strict=True):
        strides.append(stride if extent == wanted else 0)
    return Operand(value=operand.value, dtype=operand.dtype, shape=domain, strides=tuple(strides), offset=operand.offset)
