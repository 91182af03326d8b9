from __future__ import annotations

import dataclasses

import pytest

from reports._kernels import COMPUTE, groups, peak, roof, shortened
from tests.reports.conftest import CEILINGS, INSIDE, kernel


def test_kernels_that_are_the_same_are_one_and_the_dearest_comes_first() -> None:
    products, softmax, transpose = groups(INSIDE, CEILINGS)
    assert (products.count, products.ns, products.flops) == (2, 50_000_000, 4_800_000_000)
    assert products.gflops == 96.0 and products.node_count == 3 and products.name.endswith(" +2 (x2)")
    assert softmax.kind == "rows" and softmax.name == "/layer.0/Softmax +2"
    assert transpose.kind == "other" and transpose.flops == 0


@pytest.mark.parametrize(
    ("flops", "moved", "variant", "ns", "bound"),
    [
        (10**9, 10**5, "gemm.packed_b", 1e7, COMPUTE),
        (10**9, 10**5, "gemm.tiles_bf16", 1e9 / 1600, COMPUTE),
        (0, 32 << 10, "pointwise.vector", (32 << 10) / 200, "L1"),
        (0, (32 << 10) + 1, "pointwise.vector", ((32 << 10) + 1) / 80, "L2"),
        (0, 16 << 20, "gemm.packed_b", (16 << 20) / 25, "L3"),
        (10**6, 10**8, "gemm.packed_b", 1e7, "DRAM"),
    ],
)
def test_the_roof_is_arithmetic_or_the_smallest_memory_that_holds_the_bytes(
    flops: int, moved: int, variant: str, ns: float, bound: str
) -> None:
    least_ns, what = roof(kernel("n", 1, flops, moved, variant), CEILINGS)
    assert least_ns == pytest.approx(ns) and what == bound


def test_the_caches_of_two_threads_hold_twice_as_much() -> None:
    both = dataclasses.replace(CEILINGS, threads=2)
    assert roof(kernel("n", 1, 0, 64 << 10), both)[1] == "L1" and roof(kernel("n", 1, 0, 64 << 10), CEILINGS)[1] == "L2"


def test_bfloat16_has_the_rate_of_fp32_where_nothing_is_faster() -> None:
    assert peak(dataclasses.replace(CEILINGS, bf16_gflops=0.0), "bf16") == CEILINGS.fp32_gflops


def test_without_ceilings_there_is_no_share_of_them() -> None:
    assert all(g.of_roof is None and g.bound == "" for g in groups(INSIDE, None))


def test_a_long_name_keeps_its_end() -> None:
    short = shortened("/encoder/" + "x" * 200 + "/last", 40)
    assert len(short) <= 42 and short.endswith("/last") and "..." in short
