"""Faults of our own, injected at each stage of planning: they cost a node or an island, the session is right all the same, the
plan is kept, and `xyntra explain` says whose fault it is."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx
import pytest

from tests.support.models.model_text import close, cpu, normal, parse
from tests.support.sessions import planned, watched_planner
from xyntra_ep import explain, knobs
from xyntra_ep.cli import main
from xyntra_ep.fusion import partition as partition_module
from xyntra_ep.fusion import trace as trace_module
from xyntra_ep.fusion.passes import choose_precision
from xyntra_ep.guard import guarded
from xyntra_ep.provider import plan_report, planner
from xyntra_ep.tracea.interface import islands
from xyntra_ep.tracea.planning import planner as planning
from xyntra_ep.tracea.planning.builder import OpBuilder
from xyntra_ep.tracea.runtime.kernel_cache import Compilation

pytestmark = [pytest.mark.native, pytest.mark.compiler("cc")]

# Two islands, apart by NonZero; Erf is in the second, where kernels compute it together with ReduceMax.
TEXT = """(float[N,4] x, float[2,4] w) => (float[] a, float[] y)
    { a = Exp(x) n = NonZero(a) f = Cast<to = 1>(n) t = Transpose(f) m = MatMul(t, w) e = Erf(m)
      y = ReduceMax<keepdims = 0>(e) }"""
SECOND = {"Cast", "Transpose", "MatMul", "Erf", "ReduceMax"}


def model() -> onnx.ModelProto:
    return parse(TEXT)


@dataclass(frozen=True)
class Stage:
    """Where ``name`` of ``owner`` fails when ``at_fault`` of its arguments; ``lost``: op types that it costs."""

    name: str
    owner: Any
    attribute: str
    at_fault: Callable[..., bool]
    lost: frozenset[str]


def has_erf(*arguments: Any) -> bool:
    """Whether Erf's formula is in what is being made."""
    return "erf" in repr(arguments).lower()


STAGES = [
    Stage("seeing a node", partition_module, "_obstacle", lambda graph, node: node.op_type == "Erf", frozenset({"Erf"})),
    Stage("lowering", trace_module, "find_op", lambda node: node.op_type == "Erf", frozenset({"Erf"})),
    Stage("building programs", planner, "build_program", lambda c, *_, **__: {"m", "e"} <= c.tensors.keys(), frozenset({"Erf"})),
    Stage("precision", choose_precision, "choose_precision", lambda p, *_, **__: has_erf(p.ops), frozenset({"Erf"})),
    Stage("checking programs", planning, "check_program", lambda p: has_erf(p.ops), frozenset({"Erf"})),
    Stage("assembling", planning, "_assemble", lambda p, *_, **__: has_erf(p.ops), frozenset({"Erf"})),
    Stage("building kernels", OpBuilder, "_build", lambda s, op, c: has_erf(op), frozenset({"Erf", "ReduceMax"})),
    Stage(
        "compiling", Compilation, "finish", lambda s, kernels: has_erf([k.text for k in kernels]), frozenset({"Erf", "ReduceMax"})
    ),
    Stage(
        "writing", islands, "write_island", lambda e: has_erf([a.planned.program.ops for a in e.alternatives]), frozenset({"Erf"})
    ),
    Stage("estimating", planner.Planner, "_hopeless", lambda s, g, *_: len(g) > 1, frozenset(SECOND)),
    Stage("reporting", plan_report, "report_of", lambda e, *_: len(e.nodes) > 1, frozenset()),
]


def break_it(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    real = getattr(stage.owner, stage.attribute)

    def broken(*arguments: Any, **named: Any) -> Any:
        if stage.at_fault(*arguments, **named):
            raise struct.error("argument\nout of range")
        return real(*arguments, **named)

    monkeypatch.setattr(stage.owner, stage.attribute, broken)


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.name)
def test_a_fault_costs_what_it_happened_in(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XYNTRA_CACHE_DIR", str(tmp_path / "cache"))
    break_it(stage, monkeypatch)
    feeds = {"x": normal(3, 4), "w": normal(2, 4, seed=1)}
    with watched_planner() as plans:
        for _ in range(2):
            session = planned(model())
            close(session.run(None, feeds), cpu(model(), feeds))
        assert plans.calls == 1, "the second session finds the plan"
        reasons = plans.reasons(0)
    assert reasons.pop("NonZero") == "unsupported"
    assert reasons == dict.fromkeys(stage.lost, "internal: error: argument")
    found = explain(session)
    assert found.graphs[0].stored and found.faults == ("internal: error: argument",)
    fault = found.graphs[0].faults[0]
    assert {found.graphs[0].nodes[n][0] for n in fault.nodes} == (stage.lost or SECOND)
    assert "struct.error: argument\nout of range" in fault.traceback and fault.stage

    onnx.save(model(), path := tmp_path / "model.onnx")
    capsys.readouterr()
    assert main(["explain", str(path), "--json", "-O", "claim=all"]) == 3
    said = capsys.readouterr()
    assert json.loads(said.out)[0]["plan"]["faults"][0]["traceback"] == fault.traceback
    (line,) = said.err.splitlines()
    assert line == (
        "xyntra: a fault of XyntraEP, not of the model (internal: error: argument)."
        f" please report it with what `xyntra explain {path} --json` prints"
    )


def test_without_a_fault(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(model(), path := tmp_path / "model.onnx")
    assert main(["explain", str(path), "-O", "claim=all"]) == 0
    assert not capsys.readouterr().err


def test_a_graph_that_cannot_be_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is about no island: nothing is taken, and nothing remembered."""
    monkeypatch.setenv("XYNTRA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(planner, "partition", lambda *_: 1 / 0)
    onnx.save(model(), path := tmp_path / "model.onnx")
    assert main(["explain", str(path), "-O", "claim=all"]) == 3
    said = capsys.readouterr()
    assert "XyntraEP takes nothing: internal: ZeroDivisionError: division by zero" in said.out and "please report it" in said.err


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(1), OSError("disk full"), MemoryError()])
def test_what_is_no_fault_of_ours_passes(error: BaseException) -> None:
    with pytest.raises(type(error)), guarded("lowering"):
        raise error


def test_debugging_shows_the_exception_itself() -> None:
    with knobs.scope(debug=1), pytest.raises(ZeroDivisionError), guarded("lowering"):
        raise ZeroDivisionError
