"""`xyntra check-gradients`: what is right passes, and each kind of wrong gradient is seen, by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from xyntra_ep.cli import main
from xyntra_ep.errors import ConfigError, UnsupportedError

pytestmark = [pytest.mark.torch, pytest.mark.native, pytest.mark.slow]

MODELS = """
import torch

def net():
    layers = [torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.GELU(), torch.nn.Flatten()]
    return torch.nn.Sequential(*layers, torch.nn.Linear(8 * 36, 10)), torch.randn(2, 3, 6, 6)

def words():
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.out = torch.nn.Embedding(7, 16), torch.nn.Linear(16, 5)
        def forward(self, ids, scale):
            return {"logits": torch.softmax(self.out(self.table(ids)) * scale, -1)}
    return Net(), {"ids": torch.tensor([[1, 2, 3]]), "scale": torch.tensor(2.0)}

def dead():
    return torch.nn.Linear(2, 2), torch.zeros(0, 2)

def fails():
    raise RuntimeError("no weights here")

def misfit():
    return torch.nn.Linear(4, 2), torch.randn(3, 5)

def nothing():
    return torch.nn.Linear(4, 2)
"""


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module in the working directory, of a name that no other test has imported."""
    name = f"models_of_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(MODELS)
    monkeypatch.chdir(tmp_path)
    return name


@pytest.mark.parametrize("train", [False, True])
def test_a_model_by_each_parameter_and_input(models: str, train: bool, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check-gradients", f"{models}:net", "--json", *(["--train"] if train else [])]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["ok"] and found["claimed"] == found["calls"] > 20
    rows = {row["tensor"]: row for row in found["rows"]}
    assert [*rows] == ["input 0", "0.weight", "0.bias", "1.weight", "1.bias", "4.weight", "4.bias"]
    assert rows["4.weight"]["shape"] == [10, 288] and 0 < rows["4.weight"]["relative"] < 1e-5
    assert all(row["interpreted"] is not None and row["interpreted"] < 1e-4 for row in rows.values())


def test_inputs_by_name_and_outputs_by_name(models: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check-gradients", f"{models}:words"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1:3] for line in lines[1:3]] == [["input", "scale"], ["table.weight", "7x16"]]
    assert lines[-1] == "all are right" and lines[-2].startswith("XyntraEP carries out ")


def test_a_wrong_kernel_is_seen_and_its_definition_is_not_blamed(
    models: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from xyntra_ep.frameworks.torch.island_module import IslandModule

    forward = IslandModule.forward
    monkeypatch.setattr(IslandModule, "forward", lambda self, *args: tuple(t * 1.01 for t in forward(self, *args)))
    assert main(["check-gradients", f"{models}:net"]) == 1
    text = capsys.readouterr().out
    assert "WRONG: kernels" in text and "definition" not in text and "gradients wrong" in text


def test_a_wrong_rule_is_seen_in_both(models: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from xyntra_ep.frameworks.torch.check import interpreted
    from xyntra_ep.tracea.core_ir.interpreter import interpret

    monkeypatch.setattr(interpreted, "interpret", lambda *args: [value * 1.01 for value in interpret(*args)])
    assert main(["check-gradients", f"{models}:net"]) == 1
    assert "WRONG: definition" in capsys.readouterr().out


def test_a_wrong_operation_is_seen_by_each_check(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    from xyntra_ep.frameworks.torch import check_gradients
    from xyntra_ep.frameworks.torch.check import operations

    class Wrong(torch.autograd.Function):
        """x * x, whose gradient it says is x."""

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * ctx.saved_tensors[0]

    case = operations.OperationCase(name="square", ours=Wrong.apply, theirs=torch.square, operands={"x": (2, 3)})
    monkeypatch.setattr(operations, "CASES", (case,))
    report = check_gradients()
    assert not report.ok and report.rows[0].wrong == ("kernels", "gradcheck", "differences")
    assert "! square: Jacobian mismatch" in str(report) and str(report).endswith("1 of 1 gradient wrong")


@pytest.mark.parametrize("name", ["softmax", "linear", "conv2d.strided"])
def test_functions_of_pytorch(name: str) -> None:
    from xyntra_ep.frameworks.torch import check_gradients

    report = check_gradients(functions=[name])
    assert report.ok and all(row.interpreted is not None for row in report.rows), str(report)


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ("model.onnx", "model.onnx: an ONNX file has no gradients, which PyTorch asks for. of a model there write it as module:"),
        ("net", "net: no model. write it as module:callable"),
        ("no_such_module:net", "no_such_module:net: no_such_module cannot be imported (ModuleNotFoundError: "),
        ("MODELS:nett", "has no callable 'nett'. did you mean 'net'?"),
        ("MODELS:fails", "fails() fails (RuntimeError: no weights here)"),
        ("MODELS:nothing", "nothing() returns no (module, example inputs). write it as module:callable"),
    ],
)
def test_what_is_no_model_is_told(models: str, asked: str, why: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check-gradients", asked.replace("MODELS", models)]) == 2
    assert why in capsys.readouterr().err


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (["--operation", "matmull"], "no operation 'matmull'. did you mean 'matmul'?"),
        (["--function", "softmaks"], "no function 'softmaks'. did you mean 'softmax'?"),
        (
            ["--operation", "matmul", "--function", "all"],
            "more than one of a model, --operation and --function. give one of them",
        ),
        (["--train"], "--train says nothing of operations. it is for a model, module:callable"),
        (["-O", "precison=bf16", "--function", "softmax"], "no option 'precison'. did you mean 'precision'?"),
    ],
)
def test_what_cannot_be_asked_is_told(asked: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check-gradients", *asked]) == 2
    assert why in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "why"),
    [("misfit", "the model does not run in PyTorch (RuntimeError: mat1 and mat2"), ("dead", "nothing in it has a gradient")],
)
def test_a_model_that_does_not_run_fails(models: str, name: str, why: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check-gradients", f"{models}:{name}"]) == 1
    assert why in capsys.readouterr().err


def test_from_python_errors_have_their_kinds(models: str) -> None:
    from xyntra_ep.frameworks.torch import check_gradients

    with pytest.raises(ConfigError):
        check_gradients("net")
    with pytest.raises(UnsupportedError):
        check_gradients(f"{models}:misfit")
