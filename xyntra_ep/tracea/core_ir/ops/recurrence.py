"""Recurrence: LSTM, GRU, RNN."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.byte_range import byte_of, finite_byte_range
from xyntra_ep.tracea.core_ir.dims import Size, product
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr, walk
from xyntra_ep.tracea.core_ir.ops.core_op import Body, CoreOp, calls, unlike
from xyntra_ep.tracea.core_ir.ops.memory import Array, Memory, evaluate_expr
from xyntra_ep.tracea.core_ir.ops.operand import Operand


@dataclass(frozen=True, slots=True, kw_only=True)
class RecurrentStage:
    """A part of a time step: products of one vector with the next ``gates`` matrices of a Recurrence, and what follows of them.

    ``factor`` numbers the vector: the states at the step's begin come first, then the results of earlier stages of the step. A
    body reads acc(g), the product with gate g, and acc(gates + v), the element of vector v. Of bytes (see `Recurrence`) the
    products are integers, and behind the vectors come two results more: the scale of the bytes that were multiplied, and the sum
    over k of what they are above their zero point, an integer.
    """

    gates: int
    factor: int
    bodies: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recurrence(CoreOp):
    """For each direction d and row b of a batch, states of n elements that each step of time makes anew of the last ones:

        vectors = initial
        for time of d:  for stage:  acc(g)[j] = sum_k vectors[factor][k] * r[d, g, k, j];  vectors += bodies
                        the results of the last stage are the states from here on

    ``inputs[0]`` is r [D, G, n, n]. With ``has_lengths``, ``inputs[1]`` is an integer for each row: how many steps of time it
    has, taken as the nearest one in [0, T]. Further inputs feed the bodies, whose axes are (d, time, b, j), and ``initial``,
    which does not know the time. Where ``reverse[d]``, time runs from a row's last step to its first. State 0 is what the first
    stage multiplies; a stage may multiply the results of those before it, and no other state.

    Where r is of signed bytes a vector is quantised before it is multiplied, each row of a batch by its own range
    (`byte_range.py`): acc(g)[j] = sum_k (q[k] - zero) * r[d, g, k, j], modulo 2^32. A row with NaN or infinity in it has NaN for
    its scale.

    ``output`` [D, T, B, n] is state 0 after each step, 0 where a row has no such step; ``finals`` [D, B, n] are the states after
    the last one, 0 for a row of no steps.
    """

    domain: tuple[Size, ...]  # D, T, B, n: D and n are numbers
    has_lengths: bool
    reverse: tuple[bool, ...]
    initial: tuple[Expr, ...]
    stages: tuple[RecurrentStage, ...]
    output: Operand | None
    finals: tuple[Operand | None, ...]

    is_heavy: ClassVar[bool] = True
    is_one_node: ClassVar[bool] = True
    naming_rank: ClassVar[int] = 3

    @property
    def gates(self) -> int:
        return sum(stage.gates for stage in self.stages)

    @property
    def of_bytes(self) -> bool:
        """Whether what it multiplies is quantised."""
        return self.inputs[0].dtype is DType.I8

    @property
    def written(self) -> tuple[Operand, ...]:
        return tuple(o for o in (self.output, *self.finals) if o is not None)

    def with_operands(self, inputs: tuple[Operand, ...], written: Sequence[Operand]) -> Self:
        left = iter(written)
        output, *finals = (None if o is None else next(left) for o in (self.output, *self.finals))
        return replace(self, inputs=inputs, output=output, finals=tuple(finals))

    @property
    def reads_directly(self) -> int:
        return 1 + self.has_lengths

    def expressions(self) -> list[Body]:
        found, vectors = [Body(body, 4) for body in self.initial], len(self.initial)
        for stage in self.stages:
            found += [Body(body, 4, stage.gates + vectors + 2 * self.of_bytes) for body in stage.bodies]
            vectors += len(stage.bodies)
        return found

    def further_sizes(self) -> tuple[Size, ...]:
        return self.domain

    def problems(self) -> Iterator[str]:
        directions, _, rows, width = self.domain
        yield from unlike("r", self.inputs[0].shape, (directions, self.gates, width, width))
        if not isinstance(directions, int) or not isinstance(width, int):
            yield "the number of directions or the width of a state is not known"
        if not self.inputs[0].dtype.is_float and not self.of_bytes:
            yield f"r is {self.inputs[0].dtype}"
        if len(self.reverse) != directions:
            yield f"{len(self.reverse)} orders of time for {directions} directions"
        if self.has_lengths:
            yield from unlike("the lengths", self.inputs[1].shape, (rows,))
            if self.inputs[1].dtype.is_float:
                yield f"the lengths are {self.inputs[1].dtype}"
        if self.output is not None:
            yield from unlike("the output", self.output.shape, self.domain)
        for final in self.finals:
            if final is not None:
                yield from unlike("a final state", final.shape, (directions, rows, width))
        states = len(self.initial)
        if not len(self.stages[-1].bodies) == len(self.finals) == states:
            yield f"{len(self.stages[-1].bodies)} new and {len(self.finals)} final states for {states}"
        vectors = states
        for stage in self.stages:
            if stage.factor != 0 and not states <= stage.factor < vectors:
                yield f"a stage multiplies vector {stage.factor}, which is neither state 0 nor a result before it"
            vectors += len(stage.bodies)
        for e in walk(*self.initial):
            if e.kind == "axis" and e.attr == 1:
                yield "an initial state depends on the time"

    def interpret(self, memory: Memory) -> None:
        directions, steps, rows, width = memory.shape(self.domain)
        r = memory.read(self.inputs[0])
        lengths = np.clip(memory.read(self.inputs[1]), 0, steps) if self.has_lengths else np.full(rows, steps)
        output = np.zeros((directions, steps, rows, width))
        finals = [np.zeros((directions, rows, width)) for _ in self.finals]
        domain = (1, 1, rows, width)
        for d in range(directions):
            at = {0: np.full((1, 1, 1, 1), d), 1: np.zeros((1, 1, 1, 1), np.int64)}
            states = [evaluate_expr(e, memory, self.inputs, domain, None, at) for e in self.initial]
            for step in range(steps):
                running = step < lengths
                time = np.where(running, lengths - 1 - step if self.reverse[d] else step, 0)
                at[1] = time.reshape(1, 1, rows, 1)
                vectors, gate = list(states), 0
                for stage in self.stages:
                    acc = dict(enumerate(vectors, stage.gates))
                    factor = vectors[stage.factor]
                    if self.of_bytes:
                        factor, scale = _above_zero(factor, memory)
                        acc |= {stage.gates + len(vectors): scale, stage.gates + len(vectors) + 1: factor.sum(-1, keepdims=True)}
                    acc |= {g: _modulo(np.matmul(factor, r[d, gate + g])) for g in range(stage.gates)}
                    results = [evaluate_expr(e, memory, self.inputs, domain, acc, at) for e in stage.bodies]
                    vectors += results
                    gate += stage.gates
                stays = ~running.reshape(1, 1, rows, 1)
                states = [np.where(stays, old, new) for old, new in zip(states, results, strict=True)]
                output[d, time[running], running] = states[0][0, 0, running]
            for final, state in zip(finals, states, strict=True):
                final[d, lengths > 0] = state[0, 0, lengths > 0]
        for operand, data in ((self.output, output), *zip(self.finals, finals, strict=True)):
            if operand is not None:
                memory.write(operand, data)

    def flops(self) -> Size:
        each = calls(*(body for stage in self.stages for body in stage.bodies))
        return (2 * self.gates * self.domain[3] + each) * product(self.domain)


def _above_zero(vector: Array, memory: Memory) -> tuple[Array, Array]:
    """The rows of ``vector`` as bytes less their zero points, and the scale of each."""
    vector = vector.astype(np.float32).astype(np.float64)
    domain = (*vector.shape[:-1], 1)
    ends = dict(enumerate(extreme(vector, axis=-1, keepdims=True, initial=0.0) for extreme in (np.min, np.max)))
    scale, zero = (evaluate_expr(e, memory, (), domain, ends) for e in finite_byte_range(E.acc(0), E.acc(1)))
    q = evaluate_expr(byte_of(E.acc(0), E.acc(1), E.acc_int(2)), memory, (), vector.shape, {0: vector, 1: scale, 2: zero})
    return q - zero, scale


def _modulo(sums: Array) -> Array:
    """Integers have 32 bits."""
    return sums if sums.dtype.kind == "f" else sums.astype(np.int32).astype(np.int64)
