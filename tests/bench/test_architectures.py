"""The rows of architectures: many, of every kind, read without PyTorch; with it, exported with the dims that they name."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from xyntra_bench.architecture_cases import cases_of_architectures
from xyntra_bench.architectures import architectures
from xyntra_bench.architectures._architecture import Exporter
from xyntra_bench.contenders import BASELINE, parse_contenders
from xyntra_bench.errors import BenchError
from xyntra_bench.feeds import synthetic_feeds
from xyntra_bench.plan import Case, Scenario
from xyntra_bench.setups import setups_of

LACKS_TORCH = importlib.util.find_spec("torch") is None
SMALL = ["perceptron", "lenet", "keyword-spotter", "gan-generator", "tagger"]  # quick to export, of both exporters


def test_there_are_more_than_forty_of_both_exporters() -> None:
    rows = list(architectures)
    assert len(rows) >= 60
    assert {row.exporter for row in rows} == set(Exporter)
    assert all(row.is_dynamic for row in rows)
    assert all(min(shape) > 0 for row in rows for shape in row.shapes.values())


def test_rows_are_read_without_pytorch() -> None:
    program = "import sys; from bench.architectures import architectures as a; print(len(a), 'torch' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=Path.cwd())
    assert told.stdout.split() == [str(len(architectures)), "False"]


def test_a_name_that_nothing_has_is_told_with_those_there_are() -> None:
    with pytest.raises(BenchError, match=r"no architecture of that name. there are .*perceptron"):
        cases_of_architectures("perzeptron", (1,))


@pytest.mark.skipif(not LACKS_TORCH, reason="PyTorch is installed")
def test_without_pytorch_the_command_says_what_to_install() -> None:
    with pytest.raises(BenchError, match=r"needs PyTorch and transformers: pip install 'xyntra-ep\[torch\]'"):
        cases_of_architectures("perceptron", (1,))


def test_ours_is_compared_with_the_cpu_provider_dynamic_and_fixed() -> None:
    setups = setups_of(Case(model="x", scenario=Scenario.SPECIALISED), parse_contenders(["XyntraEP"]))
    assert [(setup.label, setup.against, setup.peers) for setup in setups] == [
        (BASELINE, "", ()),
        (f"{BASELINE} fixed", BASELINE, ()),
        ("XyntraEP", "", (BASELINE,)),
        ("XyntraEP fixed", "XyntraEP", (f"{BASELINE} fixed",)),
    ]


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_its_dims_are_dynamic_and_its_output_alive(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import onnxruntime as ort

    monkeypatch.setenv("XYNTRA_ZOO_DIR", str(tmp_path))
    [case] = cases_of_architectures(name, (1,))
    row = architectures[name]
    session = ort.InferenceSession(case.file, providers=["CPUExecutionProvider"])
    declared = {x.name: tuple(x.shape) for x in session.get_inputs()}
    assert declared == {n: value.dims for n, value in row.inputs.items()}
    for batch in (1, 3):
        (out,) = session.run(None, synthetic_feeds(session.get_inputs(), case.shapes, 0, batch))
        assert out.shape[0] == batch and np.abs(out).max() > 1e-3 and out.std() > 0
    (again,) = cases_of_architectures(name, (1,))
    assert again.file == case.file and len(list(Path(case.file).parent.iterdir())) == 1
