"""Products of bfloat16 pairs and of tiles, by instruction and without, against numpy."""

from __future__ import annotations

import platform
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.instructions import built_alone, disassembly
from tests.support.machine import AVX_VNNI, BF16_PAIRS, BF16_TILES, INT8_TILES, VNNI, need
from tests.support.printed import c_text, source_of
from tests.support.run_program import kernel_cache
from tests.tracea.emitters.test_cpu import compute, execute
from xyntra_ep.tracea.core_ir.dtypes import DType, from_float64, to_float64
from xyntra_ep.tracea.core_ir.interpreter import random_like
from xyntra_ep.tracea.runtime.kernel_files import CompiledKernel
from xyntra_ep.tracea.runtime.kernel_source import KernelSource
from xyntra_ep.tracea.runtime.translation_unit import merged
from xyntra_ep.tracea.semantic_ir.builder import FunctionBuilder, KernelBuilder
from xyntra_ep.tracea.semantic_ir.capabilities import AVX2, AVX512, SCALAR, Capabilities
from xyntra_ep.tracea.semantic_ir.matrix_nodes import (
    ClampedQuadDot,
    PackPairs,
    PairDot,
    QuadDot,
    ShortDot,
    TileConfigure,
    TileDot,
    TileShape,
    TileZero,
)
from xyntra_ep.tracea.semantic_ir.nodes import INDEX, Convert, PointerType, Splat, i32, index

pytestmark = pytest.mark.compiler("cc")

Array = NDArray[Any]
MACHINES = [
    pytest.param(BF16_PAIRS, 16, id="pairs-16"),
    pytest.param(AVX512, 16, id="avx512-16"),
    pytest.param(AVX2, 8, id="avx2-8"),
    pytest.param(SCALAR, 4, id="scalar-4"),
    pytest.param(SCALAR, 1, id="scalar-1"),
]


def bf16(*shape: int, seed: int = 0) -> Array:
    return random_like(shape, DType.BF16, seed)


def wide(x: Array) -> Array:
    return to_float64(x, DType.BF16)


@pytest.mark.parametrize(("caps", "lanes"), MACHINES)
def test_products_of_pairs(caps: Capabilities, lanes: int) -> None:
    need(caps)
    a, b, c = bf16(lanes, 2), bf16(lanes, 2, seed=1), random_like((lanes,), DType.F32, 2)
    k = KernelBuilder("xy_test")
    p, q, r = k.buffer("a", DType.BF16), k.buffer("b", DType.BF16), k.buffer("c", DType.F32, writable=True)
    k.store(r, 0, PairDot(k.load_words(p, 0, lanes), k.load_words(q, 0, lanes), k.load(r, 0, lanes)))
    got = c.copy()
    execute(k, caps, a, b, got)
    np.testing.assert_allclose(got, c + (wide(a) * wide(b)).sum(axis=1), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("caps", "lanes"), MACHINES[:3])
def test_one_pair_in_every_lane(caps: Capabilities, lanes: int) -> None:
    """From an odd element on: pairs lie at any even address."""
    need(caps)
    a, b = bf16(5), bf16(lanes, 2, seed=1)
    k = KernelBuilder("xy_test")
    p, q, r = k.buffer("a", DType.BF16), k.buffer("b", DType.BF16), k.buffer("c", DType.F32, writable=True)
    pair = Splat(i32(lanes), k.load_words(p, 3))
    k.store(r, 0, PairDot(pair, k.load_words(q, 0, lanes), k.load(r, 0, lanes)))
    got = np.zeros(lanes, dtype=np.float32)
    execute(k, caps, a, b, got)
    np.testing.assert_allclose(got, wide(b) @ wide(a[3:]), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("caps", "lanes"), [*MACHINES, pytest.param(AVX_VNNI, 8, id="avx-vnni-8")])
@pytest.mark.parametrize("node", [QuadDot, ClampedQuadDot, ShortDot])
def test_products_of_integers(caps: Capabilities, lanes: int, node: type[QuadDot | ClampedQuadDot | ShortDot]) -> None:
    """Random words and the extremes of their types; a clamped sum of two products is the nearest number of 16 bits."""
    left, right = (DType.I16, DType.I16) if node is ShortDot else (DType.U8, DType.I8)
    low, high = np.iinfo(right.numpy).min, np.iinfo(right.numpy).max
    k = KernelBuilder("xy_test")
    p, q, r = k.buffer("a", left), k.buffer("b", right), k.buffer("c", DType.I32, writable=True)
    total = Convert(i32(lanes), k.load(r, 0, lanes))
    k.store(r, 0, node(k.load_words(p, 0, lanes), k.load_words(q, 0, lanes), total))
    for turn, (fill_a, fill_b) in enumerate([(None, None), (None, low), (-1, low), (-1, high), (-1, 64)]):
        rng = np.random.default_rng(turn)
        a, b = (words(rng, dtype, lanes, fill) for dtype, fill in ((left, fill_a), (right, fill_b)))
        c = rng.integers(-(2**31), 2**31, lanes).astype(np.int32)
        products = a.astype(np.int64) * b
        if node is ClampedQuadDot:
            products = (products[:, ::2] + products[:, 1::2]).clip(-(2**15), 2**15 - 1)
        want = (c + products.sum(axis=1)).astype(np.int32)
        execute(k, caps, a, b, c)
        np.testing.assert_array_equal(c, want)


