"""Without PyTorch operations work, and what needs it says so."""

from __future__ import annotations

import sys

import numpy as np
import pytest

NEEDS = "needs PyTorch: pip install 'xyntra-ep[torch]'"


@pytest.fixture(autouse=True)
def _no_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("xyntra_ep.frameworks.torch")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", None)


@pytest.mark.parametrize("name", ["TraceaConv2d", "patch_conv2d"])
def test_convolutions(name: str) -> None:
    from xyntra_ep import tracea

    with pytest.raises(ImportError, match=f"{name} needs PyTorch") as raised:
        getattr(tracea, name)
    assert NEEDS in str(raised.value)


@pytest.mark.parametrize("name", ["from_torch", "from_torchscript"])
def test_exported_models(name: str) -> None:
    import xyntra_ep

    with pytest.raises(ImportError, match="needs PyTorch"):
        getattr(xyntra_ep, name)


def test_gradients_cannot_be_checked(capsys: pytest.CaptureFixture[str]) -> None:
    from xyntra_ep.cli import main

    assert main(["check-gradients"]) == 2
    assert capsys.readouterr().err == f"xyntra: check-gradients: check_gradients {NEEDS}\n"


@pytest.mark.native
@pytest.mark.compiler("cc")
def test_operations_do_without() -> None:
    from xyntra_ep.tracea import ops

    assert ops.gelu(np.zeros((2, 3), np.float32)).shape == (2, 3)


def test_a_name_that_is_not_there() -> None:
    from xyntra_ep.frameworks import ops, torch

    for package in (ops, torch):
        with pytest.raises(AttributeError, match="has no attribute 'matmull'"):
            _ = package.matmull
