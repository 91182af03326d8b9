"""conv.clamped on weights whose sums would be clamped, against numpy's integers, bit by bit; and what it takes out of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.machine import VNNI, need
from tests.support.run_program import carry_out, plan_for
from tests.support.work import work_of
from tests.tracea.emitters.test_cpu import execute_kernel
from tests.tracea.kernels.conv_programs import ConvCase, conv_program
from tests.tracea.kernels.cpu.conv_integer.test_conv_integer import SAME, SAME7, case, refusal
from tests.tracea.kernels.cpu.gemm_integer.test_clamped import WEIGHTS, is_safe
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Conv
from xyntra_ep.tracea.kernels.cpu.conv._shape import conv_shape
from xyntra_ep.tracea.kernels.cpu.conv_bf16._pack import WordRuns
from xyntra_ep.tracea.kernels.cpu.conv_integer import clamped
from xyntra_ep.tracea.kernels.cpu.conv_integer._excess import ExcessRuns, split_off
from xyntra_ep.tracea.kernels.cpu.gemm._tile import CLAMPED_QUADS
from xyntra_ep.tracea.kernels.variant import BuildContext, TempBuffer
from xyntra_ep.tracea.semantic_ir.capabilities import AVX2, AVX512, SCALAR, Capabilities

pytestmark = pytest.mark.compiler("cc")

Array = NDArray[Any]
MACHINES = [pytest.param(AVX2, id="avx2"), pytest.param(AVX512, id="avx512")]


def sums(x: tuple[int, ...], w: tuple[int, ...], **more: object) -> ConvCase:
    return case(x, w, out_dtype=DType.I32, tail=("wrapped",), **more)


CASES = [
    sums((2, 64, 5, 7), (20, 64, 1, 1)),  # pixels in a row
    sums((2, 16, 7, 6), (40, 16, 3, 3), pads=SAME),  # taps side by side, some outside x
    sums((1, 8, 9, 11), (17, 8, 3, 3), pads=(2, 0, 1, 2), strides=(2, 1), dilations=(1, 2)),  # each tap by itself
    sums((1, 8, 5, 5), (16, 8, 3, 3), pads=SAME, slice_of=20),  # taps apart
    sums((1, 3, 15, 13), (33, 3, 7, 7), pads=SAME7, strides=(2, 2)),  # runs that are filled up
    sums((1, 7, 8, 8), (9, 7, 3, 3), pads=(2,) * 4, dilations=(2, 2)),
    sums((2, 12, 9), (24, 12, 3), pads=(1, 1), symbolic="nw"),
]


@pytest.mark.parametrize("caps", MACHINES)
@pytest.mark.parametrize("conv", CASES, ids=ConvCase.name)
def test_sums_are_exact(conv: ConvCase, caps: Capabilities) -> None:
    need(caps)
    rng = np.random.default_rng(0)
    channels, spatial = conv.slice_of or conv.x[1], conv.x[2:]
    shape = (conv.x[0], *spatial, channels)
    images = [np.full(shape, fill, dtype=np.uint8) for fill in (0, 255)]
    images += [rng.integers(0, 256, shape).astype(np.uint8), np.resize(np.array([255, 0], dtype=np.uint8), shape)]
    factors = [(name, x, weights_of(conv, name)) for name in WEIGHTS for x in images]
    program, _, _ = conv_program(conv)
    planned = plan_for(program, caps, clamped.VARIANTS)
    works = [work_of(planned, [x], [w], seed) for seed, (_, x, w) in enumerate(factors)]
    results = carry_out(works, [kernel.distinct() for kernel in planned.kernels], caps)
    for (name, x, w), [got] in zip(factors, results, strict=True):
        np.testing.assert_array_equal(got, wanted(conv, x, w), err_msg=name)


def weights_of(conv: ConvCase, name: str) -> Array:
    """Neighbours in the pattern are neighbouring channels."""
    m, c, *kernel = conv.w
    along_k = WEIGHTS[name](c * int(np.prod(kernel)), m).reshape(*kernel, c, m)
    return np.ascontiguousarray(np.moveaxis(along_k, (-1, -2), (0, 1)))


def wanted(conv: ConvCase, x: Array, w: Array) -> Array:
    """With the channels of x and of the result at the end."""
    rank = conv.rank
    strides, dilations = conv.strides or (1,) * rank, conv.dilations or (1,) * rank
    pads = conv.pads or (0,) * (2 * rank)
    x = x[..., : conv.x[1]].astype(np.int64)
    x = np.pad(x, [(0, 0), *zip(pads[:rank], pads[rank:], strict=True), (0, 0)])
    out = [(x.shape[1 + i] - (conv.w[2 + i] - 1) * dilations[i] - 1) // strides[i] + 1 for i in range(rank)]
    total = np.zeros((x.shape[0], *out, conv.w[0]), dtype=np.int64)
    for tap in np.ndindex(*conv.w[2:]):
        starts = [t * d for t, d in zip(tap, dilations, strict=True)]
        seen = tuple(slice(a, a + (n - 1) * s + 1, s) for a, n, s in zip(starts, out, strides, strict=True))
        total += x[:, *seen] @ w[:, :, *tap].astype(np.int64).T
    return (total - 70_000).astype(np.int32)


@pytest.mark.parametrize("caps", MACHINES)
@pytest.mark.parametrize("name", WEIGHTS)
@pytest.mark.parametrize("vectors", [1, 3])
def test_what_is_taken_out(caps: Capabilities, name: str, vectors: int) -> None:
    """Panels and excess add up to the weights; every pair of either is safe; there are no words of zeros."""
    need(caps)
    lanes, taps, words = caps.lanes, 9, 2
    program, _, _ = conv_program(case((1, 4 * words, 5, 5), (2 * vectors * lanes, 4 * words, 3, 3)))
    [op] = program.ops
    assert isinstance(op, Conv)
    runs = WordRuns(shape=conv_shape(op), step=4, columns=vectors * lanes, panels=2, words=CLAMPED_QUADS)
    excess = ExcessRuns(runs=runs, stretch=4 * words, lanes=lanes)
    steps = taps * words
    w = WEIGHTS[name](4 * steps, 2 * vectors * lanes)
    packed = np.ascontiguousarray(w.reshape(steps, 4, 2, vectors, lanes).transpose(2, 0, 3, 4, 1))
    before = packed.copy()
    tables = np.full((2, vectors, excess.table), 7777, dtype=np.int32)
    more = np.full((2, vectors, steps, lanes, 4), 77, dtype=np.int8)
    context = BuildContext(caps=caps, program=program, constants=frozenset({1}))
    call = split_off(excess, TempBuffer(name="packed", size_bytes=packed.size), context)
    execute_kernel(call.kernel, 2, caps, packed, tables, more)
    for panel, j in np.ndindex(2, vectors):
        firsts, places = np.split(tables[panel, j], [taps + 1])
        number, total = firsts[-1], packed[panel, :, j].astype(int)
        assert (np.diff(places[:number]) > 0).all()
        for i in range(number):
            assert more[panel, j, i].any()
            assert firsts[places[i] // 8] <= i < firsts[places[i] // 8 + 1]
            total[places[i] // 4] += more[panel, j, i]
        np.testing.assert_array_equal(total, before[panel, :, j])
        assert all(is_safe(part).all() for part in (packed[panel, :, j], more[panel, j, :number]))
        assert (more[panel, j, number:] == 77).all()
        if is_safe(before[panel, :, j]).all():
            assert number == 0
    if name in ("highest", "lowest"):
        assert (tables[..., : taps + 1] == np.arange(taps + 1) * words).all()


def test_reasons_against_it() -> None:
    [variant] = clamped.VARIANTS
    plain = case((1, 8, 6, 5), (12, 8, 3, 3))
    for caps in (AVX2, AVX512):
        assert refusal(variant, plain, caps) is None
    for caps in (VNNI, SCALAR):
        assert refusal(variant, plain, caps) == "the machine has no products of bytes, or better ones"
    assert refusal(variant, replace(plain, w_dtype=DType.U8), AVX2) == "u8 times u8, not u8 times i8"
    assert refusal(variant, case((1, 8, 6, 5), (12, 4, 3, 3), group=2), AVX2) == "2 groups"


def test_channels_that_half_fill_a_word_are_pairs() -> None:
    for channels, dilations, name in (
        (64, (1, 1), "clamped"),
        (3, (2, 2), "clamped"),
        (2, (1, 1), "clamped"),
        (2, (2, 2), "shorts"),
    ):
        conv = case((1, channels, 32, 32), (32, channels, 3, 3), pads=SAME, dilations=dilations)
        [(_, decision)] = plan_for(conv_program(conv)[0], AVX2).decisions
        assert decision.chosen.name == f"conv.{name}"
