"""What decisions take a kernel to need and to take, against what its compiler reports and what a device's memory allows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from xyntra_ep.tracea.interface import Context
from xyntra_ep.tracea.kernels.gpu.attention import block, fragments
from xyntra_ep.tracea.kernels.gpu.shared import launch, tile_cost
from xyntra_ep.tracea.semantic_ir.gpu.capabilities import ANY_GPU, SM_80, Gpu


@pytest.mark.compiler("nvrtc")
@pytest.mark.parametrize(
    ("op", "precision", "near"),
    [("gemm", "fp32", 0), ("gemm", "fp16", 0), ("conv", "fp16", 0), ("attention", "fp32", 1), ("attention", "bf16", 1)],
)
def test_as_many_blocks_are_held_as_the_compiler_lets(
    op: str, precision: str, near: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the estimate for the configuration that was chosen: registers are counted before there are any."""
    taken: dict[tuple[int, int], int] = {}

    def watched(gpu: Gpu, threads: int, registers: int, shared_bytes: int, *, unknown: int) -> int:
        taken[threads, shared_bytes // 4096] = found = launch.blocks_held(gpu, threads, registers, shared_bytes, unknown=unknown)
        return found

    for module in (tile_cost, block, fragments):
        monkeypatch.setattr(module, "blocks_held", watched)
    plan = Context(cache_dir=tmp_path).plan_kernel(op, precision=precision, architecture="a100")
    kernel = plan.launches[0].kernel
    assert kernel.occupancy is not None
    # Beside tiles there are coordinates in shared memory, which the estimate leaves out.
    estimated = next(taken[key] for part in (0, 1) if (key := (kernel.threads, kernel.shared_bytes // 4096 - part)) in taken)
    assert abs(kernel.occupancy.blocks - estimated) <= near


def test_a_launch_takes_at_least_what_its_bytes_take(tmp_path: Path) -> None:
    context = Context(cache_dir=tmp_path)
    for op, moved in (("add", 3 * 4 << 24), ("softmax", 2 * 4 * 4096 * 1024)):
        plan = context.plan_kernel(op, architecture="a100")
        assert plan.cost_ns >= moved / SM_80.memory_gbs


def test_what_is_not_known_of_a_unit_is_for_the_caller_to_say() -> None:
    facts: dict[str, Any] = {"threads": 256, "registers": 128, "shared_bytes": 48 << 10}
    assert launch.blocks_held(ANY_GPU, **facts, unknown=7) == 7
    assert launch.blocks_held(SM_80, **facts, unknown=7) == 2
    assert launch.blocks_held(SM_80, **facts | {"registers": 300}, unknown=7) == 0
