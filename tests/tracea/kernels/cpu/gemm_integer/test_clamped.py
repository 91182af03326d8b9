"""gemm.clamped on weights whose sums would be clamped, against numpy's integers and gemm.shorts, bit by bit; and what it takes
out of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.machine import VNNI, need
from tests.support.run_program import carry_out, plan_for
from tests.support.work import work_of
from tests.tracea.emitters.test_cpu import execute_kernel
from tests.tracea.kernels.cpu.gemm_integer.test_gemm_integer import case
from tests.tracea.kernels.gemm_programs import GemmCase, build, gemm_of
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.kernels.cpu.gemm._choice import best_tile
from xyntra_ep.tracea.kernels.cpu.gemm._tile import CLAMPED_QUADS
from xyntra_ep.tracea.kernels.cpu.gemm_integer import clamped, shorts
from xyntra_ep.tracea.kernels.cpu.gemm_integer._excess import excess_of, split_off
from xyntra_ep.tracea.kernels.cpu.gemm_integer._pack import panels_of
from xyntra_ep.tracea.kernels.shared.gemm_shape import shape_of
from xyntra_ep.tracea.kernels.variant import BuildContext, TempBuffer
from xyntra_ep.tracea.semantic_ir.capabilities import AVX2, AVX512, SCALAR, Capabilities

pytestmark = pytest.mark.compiler("cc")

Array = NDArray[Any]
MACHINES = [pytest.param(AVX2, id="avx2"), pytest.param(AVX512, id="avx512")]


def alternating(*values: int) -> Callable[[int, int], Array]:
    """Along k."""

    def weights(k: int, n: int) -> Array:
        column: Array = np.resize(np.array(values, dtype=np.int8), (k, 1))
        return np.repeat(column, n, axis=1)

    return weights


def uniform(k: int, n: int) -> Array:
    return np.random.default_rng(k).integers(-128, 128, (k, n)).astype(np.int8)


def bell_shaped(k: int, n: int) -> Array:
    w = np.random.default_rng(k).standard_normal((k, n))
    scaled: Array = np.rint(127 * w / np.abs(w).max(axis=0))
    return scaled.astype(np.int8)


def one_unsafe_pair(k: int, n: int) -> Array:
    w = np.ones((k, n), dtype=np.int8)
    w[-2:, n // 2] = 127
    return w


WEIGHTS: dict[str, Callable[[int, int], Array]] = {
    "uniform": uniform,
    "bell-shaped": bell_shaped,
    "one unsafe pair": one_unsafe_pair,
    "zero": alternating(0),
    "lowest": alternating(-128),
    "highest": alternating(127),
    "as large as is safe": alternating(64, 64, -64, -64, 127, 1, -1, -127),
    "a little too large": alternating(64, 65, -65, -64, 127, 2, -2, -127),
    "lowest with zero": alternating(-128, 0, 0, -128),
    "both signs": alternating(127, -128),
    "every other step": alternating(127, 127, 127, 127, 1, 1, 1, 1),
    "excess that adds up": alternating(100, 127, 90, 127, -100, -127, -90, -128),
}


@pytest.mark.parametrize(
    ("caps", "m", "k", "n"),
    [(AVX512, 9, 768, 100), (AVX512, 5, 7, 9), (AVX2, 7, 768, 40), (AVX2, 1, 130, 17), *((AVX2, 5, k, 9) for k in range(1, 10))],
)
def test_sums_are_exact(caps: Capabilities, m: int, k: int, n: int) -> None:
    need(caps)
    rng = np.random.default_rng(0)
    rows = [np.full((m, k), fill, dtype=np.uint8) for fill in (0, 255)]
    rows += [rng.integers(0, 256, (m, k)).astype(np.uint8), np.resize(np.array([255, 0], dtype=np.uint8), (m, k))]
    factors = [(a, weights(k, n)) for weights in WEIGHTS.values() for a in rows]
    program, _, _ = build(case(m, k, n))
    for variants in (clamped.VARIANTS, shorts.VARIANTS):
        planned = plan_for(program, caps, variants)
        works = [work_of(planned, [a], [b], seed) for seed, (a, b) in enumerate(factors)]
        results = carry_out(works, [kernel.distinct() for kernel in planned.kernels], caps)
        for (a, b), [got], name in zip(factors, results, np.repeat(list(WEIGHTS), len(rows)), strict=True):
            np.testing.assert_array_equal(got, a.astype(np.int32) @ b.astype(np.int32), err_msg=name)


@pytest.mark.parametrize("caps", MACHINES)
@pytest.mark.parametrize("name", WEIGHTS)
@pytest.mark.parametrize("steps", [6, 7])
def test_what_is_taken_out(caps: Capabilities, name: str, steps: int) -> None:
    """Panels and excess add up to the weights; every pair of either is safe; there are no steps of zeros."""
    need(caps)
    lanes = caps.lanes
    program, _, _ = build(case(1, 4 * steps, 2 * lanes))
    context = BuildContext(caps=caps, program=program, constants=frozenset({1}))
    shape = shape_of(gemm_of(program))
    panels = panels_of(shape, CLAMPED_QUADS, lanes)
    excess = excess_of(shape, panels)
    b = WEIGHTS[name](4 * steps, 2 * lanes)
    packed = np.ascontiguousarray(b.reshape(steps, 4, 2, lanes).transpose(2, 0, 3, 1))
    before = packed.copy()
    offsets = np.full((2, excess.most + 1), 7777, dtype=np.int32)
    words = np.full((2, excess.most, lanes, 4), 77, dtype=np.int8)
    call = split_off(panels, TempBuffer(name="panels", size_bytes=packed.size), excess, context)
    execute_kernel(call.kernel, 2, caps, packed, offsets, words)
    for panel in range(2):
        number, *at = offsets[panel]
        total = packed[panel].astype(int)
        for i in range(number):
            step = words[panel, i].astype(int)
            assert step.any()
            for half in range(4):
                k = 2 * (at[i] + half)
                assert k < 4 * steps or not step[:, half].any()
                if k < 4 * steps:
                    total[k // 4, :, k % 4] += step[:, half]
        np.testing.assert_array_equal(total, before[panel])
        assert all(is_safe(part).all() for part in (packed[panel], words[panel, :number]))
        assert (words[panel, number:] == 77).all()
        if is_safe(before[panel]).all():
            assert number == 0
    if name in ("highest", "lowest"):
        assert list(offsets[:, 0]) == [excess.most] * 2


def is_safe(words: Array) -> NDArray[np.bool_]:
    """Whether a pair's sums fit in 16 bits, whatever unsigned bytes it is multiplied by."""
    pairs = words.astype(int).reshape(*words.shape[:-1], 2, 2)
    most, least = (255 * part.sum(axis=-1) for part in (pairs.clip(min=0), pairs.clip(max=0)))
    return np.asarray((most < 2**15) & (least >= -(2**15)))


