"""Pointwise: maps, gathers, pads, copies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from xyntra_ep.tracea.core_ir.dims import Size, product
from xyntra_ep.tracea.core_ir.expr import Expr, axis, walk
from xyntra_ep.tracea.core_ir.ops.core_op import Body, CoreOp, calls, unlike
from xyntra_ep.tracea.core_ir.ops.memory import Memory, evaluate_expr
from xyntra_ep.tracea.core_ir.ops.operand import Operand


@dataclass(frozen=True, slots=True, kw_only=True)
class Pointwise(CoreOp):
    """outputs[k][i...] = bodies[k] for every index of ``domain``; operands may be indexed at will (gathers, pads, windows)."""

    domain: tuple[Size, ...]
    bodies: tuple[Expr, ...]
    outputs: tuple[Operand, ...]  # shape == domain

    @property
    def written(self) -> tuple[Operand, ...]:
        return self.outputs

    def with_operands(self, inputs: tuple[Operand, ...], written: Sequence[Operand]) -> Self:
        return replace(self, domain=written[0].shape, inputs=inputs, outputs=tuple(written))

    def expressions(self) -> list[Body]:
        return [Body(body, len(self.domain)) for body in self.bodies]

    def further_sizes(self) -> tuple[Size, ...]:
        return self.domain

    def problems(self) -> Iterator[str]:
        if len(self.bodies) != len(self.outputs):
            yield f"{len(self.bodies)} bodies for {len(self.outputs)} outputs"
        for out in self.outputs:
            yield from unlike("an output", out.shape, self.domain)

    def interpret(self, memory: Memory) -> None:
        for body, out in zip(self.bodies, self.outputs, strict=True):
            memory.write(out, evaluate_expr(body, memory, self.inputs, memory.shape(self.domain)))

    def flops(self) -> Size:
        return calls(*self.bodies) * product(self.domain)

    def points(self) -> Size:
        return product(self.domain)

    def reads_in_place(self, position: int) -> bool:
        if len(self.outputs) != 1:
            return False  # a kernel may finish one output before it starts the next
        here = tuple(axis(i) for i in range(len(self.domain)))
        loads = [e for e in walk(*self.bodies) if e.kind == "load" and e.attr == position]
        return bool(loads) and all(e.args == here for e in loads)

    def images(self) -> Size | None:
        return self.domain[0] if self.domain else None

    def tuned_by(self) -> tuple[Any, ...]:
        return (len(self.inputs),)
