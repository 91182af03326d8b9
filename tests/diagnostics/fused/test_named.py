"""Groups that are named operators, in every opset that has them, and groups that nearly are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import onnx
import pytest

from tests.diagnostics.fused_support import build, drift, feeds_of, fused, run
from xyntra_custom_ops import CustomOp
from xyntra_ep.diagnostics.fused.bodies import CUSTOM_OPS, named_body
from xyntra_ep.registry import Registry

MAX_DRIFT = 2e-6  # the same float32 formula, at most one division turned into a product


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A graph that is one call of ``name`` when the opset is between ``since`` and ``until``."""

    name: str
    text: str
    weights: Mapping[str, tuple[int, ...]]
    since: int = 13
    until: int = 22


GELU = """r = Constant<value_float = 1.41421354>() one = Constant<value_float = 1.0>() half = Constant<value_float = 0.5>()
 a1 = Div(a, r) a2 = Erf(a1) a3 = Add(one, a2) a4 = Mul(a, a3) y = Mul(a4, half)"""
GELU_TANH = """half = Constant<value_float = 0.5>() three = Constant<value_float = 3.0>() one = Constant<value_float = 1.0>()
 c = Constant<value_float = 0.044715>() r = Constant<value_float = 0.79788458>()
 a1 = Mul(a, half) a2 = Pow(a, three) a3 = Mul(a2, c) a4 = Add(a, a3) a5 = Mul(a4, r) a6 = Tanh(a5) a7 = Add(a6, one)
 y = Mul(a1, a7)"""
LAYER_NORM = """two = Constant<value_float = 2.0>() eps = Constant<value_float = 1e-6>()
 m = ReduceMean<axes = [-1]>(s) d = Sub(s, m) d2 = Pow(d, two) v = ReduceMean<axes = [-1]>(d2)
 v1 = Add(v, eps) v2 = Sqrt(v1) n = Div(d, v2) n1 = Mul(n, g) y = Add(n1, h)"""
RMS_NORM = """eps = Constant<value_float = 1e-6>() axes = Constant<value_ints = [-1]>()
 p = Mul(x, x) m = ReduceMean(p, axes) m1 = Add(m, eps) m2 = Sqrt(m1) n = Div(x, m2) y = Mul(n, g)"""
X = "g (float[b, s, 16] x) => (float[b, s, {n}] y)"
X_R = "g (float[b, s, 16] x, float[b, s, {n}] r) => (float[b, s, {n}] y)"
HEADS = "g (float[b, 2, s, 8] q, float[b, 2, t, 8] k, float[b, 2, t, 8] v, float[b, 1, 1, t] mask) => (float[b, 2, s, 8] y)"
IMAGE = "g (float[b, 4, 9, 9] x{r}) => (float[b, 6, 5, 5] y)"
CONV = "c = Conv<strides = [2, 2], pads = [1, 1, 1, 1], group = 2>(x, w, bias)"
MLP = {"w": (16, 24), "bias": (24,)}
KERNEL = {"w": (6, 2, 3, 3), "bias": (6,)}
NORM = {"g": (16,), "h": (16,)}

CASES = [
    Case(name="GemmBiasGelu", text=X.format(n=24) + "{p = MatMul(x, w) a = Add(bias, p) " + GELU + "}", weights=MLP),
    Case(name="GemmBiasGelu", text=X.format(n=24) + "{p = MatMul(x, w) a = Add(p, bias) y = Gelu(a)}", weights=MLP, since=20),
    Case(
        name="GemmBiasGelu",
        text="g (float[n, 16] x) => (float[n, 24] y) {a = Gemm(x, w, bias) " + GELU + "}",
        weights=MLP,
    ),
    Case(name="GemmBiasResidual", text=X_R.format(n=24) + "{p = MatMul(x, w) a = Add(p, bias) y = Add(a, r)}", weights=MLP),
    Case(name="GemmBiasResidual", text=X_R.format(n=24) + "{p = MatMul(x, w) a = Add(r, p) y = Add(bias, a)}", weights=MLP),
    Case(name="ConvBiasRelu", text=IMAGE.format(r="") + "{" + CONV + " y = Relu(c)}", weights=KERNEL),
    Case(
        name="ConvBiasResidualRelu",
        text=IMAGE.format(r=", float[b, 6, 5, 5] r") + "{" + CONV + " a = Add(r, c) y = Relu(a)}",
        weights=KERNEL,
    ),
    Case(
        name="Attention",
        text=HEADS
        + """{kt = Transpose<perm = [0, 1, 3, 2]>(k) f = Constant<value_float = 3.0>()
            p = MatMul(q, kt) p1 = Div(p, f) p2 = Add(mask, p1) a = Softmax<axis = -1>(p2) y = MatMul(a, v)}""",
        weights={},
    ),
    Case(
        name="Attention",
        text=HEADS.replace("[b, 2, t, 8] k", "[b, 2, 8, t] k")
        + "{p = MatMul(q, k) p2 = Add(p, mask) a = Softmax<axis = -1>(p2) y = MatMul(a, v)}",
        weights={},
    ),
    Case(name="LayerNormResidual", text=X_R.format(n=16) + "{s = Add(x, r) " + LAYER_NORM + "}", weights=NORM, until=17),
    Case(
        name="LayerNormResidual",
        text=X_R.format(n=16) + "{s = Add(x, r) y = LayerNormalization<epsilon = 0.5>(s, g, h)}",
        weights=NORM,
        since=17,
    ),
    Case(name="RmsNorm", text=X.format(n=16) + "{" + RMS_NORM + "}", weights={"g": (16,)}, since=18),
    Case(
        name="RmsNorm",
        text=X.format(n=16) + "{" + RMS_NORM.replace("ReduceMean(p, axes)", "ReduceMean<axes = [-1]>(p)") + "}",
        weights={"g": (16,)},
        until=17,
    ),
    Case(name="GeluTanh", text=X.format(n=16) + "{a = Identity(x) " + GELU_TANH + "}", weights={}),
    Case(name="Silu", text=X.format(n=16) + "{h = Sigmoid(x) y = Mul(h, x)}", weights={}),
]
OPSETS = (13, 15, 17, 18, 20, 22)  # either side of each that changed what the bodies are written in
SIZES = {"b": 2, "s": 5, "t": 7, "n": 9}


