"""What the C text means when a compiler has had it: every kind of node, on every instruction set, against numpy."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.machine import VBMI
from tests.support.printed import c_text, source_of
from tests.support.run_program import carry_out
from tests.support.work import Buffer, Output, Step, Work
from xyntra_ep.tracea.core_ir.dtypes import DType, from_float64
from xyntra_ep.tracea.core_ir.interpreter import random_like
from xyntra_ep.tracea.planning.plan import BufferKind
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder
from xyntra_ep.tracea.semantic_ir.capabilities import AVX2, AVX512, NEON, SCALAR, Capabilities
from xyntra_ep.tracea.semantic_ir.check import check_kernel
from xyntra_ep.tracea.semantic_ir.lifted_constants import lifted
from xyntra_ep.tracea.semantic_ir.nibble_nodes import NIBBLES, Nibble
from xyntra_ep.tracea.semantic_ir.nodes import (
    Binary,
    Bitcast,
    Const,
    Convert,
    Elem,
    Fma,
    Gather,
    Iota,
    Kernel,
    Reduce,
    Rvalue,
    Select,
    Shuffle,
    Unary,
    binary,
    f32,
    i32,
    i64,
    index,
    splat,
)
from xyntra_ep.tracea.semantic_ir.table_nodes import ENTRIES, Lookup

pytestmark = pytest.mark.compiler("cc")

Array = NDArray[Any]
MACHINES = [pytest.param(caps, id=caps.isa) for caps in (AVX512, AVX2, NEON, SCALAR)]
MACHINES_AND_LANES = [
    pytest.param(caps, lanes, id=f"{caps.isa}-{lanes}")
    for caps, lanes in ((AVX512, 16), (AVX512, 8), (AVX2, 8), (NEON, 4), (SCALAR, 4), (SCALAR, 1))
]
_RAW = {1: DType.U8, 2: DType.BF16, 4: DType.I32, 8: DType.I64}  # as which bytes are returned
SMALLEST, LARGEST = -(2**63), 2**63 - 1


def execute(b: KernelBuilder, caps: Capabilities, *buffers: Array) -> None:
    """Compile the kernel of ``b`` and call it for one unit; ``buffers`` are then what it left in them."""
    kernel, params = b.finish()
    assert not params
    execute_kernel(kernel, 1, caps, *buffers)


def execute_kernel(kernel: Kernel, units: int, caps: Capabilities, *buffers: Array) -> None:
    """As ``execute``."""
    check_kernel(kernel)
    source = source_of(kernel, caps)
    work = Work(
        buffers=[Buffer(kind=BufferKind.OUTPUT, size_bytes=a.nbytes, data=a.tobytes()) for a in buffers],
        run=[Step(label="test", kernel=0, buffers=[(i, 0) for i in range(len(buffers))], ranges=[(0, units)])],
        outputs=[Output(buffer=i, shape=a.shape, dtype=_RAW[a.dtype.itemsize]) for i, a in enumerate(buffers)],
    )
    [results] = carry_out([work], [source], caps)
    for buffer, result in zip(buffers, results, strict=True):
        buffer.view(result.dtype)[...] = result


def compute(
    body: Callable[..., Rvalue], caps: Capabilities, lanes: int, result: DType, *inputs: tuple[DType, Array], count: int = 0
) -> Array:
    """``body`` of vectors of ``lanes`` elements of the inputs, stored as ``result`` (``count`` elements, if not all)."""
    b = KernelBuilder("xy_test")
    pointers = [b.buffer("x", dtype) for dtype, _ in inputs]
    y = b.buffer("y", result, writable=True)
    limit = index(count) if count else None
    value = b.let("r", body(*(b.load(p, 0, lanes, limit) for p in pointers)))
    out = np.zeros(max(lanes, value.type.lanes), dtype=result.numpy)
    b.store(y, 0, value, limit)
    execute(b, caps, *(np.ascontiguousarray(a) for _, a in inputs), out)
    return out


@pytest.mark.parametrize(("caps", "lanes"), MACHINES_AND_LANES)
@pytest.mark.parametrize("dtype", list(DType))
def test_loads_widen_and_stores_narrow(dtype: DType, caps: Capabilities, lanes: int) -> None:
    data = random_like((lanes,), dtype, 1)
    if dtype.is_float:
        data[:1] = from_float64(np.array([np.nan]), dtype)
    assert compute(lambda x: x, caps, lanes, dtype, (dtype, data)).tobytes() == data.tobytes()
    for count in range(1, lanes + 2):
        part = compute(lambda x: x, caps, lanes, dtype, (dtype, data), count=count)
        assert part[:count].tobytes() == data[:count].tobytes() and not part[count:].view(np.uint8).any()


@pytest.mark.parametrize(("caps", "lanes"), MACHINES_AND_LANES)
def test_what_is_not_loaded_is_zero(caps: Capabilities, lanes: int) -> None:
    """And a count may be larger than a vector, or negative: a loop has more elements left, or none."""
    data = random_like((lanes,), DType.F32, 1)
    for count in (-(1 << 40), -1, 0, *range(1, lanes + 1), 1 << 40):
        b = KernelBuilder("xy_test")
        x, y, z = b.buffer("x", DType.F32), b.buffer("y", DType.F32, writable=True), b.buffer("z", DType.F32, writable=True)
        b.store(y, 0, b.let("r", b.load(x, 0, lanes, index(count))))
        b.store(z, 0, b.let("r", b.load(x, 0, lanes)), index(count))
        loaded, stored = np.ones(lanes, np.float32), np.zeros(lanes, np.float32)
        execute(b, caps, data, loaded, stored)
        want = np.where(np.arange(lanes) < count, data, np.float32(0))
        assert loaded.tobytes() == stored.tobytes() == want.tobytes()


@pytest.mark.parametrize("caps", [AVX512, AVX2])
@pytest.mark.parametrize("dtype", [DType.F16, DType.BF16])
def test_rounding_to_half_precision(dtype: DType, caps: Capabilities) -> None:
    values = np.array([1.0, 1 + 2**-9, 1 + 3 * 2**-9, 65519.0, 1e9, -1e-9, np.inf, -np.inf], dtype=np.float32)
    got = compute(lambda x: x, caps, 8, dtype, (DType.F32, values))
    with np.errstate(over="ignore"):
        assert got.tobytes() == from_float64(values.astype(np.float64), dtype).tobytes()


@pytest.mark.parametrize(("caps", "lanes"), MACHINES_AND_LANES)
@pytest.mark.parametrize("op", ["lt", "le", "eq", "ne", "min", "max"])
def test_comparisons_of_long_integers(op: str, caps: Capabilities, lanes: int) -> None:
    extremes = [SMALLEST, SMALLEST + 1, -(2**32), -1, 0, 1, 2**31, LARGEST]
    a = np.repeat(extremes, 8).astype(np.int64)
    b = np.tile(extremes, 8).astype(np.int64)
    compare = {"lt": np.less, "le": np.less_equal, "eq": np.equal, "ne": np.not_equal, "min": np.minimum, "max": np.maximum}
    result = DType.I64 if op in ("min", "max") else DType.BOOL
    for at in range(0, 64, 16):
        x, y = a[at : at + lanes], b[at : at + lanes]
        got = compute(partial(binary, op), caps, lanes, result, (DType.I64, x), (DType.I64, y))
        assert (got == compare[op](x, y)).all()


@pytest.mark.parametrize(("caps", "lanes"), MACHINES_AND_LANES)
def test_minimum_and_maximum_take_the_second_of_a_nan(caps: Capabilities, lanes: int) -> None:
    x = np.resize(np.array([np.nan, 1, np.nan, 2], dtype=np.float32), lanes)
    y = np.resize(np.array([3, np.nan, np.nan, 1], dtype=np.float32), lanes)
    for op, want in (("min", [3, np.nan, np.nan, 1]), ("max", [3, np.nan, np.nan, 2])):
        got = compute(partial(binary, op), caps, lanes, DType.F32, (DType.F32, x), (DType.F32, y))
        np.testing.assert_array_equal(got, np.resize(np.array(want, np.float32), lanes))


@pytest.mark.parametrize(("caps", "lanes"), MACHINES_AND_LANES)
def test_integer_division_never_traps(caps: Capabilities, lanes: int) -> None:
    a = np.resize(np.array([7, -7, SMALLEST, 5]), lanes)
    b = np.resize(np.array([2, 2, -1, 0]), lanes)
    div = compute(partial(binary, "div"), caps, lanes, DType.I64, (DType.I64, a), (DType.I64, b))
    mod = compute(partial(binary, "mod"), caps, lanes, DType.I64, (DType.I64, a), (DType.I64, b))
    assert list(div[:2]) == [3, -3][: min(lanes, 2)] and list(mod[:2]) == [1, -1][: min(lanes, 2)]
    if lanes >= 4:
        assert div[3] == 0 and list(mod[2:4]) == [0, 0]


@pytest.mark.parametrize(("caps", "lanes"), MACHINES_AND_LANES)
@pytest.mark.parametrize("op", ["sqrt", "floor", "ceil", "rint", "abs", "neg", "sin", "log", "round_f16"])
def test_functions_of_one_float(op: str, caps: Capabilities, lanes: int) -> None:
    x = np.resize(np.array([0.25, 2.5, 3.5, 1e4, 0.5, -0.0], dtype=np.float32), lanes)
    reference = {
        "abs": np.abs, "neg": np.negative, "round_f16": lambda v: v.astype(np.float16).astype(np.float32),
        **{name: getattr(np, name) for name in ("sqrt", "floor", "ceil", "rint", "sin", "log")},
    }  # fmt: skip
    with np.errstate(divide="ignore"):
        want = reference[op](x)
    got = compute(lambda v: Unary(op, v), caps, lanes, DType.F32, (DType.F32, x))
    np.testing.assert_allclose(got, want, rtol=1e-6)
    assert (np.signbit(got) == np.signbit(want)).all()


@pytest.mark.parametrize(("caps", "lanes"), [p for p in MACHINES_AND_LANES if p.values[1] != 1])
def test_reductions_are_trees(caps: Capabilities, lanes: int) -> None:
    x = random_like((lanes,), DType.F32, 0)
    tree = x
    while len(tree) > 1:
        tree = tree[: len(tree) // 2] + tree[len(tree) // 2 :]
    got = compute(lambda v: Reduce("add", v), caps, lanes, DType.F32, (DType.F32, x))
    assert got[0] == tree[0]
    for op, want in (("max", x.max()), ("min", x.min()), ("mul", x.prod())):
        got = compute(lambda v, op=op: Reduce(op, v), caps, lanes, DType.F32, (DType.F32, x))
        np.testing.assert_allclose(got[0], want, rtol=1e-5)
    flags = np.zeros(lanes, dtype=bool)
    flags[-1] = True
    for op, answer in (("or", True), ("and", False)):
        got = compute(lambda v, op=op: Reduce(op, v), caps, lanes, DType.BOOL, (DType.BOOL, flags))
        assert got[0] == answer


@pytest.mark.parametrize(("caps", "lanes"), [p for p in MACHINES_AND_LANES if p.values[1] != 1])
def test_selects_shuffles_and_gathers(caps: Capabilities, lanes: int) -> None:
    x, y = random_like((lanes,), DType.F32, 0), random_like((lanes,), DType.F32, 1)
    k, m = np.arange(lanes) * 5 - 7, np.arange(lanes)[::-1].copy()
    got = compute(lambda a, b: Select(binary("lt", a, b), a, b * 2.0), caps, lanes, DType.F32, (DType.F32, x), (DType.F32, y))
    np.testing.assert_array_equal(got, np.where(x < y, x, y * 2))
    got = compute(lambda a, b: Select(binary("lt", a, b), a, b), caps, lanes, DType.I64, (DType.I64, k), (DType.I64, m))
    np.testing.assert_array_equal(got, np.minimum(k, m))
    order = tuple(range(1, 2 * lanes, 2))
    got = compute(lambda a, b: Shuffle(a, b, order), caps, lanes, DType.F32, (DType.F32, x), (DType.F32, y))
    np.testing.assert_array_equal(got, np.concatenate([x, y])[list(order)])
    for dtype in (DType.F32, DType.F16, DType.BF16, DType.U8, DType.BOOL, DType.I32):
        data = random_like((lanes,), dtype, 2)
        b = KernelBuilder("xy_test")
        p, at, out = b.buffer("x", dtype), b.buffer("m", DType.I64), b.buffer("y", dtype, writable=True)
        b.store(out, 0, Gather(p, b.load(at, 0, lanes)))
        result = np.zeros_like(data)
        execute(b, caps, data, m, result)
        assert result.tobytes() == data[m].tobytes()


@pytest.mark.parametrize(("caps", "lanes"), [p for p in MACHINES_AND_LANES if p.values[1] != 1])
def test_conversions_and_constants(caps: Capabilities, lanes: int) -> None:
    x = np.resize(np.array([1.9, -1.9, 1e9, 0.0], dtype=np.float32), lanes)
    got = compute(lambda a: Convert(i64(lanes), a), caps, lanes, DType.I64, (DType.F32, x))
    np.testing.assert_array_equal(got, np.trunc(x).astype(np.int64))
    k = np.resize(np.array([2**24 + 1, -3, 2**40]), lanes)
    got = compute(lambda a: Convert(f32(lanes), a), caps, lanes, DType.F32, (DType.I64, k))
    np.testing.assert_array_equal(got, k.astype(np.float32))
    got = compute(lambda a: Bitcast(f32(lanes), Bitcast(i32(lanes), a) + 1), caps, lanes, DType.F32, (DType.F32, x))
    np.testing.assert_array_equal(got, (x.view(np.int32) + 1).view(np.float32))
    got = compute(
        lambda a: Fma(a, Const(f32(lanes), 0.5), splat(Const(f32(1), 3.0), lanes)), caps, lanes, DType.F32, (DType.F32, x)
    )
    np.testing.assert_array_equal(got, x * np.float32(0.5) + 3)
    got = compute(lambda a: binary("add", Iota(i64(lanes)), a), caps, lanes, DType.I64, (DType.I64, k))
    np.testing.assert_array_equal(got, k + np.arange(lanes))
    for value in (float("inf"), float("-inf"), float("nan"), -0.0, 1e-45, 3.4028235e38, 1e300):
        got = compute(lambda a, v=value: Const(f32(lanes), v), caps, lanes, DType.F32, (DType.F32, x))
        with np.errstate(over="ignore"):
            assert got.tobytes() == np.full(lanes, value, dtype=np.float32).tobytes() or np.isnan(value)
    for whole in (SMALLEST, LARGEST, -1):
        got = compute(lambda a, v=whole: Const(i64(lanes), v), caps, lanes, DType.I64, (DType.I64, k))
        assert (got == whole).all()


@pytest.mark.parametrize("caps", MACHINES)
def test_control_flow(caps: Capabilities) -> None:
    b = KernelBuilder("xy_test")
    y = b.buffer("y", DType.I64, writable=True)
    total = b.variable("total", Const(i64(1), 0))
    with b.units(), b.loop("i", 0, 10, 3) as i:
        with b.when(Binary("eq", i, index(6))):
            b.assign(total, total + 100)
        with b.otherwise():
            b.assign(total, total + Convert(i64(1), i))
        b.store(y, i // 3, total)
    out = np.zeros(4, dtype=np.int64)
    execute(b, caps, out)
    assert list(out) == [0, 3, 103, 112]


def test_other_targets_print_without_their_compiler() -> None:
    b = KernelBuilder("xy_test")
    x, y = b.buffer("x", DType.F32), b.buffer("y", DType.F32, writable=True)
    b.store(y, 0, binary("max", b.load(x, 0, 4), 0.0))
    text = c_text(b.finish()[0], NEON)
    assert "f32x4" in text and "ia32" not in text and text == c_text(b.finish()[0], NEON)


def test_bfloat16_is_rounded_as_the_interpreter_does() -> None:
    values = np.random.default_rng(0).integers(0, 2**32, 4096, dtype=np.uint32).view(np.float32)
    values = values[~np.isnan(values)][:1024]
    want = from_float64(values.astype(np.float64), DType.BF16)
    for at in range(0, 1024, 16):
        part = compute(lambda x: x, AVX512, 16, DType.BF16, (DType.F32, values[at : at + 16]))
        np.testing.assert_array_equal(part, want[at : at + 16])


@pytest.mark.parametrize(("caps", "lanes"), MACHINES_AND_LANES)
def test_integers_of_four_bits(caps: Capabilities, lanes: int) -> None:
    words = np.random.default_rng(3).integers(-(1 << 31), 1 << 31, lanes).astype(np.int32)
    words[0] = np.array(0x89ABCDEF, np.uint32).view(np.int32)
    for position in range(NIBBLES):
        found = compute(lambda w, p=position: Nibble(Convert(i32(lanes), w), p), caps, lanes, DType.F32, (DType.I32, words))
        unsigned = words.view(np.uint32) >> 4 * position & 15
        assert np.array_equal(found[:lanes], (unsigned.astype(np.int64) ^ 8) - 8)


TABLES = {
    "floats": (Elem.F32, [0.1 * i - 7 for i in range(ENTRIES)]),
    "special": (Elem.F32, [float("inf"), -0.0, float("-inf"), 1e-45]),
    "few bytes": (Elem.I32, [float(3 * i % 128) for i in range(77)]),
    "signed bytes": (Elem.I32, [float((i * 37) % 256 - 128) for i in range(ENTRIES)]),
    "unsigned bytes": (Elem.I32, [float((i * 91) % 256) for i in range(200)]),
    "far from 0": (Elem.I32, [float(i * 5 % 256 - 70000) for i in range(ENTRIES)]),
    "long integers": (Elem.I32, [float(i * 8421504 - (1 << 30)) for i in range(255)]),
}


@pytest.mark.parametrize("name", list(TABLES))
@pytest.mark.parametrize(("caps", "lanes"), [*MACHINES_AND_LANES, pytest.param(VBMI, 16, id="vbmi-16")])
def test_lookups(caps: Capabilities, lanes: int, name: str) -> None:
    elem, entries = TABLES[name]
    dtype = DType.F32 if elem is Elem.F32 else DType.I32
    every = np.arange(-(-len(entries) // lanes) * lanes) % len(entries)
    at = np.concatenate([every, every[::-1]]).astype(np.int32)
    b = KernelBuilder("xy_test")
    x, y = b.buffer("x", DType.I32), b.buffer("y", dtype, writable=True)
    with b.units(), b.loop("i", 0, len(at), lanes) as i:
        place = Convert(i32(lanes), b.load(x, i, lanes))
        b.store(y, i, Lookup(tuple(entries), b.let("place", place), elem))
    wanted = np.array(entries, dtype.numpy)[at].tobytes()
    kernel, numbers = lifted(b.finish()[0], caps)
    got = np.zeros(len(at), dtype.numpy)
    execute_kernel(kernel, 1, caps, at, got, np.frombuffer(numbers, np.int32).copy())
    assert got.tobytes() == wanted
