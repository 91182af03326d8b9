"""Scan: cumulative sums and products."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from xyntra_ep.tracea.core_ir.dims import Size, product
from xyntra_ep.tracea.core_ir.expr import Expr
from xyntra_ep.tracea.core_ir.ops.core_op import Body, CoreOp
from xyntra_ep.tracea.core_ir.ops.memory import Memory, evaluate_expr
from xyntra_ep.tracea.core_ir.ops.operand import Operand
from xyntra_ep.tracea.core_ir.ops.row_reduce import ReduceKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan(CoreOp):
    """Cumulative sum (or product) along the last axis of ``output``; body over output's domain."""

    body: Expr
    kind: ReduceKind
    exclusive: bool
    reverse: bool
    output: Operand

    is_one_node: ClassVar[bool] = True
    narrows: ClassVar[bool] = False

    @property
    def written(self) -> tuple[Operand, ...]:
        return (self.output,)

    def with_operands(self, inputs: tuple[Operand, ...], written: Sequence[Operand]) -> Self:
        return replace(self, inputs=inputs, output=written[0])

    def expressions(self) -> list[Body]:
        return [Body(self.body, len(self.output.shape))]

    def interpret(self, memory: Memory) -> None:
        x = evaluate_expr(self.body, memory, self.inputs, memory.shape(self.output.shape))
        x = x[..., ::-1] if self.reverse else x
        total = np.cumsum(x, axis=-1) if self.kind is ReduceKind.SUM else np.cumprod(x, axis=-1)
        if self.exclusive and total.shape[-1]:
            first = np.full_like(total[..., :1], 0 if self.kind is ReduceKind.SUM else 1)
            total = np.concatenate([first, total[..., :-1]], axis=-1)
        memory.write(self.output, total[..., ::-1] if self.reverse else total)

    def flops(self) -> Size:
        return product(self.output.shape)
