from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest

from tests.support.programs.builder import ProgramBuilder
from tests.support.programs.recurrences import recurrence
from xyntra_ep.errors import InvariantError
from xyntra_ep.tracea.core_ir.dims import symbol
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import acc, axis, load
from xyntra_ep.tracea.core_ir.ops import (
    Binding,
    Gemm,
    Pointwise,
    Program,
    Recurrence,
    RecurrentStage,
    SymbolKind,
    Value,
    ValueKind,
)
from xyntra_ep.tracea.planning.legality import check_program


def good() -> Program:
    p = ProgramBuilder()
    x = p.input("s", 4)
    y = p.gemm(x, p.constant(4, 6))
    p.output(p.add(y, p.constant(6)))
    return p.program


def pointwise(program: Program, **change: object) -> None:
    program.ops[1] = dataclasses.replace(program.ops[1], **change)  # type: ignore[arg-type]


def operand(program: Program, **change: object) -> None:
    op = program.ops[1]
    program.ops[1] = dataclasses.replace(
        op,
        inputs=(op.inputs[0], dataclasses.replace(op.inputs[1], **change)),  # type: ignore[arg-type]
    )


def gemm_of(program: Program, *shape: object) -> None:
    op = program.ops[0]
    assert isinstance(op, Gemm)
    b = dataclasses.replace(op.inputs[1], shape=shape)  # type: ignore[arg-type]
    program.ops[0] = dataclasses.replace(op, inputs=(op.inputs[0], b))


F = DType.F32
CASES: dict[str, tuple[Callable[[Program], object], str]] = {
    "sources": (lambda p: p.sources.pop(), "2 ops but 1 sources"),
    "read before written": (lambda p: p.ops.reverse(), "op 0 (Pointwise add), input 0: value 2 is read before it is"),
    "output never written": (lambda p: (p.ops.pop(), p.sources.pop()), "output 0 (value 4) is never written"),
    "input written": (
        lambda p: pointwise(p, outputs=(p.operand(0),), domain=p.operand(0).shape),
        "op 1 (Pointwise add), output 0: value 0 is given and must not be written",
    ),
    "no such value": (lambda p: operand(p, value=99), "input 1: there is no value 99"),
    "type": (lambda p: operand(p, dtype=DType.I64), "input 1: is i64, its value f32"),
    "rank": (lambda p: operand(p, strides=(1,)), "input 1: 2 dimensions but 1 strides"),
    "bounds": (lambda p: operand(p, shape=(2, 6), strides=(6, 1)), "input 1: reaches elements 0..11 of 6"),
    "negative bounds": (lambda p: operand(p, shape=(2, 6), strides=(0, -1)), "reaches elements -5..0 of 6"),
    "unbound": (lambda p: p.bindings.clear(), "nothing binds ['s']"),
    "bound twice": (
        lambda p: p.bindings.append(Binding(name="s", kind=SymbolKind.DIM, input=0, index=1)),
        "a symbol is bound twice",
    ),
    "axis": (lambda p: pointwise(p, bodies=(load(0, axis(0), axis(2), dtype=F),)), "uses axis 2 of 2"),
    "acc": (lambda p: pointwise(p, bodies=(acc(0),)), "uses result 0 of 0"),
    "load": (lambda p: pointwise(p, bodies=(load(2, axis(0), axis(1), dtype=F),)), "reads input 2 of 2"),
    "load rank": (lambda p: pointwise(p, bodies=(load(0, axis(0), dtype=F),)), "with 1 of 2 indices"),
    "load type": (
        lambda p: pointwise(p, bodies=(load(0, axis(0), axis(1), dtype=DType.I64),)),
        "reads input 0 (f32) as i64",
    ),
    "domain": (lambda p: pointwise(p, domain=(symbol("s"), 5)), "an output has shape"),
    "bodies": (lambda p: pointwise(p, bodies=()), "0 bodies for 1 outputs"),
    "gemm": (lambda p: gemm_of(p, 3, 6), "op 0 (Gemm): b has shape (3, 6), not (4, 6)"),
    "constant": (lambda p: p.constants.pop(), "there is no constant 1"),
    "literal": (
        lambda p: p.values.append(Value(kind=ValueKind.LITERAL, dtype=F, shape=(2,), literal=b"abc")),
        "a literal of 3 bytes where 8 are declared",
    ),
    "guard": (lambda p: p.guards.append(symbol("t")), "guard t: nothing binds ['t']"),
    "outputs": (
        lambda p: p.values.append(Value(kind=ValueKind.OUTPUT, dtype=F, shape=(), index=5)),
        "outputs are numbered [0, 5]",
    ),
}  # fmt: skip


