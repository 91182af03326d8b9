"""Option ``precision`` in sessions: near the fp32 result, and plainly said where the machine cannot."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, numpy_helper
from onnx import helper as oh

from tests.support.models.model_text import cpu, normal, parse
from tests.support.sessions import planned, watched_planner
from xyntra_ep.diagnostics.explain import explain
from xyntra_ep.provider import planner
from xyntra_ep.tracea.planning.manifest import LogLevel

pytestmark = [pytest.mark.native, pytest.mark.compiler("cc")]

MLP = """(float[n, 64] x) => (float[n, 10] y) {
    l = LayerNormalization(x, scale)
    h = MatMul(l, w1)
    g = Gelu(h)
    d = MatMul(g, w2)
    r = Add(d, l)
    y = MatMul(r, w3)
}"""


def mlp() -> onnx.ModelProto:
    scaled = normal(96, 64, seed=2) / np.float32(8)
    return parse(MLP, 20, scale=normal(64), w1=normal(64, 96, seed=1) / np.float32(8), w2=scaled, w3=normal(64, 10, seed=3))


def error(got: NDArray[Any], want: NDArray[Any]) -> float:
    return float(np.abs(got - want).max() / np.abs(want).max())


@pytest.mark.parametrize("precision", ["bf16", "int8w"])
@pytest.mark.parametrize("rows", [1, 5, 37])
def test_near_the_exact_result(precision: str, rows: int) -> None:
    model, x = mlp(), normal(rows, 64, seed=9)
    (got,) = planned(model, {"precision": precision}).run(None, {"x": x})
    assert error(got, cpu(model, {"x": x})[0]) < 2e-2


@pytest.mark.parametrize("precision", ["bf16", "int8w"])
def test_the_same_bits_for_any_number_of_threads(precision: str) -> None:
    model, x = mlp(), normal(130, 64, seed=4)
    results = [planned(model, {"precision": precision}, threads=n).run(None, {"x": x})[0] for n in (1, 2, 3)]
    assert np.array_equal(results[0], results[1]) and np.array_equal(results[0], results[2])


def test_without_the_instructions_fp32_and_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    model, x = mlp(), normal(5, 64, seed=9)
    monkeypatch.setenv("XYNTRA_ISA", "avx2")
    monkeypatch.setattr(planner, "_said", {})  # a plan is told of once, and on a smaller machine another test has made it
    with watched_planner() as plans:
        session = planned(model, {"precision": "bf16"})
        (got,) = session.run(None, {"x": x})
    assert error(got, cpu(model, {"x": x})[0]) < 1e-5
    (plan,) = plans.answers
    assert plan.log_level is LogLevel.WARNING
    assert "precision=bf16 needs AMX, or AVX512_BF16 on AMD: computed in fp32" in plan.log_line
    assert "precision: precision=bf16 needs AMX" in str(explain(session))


def test_float16_is_for_gpus() -> None:
    model, x = mlp(), normal(5, 64, seed=9)
    with watched_planner() as plans:
        session = planned(model, {"precision": "fp16"})
        (got,) = session.run(None, {"x": x})
    assert error(got, cpu(model, {"x": x})[0]) < 1e-5
    assert plans.answers[0].log_level is LogLevel.WARNING
    assert "precision: precision=fp16 is for GPUs: computed in fp32" in str(explain(session))


def test_int8_needs_no_instructions(monkeypatch: pytest.MonkeyPatch) -> None:
    model, x = mlp(), normal(5, 64, seed=9)
    monkeypatch.setenv("XYNTRA_ISA", "avx2")
    (got,) = planned(model, {"precision": "int8w"}).run(None, {"x": x})
    assert 1e-5 < error(got, cpu(model, {"x": x})[0]) < 2e-2


@pytest.mark.parametrize("kind", [TensorProto.FLOAT16, TensorProto.BFLOAT16])
def test_models_in_half_precision(kind: int) -> None:
    """ONNX Runtime's CPU provider cannot run the bfloat16 one at all, so both are compared with the same model in fp32."""
    exact = mlp()
    half = onnx.ModelProto()
    half.CopyFrom(exact)
    for tensor in half.graph.initializer:
        tensor.CopyFrom(oh.make_tensor(tensor.name, kind, tensor.dims, numpy_helper.to_array(tensor).reshape(-1)))
    for value in (*half.graph.input, *half.graph.output):
        value.type.tensor_type.elem_type = kind
    x = normal(7, 64, seed=5)
    want = cpu(exact, {"x": x})[0]
    session = planned(half)
    if kind == TensorProto.FLOAT16:
        (got,) = session.run(None, {"x": x.astype(np.float16)})
    else:
        got = _run_bfloat16(session, x)
    assert error(got.astype(np.float32), want) < 3e-2


def _run_bfloat16(session: Any, x: NDArray[Any]) -> NDArray[Any]:
    """numpy has no bfloat16: the bits go through OrtValues."""
    bits = (x.view(np.uint32) >> 16).astype(np.uint16)
    feed = ort.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, TensorProto.BFLOAT16)
    binding = session.io_binding()
    binding.bind_ortvalue_input("x", feed)
    out = ort.OrtValue.ortvalue_from_numpy_with_onnx_type(np.zeros((len(x), 10), dtype=np.uint16), TensorProto.BFLOAT16)
    binding.bind_ortvalue_output("y", out)
    session.run_with_iobinding(binding)
    raw = np.ctypeslib.as_array(ctypes.cast(out.data_ptr(), ctypes.POINTER(ctypes.c_uint16)), (len(x), 10))
    return (raw.astype(np.uint32) << 16).view(np.float32).copy()
