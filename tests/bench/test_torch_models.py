"""The zoo's models in PyTorch against the ONNX files whose weights they have, and the contender that runs them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from xyntra_bench import torch_sessions
from xyntra_bench.contenders import Contender
from xyntra_bench.errors import Unavailable
from xyntra_bench.ort_sessions import plain_session
from xyntra_bench.plan import Case
from xyntra_bench.sessions import factory_for
from xyntra_bench.setups import Setup, setups_of
from xyntra_bench.torch_models import torch_models
from xyntra_bench.torch_models._torch_model import TorchModel
from xyntra_zoo import model_path, zoo

TINY = [name for name in torch_models.names() if zoo[name].tiny]


def setup_of(spec: str) -> Setup:
    return Setup(label=spec, contender=Contender.parse(spec), threads=1)


def test_each_model_that_is_measured_has_one() -> None:
    wanted = {model.name for model in zoo if not model.generates and not model.float_model}
    assert set(torch_models.names()) == wanted


@pytest.mark.torch
@pytest.mark.parametrize("name", TINY)
def test_computes_what_the_model_computes(name: str, tmp_path: Path) -> None:
    model = zoo[name]
    path, feeds = model_path(model), model.feeds(3, max(model.seqs, default=1), 1)
    reference = plain_session(path)
    names = [output.name for output in reference.get_outputs()]
    wanted = reference.run(None, feeds)
    for spec, bound in (("torch:device=cpu", 1e-5), ("torch:device=cpu+bf16", 5e-2)):
        session, took = factory_for(path, setup_of(spec), tmp_path).create()
        assert took > 0 and session.precision() == spec.rpartition("+")[2].replace("torch:device=cpu", "fp32")
        assert session.placement() is None and session.device() == "" and session.device_ns(feeds, 1) is None
        for got, exact in zip(session.outputs(feeds, names), wanted, strict=True):
            assert got.shape == exact.shape and got.dtype == np.float32
            assert np.abs(got - exact).max() <= bound * np.abs(exact).max()


def test_what_cannot_be_had_is_said(tmp_path: Path) -> None:
    tiny = model_path(zoo["bert-base-tiny"])
    for path, spec, why in [
        (tiny, "torch:int8w", "int8w is none of its precisions"),
        (tiny, "torch:mode=fast", "mode=fast is not valid. it is eager or compile"),
        (tiny, "torch:mod=compile", "no option 'mod'. did you mean 'mode'?"),
        (tiny, "torch:freeze=1", "freeze=1 is for mode=compile"),
        (tiny, "torch:mode=compile+freeze=yes", "freeze=1 is for mode=compile"),
        (Path("mine-1.onnx"), "torch", "mine-1.onnx has no implementation in PyTorch"),
    ]:
        with pytest.raises(Unavailable, match=re.escape(why)):
            factory_for(path, setup_of(spec), tmp_path)
        if path is tiny:  # before anything is measured, and whether or not the package is there
            with pytest.raises(Unavailable, match=re.escape(why)):
                torch_sessions.check_options(Contender.parse(spec))


@pytest.mark.parametrize(
    ("freeze", "wanted"), [("0", {"mode": "max-autotune"}), ("1", {"options": {"triton": 1, "freezing": True}})]
)
def test_freezing_is_the_same_mode_with_constants(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, freeze: str, wanted: dict[str, Any]
) -> None:
    given: list[dict[str, Any]] = []

    class Module:
        def eval(self) -> Module:
            return self

        def to(self, *_: Any) -> Module:
            return self

    class Torch:
        bfloat16 = "bfloat16"

        class _inductor:  # PyTorch's name
            @staticmethod
            def list_mode_options(mode: str) -> dict[str, Any]:
                return {"triton": 1} if mode == "max-autotune" else {}

        @staticmethod
        def compile(module: Any, **more: Any) -> Any:
            given.append(more)
            return module

    monkeypatch.setattr(torch_sessions, "available", lambda device: Torch)
    monkeypatch.setattr(
        torch_sessions, "torch_models", {"bert-base-tiny": TorchModel(name="bert-base-tiny", make=lambda weights: Module())}
    )
    spec = f"torch:mode=compile+freeze={freeze}+bf16"
    factory_for(model_path(zoo["bert-base-tiny"]), setup_of(spec), tmp_path).create()
    assert given == [{**wanted, "fullgraph": True}]


def test_it_is_a_peer_of_those_in_its_precision() -> None:
    specs = ("XyntraEP:backend=cuda+bf16", "torch:mode=compile+bf16", "torch", "OpenVINO:bf16")
    found = {a.label: a.peers for a in setups_of(Case(model="bert-base"), [Contender.parse(spec) for spec in specs])}
    assert found["XyntraEP:backend=cuda+precision=bf16"] == ("torch:mode=compile+precision=bf16", "OpenVINO:precision=bf16")
    assert found["torch"] == () and found["CPUExecutionProvider"] == ()
