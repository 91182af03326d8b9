"""OpenVINO through its own package, where that is installed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from xyntra_bench import openvino_sessions
from xyntra_bench.contenders import Contender
from xyntra_bench.errors import Unavailable
from xyntra_bench.measure import measure
from xyntra_bench.ort_sessions import plain_session
from xyntra_bench.plan import Budget, Case
from xyntra_bench.results import Accuracy, Status, Warn
from xyntra_bench.run import probe
from xyntra_bench.sessions import FixedShapes, factory_for, make_available
from xyntra_bench.setups import Setup
from xyntra_zoo import model_path, zoo

MODEL = zoo["bert-base-tiny"]


def setup_of(spec: str, **fields: Any) -> Setup:
    return Setup(label=spec, contender=Contender.parse(spec), threads=1, **fields)


def test_without_its_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openvino", None)
    openvino_sessions.core.cache_clear()
    try:
        with pytest.raises(Unavailable, match=r"OpenVINO: its package cannot be imported .*pip install 'xyntra-ep\[peers\]'"):
            make_available("OpenVINO")
    finally:
        openvino_sessions.core.cache_clear()


def test_a_precision_it_does_not_have_is_not_measured_as_another(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=r"OpenVINO: int8w is none of its inference precisions. it has fp32, bf16, fp16"):
        factory_for(tmp_path / "m.onnx", setup_of("OpenVINO:int8w"), tmp_path)


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ("OpenVINO:bf16+NUM_STREAMS=2", ""),
        ("OpenVINO:int8w", "OpenVINO: int8w is none of its inference precisions"),
        ("OpenVINO:NUM_STREAM=2", "OpenVINO: no property 'NUM_STREAM'. did you mean 'NUM_STREAMS'?"),
        ("OpenVINO:NUM_STREAMS=some", "OpenVINO: NUM_STREAMS=some is not valid. its runtime says: "),
    ],
)
def test_options_are_known_before_a_model_is_compiled(spec: str, reason: str) -> None:
    pytest.importorskip("openvino")
    found = probe(Contender.parse(spec))
    assert found.startswith(reason) and bool(found) is bool(reason) and "\n" not in found, found


def test_outputs_by_name_are_those_of_the_cpu_provider(case: Case, fast: Budget, tmp_path: Path) -> None:
    pytest.importorskip("openvino")
    result = measure(case, (Contender.parse("OpenVINO"), Contender.parse("OpenVINO:int8w")), fast, tmp_path, quick=False)
    fp32, none = result.contenders
    assert fp32.status is Status.OK, fp32.error
    assert fp32.precision == "fp32" and fp32.ratio is not None
    assert not {Warn.NO_ASSIGNMENT, Warn.OTHER_PRECISION} & {*fp32.warnings}
    assert fp32.check is not None and fp32.check.state is Accuracy.OK
    assert none.status is Status.UNAVAILABLE


def test_shapes_are_fixed_before_compiling(tmp_path: Path) -> None:
    pytest.importorskip("openvino")
    feeds = MODEL.feeds(2, 9, 0)
    path = model_path(MODEL)
    names = ["pooler_output", "last_hidden_state"]
    plain = plain_session(path)
    expected = plain.run(names, feeds)
    fixed = FixedShapes.of(plain.get_inputs(), feeds)
    session, took = factory_for(path, setup_of("OpenVINO", specialised=True), tmp_path, fixed).create()
    assert took > 0
    for got, wanted in zip(session.outputs(feeds, names), expected, strict=True):
        np.testing.assert_allclose(got, wanted, atol=2e-5)
    with pytest.raises(Exception, match=r"shape"):
        session.outputs(MODEL.feeds(2, 10, 0), names)
