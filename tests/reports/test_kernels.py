from __future__ import annotations

import dataclasses

import pytest

from tests.reports.conftest import CEILINGS, DEVICE, INSIDE, kernel, on_device
from xyntra_bench.results import DeviceCeilings, Run
from xyntra_reports import occupancy, roofline
from xyntra_reports._kernels import COMPUTE, cpu_roofs, device_roofs, groups, roof, roofs_for, shortened

ROOFS = cpu_roofs(CEILINGS)


def test_kernels_that_are_the_same_are_one_and_the_dearest_comes_first() -> None:
    products, softmax, transpose = groups(INSIDE, ROOFS)
    assert (products.count, products.ns, products.flops) == (2, 50_000_000, 4_800_000_000)
    assert products.gflops == 96.0 and products.node_count == 3 and products.name.endswith(" +2 (x2)")
    assert softmax.kind == "rows" and softmax.name == "/layer.0/Softmax +2"
    assert transpose.kind == "other" and transpose.flops == 0


@pytest.mark.parametrize(
    ("flops", "moved", "variant", "ns", "bound"),
    [
        (10**9, 10**5, "gemm.packed_b", 1e7, COMPUTE),
        (10**9, 10**5, "gemm.tiles_bf16", 1e9 / 1600, COMPUTE),
        (10**9, 10**5, "conv.quads", 1e9 / 400, COMPUTE),
        (0, 32 << 10, "pointwise.vector", (32 << 10) / 200, "L1"),
        (0, (32 << 10) + 1, "pointwise.vector", ((32 << 10) + 1) / 80, "L2"),
        (0, 16 << 20, "gemm.packed_b", (16 << 20) / 25, "L3"),
        (10**6, 10**8, "gemm.packed_b", 1e7, "DRAM"),
    ],
)
def test_the_roof_is_arithmetic_or_the_smallest_memory_that_holds_the_bytes(
    flops: int, moved: int, variant: str, ns: float, bound: str
) -> None:
    least_ns, what = roof(kernel("n", 1, flops, moved, variant), ROOFS)
    assert least_ns == pytest.approx(ns) and what == bound


def test_the_caches_of_two_threads_hold_twice_as_much() -> None:
    both = dataclasses.replace(CEILINGS, threads=2)
    assert roof(kernel("n", 1, 0, 64 << 10), cpu_roofs(both))[1] == "L1" and roof(kernel("n", 1, 0, 64 << 10), ROOFS)[1] == "L2"


def test_bfloat16_has_the_rate_of_fp32_where_nothing_is_faster() -> None:
    assert cpu_roofs(dataclasses.replace(CEILINGS, bf16_gflops=0.0)).peak("bf16") == CEILINGS.fp32_gflops


def test_bytes_have_the_rate_of_fp32_where_theirs_was_not_measured() -> None:
    assert cpu_roofs(dataclasses.replace(CEILINGS, int8_gops=None)).peak("int8") == CEILINGS.fp32_gflops


def test_without_ceilings_there_is_no_share_of_them() -> None:
    assert all(g.of_roof is None and g.bound == "" for g in groups(INSIDE, None))


def test_a_long_name_keeps_its_end() -> None:
    short = shortened("/encoder/" + "x" * 200 + "/last", 40)
    assert len(short) <= 42 and short.endswith("/last") and "..." in short


OF_DEVICE = DeviceCeilings(
    device=DEVICE,
    copy_gbs=2_800.0,
    cache_gbs=5_000.0,
    cache_bytes=50 << 20,
    fp32_gflops=50_000.0,
    fp16_gflops=600_000.0,
    bf16_gflops=610_000.0,
    tf32_gflops=300_000.0,
    library="torch 2.11",
    library_fp32_gflops=51_000.0,
    library_fp16_gflops=500_000.0,
    library_bf16_gflops=700_000.0,
    library_tf32_gflops=290_000.0,
    library_copy_gbs=2_900.0,
)


def test_a_devices_kernels_are_held_against_the_device_and_never_against_the_cpu(run: Run) -> None:
    both = dataclasses.replace(run, device_ceilings=(OF_DEVICE,))
    roofs = roofs_for(both, 1, DEVICE)
    assert roofs is not None and roofs_for(both, 1) == ROOFS
    assert [roofs.peak(name) for name in ("fp32", "fp16", "bf16", "tf32", "int8w")] == [
        51_000.0,
        600_000.0,
        700_000.0,
        300_000.0,
        51_000.0,
    ]
    assert roof(kernel("n", 1, 0, 50 << 20), roofs)[1] == "L2" and roof(kernel("n", 1, 0, 51 << 20), roofs)[1] == "memory"
    assert roofs.memory_gbs == 2_900.0
    assert roofs_for(run, 1, DEVICE) is None
    uncached = device_roofs(dataclasses.replace(OF_DEVICE, cache_gbs=0.0))
    assert roof(kernel("n", 1, 0, 4), uncached)[1] == "memory"


def test_pages_of_a_device_have_its_roofs_or_none(run: Run) -> None:
    there = dataclasses.replace(on_device(run), device_ceilings=(OF_DEVICE,))
    shown = roofline.part(there, there.cases[0])
    assert shown is not None and len(shown.pictures) == 1
    assert "memory 2900 GB/s" in shown.pictures[0].svg and "DRAM" not in shown.pictures[0].svg
    assert "700000" in roofline.ceilings_text(there) and "torch 2.11" in roofline.ceilings_text(there)
    unknown = on_device(run)
    shown = roofline.part(unknown, unknown.cases[0])
    assert shown is not None and shown.pictures == () and "% of their roofs" not in shown.text.partition("Roof is")[0]


def test_occupancy_is_of_kernels_whose_compiler_reported(run: Run) -> None:
    assert occupancy.part(run, run.cases[0]) is None and not occupancy.REPORTS[0].applies(run)
    told = on_device(run)
    shown = occupancy.part(told, told.cases[0])
    assert shown is not None and shown.text.count("| 16 of 64 | 25% | registers |") == 2, "a row for kernels that are alike"
    assert occupancy.REPORTS[0].applies(told) and "on CUDA / Example" in occupancy.render(told, "x.json")