def words(rng: np.random.Generator, dtype: DType, lanes: int, fill: int | None) -> Array:
    limits = np.iinfo(dtype.numpy)
    shape = (lanes, 4 // dtype.bytes)
    if fill is None:
        return rng.integers(limits.min, limits.max + 1, shape).astype(dtype.numpy)
    return np.full(shape, fill, dtype=np.int64).astype(dtype.numpy)


@pytest.mark.parametrize(("caps", "lanes"), MACHINES)
def test_packing_of_pairs(caps: Capabilities, lanes: int) -> None:
    """Rounded to nearest even, NaN and infinities kept; partial loads and stores touch nothing beyond."""
    need(caps)
    low, high = random_like((lanes,), DType.F32, 0), random_like((lanes,), DType.F32, 1)
    high[-1] = np.float32(1 + 2**-8)  # half way: down, to even
    low[0], high[0] = np.inf, -np.nan
    for count in {1, lanes // 2 + 1, lanes}:
        k = KernelBuilder("xy_test")
        p, q = k.buffer("low", DType.F32), k.buffer("high", DType.F32)
        r, s = k.buffer("pairs", DType.BF16, writable=True), k.buffer("copy", DType.BF16, writable=True)
        limit = None if count == lanes else index(count)
        k.store_words(r, 0, PackPairs(k.load(p, 0, lanes), k.load(q, 0, lanes)), limit)
        k.store_words(s, 0, k.load_words(r, 0, lanes, limit))
        pairs, copy = np.full((lanes, 2), 7, np.uint16), np.full((lanes, 2), 9, np.uint16)
        execute(k, caps, low, high, pairs, copy)
        want = from_float64(np.stack([low, high], axis=1)[:count].astype(np.float64), DType.BF16)
        assert np.isnan(wide(pairs[0, 1])) and np.isinf(wide(pairs[0, 0]))
        np.testing.assert_array_equal(pairs[1:count], want[1:])
        assert (pairs[count:] == 7).all()
        np.testing.assert_array_equal(copy[:count], pairs[:count])
        assert not copy[count:].any()


@pytest.mark.parametrize("caps", [AVX512, BF16_PAIRS], ids=["avx512", "pairs"])
@pytest.mark.parametrize("count", [0, 9])
def test_rounding_by_instruction(caps: Capabilities, count: int) -> None:
    """As the interpreter rounds, but for what is too small to be a normal f32."""
    need(caps)
    values = np.random.default_rng(0).integers(0, 2**32, 4096, dtype=np.uint32).view(np.float32)
    values = values[np.abs(values) >= np.finfo(np.float32).tiny][:256]
    values[::7] = np.nan
    want = from_float64(values.astype(np.float64), DType.BF16)
    for at in range(0, 256, 16):
        part = compute(lambda x: x, caps, 16, DType.BF16, (DType.F32, values[at : at + 16]), count=count)
        width, nan = count or 16, np.isnan(values[at : at + 16])
        assert np.isnan(wide(part[:width][nan[:width]])).all()
        np.testing.assert_array_equal(part[:width][~nan[:width]], want[at : at + width][~nan[:width]])
        assert not part[width:].any()


@pytest.mark.parametrize(("m", "k", "n"), [(16, 32, 16), (5, 32, 16), (1, 2, 1), (13, 6, 7)])
def test_products_of_tiles(m: int, k: int, n: int) -> None:
    """Two steps of k and a sum that was there before; memory beyond a tile's rows and columns stays as it is."""
    a, b, c = bf16(m, 2 * k), bf16(2, k // 2, n, 2, seed=1), random_like((m, n), DType.F32, 2)
    kernel = KernelBuilder("xy_test")
    pa, pb = kernel.buffer("a", DType.BF16), kernel.buffer("b", DType.BF16)
    pc, sizes = kernel.buffer("c", DType.F32, writable=True), kernel.buffer("sizes", DType.I64)
    rows = kernel.let("rows", kernel.load(sizes, 0))
    function = FunctionBuilder("step")
    first, second = (function.argument(name, PointerType(DType.BF16)) for name in "ab")
    at = function.argument("k", INDEX)
    function.tile_load(1, first, at * k, 2 * k)
    function.tile_load(2, second, at * k * n, 2 * n)
    function.emit(TileDot(0, 1, 2))
    step = kernel.function(function.finish())
    with kernel.tiles([(rows, 4 * n), (rows, 2 * k), (k // 2, 4 * n)]):
        kernel.tile_load(0, pc, 0, n)
        with kernel.loop("k", 0, 2) as turn:
            kernel.call(step, pa, pb, turn)
        kernel.tile_store(0, pc, 0, n)
    got = np.concatenate([c, np.full((1, n), 7, np.float32)])
    execute(kernel, BF16_TILES, a, b, got, np.array([m]))
    rows_of_b = wide(b).transpose(0, 1, 3, 2).reshape(2 * k, n)
    np.testing.assert_allclose(got[:m], c + wide(a) @ rows_of_b, rtol=1e-5, atol=1e-5)
    assert (got[m:] == 7).all()


@pytest.mark.parametrize(("m", "k", "n"), [(16, 16, 16), (5, 16, 16), (1, 1, 1), (13, 6, 7)])
@pytest.mark.parametrize("fill", [None, (255, -128), (255, 127), (0, -128)])
def test_products_of_tiles_of_bytes(m: int, k: int, n: int, fill: tuple[int, int] | None) -> None:
    """``k`` words, a sum that was there before, and one that wraps."""
    rng = np.random.default_rng(0)
    a, b = words(rng, DType.U8, m * k, None).reshape(m, k, 4), words(rng, DType.I8, k * n, None).reshape(k, n, 4)
    if fill is not None:
        a[...], b[...] = fill
    c = rng.integers(-(2**31), 2**31, (m, n)).astype(np.int32)
    kernel = KernelBuilder("xy_test")
    pa, pb = kernel.buffer("a", DType.U8), kernel.buffer("b", DType.I8)
    pc = kernel.buffer("c", DType.I32, writable=True)
    with kernel.tiles([(m, 4 * n), (m, 4 * k), (k, 4 * n)]):
        kernel.tile_load(0, pc, 0, n)
        kernel.tile_load(1, pa, 0, 4 * k)
        kernel.tile_load(2, pb, 0, 4 * n)
        kernel.emit(TileDot(0, 1, 2, QuadDot))
        kernel.tile_store(0, pc, 0, n)
    want = (c + np.einsum("mki,kni->mn", a.astype(np.int64), b.astype(np.int64))).astype(np.int32)
    execute(kernel, INT8_TILES, a, b, c)
    np.testing.assert_array_equal(c, want)


@pytest.mark.skipif(platform.machine() != "x86_64" or shutil.which("objdump") is None, reason="of x86, by objdump")
@pytest.mark.parametrize(
    ("caps", "node", "instruction"),
    [
        (AVX_VNNI, QuadDot, r"{vex} vpdpbusd %ymm"),
        (AVX_VNNI, ShortDot, r"{vex} vpdpwssd %ymm"),
        (VNNI, QuadDot, r"\tvpdpbusd %zmm"),
        (INT8_TILES, None, r"\ttdpbusd %tmm2,%tmm1,%tmm0"),
        (BF16_TILES, None, r"\ttdpbf16ps %tmm2,%tmm1,%tmm0"),
    ],
)
def test_which_instruction_it_is(
    caps: Capabilities, node: type[QuadDot | ShortDot] | None, instruction: str, tmp_path: Path
) -> None:
    k = KernelBuilder("xy_test")
    if node is None:
        with k.tiles([(index(16), index(64))] * 3):
            k.emit(TileDot(0, 1, 2, QuadDot if caps.amx_int8 else PairDot))
    else:
        of = DType.I16 if node is ShortDot else DType.U8
        p, q, r = k.buffer("a", of), k.buffer("b", of), k.buffer("c", DType.I32, writable=True)
        total = Convert(i32(caps.lanes), k.load(r, 0, caps.lanes))
        k.store(r, 0, node(k.load_words(p, 0, caps.lanes), k.load_words(q, 0, caps.lanes), total))
    listing = disassembly(built_alone(c_text(k.finish()[0], caps), caps.isa, tmp_path))
    assert re.search(instruction, listing), listing


def test_tiles_are_announced_to_the_loader() -> None:
    kernel = KernelBuilder("xy_test")
    with kernel.tiles([(index(1), index(4))]):
        kernel.emit(TileZero(0))
    assert "char xy_needs_tiles;" in c_text(kernel.finish()[0], BF16_TILES)
    assert "xy_needs_tiles" not in c_text(KernelBuilder("xy_test").finish()[0], BF16_TILES)


def test_a_new_configuration_replaces_the_old() -> None:
    kernel = KernelBuilder("xy_test")
    c = kernel.buffer("c", DType.F32, writable=True)
    with kernel.tiles([(index(2), index(8))]):
        kernel.emit(TileConfigure((TileShape(index(1), index(4)),)))
        kernel.emit(TileZero(0))
        kernel.tile_store(0, c, 0, 1)
    got = np.full(4, 7, np.float32)
    execute(kernel, BF16_TILES, got)
    assert list(got) == [0, 7, 7, 7]


def test_kernels_with_tiles_can_be_compiled_together() -> None:
    sources = []
    for name in ("xy_one", "xy_two"):
        kernel = KernelBuilder(name)
        with kernel.tiles([(index(1), index(4))]):
            kernel.emit(TileZero(0))
        sources.append(source_of(kernel.finish()[0], BF16_TILES))
    [compiled] = kernel_cache(AVX512.isa, False, False).compile_many([KernelSource.of_text("xy_one", merged(sources))])
    assert isinstance(compiled, CompiledKernel), compiled
