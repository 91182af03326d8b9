from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from onnx import parser

from tests.support.fake_cuda import FakeCuda
from xyntra_bench.contenders import Contender
from xyntra_bench.errors import Unavailable
from xyntra_bench.ort_sessions import choices, plain_session
from xyntra_bench.sessions import FixedShapes, factory_for, make_available
from xyntra_bench.setups import Setup
from xyntra_zoo import model_path, zoo

MODEL = zoo["bert-base-tiny"]
FIXED = Setup(label="fixed", contender=Contender(provider="CPUExecutionProvider"), threads=1, specialised=True)


def test_a_specialised_session_has_its_dims_fixed_by_name(tmp_path: Path) -> None:
    path, feeds = model_path(MODEL), MODEL.feeds(1, 16, 0)
    plain = plain_session(path)
    fixed = FixedShapes.of(plain.get_inputs(), feeds)
    assert dict(fixed.dims) == {"batch": 1, "sequence": 16} and fixed.shapes["input_ids"] == (1, 16)
    session, _ = factory_for(path, FIXED, tmp_path, fixed).create()
    (got,) = session.outputs(feeds, ["pooler_output"])
    np.testing.assert_allclose(got, plain.run(["pooler_output"], feeds)[0], atol=1e-6)
    with pytest.raises(Exception, match=r"(?i)invalid dimensions"):
        session.run(MODEL.feeds(1, 17, 0))


def test_a_dim_without_a_name_of_its_own_cannot_be_fixed(tmp_path: Path) -> None:
    x = np.zeros((2, 3), np.float32)
    nameless = FixedShapes.of([SimpleNamespace(name="x", shape=[None, 3])], {"x": x})
    shared = FixedShapes.of([SimpleNamespace(name="x", shape=["n", "n"])], {"x": x})
    for fixed in (nameless, shared):
        with pytest.raises(Unavailable, match=r"x has a dynamic dim that cannot be fixed by name"):
            factory_for(model_path(MODEL), FIXED, tmp_path, fixed).create()


def test_warnings_of_other_things_are_not_the_providers(tmp_path: Path) -> None:
    factory = factory_for(model_path(MODEL), FIXED, tmp_path, FixedShapes(shapes={}, dims={}))
    factory.create(watched=True)
    assert factory.notes == ()


def test_threads_leave_the_cores_to_the_session_whose_turn_it_is(tmp_path: Path) -> None:
    setup = Setup(label="t2", contender=Contender(provider="CPUExecutionProvider"), threads=2)
    session, _ = factory_for(model_path(MODEL), setup, tmp_path).create()
    feeds = MODEL.feeds(1, 16, 0)
    session.run(feeds)
    before = time.process_time()
    time.sleep(0.02)
    assert time.process_time() - before < 0.01


@pytest.mark.native
@pytest.mark.compiler("nvrtc")
def test_where_a_session_computes_is_what_it_says(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    """Beside a GPU, the CPU is what is measured unless something else is asked for."""
    FakeCuda(monkeypatch, tmp_path_factory.mktemp("cuda"))
    monkeypatch.setenv("XYNTRA_CUDA_DEVICES", "1")
    make_available("XyntraEP")
    path, feeds = tmp_path / "softmax.onnx", {"x": np.ones((2, 3), np.float32)}
    text = '<ir_version: 8, opset_import: ["" : 20]> g (float[N, 3] x) => (float[N, 3] y) { y = Softmax(x) }'
    path.write_bytes(parser.parse_model(text).SerializeToString())
    found = {}
    for spec in ("XyntraEP:claim=all", "XyntraEP:claim=all+backend=cuda", "XyntraEP:claim=all+backend=auto"):
        factory = factory_for(path, Setup(label=spec, contender=Contender.parse(spec), threads=1), tmp_path / "cache")
        session, _ = factory.create(watched=True)
        session.run(feeds)
        found[spec.rpartition("=")[2]] = (session.device(), session.device_ns(feeds, 10**9))
        assert any(note.startswith("backend=auto: ") for note in factory.notes) is spec.endswith("auto")
    assert found["all"] == ("", None)
    assert found["cuda"] == ("CUDA / Simulated GPU / sm_80 / driver 12.8", 250_000)
    model, of_model = model_path(MODEL), MODEL.feeds(1, 16, 0)
    session, _ = factory_for(model, FIXED, tmp_path, FixedShapes(shapes={}, dims={})).create()
    assert session.device() == "" and session.device_ns(of_model, 1) is None


def test_why_auto_is_where_it_is() -> None:
    rows = (("x works", "CUDA / x"), ("", ""), ("slow", ""))
    graphs = [SimpleNamespace(placement=why, device=device, measured=False) for why, device in rows]
    assert choices(graphs) == ("backend=auto: CUDA / x, because x works", "backend=auto: the CPU, because slow")
