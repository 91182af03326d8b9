"""Where fusion changes NaN and infinity, as docs/precision.md has it, and that ``fp32_strict`` leaves the rest as it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pytest

from tests.support.models.model_text import Array, normal, parse
from tests.support.models.model_text import cpu as run_cpu
from tests.support.ort_version import newer_ort
from tests.support.sessions import planned
from xyntra_ep.diagnostics.explain import explain

pytestmark = [pytest.mark.native, pytest.mark.compiler("cc"), newer_ort]
VALUES = [pytest.param(v, id=str(v)) for v in (np.nan, np.inf, -np.inf)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fused:
    """A model, and the input (its shape, and the place in it) that has one special value."""

    name: str
    text: str
    feeds: Mapping[str, tuple[int, ...]]
    at: tuple[str, tuple[int, ...]]
    constants: Mapping[str, Array]
    opset: int = 20


_IMAGE = {"x": (1, 16, 32, 32)}
_PIXEL = ("x", (0, 3, 7, 9))
_ROW = ("x", (3, 5))
_CONV = "(float[N,16,32,32] x) => (float[] y) {{ t = Conv <pads = [1,1,1,1]> (x, w, b) y = {} }}"
_LINEAR = "(float[M,64] x) => (float[] y) {{ t = MatMul(x, w) u = Add(t, b) y = {} }}"
_WEIGHTS = {"w": normal(32, 16, 3, 3), "b": normal(32)}
_DENSE = {"w": normal(64, 96), "b": normal(96)}
_HEADS = {name: (1, 2, 48, 16) for name in "qkv"}
_HIDDEN = (0, 0, 47, 3)  # of the last key, which only the last query may see

WINOGRAD = [
    Fused(name=act, text=_CONV.format(act), feeds=_IMAGE, at=_PIXEL, constants=_WEIGHTS)
    for act in ("Identity(t)", "Relu(t)", "Sigmoid(t)")
]
MASKED = np.where(np.tril(np.ones((48, 48), np.bool_)), 0, -np.inf).astype(np.float32)
SAME = [
    *(
        Fused(name=f"dense {a}", text=_LINEAR.format(a), feeds={"x": (20, 64)}, at=_ROW, constants=_DENSE)
        for a in ("Gelu(u)", "Softmax(u)", "Relu(u)")
    ),
    Fused(
        name="normalised sum",
        text="(float[M,64] x, float[M,64] r) => (float[] y) { t = Add(x, r) y = LayerNormalization(t, g, b) }",
        feeds={"x": (20, 64), "r": (20, 64)},
        at=_ROW,
        constants={"g": normal(64), "b": normal(64, seed=1)},
    ),
    Fused(
        name="gelu by erf",
        text="(float[M,64] x) => (float[] y) { a = Div(x, c) e = Erf(a) f = Add(e, o) m = Mul(x, f) y = Mul(m, h) }",
        feeds={"x": (20, 64)},
        at=_ROW,
        constants={"c": np.array(2**0.5, np.float32), "o": np.array(1, np.float32), "h": np.array(0.5, np.float32)},
    ),
    Fused(
        name="softmax by steps",
        text="(float[M,64] x) => (float[] y) { m = ReduceMax(x, a) s = Sub(x, m) e = Exp(s) t = ReduceSum(e, a) y = Div(e, t) }",
        feeds={"x": (20, 64)},
        at=_ROW,
        constants={"a": np.array([-1])},
    ),
    *(
        Fused(
            name=f"attention with a mask, {which}",
            text="(float[1,2,S,16] q, float[1,2,S,16] k, float[1,2,S,16] v) => (float[] y)"
            " { t = Transpose <perm = [0,1,3,2]> (k) s = MatMul(q, t) a = Add(s, m) p = Softmax(a) y = MatMul(p, v) }",
            feeds=_HEADS,
            at=(which, _HIDDEN),
            constants={"m": MASKED},
        )
        for which in "qk"
    ),
]


def _classes(case: Fused, value: float, strict: bool, precision: str = "fp32") -> tuple[Array, Array]:
    """Which of NaN, the infinities and numbers the results are: ours, ONNX Runtime's."""
    model = parse(case.text, case.opset, **case.constants)
    feeds = {name: normal(*shape, seed=i) for i, (name, shape) in enumerate(case.feeds.items())}
    name, at = case.at
    feeds[name][at] = value
    session = planned(model, {"fp32_strict": str(int(strict)), "precision": precision})
    assert explain(session).claimed and not [row for graph in explain(session).graphs for row in graph.declined]
    [ours], [theirs] = session.run(None, feeds), run_cpu(model, feeds)
    with np.errstate(all="ignore"):
        kind = [np.where(np.isfinite(y), 0, np.where(np.isnan(y), 2, np.sign(y))) for y in (np.asarray(ours), theirs)]
    return kind[0], kind[1]


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("case", SAME, ids=lambda c: c.name)
def test_fusion_changes_nothing(case: Fused, value: float) -> None:
    for strict in (False, True):
        np.testing.assert_array_equal(*_classes(case, value, strict))


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("case", WINOGRAD, ids=lambda c: c.name)
def test_strict_convolutions_spread_nothing(case: Fused, value: float) -> None:
    np.testing.assert_array_equal(*_classes(case, value, strict=True))


