from __future__ import annotations

import importlib
from pathlib import Path
from types import SimpleNamespace

import pytest

from xyntra_bench import inside
from xyntra_bench.inside import NAMES, forget_plans, look_inside
from xyntra_bench.results import Choice, Declined, Resident
from xyntra_ep.diagnostics.kernel_times import Choice as Made
from xyntra_ep.diagnostics.kernel_times import KernelTime, RunTimes

LAUNCH = {
    "symbol": "xy_gemm",
    "threads": 256,
    "shared_bytes": 32768,
    "report": {"registers": 116, "shared_bytes": 32768, "spilled_bytes": 0},
    "occupancy": {"blocks": 2, "warps": 16, "of_warps": 64, "limit": "registers"},
}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many runs were asked for; the answer is one kernel of six nodes, and three nodes declined."""
    runs_asked: list[int] = []
    names = ("", *(f"n{i}" for i in range(5)))
    kernel = KernelTime(
        island="island0",
        label="gemm",
        variant="gemm.packed_b",
        op_types=("MatMul", "Add", "Add", "Add", "Add", "Add"),
        nodes=names,
        precision="fp32",
        symbols=("xy_gemm",),
        calls=1,
        ns=10,
        flops=20,
        bytes=30,
        launch=LAUNCH,
        choice=Made(predicted_ns=8, config={"rows": 6}, is_measured=True, runner_up="gemm.dots", runner_up_ns=9),
    )
    declined = [SimpleNamespace(op_type=op, name=op.lower(), reason="why") for op in ("Det", "Loop", "Det")]

    def kernel_times(session: object, run: object, *, runs: int) -> RunTimes:
        runs_asked.append(runs)
        return RunTimes(runs=runs, run_ns=15, kernels=(kernel,))

    # by their full names: the package re-exports a function that is called like its module
    times_module, explain_module = (importlib.import_module(f"xyntra_ep.diagnostics.{m}") for m in ("kernel_times", "explain"))
    monkeypatch.setattr(times_module, "kernel_times", kernel_times)
    graphs = [SimpleNamespace(declined=declined, device=""), SimpleNamespace(declined=[], device="CUDA / Example")]
    monkeypatch.setattr(explain_module, "explain", lambda session: SimpleNamespace(graphs=graphs))
    return runs_asked


def test_a_session_tells_its_kernels_and_what_it_left(asked: list[int]) -> None:
    found = look_inside(object(), "XyntraEP", lambda: None, 1000)
    assert found is not None and asked == [inside.RUNS] and found.run_ns == 15
    assert found.kernels[0].resident == Resident(
        threads=256, registers=116, shared_bytes=32768, blocks=2, warps=16, of_warps=64, limit="registers"
    )
    assert found.device == "CUDA / Example"
    (kernel,) = found.kernels
    assert kernel.op_types == {"MatMul": 1, "Add": 5} and kernel.nodes == ("n0", "n1", "n2", "n3") and NAMES == 4
    assert (kernel.ns, kernel.flops, kernel.bytes) == (10, 20, 30)
    assert kernel.choice == Choice(predicted_ns=8, config={"rows": 6}, tuned=True, runner_up="gemm.dots", runner_up_ns=9)
    assert found.declined == (
        Declined(op_type="Det", reason="why", count=2, nodes=("det", "det")),
        Declined(op_type="Loop", reason="why", count=1, nodes=("loop",)),
    )


def test_long_runs_are_profiled_less_often(asked: list[int]) -> None:
    for run_ns in (inside.SPAN_NS // 5, inside.SPAN_NS):
        look_inside(object(), "XyntraEP", lambda: None, run_ns)
    assert asked == [5, inside.LEAST_RUNS]


def test_plans_are_forgotten_and_kernels_kept(tmp_path: Path) -> None:
    assert not forget_plans(tmp_path), "nothing to forget"
    for name in ("plans/a.plan", "plans/b.plan", "kernels/k.so"):
        (tmp_path / name).write_bytes(b"")
    assert forget_plans(tmp_path)
    assert {path.name for path in tmp_path.rglob("*.*")} == {"k.so"}


def test_others_do_not_tell(asked: list[int]) -> None:
    assert look_inside(object(), "CPUExecutionProvider", lambda: None, 1000) is None and asked == []
