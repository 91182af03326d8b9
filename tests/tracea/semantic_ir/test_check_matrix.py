"""The rules of the legality check for tiles and pairs, each broken once; what is legal passes in tests of the emitter."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from xyntra_ep.errors import InvariantError
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.semantic_ir.builder import FunctionBuilder, KernelBuilder
from xyntra_ep.tracea.semantic_ir.check import check_kernel
from xyntra_ep.tracea.semantic_ir.matrix_nodes import (
    ClampedQuadDot,
    LoadWords,
    PackPairs,
    PairDot,
    QuadDot,
    StoreBytes,
    StoreWords,
    TileConfigure,
    TileDot,
    TileLoad,
    TileRelease,
    TileShape,
    TileStore,
    TileZero,
)
from xyntra_ep.tracea.semantic_ir.nibble_nodes import Nibble
from xyntra_ep.tracea.semantic_ir.nodes import Array, Const, Elem, For, If, Let, PointerType, Statement, Var, f32, i32, index
from xyntra_ep.tracea.semantic_ir.table_nodes import ByteLookup, Lookup, LookupIn

A = Var(PointerType(DType.BF16), "b_a0")
C = Var(PointerType(DType.F32, writable=True), "b_c1")
ONE, FLOATS, PAIRS, ZERO = Const(f32(1), 1.0), Const(f32(4), 1.0), Const(i32(4), 0), index(0)
READY = TileConfigure((TileShape(index(1), index(64)),))
DONE = TileRelease()
CHARS = Array(Var(PointerType(DType.U8, writable=True), "u"), DType.U8, 64)
ARRAY = Array(Var(PointerType(DType.BF16, writable=True), "t"), DType.BF16, 64)
VALUE = Var(f32(4), "v")


def check(*body: Statement) -> None:
    k = KernelBuilder("broken")
    assert (k.buffer("a", DType.BF16), k.buffer("c", DType.F32, writable=True)) == (A, C)
    for statement in body:
        k.emit(statement)
    check_kernel(k.finish()[0])


def _called(configured: bool, *body: Statement) -> None:
    """A kernel that calls a function of ``body``."""
    f, k = FunctionBuilder("f"), KernelBuilder("broken")
    for statement in body:
        f.emit(statement)
    function = k.function(f.finish())
    if configured:
        k.emit(READY)
    k.call(function)
    if configured:
        k.emit(DONE)
    check_kernel(k.finish()[0])


WORDS = Const(i32(16), 0)
BROKEN: dict[str, tuple[str, Callable[[], None]]] = {
    "no configuration": ("before they are configured", lambda: check(TileZero(0))),
    "after the release": ("before they are configured", lambda: check(READY, DONE, TileZero(0))),
    "release alone": ("before they are configured", lambda: check(DONE)),
    "no release": ("a block must leave tiles as it found them", lambda: check(READY)),
    "configured in one branch": ("a block must leave tiles", lambda: check(If(index(1), (READY,)), TileZero(0), DONE)),
    "released in a loop": (
        "a block must leave tiles",
        lambda: check(READY, For(Var(index(0).type, "i"), ZERO, ZERO, index(1), (DONE,))),
    ),
    "nine tiles": ("there are 8 tiles", lambda: check(TileConfigure((TileShape(ZERO, ZERO),) * 9), DONE)),
    "tile 8": ("there are 8 tiles", lambda: check(READY, TileZero(8), DONE)),
    "rows by a float": ("the rows of a tile must be an index", lambda: check(TileConfigure((TileShape(ONE, ZERO),)), DONE)),
    "width by a float": ("the width of a tile must be", lambda: check(TileConfigure((TileShape(ZERO, ONE),)), DONE)),
    "product with itself": ("three different tiles", lambda: check(READY, TileDot(0, 1, 1), DONE)),
    "float stride": ("a stride must be an index", lambda: check(READY, TileLoad(0, A, ZERO, ONE), DONE)),
    "float address of a tile": ("an address must be an index", lambda: check(READY, TileLoad(0, A, ONE, ZERO), DONE)),
    "tile to an input": ("needs a writable pointer", lambda: check(READY, TileStore(0, A, ZERO, ZERO), DONE)),
    "sums as bf16": ("a tile of bf16", lambda: check(ARRAY, READY, TileStore(0, ARRAY.var, ZERO, ZERO), DONE)),
    "pairs of floats to memory": ("is stored as words", lambda: check(ARRAY, StoreWords(ARRAY.var, ZERO, FLOATS))),
    "function without tiles": ("f is called without tiles", lambda: _called(False, TileZero(0))),
    "function that keeps them": ("a block must leave tiles", lambda: _called(False, READY)),
    "pairs of floats": ("words of f32", lambda: check(Let(Var(i32(4), "p"), LoadWords(C, ZERO, 4)))),
    "pairs to an input": ("needs a writable pointer", lambda: check(StoreWords(A, ZERO, PAIRS))),
    "no pairs": ("a load of 0 lanes", lambda: check(Let(Var(i32(4), "p"), LoadWords(A, ZERO, 0)))),
    "float count of pairs": ("a count must be an index", lambda: check(Let(Var(i32(4), "p"), LoadWords(A, ZERO, 4, ONE)))),
    "pairs of pairs": ("pairs of", lambda: check(Let(Var(i32(4), "p"), PackPairs(PAIRS, PAIRS)))),
    "product of floats": ("products of words", lambda: check(Let(VALUE, PairDot(FLOATS, FLOATS, FLOATS)))),
    "sums in pairs": ("products of words", lambda: check(Let(Var(i32(4), "p"), PairDot(PAIRS, PAIRS, PAIRS)))),
    "integers in floats": ("products of words", lambda: check(Let(VALUE, QuadDot(PAIRS, PAIRS, FLOATS)))),
    "clamped integers in floats": ("products of words", lambda: check(Let(VALUE, ClampedQuadDot(PAIRS, PAIRS, FLOATS)))),
    "4-bit integers of floats": ("4-bit integer 0 of", lambda: check(Let(VALUE, Nibble(FLOATS, 0)))),
    "a lookup at floats": ("a lookup at", lambda: check(Let(VALUE, Lookup((1.0,), FLOATS, Elem.F32)))),
    "an empty table": ("in a table of 0", lambda: check(Let(VALUE, Lookup((), PAIRS, Elem.F32)))),
    "a table of halves": ("has other entries", lambda: check(Let(Var(i32(4), "p"), Lookup((0.5,), PAIRS, Elem.I32)))),
    "a lookup among halves": ("a lookup at", lambda: check(Let(Var(i32(4), "p"), LookupIn(A, ZERO, PAIRS, Elem.I32)))),
    "a lookup from a float on": ("an address must be", lambda: check(Let(VALUE, LookupIn(C, ONE, PAIRS, Elem.F32)))),
    "bytes in three vectors": ("in 3 vectors", lambda: check(Let(Var(i32(16), "p"), ByteLookup((WORDS,) * 3, WORDS)))),
    "bytes at few lanes": ("a lookup of bytes", lambda: check(Let(Var(i32(4), "p"), ByteLookup((WORDS,) * 2, PAIRS)))),
    "one vector of bytes": ("1 vectors of", lambda: check(CHARS, StoreBytes(CHARS.var, ZERO, (WORDS,)))),
    "bytes of few lanes": ("2 vectors of", lambda: check(CHARS, StoreBytes(CHARS.var, ZERO, (PAIRS, PAIRS)))),
    "bytes to bf16": ("a writable pointer to such", lambda: check(ARRAY, StoreBytes(ARRAY.var, ZERO, (WORDS, WORDS)))),
    "bytes at a float": ("an address must be", lambda: check(CHARS, StoreBytes(CHARS.var, ONE, (WORDS, WORDS)))),
    "a ninth 4-bit integer": ("4-bit integer 8 of", lambda: check(Let(VALUE, Nibble(PAIRS, 8)))),
}


@pytest.mark.parametrize("name", list(BROKEN))
def test_broken(name: str) -> None:
    rule, run = BROKEN[name]
    with pytest.raises(InvariantError) as caught:
        run()
    assert rule in str(caught.value)


def test_functions_use_the_tiles_of_their_caller_or_their_own() -> None:
    _called(True, TileZero(0))
    _called(False, READY, TileZero(0), DONE)
    check(READY, READY, TileZero(0), DONE)