def test_reasons_against_it() -> None:
    def refusal(gemm: GemmCase, caps: Capabilities) -> str | None:
        program, _, _ = build(gemm)
        constants = frozenset({1}) if gemm.constant_b else frozenset[int]()
        return clamped.VARIANTS[0].admits(gemm_of(program), BuildContext(caps=caps, program=program, constants=constants))

    small = case(4, 4, 4)
    for caps in (AVX2, AVX512):
        assert refusal(small, caps) is None
    for caps in (VNNI, SCALAR):
        assert refusal(small, caps) == "the machine has no products of bytes, or better ones"
    assert refusal(case(4, 4, 4, DType.I8, DType.I8), AVX2) == "i8 times i8, not u8 times i8"
    assert refusal(case(4, 4, 4, constant_b=False), AVX2) == "b is not a constant"
    assert refusal(case(4, 4, 4, symbolic="k"), AVX2) == "the size of b is known only at run time"
    assert refusal(case(4, 4, 4, batch=(2,), b_batch=(2,)), AVX2) == "b differs between batches"


def test_most_sums_of_integers_fit_in_registers() -> None:
    for n in (768, 100):
        assert best_tile(n, AVX2, of_integers=True) == {"rows": 6, "columns": 16}
    assert best_tile(24, AVX2, of_integers=True) == {"rows": 4, "columns": 24}
    assert best_tile(8, AVX2, of_integers=True) == {"rows": 12, "columns": 8}
    assert best_tile(768, AVX512, of_integers=True) == best_tile(768, AVX512)
