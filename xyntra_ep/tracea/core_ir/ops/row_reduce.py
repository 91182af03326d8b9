"""RowReduce: normalisations, softmax, pooling, reductions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, ClassVar, Self

import numpy as np

from xyntra_ep.tracea.core_ir.dims import Size, product
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr
from xyntra_ep.tracea.core_ir.ops.core_op import Body, CoreOp, calls, unlike
from xyntra_ep.tracea.core_ir.ops.memory import Array, Memory, evaluate_expr
from xyntra_ep.tracea.core_ir.ops.operand import Operand


class ReduceKind(StrEnum):
    SUM = "sum"
    PROD = "prod"
    MAX = "max"  # of those that are no NaN; NaN where the first one is, as a loop has it that asks whether the next is larger
    MIN = "min"
    ARGMAX = "argmax"  # first index among equals (0 where the first is NaN); it counts the inner domain row-major
    ARGMIN = "argmin"
    ARGMAX_LAST = "argmax_last"  # last index among equals
    ARGMIN_LAST = "argmin_last"
    ANY_NAN_MAX = "max_ignore_nan"  # max as pooling does it: NaN loses unless alone


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One reduction over the inner domain; ``body`` may read acc(j) of earlier stages. ``dtype``: F32, I64 or BOOL."""

    kind: ReduceKind
    body: Expr
    dtype: DType = DType.F32


@dataclass(frozen=True, slots=True, kw_only=True)
class RowOutput:
    """A result of a RowReduce: per element of outer x inner (``per_row`` false), or one per row (``per_row``: no inner axes)."""

    body: Expr
    operand: Operand
    per_row: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RowReduce(CoreOp):
    """For each index of ``outer``: run the ``stages`` over ``inner`` in order, then write the outputs.

    Axis numbering: 0..len(outer)-1 are the outer axes, then the inner ones. LayerNorm is sum, sum of squared deviations and a
    body; Softmax is max, sum of exp and a body; pooling has the window as inner domain.
    """

    outer: tuple[Size, ...]
    inner: tuple[Size, ...]
    stages: tuple[Stage, ...]
    outputs: tuple[RowOutput, ...]

    naming_rank: ClassVar[int] = 1

    @property
    def written(self) -> tuple[Operand, ...]:
        return tuple(o.operand for o in self.outputs)

    def with_operands(self, inputs: tuple[Operand, ...], written: Sequence[Operand]) -> Self:
        results = tuple(replace(o, operand=out) for o, out in zip(self.outputs, written, strict=True))
        return replace(self, outer=written[0].shape[: len(self.outer)], inputs=inputs, outputs=results)

    def expressions(self) -> list[Body]:
        """A stage sees the stages before it."""
        both, rows, known = len(self.outer) + len(self.inner), len(self.outer), len(self.stages)
        stages = [Body(s.body, both, k) for k, s in enumerate(self.stages)]
        return stages + [Body(o.body, rows if o.per_row else both, known) for o in self.outputs]

    def further_sizes(self) -> tuple[Size, ...]:
        return self.outer + self.inner

    def problems(self) -> Iterator[str]:
        for out in self.outputs:
            yield from unlike("an output", out.operand.shape, self.outer if out.per_row else self.outer + self.inner)

    def interpret(self, memory: Memory) -> None:
        outer, inner = memory.shape(self.outer), memory.shape(self.inner)
        acc: dict[int, Array] = {}
        for j, stage in enumerate(self.stages):
            full = evaluate_expr(stage.body, memory, self.inputs, outer + inner, acc).reshape((*outer, math.prod(inner)))
            acc[j] = _REDUCE[stage.kind](full).reshape(outer + (1,) * len(inner))
        for out in self.outputs:
            domain = outer if out.per_row else outer + inner
            at = {j: a.reshape(outer) for j, a in acc.items()} if out.per_row else acc
            memory.write(out.operand, evaluate_expr(out.body, memory, self.inputs, domain, at))

    def flops(self) -> Size:
        stages = calls(*(s.body for s in self.stages)) + len(self.stages)
        rows = calls(*(o.body for o in self.outputs if o.per_row))
        every = calls(*(o.body for o in self.outputs if not o.per_row))
        return ((stages + every) * product(self.inner) + rows) * product(self.outer)

    def points(self) -> Size:
        return product(self.outer + self.inner)

    def images(self) -> Size | None:
        return self.outer[0] if self.outer else None

    def title(self) -> str:
        return "Softmax" if self.label == "softmax" else "Rows"

    def tuned_by(self) -> tuple[Any, ...]:
        return (len(self.outer), [str(s.kind) for s in self.stages])


_REDUCE: dict[ReduceKind, Callable[[Array], Array]] = {
    ReduceKind.SUM: lambda x: x.sum(axis=-1),
    ReduceKind.PROD: lambda x: x.prod(axis=-1),
    ReduceKind.MAX: lambda x: _unless_first_is_nan(x, np.fmax.reduce(x, axis=-1, initial=_lowest(x)), np.nan),
    ReduceKind.MIN: lambda x: _unless_first_is_nan(x, np.fmin.reduce(x, axis=-1, initial=_highest(x)), np.nan),
    ReduceKind.ANY_NAN_MAX: lambda x: np.fmax.reduce(x, axis=-1, initial=_lowest(x)),
    ReduceKind.ARGMAX: lambda x: _place(x, np.fmax),
    ReduceKind.ARGMIN: lambda x: _place(x, np.fmin),
    ReduceKind.ARGMAX_LAST: lambda x: _place(x, np.fmax, last=True),
    ReduceKind.ARGMIN_LAST: lambda x: _place(x, np.fmin, last=True),
}


def _unless_first_is_nan(x: Array, result: Array, otherwise: Any) -> Array:
    return np.where(np.isnan(x[..., 0]), otherwise, result) if x.dtype.kind == "f" and x.shape[-1] else result


def _place(x: Array, best: np.ufunc, last: bool = False) -> Array:
    """Where the best of those that are no NaN is."""
    found = x == best.reduce(x, axis=-1, keepdims=True)
    place = x.shape[-1] - 1 - np.argmax(found[..., ::-1], axis=-1) if last else np.argmax(found, axis=-1)
    return _unless_first_is_nan(x, place, 0)


def _lowest(x: Array) -> Any:
    return {"f": -np.inf, "i": np.iinfo(np.int64).min, "b": False}[x.dtype.kind]


def _highest(x: Array) -> Any:
    return {"f": np.inf, "i": np.iinfo(np.int64).max, "b": True}[x.dtype.kind]
