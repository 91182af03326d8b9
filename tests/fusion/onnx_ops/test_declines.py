"""What cannot be done right is declined, with a reason that says what."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.models.graph_from_model import trace_model
from tests.support.models.onnx_text import model_of
from xyntra_ep.errors import UnsupportedError

CASES = [
    ("float[4] x, int64[1] s", "y = Reshape(x, s)", "the shape of Reshape depends on data"),
    ("float[4] x, int64[1] s", "y = ReduceSum(x, s)", "axes depends on data"),
    ("double[4] x", "y = Relu(x)", "dtype"),
    ("float[4] x", "y = Cast <to = 11> (x)", "Cast to element type 11"),
    ("int64[4] x", "y = Div(x, zero)", "Integer division by zero"),
    ("int64[4] x", "y = Mod(x, zero)", "Integer division by zero"),
    ("float[4] x", "y = NonZero(x)", "unsupported"),
    ("float[4] x", "y = Gather(x, nine)", "indices element out of data bounds"),
    ("float[1, 1, 4, 4] x", "y, i = MaxPool <kernel_shape = [2, 2]> (x)", "MaxPool with indices"),
    (
        "float[1, 1, 4, 4] x", 'y = AveragePool <kernel_shape = [2, 1], strides = [1, 3], auto_pad = "SAME_UPPER"> (x)',
        "AveragePool of kernels shorter than their strides with auto_pad",
    ),
    ("float[1, 1, N, M] x", "y = Resize(x, none, half)", "Resize of a dynamic axis by a fraction"),
    ("float[1, 1, 4, 4] x", "y = Resize <antialias = 1, mode = \"linear\"> (x, none, half)", "antialias = 1"),
    ("float[4, 4] x", "y = Einsum <equation = \"ii->i\"> (x)", "Einsum over a diagonal"),
    ("float[4, 4] x", "y = Einsum <equation = \"...i->...\"> (x)", "Einsum with an ellipsis"),
    ("float[N] x", "y = Squeeze(x)", "Squeeze without axes of a dynamic shape"),
    ("bool[4] x", "y = ReduceSum(x)", "dtype bool"),
]  # fmt: skip


@pytest.mark.parametrize(("inputs", "call", "reason"), CASES)
def test_reason(inputs: str, call: str, reason: str) -> None:
    constants = {
        "zero": np.asarray([0]),
        "nine": np.asarray([9]),
        "none": np.asarray([], np.float32),
        "half": np.asarray([1, 1, 0.5, 0.5], np.float32),
    }
    model = model_of(f"g ({inputs}) => (float[a] y) {{ {call} }}", constants)
    with pytest.raises(UnsupportedError) as error:
        trace_model(model)
    assert reason in error.value.what
