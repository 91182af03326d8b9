"""Elementwise operators where node tests do not look: special values, every way to broadcast, half precision."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.support.models.graph_from_model import interpret_model
from tests.support.models.onnx_text import assert_same, model_of, run_cpu
from tests.support.ort_version import newer_ort

SPECIAL = np.asarray(
    [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 6.0, -6.0, 88.0, -88.0, 1e-30, -1e-30, 3e38],
    np.float32,
)
UNARY = [
    "Relu(x)", "Abs(x)", "Neg(x)", "Sign(x)", "Floor(x)", "Ceil(x)", "Round(x)", "Sqrt(x)", "Exp(x)", "Log(x)", "Erf(x)",
    "Sigmoid(x)", "Tanh(x)", "Softplus(x)", "Softsign(x)", "HardSwish(x)", "HardSigmoid(x)", "Elu(x)", "Selu(x)", "Celu(x)",
    "LeakyRelu(x)", "ThresholdedRelu(x)", "Shrink(x)", "Reciprocal(x)", "Gelu(x)", "Mish(x)", "IsNaN(x)", "IsInf(x)",
    "IsInf <detect_negative = 0> (x)", "IsInf <detect_positive = 0> (x)", "Clip(x, low, high)", "Clip(x, high, low)",
    "PRelu(x, low)", "Cast <to = 9> (x)", "Not(b)", "Where(b, x, low)", "Max(x, low)", "Min(x, low)", "Pow(x, high)",
    "Identity(x)",
]  # fmt: skip


WRONG_IN_OLDER = ("Erf(x)", "PRelu(x, low)")  # of NaN, and of infinities


@pytest.mark.parametrize("call", [pytest.param(c, marks=[newer_ort] if c in WRONG_IN_OLDER else []) for c in UNARY])
def test_special_values(call: str) -> None:
    kind = "bool" if call.startswith(("Is", "Not", "Cast")) else "float"
    model = model_of(
        f"g (float[N] x, bool[N] b) => ({kind}[N] y) {{ y = {call} }}",
        {"low": np.asarray(-2, np.float32), "high": np.asarray(3, np.float32)},
    )
    feeds = {"x": SPECIAL, "b": np.arange(len(SPECIAL)) % 2 == 0}
    (want,) = run_cpu(model, feeds)
    with np.errstate(all="ignore"):
        (got,) = interpret_model(model, feeds)
    # element by element: the largest value must not hide the others
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-7)


SHAPES = ["", "1", "3", "1, 3", "2, 1", "2, 3", "4, 1, 3", "4, 2, 1", "1, 1, 1", "4, 2, 3"]


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("a", SHAPES)
def test_every_way_to_broadcast(a: str, dynamic: bool) -> None:
    """With sizes that are not known, every axis may turn out to be 1."""
    for b in SHAPES:
        left, right = ([int(n) for n in s.split(",") if n] for s in (a, b))
        if any(m != n and 1 not in (m, n) for m, n in zip(left[::-1], right[::-1], strict=False)):
            continue
        declared = [
            ", ".join(f"{name}{i}" for i in range(len(s))) if dynamic else ", ".join(map(str, s))
            for name, s in (("A", left), ("B", right))
        ]
        rank = max(len(left), len(right))
        result = ", ".join(f"C{i}" for i in range(rank))
        body = f"g (float[{declared[0]}] x, float[{declared[1]}] y) => (float[{result}] z) {{ s = Add(x, y) z = Mul(s, y) }}"
        feeds = {
            "x": np.arange(np.prod(left, dtype=int), dtype=np.float32).reshape(left),
            "y": np.arange(1, np.prod(right, dtype=int) + 1, dtype=np.float32).reshape(right),
        }
        assert_same(model_of(body.replace("[]", "")), feeds)


@pytest.mark.parametrize(
    "body",
    [
        "a = Add(x, x) b = Mul(a, w) y = Tanh(b)",
        "m = ReduceMean <keepdims = 1> (x, last) d = Sub(x, m) y = Mul(d, d)",
        "y = Softmax(x)",
        "y = LayerNormalization(x, w)",
        "p = MatMul(x, sq) y = Add(p, w)",
        "c = Cast <to = 1> (x) s = Sigmoid(c) y = Cast <to = 10> (s)",
    ],
)
def test_half_precision_rounds_where_ort_does(body: str) -> None:
    rng = np.random.default_rng(1)
    constants = {
        "w": rng.standard_normal(8).astype(np.float16),
        "sq": rng.standard_normal((8, 8)).astype(np.float16),
        "last": np.asarray([-1]),
    }
    model = model_of(f"g (float16[N, 8] x) => (float16[N, 8] y) {{ {body} }}", constants)
    assert_same(model, {"x": rng.standard_normal((5, 8)).astype(np.float16)})


@pytest.mark.parametrize(("source", "target"), list(itertools.product([1, 2, 3, 6, 7, 9, 10], repeat=2)))
def test_casts(source: int, target: int) -> None:
    """Every pair of element types that we store."""
    names = {1: "float", 2: "uint8", 3: "int8", 6: "int32", 7: "int64", 9: "bool", 10: "float16"}
    types = {1: np.float32, 2: np.uint8, 3: np.int8, 6: np.int32, 7: np.int64, 9: np.bool_, 10: np.float16}
    floats = source in (1, 10)
    values = [0, 1, 2.75, 100, 0.5] if floats else [0, 1, 2, 100, 127]
    if source in (6, 7):
        values += [-1, 300, 70000]
    body = f"g ({names[source]}[N] x) => ({names[target]}[N] y) {{ y = Cast <to = {target}> (x) }}"
    assert_same(model_of(body), {"x": np.asarray(values).astype(types[source])})
