"""Whose a quantised model's error is: the model by its definition, the same without rounding, and what `compare` says of both."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest

from tests.support.models.model_text import Array, normal, parse
from xyntra_ep.cli import main
from xyntra_ep.diagnostics.compare import Comparison, compare
from xyntra_ep.diagnostics.distance.drift import drift
from xyntra_ep.diagnostics.distance.quantisation import Separated, Shares, separated
from xyntra_ep.diagnostics.distance.unrounded import defined, quantises, unrounded
from xyntra_ep.diagnostics.sessions import open_session
from xyntra_ep.diagnostics.sizes import Sizes
from xyntra_ep.errors import UnsupportedError

U8, I8 = np.uint8, np.int8
RNG = np.random.default_rng(5)
W8 = RNG.integers(-100, 100, (16, 6)).astype(I8)
W4 = RNG.integers(-100, 100, (5, 4, 3, 3)).astype(I8)
X, IMAGE = normal(9, 16), normal(2, 4, 7, 7)
DYNAMIC = """(float[M,16] x) => (float[M,6] y) { q, s, z = DynamicQuantizeLinear (x)  i = MatMulInteger (q, w, z, wz)
    f = Cast <to = 1> (i)  t = Mul (s, sw)  y = Mul (f, t) }"""


def model_of(text: str, **constants: Array | np.generic) -> onnx.ModelProto:
    model = parse(text, **constants)
    model.opset_import.append(onnx.helper.make_opsetid("com.microsoft", 1))
    return model


def run(model: onnx.ModelProto, **feeds: Array) -> list[Array]:
    found: list[Array] = open_session(model.SerializeToString(), optimised=False).run(None, feeds)
    return found


def pair(scale: float) -> onnx.ModelProto:
    return model_of(
        """(float[M,16] x) => (float[M,6] y) { q = QuantizeLinear (x, s, z)  d = DequantizeLinear (q, s, z)
        v = DequantizeLinear <axis = 1> (w, sw)  y = MatMul (d, v) }""",
        s=np.float32(scale), z=U8(128), w=W8, sw=np.linspace(0.01, 0.02, 6, dtype=np.float32),
    )  # fmt: skip


def test_without_rounding_a_pair_is_nothing() -> None:
    model = pair(0.05)
    weights = W8 * np.linspace(0.01, 0.02, 6, dtype=np.float32)
    np.testing.assert_allclose(run(unrounded(model), x=X)[0], X @ weights, rtol=1e-4, atol=1e-5)
    assert np.abs(run(defined(model), x=X)[0] - X @ weights).max() > 1e-3  # rounding is seen


def test_without_rounding_a_pair_clips_as_before() -> None:
    scale = 0.004  # levels reach from -0.512 to 0.508
    weights = W8 * np.linspace(0.01, 0.02, 6, dtype=np.float32)
    clipped = np.clip(X, -128 * scale, 127 * scale)
    np.testing.assert_allclose(run(unrounded(pair(scale)), x=X)[0], clipped @ weights, rtol=1e-4, atol=1e-5)


def test_scales_of_channels() -> None:
    model = model_of(
        """(float[N,4,H,H] x) => (float[N,4,H,H] y) { q = QuantizeLinear <axis = 1> (x, s, z)
        y = DequantizeLinear <axis = 1> (q, s, z) }""",
        s=np.asarray([0.1, 0.2, 0.3, 0.4], np.float32), z=np.asarray([1, -2, 3, 0], I8),
    )  # fmt: skip
    np.testing.assert_allclose(run(unrounded(model), x=IMAGE)[0], IMAGE, rtol=1e-5, atol=1e-6)


def test_a_dynamic_product() -> None:
    model = model_of(DYNAMIC, w=W8, wz=I8(3), sw=np.float32(0.02))
    np.testing.assert_allclose(run(unrounded(model), x=X)[0], X @ ((W8.astype(np.float32) - 3) * 0.02), rtol=1e-4, atol=1e-4)
    # Exact as integers, whatever the processor's instructions do to sums of pairs.
    q, s, z = run(model_of("(float[M,16] x) => (uint8[M,16] q, float s, uint8 z) { q, s, z = DynamicQuantizeLinear (x) }"), x=X)
    sums = (q.astype(int) - int(z)) @ (W8.astype(int) - 3)
    np.testing.assert_array_equal(run(defined(model), x=X)[0], sums.astype(np.float32) * (s * np.float32(0.02)))


def test_products_and_convolutions_of_bytes() -> None:
    integers = model_of(
        "(uint8[N,4,7,7] x) => (int32[N,5,4,4] y) { y = ConvInteger <strides = [2, 2], pads = [1, 1, 1, 1]> (x, w, z) }",
        w=W4, z=U8(7),
    )  # fmt: skip
    x = RNG.integers(0, 256, (2, 4, 7, 7)).astype(U8)
    floats = model_of(
        "(float[N,4,7,7] x) => (float[N,5,4,4] y) { y = Conv <strides = [2, 2], pads = [1, 1, 1, 1]> (x, w) }",
        w=W4.astype(np.float32),
    )
    np.testing.assert_array_equal(run(defined(integers), x=x)[0], run(floats, x=x.astype(np.float32) - 7)[0].astype(np.int32))
    linear = model_of(
        """(uint8[N,4,7,7] x, uint8[M,16] a) => (uint8[] y, uint8[] p) {
        y = QLinearConv <pads = [1, 1, 1, 1]> (x, sx, zx, w, sw, zw, sy, zy, b)
        p = QLinearMatMul (a, sx, zx, v, sv, zv, sy, zy) }""",
        sx=np.float32(0.02), zx=U8(120), w=W4 // 8, sw=np.asarray([0.1, 0.2, 0.1, 0.2, 0.3], np.float32), zw=np.zeros(5, I8),
        sy=np.float32(0.4), zy=U8(128), b=np.asarray([1, -200, 300, 4, 5], np.int32), v=W8 // 8,
        sv=np.float32(0.1), zv=I8(0),
    )  # fmt: skip
    feeds = {"x": x, "a": RNG.integers(0, 256, (9, 16)).astype(U8)}
    for got, wanted in zip(run(defined(linear), **feeds), run(linear, **feeds), strict=True):
        apart = np.abs(got.astype(int) - wanted)
        assert apart.max() <= 1 and (apart > 0).mean() < 0.02 and len(np.unique(wanted)) > 20
    assert not unrounded(linear).graph.output  # all are integers


def test_what_is_not_known_how_to_write_down() -> None:
    inside = model_of(
        "(uint8[N] a) => (uint8[N] y) { y = com.microsoft.QLinearSigmoid (a, s, z, s, z) }", s=np.float32(0.1), z=U8(0)
    )
    with pytest.raises(UnsupportedError, match="QLinearSigmoid quantises inside"):
        defined(inside)
    rows = model_of(DYNAMIC.replace("(q, w, z, wz)", "(q, w, rz, wz)"), w=W8, wz=I8(0), rz=np.zeros(9, U8), sw=np.float32(1))
    with pytest.raises(UnsupportedError, match="zero point for each row"):
        defined(rows)
    found = separated(rows, {"x": X}, {}, {})
    assert not found.tensors and "zero point for each row" in found.unknown
    assert quantises(rows) and not quantises(model_of("(float[N] x) => (float[N] y) { y = Relu (x) }"))


def test_how_far_is_too_far() -> None:
    """Twice as far as ONNX Runtime, or as far as rounding is."""
    near = Shares(xyntra=0.02, ort=0.011, quantisation=None)
    assert near.bound(1e-5) == pytest.approx(0.022) and Shares(xyntra=1, ort=0, quantisation=0.4).bound(1e-5) == 0.4
    assert Shares(xyntra=1, ort=0, quantisation=None).bound(1e-5) == 1e-5
    assert Shares(xyntra=0.001, ort=0.1, quantisation=None).ort_deviates(1e-5) and not near.ort_deviates(1e-5)

    def compared(shares: Shares) -> Comparison:
        one = drift("y", np.asarray([1.02], np.float32), np.asarray([1.0], np.float32))
        return Comparison(
            outputs=(one,), tensors=(one,), max_drift=1e-5, claimed=1, total=1, nodes_total=1, nodes_claimed=1,
            sizes=Sizes(given={}, made_up={}), quantised=Separated(tensors={"y": shares}),
        )  # fmt: skip

    assert compared(near).ok and compared(near).first is None
    wrong = compared(Shares(xyntra=0.02, ort=0.002, quantisation=0.01))
    assert wrong.drifts and wrong.first is not None and "DRIFT" in str(wrong)
    deviates = compared(Shares(xyntra=0.001, ort=0.02, quantisation=0.01))
    assert deviates.ok and "ONNX Runtime deviates from the definition here" in str(deviates)


@pytest.mark.native
@pytest.mark.compiler("cc")
def test_a_quantised_model_is_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(pair(0.05), path := tmp_path / "pair.onnx")
    found = compare(path, options={"claim": "all"}, nodes=True)
    assert f"none of {len(found.tensors)} intermediate tensors drifts further than rounding" in str(found)
    assert "q" not in {d.name for d in found.tensors}  # the levels, which d stands for
    assert found.ok and found.quantised is not None and not found.quantised.unknown
    shares = found.quantised.tensors
    assert {"y", "d"} <= set(shares) and shares["d"].xyntra == 0 and (shares["y"].quantisation or 0) > 1e-4
    assert shares["y"].xyntra < 1e-5
    assert main(["compare", str(path), "--claim", "all"]) == 0
    out = capsys.readouterr().out
    assert "from what the operators define" in out and "rounding" in out
    onnx.save(model_of("(float[N] x) => (float[N] y) { y = Relu (x) }"), plain := tmp_path / "plain.onnx")
    assert compare(plain, options={"claim": "all"}).quantised is None


@pytest.mark.native
@pytest.mark.compiler("cc")
def test_a_file_in_another_format_is_compared_without(tmp_path: Path) -> None:
    onnx.save(pair(0.05), source := tmp_path / "pair.onnx")
    settings = ort.SessionOptions()
    settings.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    settings.optimized_model_filepath = str(path := tmp_path / "pair.ort")
    settings.add_session_config_entry("session.save_model_format", "ORT")
    ort.InferenceSession(source, settings, providers=["CPUExecutionProvider"])
    assert compare(path, options={"claim": "all"}).quantised is None


def test_a_model_that_does_not_run_in_floats_is_told() -> None:
    found = separated(pair(0.05), {"x": X[:, :3]}, {}, {})
    assert not found.tensors and found.unknown.startswith("a quantised model written in floats: ")
