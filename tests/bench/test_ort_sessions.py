from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from bench.arms import Arm
from bench.contenders import Contender
from bench.errors import Unavailable
from bench.ort_sessions import plain_session
from bench.sessions import FixedShapes, factory_for
from zoo import model_path, zoo

MODEL = zoo["bert-base-tiny"]
FIXED = Arm(label="fixed", contender=Contender(provider="CPUExecutionProvider"), threads=1, specialised=True)


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
    arm = Arm(label="t2", contender=Contender(provider="CPUExecutionProvider"), threads=2)
    session, _ = factory_for(model_path(MODEL), arm, tmp_path).create()
    feeds = MODEL.feeds(1, 16, 0)
    session.run(feeds)
    before = time.process_time()
    time.sleep(0.02)
    assert time.process_time() - before < 0.01
