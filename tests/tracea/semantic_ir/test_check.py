"""Every rule of the legality check, broken once; and that legal kernels pass."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.programs.random import RandomProgram
from xyntra_ep.errors import InvariantError
from xyntra_ep.tracea.core_ir.dims import symbol
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.doctor.variants import cpu_variants
from xyntra_ep.tracea.kernels.variant import BuildContext
from xyntra_ep.tracea.semantic_ir.builder import FunctionBuilder, KernelBuilder
from xyntra_ep.tracea.semantic_ir.capabilities import AVX2, AVX512, SCALAR
from xyntra_ep.tracea.semantic_ir.check import ARRAY_BYTES, check_kernel
from xyntra_ep.tracea.semantic_ir.nodes import (
    INDEX,
    Array,
    Assign,
    Binary,
    Bitcast,
    CallStatement,
    CallValue,
    Comment,
    Const,
    Convert,
    Fma,
    For,
    Function,
    Gather,
    If,
    Kernel,
    Let,
    Load,
    Offset,
    PointerType,
    Prefetch,
    Reduce,
    Return,
    Select,
    Shuffle,
    Splat,
    Statement,
    Store,
    Unary,
    Var,
    f32,
    i32,
    i64,
    index,
)

X = Var(PointerType(DType.F32), "b_x0")
Y = Var(PointerType(DType.F32, writable=True), "b_y1")
N = Var(INDEX, "p_0")
ONE, VECTOR, WHOLE, MASK = Const(f32(1), 1.0), Const(f32(4), 1.0), Const(i64(4), 1), Const(i32(4), -1)
A = Var(f32(4), "a")
HALF = Function("half", (Var(f32(4), "x"),), (Return(Binary("mul", Var(f32(4), "x"), VECTOR)),), f32(4))
FILL = Function(
    "fill", (Var(PointerType(DType.F32, True), "p"),), (Store(Var(PointerType(DType.F32, True), "p"), index(0), ONE),)
)


def check(*body: Statement, functions: tuple[Function, ...] = ()) -> None:
    b = KernelBuilder("broken")
    assert (b.buffer("x", DType.F32), b.buffer("y", DType.F32, writable=True), b.param(symbol("n"))) == (X, Y, N)
    for function in functions:
        b.function(function)
    for statement in body:
        b.emit(statement)
    check_kernel(b.finish()[0])


def test_a_legal_kernel() -> None:
    f = FunctionBuilder("add_one", f32(4), inline=True)
    f.result(f.argument("x", f32(4)) + 1.0)
    b = KernelBuilder("legal")
    x, y = b.buffer("x", DType.F16), b.buffer("y", DType.BF16, writable=True)
    n = b.param(symbol("n"))
    add_one = b.function(f.finish())
    kept = b.array("kept", DType.F32, 4)
    with b.units() as unit, b.loop("i", 0, n, 4) as i:
        b.comment("all kinds of statements")
        total = b.variable("total", b.load(x, unit * n + i, 4))
        with b.when(Binary("lt", i, n)):
            b.assign(total, b.value(add_one, total))
        with b.otherwise():
            b.prefetch(x, i)
        b.store(kept, 0, total)
        b.store(y, i, b.load(kept, 0, 4), count=n - i)
    check_kernel(b.finish()[0])


Z = Var(f32(4), "z")
BROKEN: dict[str, tuple[str, Callable[[], None]]] = {
    "unknown name": ("z is not defined here", lambda: check(Let(A, Z))),
    "name of a closed block": ("z is not defined here", lambda: check(If(N, (Let(Z, VECTOR),)), Let(A, Z))),
    "loop variable outside": (
        "i is not defined here",
        lambda: check(For(Var(INDEX, "i"), index(0), N, index(1), ()), Let(Var(INDEX, "j"), Var(INDEX, "i"))),
    ),
    "name of another type": ("a is not defined here", lambda: check(Let(A, VECTOR), Let(Z, Var(f32(8), "a")))),
    "defined twice": ("a is defined twice", lambda: check(Let(A, VECTOR), If(N, (Let(A, VECTOR),)))),
    "let of another type": ("is declared", lambda: check(Let(A, WHOLE))),
    "constant assigned": ("a is not mutable", lambda: check(Let(A, VECTOR), Assign(A, VECTOR))),
    "assigned another type": ("is assigned to", lambda: check(Let(A, VECTOR, mutable=True), Assign(A, ONE))),
    "store to an input": ("a store needs a writable pointer", lambda: check(Store(X, index(0), ONE))),
    "store of integers": ("i64 is stored as f32", lambda: check(Store(Y, index(0), WHOLE))),
    "vector address": ("an address must be an index", lambda: check(Store(Y, WHOLE, VECTOR))),
    "float count": ("a count must be an index", lambda: check(Store(Y, index(0), VECTOR, ONE))),
    "float address of a prefetch": ("an address must be an index", lambda: check(Prefetch(X, ONE))),
    "float offset": ("an offset must be an index", lambda: check(Store(Offset(Y, ONE), index(0), ONE))),
    "no pointer": ("is not defined here", lambda: check(Store(Var(PointerType(DType.F32, True), "q"), index(0), ONE))),
    "pointer as a value": ("a pointer is used as a value", lambda: check(Let(A, Offset(X, index(0))))),
    "step of zero": ("positive literal", lambda: check(For(Var(INDEX, "i"), index(0), N, index(0), ()))),
    "computed step": ("positive literal", lambda: check(For(Var(INDEX, "i"), index(0), N, Binary("add", N, N), ()))),
    "float bound": ("a loop bound must be an index", lambda: check(For(Var(INDEX, "i"), index(0), ONE, index(1), ()))),
    "float condition": ("a condition must be one integer", lambda: check(If(ONE, ()))),
    "vector condition": ("a condition must be one integer", lambda: check(If(MASK, ()))),
    "empty array": ("must have elements", lambda: check(Array(Var(PointerType(DType.F32, True), "t"), DType.F32, 0))),
    "array of another type": ("writable pointer", lambda: check(Array(Var(PointerType(DType.F16), "t"), DType.F32, 4))),
    "arrays beyond the stack": (
        "local arrays take",
        lambda: check(*(Array(Var(PointerType(DType.I8, True), f"t{i}"), DType.I8, ARRAY_BYTES // 2) for i in range(2))),
    ),
    "return in a kernel": ("the result has another type", lambda: check(Return(ONE))),
    "no such statement": ("no such statement", lambda: check(Statement())),
    "unknown function": ("not defined before its caller", lambda: check(Let(A, CallValue(HALF, (VECTOR,))))),
    "callee after caller": (
        "not defined before its caller",
        lambda: check(functions=(Function("f", (), (CallStatement(FILL, (Y,)),)), FILL)),
    ),
    "function twice": ("is defined twice", lambda: check_kernel(_twice())),
    "too few arguments": ("half takes 1 arguments", lambda: check(Let(A, CallValue(HALF, ())), functions=(HALF,))),
    "argument of another type": ("is given for", lambda: check(Let(A, CallValue(HALF, (ONE,))), functions=(HALF,))),
    "value for a pointer": ("p is a pointer", lambda: check(CallStatement(FILL, (ONE,)), functions=(FILL,))),
    "constant pointer for a writable one": ("is given for", lambda: check(CallStatement(FILL, (X,)), functions=(FILL,))),
    "value of a procedure": ("fill has no result", lambda: check(Let(A, CallValue(FILL, (Y,))), functions=(FILL,))),
    "missing result": ("must return once", lambda: check(functions=(Function("f", (), (), f32(1)),))),
    "operands differ": ("add of", lambda: check(Let(A, Binary("add", VECTOR, Const(f32(8), 0.0))))),
    "no such operation": ("no operation frob", lambda: check(Let(A, Binary("frob", VECTOR, VECTOR)))),
    "no such function of one": ("no operation frob", lambda: check(Let(A, Unary("frob", VECTOR)))),
    "root of integers": ("sqrt of", lambda: check(Let(Var(i64(4), "w"), Unary("sqrt", WHOLE)))),
    "bits of floats": ("xor of", lambda: check(Let(A, Binary("xor", VECTOR, VECTOR)))),
    "mixed fma": ("fma of", lambda: check(Let(A, Fma(VECTOR, VECTOR, ONE)))),
    "sides of a select": ("select between", lambda: check(Let(A, Select(MASK, VECTOR, ONE)))),
    "mask of a select": ("select of", lambda: check(Let(A, Select(Const(i32(8), -1), VECTOR, VECTOR)))),
    "lanes of a conversion": ("conversion of", lambda: check(Let(A, Convert(f32(4), Const(i64(8), 1))))),
    "bits of other widths": ("bits of", lambda: check(Let(A, Bitcast(f32(4), WHOLE)))),
    "splat of a vector": ("splat of", lambda: check(Let(A, Splat(f32(4), Const(f32(2), 1.0))))),
    "load of nothing": ("a load of 0 lanes", lambda: check(Let(A, Load(X, index(0), 0)))),
    "gather by floats": ("gather at", lambda: check(Let(A, Gather(X, VECTOR)))),
    "shuffle of unlike": ("shuffle of", lambda: check(Let(A, Shuffle(VECTOR, WHOLE, (0, 1, 2, 3))))),
    "shuffle out of range": ("lane that is not there", lambda: check(Let(A, Shuffle(VECTOR, VECTOR, (0, 1, 2, 8))))),
    "no such reduction": ("no reduction by avg", lambda: check(Let(Var(f32(1), "s"), Reduce("avg", VECTOR)))),
    "or of floats": ("reduction of", lambda: check(Let(Var(f32(1), "s"), Reduce("or", VECTOR)))),
}


def test_what_calls_another_function_is_checked_in_every_kernel() -> None:
    out = Var(PointerType(DType.F32, writable=True), "out")
    caller = Function("caller", (out,), (CallStatement(FILL, (out,)),))
    check(functions=(FILL, caller))
    check(functions=(FILL, caller))
    with pytest.raises(InvariantError, match="not defined before its caller"):
        check(functions=(caller,))


def _twice() -> Kernel:
    return Kernel("broken", (), (), (FILL, FILL), ())


@pytest.mark.parametrize("name", list(BROKEN))
def test_broken(name: str) -> None:
    rule, run = BROKEN[name]
    with pytest.raises(InvariantError) as caught:
        run()
    assert rule in str(caught.value) and str(caught.value).startswith("kernel broken: ")
    assert caught.value.pass_name == "semantic IR check"


def test_the_statement_is_named() -> None:
    with pytest.raises(InvariantError, match=r"in Assign\(var=Var"):
        check(Let(A, VECTOR), For(Var(INDEX, "i"), index(0), N, index(1), (Comment("here"), Assign(A, VECTOR))))


@pytest.mark.parametrize("seed", range(12))
def test_generated_kernels_are_legal(seed: int) -> None:
    made = RandomProgram(seed, rank=2, symbolic=True)
    made = made.pointwise(2) if seed % 2 else made.row_reduce(1, 1)
    op = made.program.ops[0]
    for caps in (AVX512, AVX2, SCALAR):
        context = BuildContext(caps=caps, program=made.program)
        for variant in cpu_variants()[type(op)]:
            if variant.admits(op, context) is None:
                for call in variant.build(op, variant.default(op, context), context):
                    check_kernel(call.kernel)


def test_turns_are_counted_in_integers_that_may_be_written() -> None:
    for dtype, writable in ((DType.F32, True), (DType.I64, False)):
        b = KernelBuilder("turns")
        counts = b.buffer("counts", dtype, writable=writable)
        b.wait_for(counts, 0, index(1))
        with pytest.raises(InvariantError, match="supersteps are counted in"):
            check_kernel(b.finish()[0])
    b = KernelBuilder("turns")
    counts = b.buffer("counts", DType.I64, writable=True)
    with b.when(b.claim(counts, 0, ONE)):
        b.announce(counts, 1, index(1))
    with pytest.raises(InvariantError, match="a number of supersteps must be an index"):
        check_kernel(b.finish()[0])
