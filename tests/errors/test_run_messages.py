"""What a user reads after a run with feeds that do not fit together: the node, by its name, the sizes that disagree, and that the
session can go on."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime as ort
import pytest

from tests.support.models.model_text import parse
from tests.support.sessions import planned

pytestmark = [pytest.mark.native, pytest.mark.compiler("cc")]


def ones(*shape: int) -> Any:
    return np.ones(shape, np.float32)


TWO = "(float[N,M] a, float[P,Q] b) => (float[] y) { t = Exp(a) y = "
CASES = [
    ("Concat<axis=0>(t, b) }", ones(2, 3), ones(2, 4), "Concat(/Concat_1): shapes differ: 4 and 3"),
    ("MatMul(t, b) }", ones(2, 3), ones(4, 5), "MatMul(/MatMul_1): inner dimensions differ: 3 and 4"),
    ("Gemm(t, b) }", ones(2, 3), ones(4, 5), "Gemm(/Gemm_1): inner dimensions differ: 3 and 4"),
    ("Add(t, b) }", ones(2, 3), ones(2, 4), "Add(/Add_1): cannot broadcast: axis 1 has incompatible sizes: 3 and 4"),
]


@pytest.mark.parametrize(("end", "a", "b", "message"), CASES, ids=[case[0].split("(")[0] for case in CASES])
def test_feeds_that_do_not_fit_together(end: str, a: Any, b: Any, message: str) -> None:
    model = parse(TWO + end)
    for number, node in enumerate(model.graph.node):
        node.name = f"/{node.op_type}_{number}"
    session = planned(model)
    assert session.get_providers()[0] == "XyntraEP"
    with pytest.raises(ort.capi.onnxruntime_pybind11_state.InvalidArgument) as caught:
        session.run(None, {"a": a, "b": b})
    said = str(caught.value).split("Status Message: ")[1]
    x, y = (str(list(shape)).replace(" ", "") for shape in (a.shape, b.shape))
    assert said == f"XyntraEP: {message} (a {x}, b {y}). the session can go on"
