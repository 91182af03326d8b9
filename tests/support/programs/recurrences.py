"""Small recurrences to plan: the cells that ONNX has, over gates that were projected before."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.support.programs.builder import ProgramBuilder
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr, acc, acc_int, axis, call, const, load
from xyntra_ep.tracea.core_ir.ops import Operand, Program, Recurrence, RecurrentStage, ValueKind

CELLS = ("rnn", "lstm", "gru", "gru_reset_before")
GATES = {"rnn": 1, "lstm": 4, "gru": 3, "gru_reset_before": 3}
STATES = {"rnn": 1, "lstm": 2, "gru": 1, "gru_reset_before": 1}


def add(a: Expr, b: Expr) -> Expr:
    return call("add", a, b)


def mul(a: Expr, b: Expr) -> Expr:
    return call("mul", a, b)


def sigmoid(e: Expr) -> Expr:
    return call("logistic", e)


def products(cell: str, scales: int | None) -> tuple[Callable[[int], Expr], Callable[[int], Expr]]:
    """What a stage multiplies, of the first and of the second stage. ``scales``: input [D, G, n] of a recurrence of bytes; what
    stands for a zero point is taken off, too."""
    if scales is None:
        return acc, acc
    first = 2 if cell == "gru_reset_before" else GATES[cell]
    vectors = STATES[cell]

    def product(gates: int, vectors: int, before: int) -> Callable[[int], Expr]:
        def of(g: int) -> Expr:
            place = (axis(0), const(g + before), axis(3))
            total = call("sub", acc_int(g), call("mul", const(3), acc_int(gates + vectors + 1)))
            scale = call("round_f32", mul(acc(gates + vectors), load(scales, *place, dtype=DType.F32)))
            return mul(call("to_f", call("wrap_i32", total)), scale)

        return of

    return product(first, vectors, 0), product(1, vectors + 2, 2)


def stages_of(cell: str, x: int, scales: int | None = None) -> tuple[RecurrentStage, ...]:
    """Input ``x`` of the op is [T, D, G, B, n]: an odd order of axes."""
    of, of_second = products(cell, scales)

    def gate(g: int) -> Expr:
        return load(x, axis(1), axis(0), const(g), axis(2), axis(3), dtype=DType.F32)

    def blend(z: Expr, fresh: Expr, old: Expr) -> Expr:
        return add(mul(call("sub", const(1.0), z), fresh), mul(z, old))

    if cell == "rnn":
        return (RecurrentStage(gates=1, factor=0, bodies=(call("tanh", add(of(0), gate(0))),)),)
    if cell == "lstm":
        i, o, f = (sigmoid(add(of(g), gate(g))) for g in range(3))
        c = add(mul(f, acc(5)), mul(i, call("tanh", add(of(3), gate(3)))))
        return (RecurrentStage(gates=4, factor=0, bodies=(mul(o, call("tanh", c)), c)),)
    z, r = (sigmoid(add(of(g), gate(g))) for g in range(2))
    if cell == "gru":
        fresh = call("tanh", add(gate(2), mul(r, add(of(2), const(0.1)))))
        return (RecurrentStage(gates=3, factor=0, bodies=(blend(z, fresh, acc(3)),)),)
    first = RecurrentStage(gates=2, factor=0, bodies=(z, mul(r, acc(2))))
    fresh = call("tanh", add(of_second(0), gate(2)))
    return (first, RecurrentStage(gates=1, factor=2, bodies=(blend(acc(2), fresh, acc(1)),)))


def recurrence(
    cell: str,
    width: int,
    *,
    steps: int | str = "t",
    rows: int | str = "b",
    reverse: Sequence[bool] = (False,),
    lengths: bool = False,
    initial: bool = True,
    outputs: Sequence[bool] = (True, True, True),
    dtype: DType = DType.F32,
    of_bytes: bool = False,
) -> Program:
    """Inputs: x [T, D, G, B, n], the lengths, an initial value for each state. ``outputs``: which of the sequence and the final
    states are wanted; ``of_bytes``: the matrices are, and have scales [D, G, n], a second constant."""
    p, directions, gates, states = ProgramBuilder(), len(reverse), GATES[cell], STATES[cell]
    x = p.input(steps, directions, gates, rows, width, dtype=dtype)
    t, b = x.shape[0], x.shape[3]
    weights = p.value(ValueKind.CONST, directions, gates, width, width, dtype=DType.I8 if of_bytes else DType.F32)
    inputs: list[Operand] = [weights]
    if lengths:
        inputs.append(p.value(ValueKind.INPUT, b, dtype=DType.I32))
    inputs.append(x)
    if of_bytes:
        inputs.append(p.constant(directions, gates, width))
    stages = stages_of(cell, 1 + lengths, 2 + lengths if of_bytes else None)
    first: list[Expr] = []
    for _ in range(states):
        if initial:
            inputs.append(p.value(ValueKind.INPUT, directions, b, width))
            first.append(load(len(inputs) - 1, axis(0), axis(2), axis(3), dtype=DType.F32))
        else:
            first.append(const(0.0))
    d, n = directions, width
    output = None
    if outputs[0]:  # stored with the directions side by side
        whole = p.value(ValueKind.OUTPUT, t, b, d, n, dtype=dtype)
        strides = tuple(whole.strides[i] for i in (2, 0, 1, 3))
        output = Operand(value=whole.value, dtype=dtype, shape=(d, t, b, n), strides=strides)
    finals = tuple(p.value(ValueKind.OUTPUT, d, b, n, dtype=dtype) if wanted else None for wanted in outputs[1 : 1 + states])
    p.op(
        Recurrence(
            domain=(d, t, b, n),
            inputs=tuple(inputs),
            has_lengths=lengths,
            reverse=tuple(reverse),
            initial=tuple(first),
            stages=stages,
            output=output,
            finals=finals,
        )
    )
    return p.program
