"""TopK: the largest or smallest of a row, sorted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from xyntra_ep.tracea.core_ir.dims import Size, product
from xyntra_ep.tracea.core_ir.ops.core_op import CoreOp, unlike
from xyntra_ep.tracea.core_ir.ops.memory import Memory
from xyntra_ep.tracea.core_ir.ops.operand import Operand


@dataclass(frozen=True, slots=True, kw_only=True)
class TopK(CoreOp):
    """The k largest (or smallest) along the last axis of ``inputs[0]``, sorted, ties by lower index; values and int64 indices."""

    k: int
    largest: bool
    values: Operand
    indices: Operand

    is_one_node: ClassVar[bool] = True
    narrows: ClassVar[bool] = False

    @property
    def written(self) -> tuple[Operand, ...]:
        return (self.values, self.indices)

    def with_operands(self, inputs: tuple[Operand, ...], written: Sequence[Operand]) -> Self:
        return replace(self, inputs=inputs, values=written[0], indices=written[1])

    @property
    def reads_directly(self) -> int:
        return 1

    def problems(self) -> Iterator[str]:
        for out in self.written:
            yield from unlike("an output", out.shape, (*self.inputs[0].shape[:-1], self.k))

    def interpret(self, memory: Memory) -> None:
        x = memory.read(self.inputs[0])
        key = -x if self.largest else x
        if x.dtype.kind == "f":  # NaN counts as the largest, as numpy and ORT order it
            key = np.where(np.isnan(x), -np.inf if self.largest else np.inf, key)
        order = np.argsort(key, axis=-1, kind="stable")[..., : self.k]
        memory.write(self.values, np.take_along_axis(x, order, axis=-1))
        memory.write(self.indices, order)

    def flops(self) -> Size:
        return product(self.inputs[0].shape)
