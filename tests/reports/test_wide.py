"""The page of each kernel's share of its roof: nothing is dropped, and what is below has its reason."""

from __future__ import annotations

import dataclasses

import pytest

from tests.reports.conftest import CEILINGS, INSIDE, kernel
from xyntra_bench.plan import Target
from xyntra_bench.results import Inside, KernelTime, Run
from xyntra_reports import wide
from xyntra_reports._kernels import cpu_roofs, groups
from xyntra_reports._reasons import OPEN, reason

ROOFS = cpu_roofs(CEILINGS)  # 100 GFLOP/s; 200 GB/s up to 32 KiB, 80 up to 1 MiB, 25 up to 16 MiB, then 10


def of(*kernels: KernelTime) -> Inside:
    return dataclasses.replace(INSIDE, kernels=kernels)


@pytest.mark.parametrize(
    ("ns", "flops", "moved", "said"),
    [
        (14_200_000, 10**9, 10**5, ""),  # 70.4 % of arithmetic
        (14_400_000, 10**9, 10**5, OPEN),
        (9_999, 10**5, 10**3, "short: 10 µs"),
        (25_000, 0, 800_000, "128% of L3's roof, from where its 781 KiB come in part"),
        (45_000, 0, 800_000, "71% of L3's roof, from where its 781 KiB come"),
        (100_000, 0, 800_000, "80% of DRAM's roof, from where its 781 KiB come"),
        (200_000, 0, 800_000, OPEN),
        (1_000_000, 5 * 10**7, 5 * 10**6, "70% of compute and L3 one after the other"),
        (1_000_000, 4 * 10**7, 10**7, "80% of compute and L3 one after the other"),  # 400 us each, of DRAM 1000
        (1_400_000, 4 * 10**7, 10**7, "71% of DRAM's roof, from where its 9.5 MiB come"),
        (1_800_000, 4 * 10**7, 10**7, "78% of compute and DRAM one after the other"),
        (2_100_000, 4 * 10**7, 10**7, OPEN),
    ],
)
def test_the_reason_is_read_off_the_numbers(ns: int, flops: int, moved: int, said: str) -> None:
    (g,) = groups(of(kernel("n", ns, flops, moved)), ROOFS)
    assert reason(g, ROOFS) == said
    twice = dataclasses.replace(g, count=2, calls=2, ns=2 * g.ns, flops=2 * g.flops, bytes=2 * g.bytes, roof_ns=2 * g.roof_ns)
    assert reason(twice, ROOFS) == said, "of one kernel, however many are alike"
    called = dataclasses.replace(kernel("n", 2 * ns, 2 * flops, 2 * moved), calls=2)
    (image_by_image,) = groups(of(called), ROOFS)
    assert image_by_image.of_roof == g.of_roof and reason(image_by_image, ROOFS) == said, "of one call, however many a run has"


def test_without_ceilings_there_is_no_reason() -> None:
    (g,) = groups(of(kernel("n", 10, 0, 10)), None)
    assert reason(g, ROOFS) == ""


def test_each_kernel_stands_there_once_and_shares_add_up(run: Run) -> None:
    small = tuple(kernel(f"/small.{i}", 100_000 - i, 0, 100 + i, "pointwise.vector") for i in range(5))
    m = dataclasses.replace(run.cases[0].contenders[0], inside=of(*INSIDE.kernels, *small))
    served = dataclasses.replace(run, target=Target.WIDE, cases=(dataclasses.replace(run.cases[0], contenders=(m,)),))
    text = wide.render(served, "served.json")
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in text.splitlines() if line.startswith("| ")]
    [summary] = [row for row in rows if row[0] == "wins"]
    assert summary[1:] == ["b1 s128", "1", "XyntraEP", "65%", "73%", "15.5%", "15.5%"]
    kernels = [row for row in rows if len(row) == len(wide.HEADER) and row[0] not in ("kernel",)]
    assert [row[1] for row in kernels] == ["gemm.packed_b", "row_reduce.rows", "transpose.tiled", "-"]
    assert [row[2] for row in kernels] == ["50.0%", "10.0%", "5.0%", "0.5%"] and kernels[-1][0] == "5 more"
    assert [row[-1] for row in kernels[:3]] == ["", OPEN, OPEN]
    bare = wide.render(dataclasses.replace(served, ceilings=()), "served.json")
    assert "| wins | b1 s128 | 1 | XyntraEP | 65% | - | - | - |" in bare
