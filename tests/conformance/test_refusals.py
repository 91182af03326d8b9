"""What ONNX Runtime refuses we refuse, with the node's name; what it computes we compute. In sessions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnxruntime as ort
import pytest
from numpy.typing import NDArray

from tests.conformance.refusal_cases import CASES, Case
from tests.support.sessions import planned

pytestmark = [pytest.mark.native, pytest.mark.compiler("cc")]
Outcome = list[NDArray[Any]] | str


def outcome(session: ort.InferenceSession, feeds: Mapping[str, NDArray[Any]]) -> Outcome:
    try:
        return list(session.run(None, dict(feeds)))
    except Exception as error:  # ORT's classes of errors have no common base
        return str(error)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_refused_where_onnxruntime_refuses(case: Case) -> None:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    ours = planned(case.model)
    theirs = ort.InferenceSession(case.model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    for feeds in case.runs:
        sizes = {name: x.shape for name, x in feeds.items()}
        got, want = outcome(ours, feeds), outcome(theirs, feeds)
        if isinstance(want, str):
            assert isinstance(got, str), f"{sizes}: {got}, where ONNX Runtime says: {want}"
            assert "XyntraEP: " not in got or "the_" in got, f"{sizes}: no node is named: {got}"
            continue
        assert not isinstance(got, str), f"{sizes}: {got}, where ONNX Runtime computes {want}"
        for a, b in zip(got, want, strict=True):
            assert a.shape == b.shape and a.dtype == b.dtype, sizes
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5, err_msg=str(sizes))