@pytest.mark.parametrize(
    "case", [case for case in SAME if "dense" in case.name or "attention" in case.name], ids=lambda c: c.name
)
def test_narrow_operands_change_nothing(case: Fused) -> None:
    """Where the machine has them; elsewhere the session computes in fp32."""
    for value in (np.nan, np.inf, -np.inf):
        np.testing.assert_array_equal(*_classes(case, value, strict=True, precision="bf16"))


_ATTENTION = "(float[1,2,48,16] q, float[1,2,48,16] k, float[1,2,48,16] v) => (float[] y) {{ {} }}"
_BY_STEPS = "t = Transpose <perm = [0,1,3,2]> (k) s = MatMul(q, t) a = Where(m, s, low) p = Softmax(a) y = MatMul(p, v)"
_LOWER = np.tril(np.ones((48, 48), np.bool_))


def _causal(form: str, which: str) -> Fused:
    """Attention whose last key has a special value: a key that only the last query sees."""
    constants = {"m": _LOWER, "low": np.array(-np.inf, np.float32)} if form == "steps" else {"m": _LOWER}
    text = {"operator": "y = Attention <is_causal = 1> (q, k, v)", "booleans": "y = Attention (q, k, v, m)", "steps": _BY_STEPS}[
        form
    ]
    used = {} if form == "operator" else constants
    return Fused(name=form, text=_ATTENTION.format(text), feeds=_HEADS, at=(which, _HIDDEN), constants=used, opset=23)


@pytest.mark.parametrize(
    ("form", "which"), [(f, w) for f in ("operator", "booleans", "steps") for w in "kv" if (f, w) != ("steps", "k")]
)
def test_attention_does_not_look_at_hidden_keys(form: str, which: str) -> None:
    """Not at whole blocks of them. What ours shows, ONNX Runtime's shows too."""
    ours, theirs = _classes(_causal(form, which), np.nan, strict=False)
    assert not ((ours != 0) & (theirs == 0)).any()
    assert np.count_nonzero(ours) < np.count_nonzero(theirs)
    assert ours[0, 0, 47].any() and theirs[0, 0, 0].any()  # where the key is seen, and where it is hidden


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("which", ["k", "v"])
@pytest.mark.parametrize("form", ["operator", "booleans", "steps"])
def test_strict_attention_looks_at_all_keys(form: str, which: str, value: float) -> None:
    for precision in ("fp32", "bf16"):
        ours, theirs = _classes(_causal(form, which), value, strict=True, precision=precision)
        np.testing.assert_array_equal(ours, theirs)