@pytest.mark.parametrize(
    ("case", "opset"),
    [(case, opset) for case in CASES for opset in OPSETS if case.since <= opset <= case.until],
    ids=lambda value: value.name if isinstance(value, Case) else str(value),
)
def test_a_group_that_is_a_named_operator(case: Case, opset: int, tmp_path: Path) -> None:
    model = build(case.text, case.weights, opset=opset)
    source, target, summary = fused(model, tmp_path)
    assert summary.functions == {case.name: 1}
    written = onnx.load(target)
    assert [o.version for o in written.opset_import if not o.domain] == [opset]
    feeds = feeds_of(model, SIZES)
    assert drift(run(target, feeds), run(source, feeds)) <= MAX_DRIFT


def test_every_named_operator_is_found() -> None:
    assert {case.name for case in CASES} == set(Registry[CustomOp]("xyntra_custom_ops", "CUSTOM_OPS").names())


@pytest.mark.parametrize("name", CUSTOM_OPS.names())
def test_a_recent_opset_gets_the_canonical_body(name: str) -> None:
    assert named_body(name, 20, 10) == CUSTOM_OPS[name].function.to_function_proto()


NEARLY = {
    "gelu of something else": X.format(n=24) + "{p = MatMul(x, w) a0 = Add(bias, p) a = Mul(a0, a0) " + GELU + "}",
    "the product's other operand": X.format(n=24) + "{p = MatMul(x, w) p1 = Sub(p, bias) a = Relu(p1) " + GELU + "}",
    "a residual that is scaled": X_R.format(n=24)
    + "{p = MatMul(x, w) a = Add(p, bias) f = Constant<value_float = 2.0>() r2 = Mul(r, f) y = Add(a, r2)}",
    "a view before the residual": "g (float[6, 16] x, float[2, 3, 24] r) => (float[2, 3, 24] y)"
    "{a = Gemm(x, w, bias) shape = Constant<value_ints = [2, 3, 24]>() p = Reshape(a, shape) y = Add(p, r)}",
    "a residual that is broadcast": X_R.format(n=24).replace("[b, s, 24] r", "[b, 1, 24] r")
    + "{p = MatMul(x, w) a = Add(p, bias) y = Add(a, r)}",
}


@pytest.mark.parametrize("text", NEARLY.values(), ids=NEARLY)
def test_what_is_nearly_a_named_operator_is_outlined(text: str, tmp_path: Path) -> None:
    model = build(text, MLP, opset=17)
    source, target, summary = fused(model, tmp_path)
    [name] = summary.functions
    assert name.startswith("Gemm_")
    feeds = feeds_of(model, SIZES)
    assert drift(run(target, feeds), run(source, feeds)) <= MAX_DRIFT


def test_the_sum_before_a_norm_that_others_read_stays_visible(tmp_path: Path) -> None:
    text = X_R.format(n=16).replace("y)", "y, float[b, s, 16] z)")
    model = build(text + "{s = Add(x, r) y = LayerNormalization(s, g, h) z = Relu(s)}", NORM, opset=17)
    source, target, _ = fused(model, tmp_path)
    feeds = feeds_of(model, SIZES)
    assert drift(run(target, feeds), run(source, feeds)) <= MAX_DRIFT


@pytest.mark.native
@pytest.mark.compiler("cc")
def test_the_provider_claims_named_operators_whole(tmp_path: Path) -> None:
    from xyntra_ep.diagnostics.explain import explain
    from xyntra_ep.diagnostics.sessions import open_session

    case = next(case for case in CASES if case.name == "LayerNormResidual")
    model = build(case.text, case.weights, opset=17)
    source, target, _ = fused(model, tmp_path)
    session = open_session(target, {"claim": "all"})
    graph = explain(session).graphs[-1]
    assert not graph.declined
    assert Counter(op_type for op_type, _ in graph.nodes.values()) == {"LayerNormResidual": 1}
    feeds = feeds_of(model, SIZES)
    assert drift(session.run(None, feeds), run(source, feeds)) <= MAX_DRIFT
