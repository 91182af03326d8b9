from __future__ import annotations

import dataclasses
from pathlib import Path

from tests.support.programs.builder import ProgramBuilder
from xyntra_ep.tracea.optimizer.store import TuningResult, TuningStore, append, signature


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
