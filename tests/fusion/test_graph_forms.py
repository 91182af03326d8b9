"""Forms in which exporters write attention, normalisation and padding: what is left of each, and that it computes the same."""

from __future__ import annotations

from collections import Counter

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx.reference import ReferenceEvaluator

from tests.support.models.graph_from_model import interpret_model, trace_model
from xyntra_ep.fusion.schedule import build_program

# PyTorch's scaled_dot_product_attention: half of the scale on q and half on k^T, a guard against rows that are masked whole.
SPLIT_SCALE = """
<ir_version: 9, opset_import: ["" : 17]>
sdpa (float[b, 2, s, 4] q, float[b, 2, t, 4] k, float[b, 2, t, 4] v, float[b, 1, s, t] m) => (float[b, s, h] y)
{
    half = Constant <value = float {0.7071}> ()
    zero = Constant <value = float {0.0}> ()
    whole = Constant <value = int64[3] {0, -1, 8}> ()
    qs = Mul (q, half)
    kt = Transpose <perm = [0, 1, 3, 2]> (k)
    ks = Mul (kt, half)
    scores = MatMul (qs, ks)
    masked = Add (scores, m)
    p = Softmax <axis = -1> (masked)
    bad = IsNaN (p)
    safe = Where (bad, zero, p)
    o = MatMul (safe, v)
    side = Transpose <perm = [0, 2, 1, 3]> (o)
    y = Reshape (side, whole)
}
"""

# The bias of the first layer is read by the second one too.
SHARED_BIAS = """
<ir_version: 9, opset_import: ["" : 17]>
shared (float[b, 2, s, 4] q, float[b, 2, 4, s] k, float[b, 2, s, 4] v, float[2, s, s] table) => (float[b, 2, s, 4] y)
{
    ones = Constant <value = int64[4] {1, 1, 1, 1}> ()
    two = Constant <value = float {2.0}> ()
    scaled = Mul (table, two)
    first = MatMul (q, k)
    bias = Expand (scaled, ones)
    a = Add (first, bias)
    p = Softmax <axis = -1> (a)
    x = MatMul (p, v)
    second = MatMul (x, k)
    c = Add (second, bias)
    r = Softmax <axis = -1> (c)
    y = MatMul (r, v)
}
"""

# k^T by way of [b*h, s, d], as PyTorch's batched product has it.
JOINED_HEADS = """
<ir_version: 9, opset_import: ["" : 17]>
joined (float[b, s, 8] x, float[b, 2, s, 4] q) => (float[b, 2, s, u] y)
{
    heads = Constant <value = int64[4] {0, -1, 2, 4}> ()
    last = Constant <value = int64[1] {4}> ()
    minus = Constant <value = int64[1] {-1}> ()
    split = Reshape (x, heads)
    k = Transpose <perm = [0, 2, 1, 3]> (split)
    shape = Shape (k)
    b = Shape <start = 0, end = 2> (k)
    rows = Shape <start = 2, end = 3> (k)
    flat = Concat <axis = 0> (minus, rows, last)
    k3 = Reshape (k, flat)
    kt3 = Transpose <perm = [0, 2, 1]> (k3)
    back = Concat <axis = 0> (b, last, rows)
    kt = Reshape (kt3, back)
    y = MatMul (q, kt)
}
"""

# LayerNorm over channels, written out in a layout where they are not the last axis.
CHANNEL_NORM = """
<ir_version: 9, opset_import: ["" : 17]>
norm (float[b, 6, s] x, float[6, 1] g) => (float[b, s, 6] y)
{
    two = Constant <value = float {2.0}> ()
    eps = Constant <value = float {0.001}> ()
    mean = ReduceMean <axes = [1], keepdims = 1> (x)
    d = Sub (x, mean)
    dd = Pow (d, two)
    var = ReduceMean <axes = [1], keepdims = 1> (dd)
    ve = Add (var, eps)
    sd = Sqrt (ve)
    n = Div (d, sd)
    out = Mul (n, g)
    y = Transpose <perm = [0, 2, 1]> (out)
}
"""

PADDED = """
<ir_version: 9, opset_import: ["" : 17]>
padded (float[b, 2, h, w] x, float[3, 2, 3, 3] k) => (float[b, 3, u, z] y)
{
    pads = Constant <value = int64[8] {0, 0, 0, 1, 0, 0, 1, 2}> ()
    p = Pad (x, pads)
    y = Conv <strides = [2, 2], kernel_shape = [3, 3]> (p, k)
}
"""

SIZES = {"b": 2, "s": 5, "t": 5, "h": 6, "w": 7}


@pytest.mark.parametrize(
    ("text", "due"),
    [
        pytest.param(SPLIT_SCALE, {"attention": 1}, id="split scale and NaN guard"),
        pytest.param(SHARED_BIAS, {"attention": 2, "pointwise": 1, "copy": 2}, id="shared bias"),
        pytest.param(JOINED_HEADS, {"gemm": 1}, id="joined heads"),
        pytest.param(CHANNEL_NORM, {"rows": 1}, id="norm over channels"),
        pytest.param(PADDED, {"pointwise": 1, "conv": 1, "copy": 1}, id="padded convolution"),
    ],
)
def test_what_is_left(text: str, due: dict[str, int]) -> None:
    model = onnx.parser.parse_model(text)
    graph, context = trace_model(model)
    inputs, _ = graph.boundary([n.id for n in graph.nodes])
    program = build_program(context, inputs, [o.name for o in model.graph.output])
    assert Counter(op.label for op in program.ops) == due

    rng = np.random.default_rng(0)
    feeds = {
        i.name: rng.standard_normal([d.dim_value or SIZES[d.dim_param] for d in i.type.tensor_type.shape.dim], dtype=np.float32)
        for i in model.graph.input
    }
    if "m" in feeds:
        feeds["m"][1, 0, 2] = -np.inf  # a row that is masked whole
    with np.errstate(invalid="ignore"):  # of -inf - -inf
        got, wanted = interpret_model(model, feeds), ReferenceEvaluator(model).run(None, feeds)
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
