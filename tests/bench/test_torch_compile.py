"""`bench run torch`: what is compared with what, by sessions that stand in for PyTorch's, and by PyTorch where it is there."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from rich.console import Console
from typer.testing import CliRunner

from xyntra_bench import cli, loads, measure, run
from xyntra_bench.architectures import _export
from xyntra_bench.architectures._modules import full_size, module_row
from xyntra_bench.contenders import Contender, parse_contenders
from xyntra_bench.environment import read_environment
from xyntra_bench.errors import BenchError, Unavailable
from xyntra_bench.plan import Budget, Case, Target
from xyntra_bench.results import Placement, Run, Verdict
from xyntra_bench.sessions import factory_for
from xyntra_bench.setups import Setup, setups_of
from xyntra_bench.store import load
from xyntra_bench.torch_compile.backends import check_options, make_backend_available
from xyntra_bench.torch_compile.beside import pairs_of, show_beside, told
from xyntra_bench.torch_compile.cases import cases_of_modules

CASE = Case(model="perceptron", module="perceptron", batch=2)
SPECS = ("xyntra,inductor,CPUExecutionProvider",)
CONTENDERS = parse_contenders(SPECS, "eager")


def test_all_are_compared_with_eager_and_ours_with_what_users_have_beside_it() -> None:
    assert [(setup.label, setup.against, setup.peers) for setup in setups_of(CASE, CONTENDERS)] == [
        ("eager", "", ()),
        ("xyntra", "eager", ("inductor", "CPUExecutionProvider")),
        ("inductor", "eager", ()),
        ("CPUExecutionProvider", "eager", ()),
    ]


def test_models_of_full_size_are_measured_unless_others_are_named() -> None:
    assert {"bert-base", "resnet50", "vit-base"} <= set(full_size.names())
    cases = cases_of_modules([], (1, 2), (1, 8), parse_contenders(["xyntra,inductor"]))
    assert len(cases) == 4 * len(full_size)
    assert "bert-base b8 s128 t2" in [case.label for case in cases]
    assert module_row("bert-base").shapes_of(8)["input_ids"] == (8, 128)
    with pytest.raises(BenchError, match=r"-m bert-bas: no module of that name. did you mean 'bert-base'\?"):
        cases_of_modules(["bert-bas"], (1,), (1,), ())


def test_a_module_that_cannot_be_exported_is_measured_without(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(row: Any) -> Path:
        raise ImportError("No module named 'onnxscript'")

    monkeypatch.setattr(_export, "exported", refused)
    said: list[str] = []
    [case] = cases_of_modules(["perceptron"], (1,), (1,), CONTENDERS, said.append)
    assert case.file == "" and said == [
        "perceptron: cannot be exported to ONNX (ImportError: No module named 'onnxscript'). contenders that run files have no "
        "row of it"
    ]
    setup = setups_of(case, CONTENDERS)[-1]
    with pytest.raises(Unavailable, match="CPUExecutionProvider: perceptron has not been exported to ONNX"):
        factory_for(None, setup, Path(), None, case.module)


class _Session:
    """Says that it takes `ns`, and gives what it is fed first, times `gain`."""

    def __init__(self, ns: int, gain: float) -> None:
        self.ns, self._gain = ns, gain

    def run(self, feeds: Any) -> object:
        return None

    def outputs(self, feeds: Any, names: Sequence[str]) -> list[npt.NDArray[Any]]:
        assert list(names) == ["output"] and all(len(array) == CASE.batch for array in feeds.values())
        return [self._gain * np.asarray(next(iter(feeds.values())), np.float32)]

    def placement(self) -> Placement | None:
        return None

    def precision(self) -> str:
        return "fp32"

    def inside(self, feeds: Any, run_ns: int) -> None:
        return None

    def device(self) -> str:
        return ""

    def device_ns(self, feeds: Any, run_ns: int) -> None:
        return None


class _Factory:
    notes = ()

    def __init__(self, setup: Setup) -> None:
        self._session = _Session(6_000_000 if setup.label == "inductor" else 2_000_000, 2.0 if setup.label == "wrong" else 1.0)

    def create(self, *, watched: bool = False) -> tuple[_Session, int]:
        return self._session, 1


def measured(contenders: tuple[Contender, ...], budget: Budget, scratch: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setattr(measure, "make_available", lambda provider: None)
    monkeypatch.setattr(measure, "factory_for", lambda file, setup, cache, fixed, module: _Factory(setup))
    monkeypatch.setattr(loads.OneAtATime, "sample", lambda self, session, feeds: loads.Sample(session.ns, session.ns))
    case = measure.measure(CASE, contenders, budget, scratch, quick=True)
    return Run(target=Target.TORCH, environment=read_environment(""), budget=budget, cases=(case,))


def test_ours_stands_beside_eager_and_each_peer_with_its_interval(
    fast: Budget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = measured(CONTENDERS, fast, tmp_path, monkeypatch)
    [case] = found.cases
    assert case.baseline and case.baseline.label == "eager" and case.weights == "random" and case.model_sha256 == ""
    pairs = {(pair.m.label, pair.other): pair for pair in pairs_of(found)}
    assert list(pairs) == [("xyntra", "eager"), ("xyntra", "CPUExecutionProvider"), ("xyntra", "inductor")]
    fast_one = pairs["xyntra", "inductor"]
    assert fast_one.verdict is Verdict.FASTER and fast_one.ratio and fast_one.ratio.middle == 3.0 and fast_one.ratio.pairs == 8
    assert any(line.startswith("xyntra beside inductor: faster in 1; ") for line in told(found))
    assert any(line.endswith("; at least 1.1x in 1 of 1") for line in told(found))
    show_beside(Console(), found)
    [line] = [line for line in capsys.readouterr().out.splitlines() if line.split()[4:5] == ["inductor"]]
    assert line.split()[:4] == ["perceptron", "b2", "1", "xyntra"] and line.split()[-2:] == ["8", "faster"]


def test_who_differs_from_eager_has_no_speed(fast: Budget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = Contender(provider="wrong")
    [case] = measured((wrong, *CONTENDERS), fast, tmp_path, monkeypatch).cases
    row = next(m for m in case.contenders if m.label == "wrong")
    assert row.lacking == "inaccurate" and row.ratio is None and row.verdict is Verdict.NO_DATA
    assert all(m.ratio for m in case.contenders if m.label != "wrong")


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ("eager:mode=default", "eager: no option 'mode'. it has none"),
        ("inductor:freezin=1", "inductor: no option 'freezin'. did you mean 'freezing'?"),
        ("inductor:freezing=yes", "inductor: freezing=yes is not valid. it is 0 or 1"),
    ],
)
def test_options_of_backends_are_checked(spec: str, why: str) -> None:
    with pytest.raises(BenchError) as raised:
        check_options(Contender.parse(spec))
    assert str(raised.value) == why


def test_each_command_says_where_its_contenders_are_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "probe", lambda contender: "")
    with pytest.raises(BenchError, match=r"inductor: a backend of torch.compile, which runs no ONNX file. try `bench run torch`"):
        run.checked_contenders(["inductor"])
    with pytest.raises(BenchError, match=r"torch: here its backends are contenders. name eager, inductor, xyntra"):
        run.checked_contenders(["torch"], "eager")


def test_without_pytorch_the_command_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(Unavailable, match=r"`bench run torch` needs PyTorch and transformers .*pip install 'xyntra-ep\[torch\]'"):
        make_backend_available("xyntra")


@pytest.mark.torch
def test_options_that_pytorch_and_ours_know_are_checked() -> None:
    for spec, why in [
        ("inductor:mode=fast", "inductor: mode=fast is not valid. there are default, "),
        ("xyntra:precison=bf16", "no option 'precison'. did you mean 'precision'?"),
        ("xyntra:mode=fast", "no mode 'fast'"),
    ]:
        with pytest.raises(BenchError) as raised:
            check_options(Contender.parse(spec))
        assert why in str(raised.value)


@pytest.mark.torch
@pytest.mark.native
@pytest.mark.slow
def test_a_module_is_measured_eager_compiled_and_exported(tmp_path: Path) -> None:
    file = tmp_path / "r.json"
    asked = [
        "run",
        "torch",
        "-m",
        "perceptron",
        "--threads",
        "1",
        "--batch",
        "3",
        "--quick",
        "--min-time",
        "0",
        "--json",
        str(file),
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["bench", *asked])
        result = CliRunner().invoke(cli.app, asked)
    assert result.exit_code == 0, result.output + repr(result.exception)
    stored = load(file)
    [case] = stored.cases
    assert stored.target is Target.TORCH and case.shape == "b3" and case.baseline and case.baseline.label == "eager"
    assert [m.label for m in case.contenders] == ["xyntra", "inductor", "CPUExecutionProvider"]
    for m in case.contenders:
        assert m.ratio and m.check and m.check.error is not None and m.check.error <= m.check.max_err and not m.lacking
    ours = case.contenders[0]
    assert ours.placement and ours.placement.nodes["xyntra"] > 0 and set(ours.peers) == {"inductor", "CPUExecutionProvider"}
    assert "xyntra beside inductor: " in result.output
