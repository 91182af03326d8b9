"""Which numbers of a kernel become data, and where they are read."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable

import pytest

from tests.support.machine import VBMI
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.semantic_ir.builder import FunctionBuilder, KernelBuilder
from xyntra_ep.tracea.semantic_ir.capabilities import SCALAR, Capabilities
from xyntra_ep.tracea.semantic_ir.check import check_kernel
from xyntra_ep.tracea.semantic_ir.lifted_constants import lifted
from xyntra_ep.tracea.semantic_ir.nodes import (
    INDEX,
    Const,
    Convert,
    Elem,
    Fma,
    Kernel,
    Let,
    Rvalue,
    Unary,
    binary,
    f32,
    i32,
    splat,
    vmax,
)
from xyntra_ep.tracea.semantic_ir.table_nodes import Lookup

Make = Callable[[Rvalue], Rvalue]


def kernel_of(make: Make, lanes: int = 4) -> Kernel:
    b = KernelBuilder("f")
    x, y = b.buffer("x", DType.F32), b.buffer("y", DType.F32, writable=True)
    with b.units() as u:
        b.store(y, u * lanes, make(b.load(x, u * lanes, lanes)))
    kernel, _ = b.finish()
    return kernel


def numbers(make: Make, lanes: int = 4) -> list[float]:
    kernel, data = lifted(kernel_of(make, lanes), SCALAR)
    check_kernel(kernel)
    return [round(x, 4) for (x,) in struct.iter_unpack("<f", data)]


def word(x: Rvalue) -> Rvalue:
    return Convert(i32(4), x)


def test_kernels_that_differ_in_numbers_are_one() -> None:
    one, other = lifted(kernel_of(lambda x: x * 0.3 + 3.5), SCALAR), lifted(kernel_of(lambda x: x * 0.7 + 3.5), SCALAR)
    assert one[0] == other[0] and one[1] != other[1]
    assert [b.name for b in one[0].buffers][-1] == "b_numbers"
    assert len(one[0].body) == len(kernel_of(lambda x: x).body) + 4, "each is read and spread once, before all else"
    assert all(isinstance(s, Let) for s in one[0].body[:4])


def test_equal_numbers_are_one_and_their_order_is_that_of_the_kernel() -> None:
    assert numbers(lambda x: (x + 2.5) * 0.3 + 2.5) == [2.5, 0.3]
    assert numbers(lambda x: x * 0.3 + 0.7, lanes=1) == [0.3, 0.7]


@pytest.mark.parametrize(
    "make",
    [
        lambda x: x + 0.0,
        lambda x: x * -1.0,
        lambda x: vmax(x, -math.inf),
        lambda x: x + math.nan,
        lambda x: x + 1e39,
        lambda x: x * 4.0,
        lambda x: x / 0.125,
        lambda x: x + splat(Const(f32(1), 0.3) * 0.7, 4),
        lambda x: Fma(Const(f32(4), 0.3), Const(f32(4), 0.7), x),
        lambda x: Convert(f32(4), binary("shl", word(x), 3)),
        lambda x: Convert(f32(4), binary("and", word(x), 255)),
        lambda x: Convert(f32(4), word(x) * 64),
    ],
    ids=["0", "-1", "infinite", "nan", "too large", "factor 4", "divisor 1/8", "known sum", "known product", "shift", "mask",
         "words times 64"],
)  # fmt: skip
def test_what_a_compiler_knows_more_of_stays(make: Make) -> None:
    kernel = kernel_of(make)
    assert lifted(kernel, SCALAR) == (kernel, b"")


def test_numbers_beside_those_that_stay() -> None:
    assert numbers(lambda x: x * 4.0 + 4.0) == [4.0]
    assert numbers(lambda x: vmax(Unary("abs", x), 0.3) / 0.7) == [0.3, 0.7]


def test_words_are_read_as_they_are() -> None:
    kernel, data = lifted(kernel_of(lambda x: Convert(f32(4), (word(x) - 113) * 131)), SCALAR)
    check_kernel(kernel)
    assert struct.unpack("<ii", data) == (113, 131)


def test_the_same_bits_as_a_float_and_as_a_word() -> None:
    bits = 1069547520  # of 1.5
    _, data = lifted(kernel_of(lambda x: Convert(f32(4), word(x * 1.5) + bits)), SCALAR)
    assert len(data) == 8


def with_functions() -> Kernel:
    """Two functions, of which the second calls the first, which calls one with a result."""
    b = KernelBuilder("f")
    x, y = b.buffer("x", DType.F32), b.buffer("y", DType.F32, writable=True)
    of_one = FunctionBuilder("of_one", result=f32(1))
    of_one.result(of_one.argument("a", f32(1)) * 0.9)
    inner = FunctionBuilder("inner")
    at = inner.argument("at", INDEX)
    inner.store(y, at, inner.value(b.function(of_one.finish()), inner.load(x, at)) * 0.3)
    of_inner = inner.capture()
    outer = FunctionBuilder("outer")
    at = outer.argument("at", INDEX)
    outer.call(b.function(inner.finish()), at, *of_inner)
    of_outer = outer.capture()
    with b.units() as u:
        b.call(b.function(outer.finish()), u, *of_outer)
        b.store(y, u, b.load(y, u) + 0.7)
    return b.finish()[0]


def test_functions_are_given_the_numbers_and_elementary_ones_keep_theirs() -> None:
    kernel = with_functions()
    made, data = lifted(kernel, SCALAR)
    check_kernel(made)
    assert [round(x, 4) for (x,) in struct.iter_unpack("<f", data)] == [0.3, 0.7]
    elementary, *others = made.functions
    assert elementary is kernel.functions[0]
    assert all(function.arguments[-1].name == "b_numbers" for function in others)


def test_a_function_that_needs_none_is_left_as_it_is() -> None:
    kernel = kernel_of(lambda x: x + 0.0)
    assert lifted(kernel, SCALAR)[0] is kernel


@pytest.mark.parametrize("caps", [SCALAR, VBMI], ids=["in memory", "in vectors"])
@pytest.mark.parametrize(("elem", "size"), [(Elem.F32, 256), (Elem.I32, 256), (Elem.I32, 100)])
def test_tables_are_data(caps: Capabilities, elem: Elem, size: int) -> None:
    def looked_up(step: int) -> Kernel:
        def make(x: Rvalue) -> Rvalue:
            found = Lookup(tuple(float(i * step % 251) for i in range(size)), Convert(i32(16), x), elem)
            return found if elem is Elem.F32 else Convert(f32(16), found)

        return kernel_of(make, 16)

    (one, data), (other, more) = (lifted(looked_up(step), caps) for step in (3, 7))
    check_kernel(one)
    assert one == other and data != more
    in_bytes = caps is VBMI and elem is Elem.I32
    assert len(data) == (-(-size // 128) * 128 if in_bytes else 4 * size)


def test_what_bytes_are_added_to_is_a_number() -> None:
    kernel = kernel_of(lambda x: Convert(f32(16), Lookup((-5.0, 9.0), Convert(i32(16), x), Elem.I32)), 16)
    made, data = lifted(kernel, VBMI)
    check_kernel(made)
    assert (data[:2], len(data), data[128:]) == (bytes([0, 14]), 132, struct.pack("<i", -5))
