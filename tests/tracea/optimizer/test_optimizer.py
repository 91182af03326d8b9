from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from tests.support.programs import ProgramBuilder
from xyntra_ep.tracea.core_ir.dims import TYPICAL, symbol
from xyntra_ep.tracea.optimizer.cost import Work, roofline_ns, total, typical, work_of
from xyntra_ep.tracea.optimizer.space import SearchSpace
from xyntra_ep.tracea.optimizer.store import TuningResult, TuningStore, append, signature

SPACE = SearchSpace(axes={"mr": (4, 8, 12), "nr": (16, 32, 48)}, forbids=lambda c: "spills" if c["mr"] * c["nr"] > 400 else None)


def test_a_space_lists_what_is_legal() -> None:
    configs = list(SPACE)
    assert SPACE.size == 9 and len(configs) == 8 and {"mr": 12, "nr": 48} not in configs
    assert all(SPACE.problem(c) is None for c in configs)


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ({"mr": 12, "nr": 48}, "spills"),
        ({"mr": 5, "nr": 16}, "mr=5 is not one of (4, 8, 12)"),
        ({"mr": 4}, "has ['mr'], not ['mr', 'nr']"),
    ],
)
def test_a_configuration_outside_is_told_why(config: dict[str, int], why: str) -> None:
    assert SPACE.problem(config) == why


def test_neighbours_are_one_step_away_and_legal() -> None:
    assert list(SPACE.neighbours({"mr": 8, "nr": 48})) == [{"mr": 4, "nr": 48}, {"mr": 8, "nr": 32}]


def test_the_work_of_ops() -> None:
    p = ProgramBuilder()
    y = p.gemm(p.input(128, 768), p.constant(768, 64))
    p.output(p.add(y, p.constant(64)))
    gemm, add = (work_of(op) for op in p.program.ops)
    assert gemm == Work(flops=2 * 128 * 768 * 64, bytes=4 * (128 * 768 + 768 * 64 + 128 * 64))
    assert add == Work(flops=128 * 64, bytes=4 * (2 * 128 * 64 + 64)), "a broadcast operand is read once"
    assert total([gemm, add]).flops == gemm.flops + add.flops
    assert roofline_ns(gemm, gflops=100, gbs=1e9) == gemm.flops / 100
    assert roofline_ns(gemm, gflops=1e9, gbs=10) == gemm.bytes / 10


def test_sizes_known_at_run_time_only_are_typical() -> None:
    assert typical(symbol("s") * 12 + 1) == TYPICAL * 12 + 1


def result(**change: object) -> TuningResult:
    base = TuningResult(machine="m", op="Gemm", variant="v", config={"mr": 8}, time_ns=5.0)
    return dataclasses.replace(base, **change)  # type: ignore[arg-type]


def test_the_latest_result_of_a_variant_counts(tmp_path: Path) -> None:
    p = ProgramBuilder()
    p.output(p.gemm(p.input("s", 4), p.constant(4, 6)))
    op = p.program.ops[0]
    key = signature(op)
    assert key == "Gemm f32[s,4] f32[4,6] f32[s,6]"
    assert TuningStore.load(tmp_path, "m").results(op) == {}
    for row in (result(op=key), result(op=key, time_ns=4.0), result(op=key, variant="w"), result(op=key, machine="other")):
        append(tmp_path, row)
    found = TuningStore.load(tmp_path, "m").results(op)
    assert {name: r.time_ns for name, r in found.items()} == {"v": 4.0, "w": 5.0}


def test_lines_that_cannot_be_read_are_skipped(tmp_path: Path) -> None:
    append(tmp_path, result())
    with (tmp_path / "tuning.jsonl").open("a") as file:
        file.write('{"machine": "m", "op": "half a li\n[]\n{"machine": "m"}\n\n')
    append(tmp_path, result(op="other"))
    assert sorted(TuningStore.load(tmp_path, "m").rows) == ["Gemm", "other"]


def test_equal_shapes_have_equal_signatures_whatever_the_epilogue() -> None:
    signatures = set()
    for act in ("add", "mul"):
        p = ProgramBuilder()
        x = p.input("s", 4)
        p.output(p.pointwise(act, x, x))
        signatures.add(signature(p.program.ops[0]))
    assert len(signatures) == 1