def test_a_good_program_passes() -> None:
    check_program(good())
    assert isinstance(good().ops[1], Pointwise)


@pytest.mark.parametrize("case", CASES)
def test_a_broken_rule_is_named(case: str) -> None:
    program = good()
    change, message = CASES[case]
    change(program)
    with pytest.raises(InvariantError) as caught:
        check_program(program)
    assert message in str(caught.value)
    assert "v0: input f32" in caught.value.ir


RECURRENCES: dict[str, tuple[Callable[[Recurrence], dict[str, object]], str]] = {
    "matrices": (lambda op: {"stages": op.stages * 2}, "r has shape (1, 4, 8, 8), not (1, 8, 8, 8)"),
    "orders": (lambda op: {"reverse": (False, True)}, "2 orders of time for 1 directions"),
    "states": (lambda op: {"finals": op.finals[:1]}, "2 new and 1 final states for 2"),
    "a final state": (lambda op: {"finals": (op.finals[0], op.output)}, "a final state has shape"),
    "the output": (lambda op: {"output": op.finals[0]}, "the output has shape"),
    "the factor": (
        lambda op: {"stages": (RecurrentStage(gates=4, factor=1, bodies=op.stages[0].bodies),)},
        "multiplies vector 1, which is neither state 0 nor a result before it",
    ),
    "a result": (
        lambda op: {"stages": (RecurrentStage(gates=4, factor=0, bodies=(acc(6), acc(5))),)},
        "uses result 6 of 6",
    ),
    "the time": (
        lambda op: {"initial": (load(2, axis(0), axis(1), axis(3), dtype=F), op.initial[1])},
        "an initial state depends on the time",
    ),
}


@pytest.mark.parametrize("case", RECURRENCES)
def test_recurrences(case: str) -> None:
    change, message = RECURRENCES[case]
    program = recurrence("lstm", 8)
    check_program(program)
    [op] = program.ops
    assert isinstance(op, Recurrence)
    program.ops[0] = dataclasses.replace(op, **change(op))  # type: ignore[arg-type]
    with pytest.raises(InvariantError) as error:
        check_program(program)
    assert message in str(error.value)


def test_a_recurrence_is_of_floats_or_of_signed_bytes() -> None:
    for dtype, problems in ((DType.F16, []), (DType.I8, []), (DType.U8, ["r is u8"])):
        [op] = recurrence("lstm", 8).ops
        r, *others = op.inputs
        changed = dataclasses.replace(op, inputs=(dataclasses.replace(r, dtype=dtype), *others))
        assert list(changed.problems()) == problems


def test_what_the_products_of_bytes_leave_is_read_of_bytes_only() -> None:
    """Their scale and their sum, behind the vectors."""
    check_program(recurrence("lstm", 8, of_bytes=True))
    program = recurrence("lstm", 8)
    [op] = program.ops
    assert isinstance(op, Recurrence)
    program.ops[0] = dataclasses.replace(op, stages=(RecurrentStage(gates=4, factor=0, bodies=(acc(6), acc(7))),))
    with pytest.raises(InvariantError, match="uses result 6 of 6"):
        check_program(program)
