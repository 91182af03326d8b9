"""Products of bytes as ONNX Runtime's optimiser saves them: MatMulIntegerToFloat, DynamicQuantizeMatMul, QAttention."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest

from tests.support.models.alternatives import OneIsland, one_island
from tests.support.models.model_text import check, cpu, normal
from tests.support.models.onnx_text import model_of
from tests.support.sessions import planned
from xyntra_ep.diagnostics.explain import explain
from xyntra_ep.errors import UnsupportedError
from xyntra_ep.tracea.core_ir.ops import Gemm, Product
from xyntra_ep.tracea.core_ir.ops.memory import Array

U8, I8 = np.uint8, np.int8
RNG = np.random.default_rng(0)


def weights(*shape: int) -> Array:
    """Of 7 bits: with 8, ONNX Runtime's kernels for AVX2 saturate."""
    return np.asarray(RNG.integers(-64, 64, shape), I8)


def model(graph: str, **constants: Array) -> onnx.ModelProto:
    return model_of(f"g {graph}", constants, contrib=True)


def multiplies_bytes(island: OneIsland) -> bool:
    return any(gemm.product is Product.I32 for gemm in island.ops(Gemm))


@pytest.mark.parametrize("each", [True, False])
@pytest.mark.parametrize("zeros", ["", ", za", ", za, zb"])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("turned", [True, False])
def test_matmul_integer_to_float(turned: bool, bias: bool, zeros: str, each: bool) -> None:
    """``turned``: the scales are given with each other's operand, as the optimiser does where it knows no shapes."""
    scales = np.linspace(0.01, 0.05, 6, dtype=np.float32) if each else np.asarray(0.02, np.float32)
    constants = {
        "w": weights(16, 6), "sa": np.asarray(0.1, np.float32), "sb": scales, "za": np.asarray(120, U8),
        "zb": np.arange(6).astype(I8) if each else np.asarray(3, I8), "bias": normal(6),
    }  # fmt: skip
    operands = "x, w, " + ("sb, sa" if turned else "sa, sb") + zeros + ("," * (2 - zeros.count(",")) + " , bias" if bias else "")
    used = {k: v for k, v in constants.items() if k in operands.replace(" ", "").split(",")}
    m = model(f"(uint8[B,M,16] x) => (float[B,M,6] y) {{ y = com.microsoft.MatMulIntegerToFloat ({operands}) }}", **used)
    assert multiplies_bytes(check(m, {"x": RNG.integers(0, 256, (2, 5, 16)).astype(U8)}))


def test_scales_of_rows() -> None:
    m = model(
        "(uint8[M,16] x, float[M,1] s) => (float[M,6] y) { y = com.microsoft.MatMulIntegerToFloat (x, w, s, sb) }",
        w=weights(16, 6), sb=np.linspace(0.01, 0.05, 6, dtype=np.float32),
    )  # fmt: skip
    check(m, {"x": RNG.integers(0, 256, (5, 16)).astype(U8), "s": np.abs(normal(5, 1))})


@pytest.mark.parametrize("each", [True, False])
@pytest.mark.parametrize("more", ["", ", zb", ", zb, bias", ", , bias"])
def test_dynamic_quantize_matmul(more: str, each: bool) -> None:
    constants = {
        "w": weights(16, 6), "sb": np.linspace(0.01, 0.05, 6, dtype=np.float32) if each else np.asarray(0.02, np.float32),
        "zb": np.arange(6).astype(I8) if each else np.asarray(3, I8), "bias": normal(6),
    }  # fmt: skip
    operands = f"x, w, sb{more}"
    used = {k: v for k, v in constants.items() if k in operands.replace(" ", "").split(",")}
    m = model(f"(float[B,M,16] x) => (float[B,M,6] y) {{ y = com.microsoft.DynamicQuantizeMatMul ({operands}) }}", **used)
    assert multiplies_bytes(check(m, {"x": normal(2, 5, 16)}))


B, S, N, H = 2, 5, 3, 4
MASKS = {
    "": None,
    "int32[B, S] m": np.asarray([[1] * S, [1, 1, 1, 0, 0]], np.int32),
    "int32[B] m": np.asarray([S, 3], np.int32),
    f"int32[{2 * B}] m": np.asarray([S, 4, 0, 1], np.int32),
}


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("each", [True, False])
@pytest.mark.parametrize("attributes", ["", ", unidirectional = 1", ", mask_filter_value = -50.0"])
def test_qattention(attributes: str, each: bool, mask: str) -> None:
    hidden = N * H
    m = model(
        f"""(uint8[B, S, 10] x{", " * bool(mask)}{mask}) => (float[B, S, {hidden}] y) {{
            y = com.microsoft.QAttention <num_heads = {N}{attributes}> (x, w, bias, sx, sw, {"m" if mask else ""}, zx, zw) }}""",
        w=weights(10, 3 * hidden), bias=normal(3 * hidden), sx=np.asarray(0.02, np.float32), zx=np.asarray(120, U8),
        sw=np.linspace(0.01, 0.05, 3 * hidden, dtype=np.float32) if each else np.asarray(0.02, np.float32),
        zw=np.zeros(3 * hidden, I8) if each else np.asarray(0, I8),
    )  # fmt: skip
    feeds = {"x": RNG.integers(0, 256, (B, S, 10)).astype(U8)}
    given = MASKS[mask]
    island = check(m, feeds if given is None else {**feeds, "m": given})
    assert multiplies_bytes(island)


def test_qattention_with_a_past() -> None:
    hidden = N * H
    m = model(
        f"""(uint8[B, S, 10] x, float[2, B, {N}, P, {H}] past) => (float[B, S, {hidden}] y, float[a, b, c, d, e] present) {{
            y, present = com.microsoft.QAttention <num_heads = {N}, unidirectional = 1> (x, w, bias, s, s, , zx, zw, past) }}""",
        w=weights(10, 3 * hidden), bias=normal(3 * hidden), s=np.asarray(0.02, np.float32), zx=np.asarray(120, U8),
        zw=np.asarray(0, I8),
    )  # fmt: skip
    check(m, {"x": RNG.integers(0, 256, (B, S, 10)).astype(U8), "past": normal(2, B, N, 4, H)})


def test_a_scale_of_the_input_for_each_row_is_declined() -> None:
    m = model(
        "(uint8[1,2,4] x, float[2] s) => (float[1,2,4] y) { y = com.microsoft.QAttention <num_heads = 1> (x, w, bias, s, t) }",
        w=weights(4, 12), bias=normal(12), t=np.asarray(0.02, np.float32),
    )  # fmt: skip
    with pytest.raises(UnsupportedError, match="the input's scale is not one number"):
        one_island(m)


@pytest.mark.native
@pytest.mark.compiler("cc")
def test_a_file_that_was_saved_is_claimed(tmp_path: Path) -> None:
    """What a dynamically quantised layer becomes, with and without a second reader of the bytes."""
    m = model(
        """(float[B, M, 16] x) => (float[B, M, 6] y, float[B, M, 8] z) { q, s, zero = DynamicQuantizeLinear (x)
        p = MatMulInteger (q, w, zero, zw)  f = Cast <to = 1> (p)  ss = Mul (s, sw)  r = Mul (f, ss)  y = Add (r, bias)
        e = Erf (x) q2, s2, zero2 = DynamicQuantizeLinear (e)
        p2 = MatMulInteger (q2, v, zero2, zw)  f2 = Cast <to = 1> (p2)  ss2 = Mul (s2, sw)  z1 = Mul (f2, ss2)
        p3 = MatMulInteger (q2, u, zero2, zw)  f3 = Cast <to = 1> (p3)  ss3 = Mul (s2, su)  z2 = Mul (f3, ss3)
        z = Add (z1, z2) }""",
        w=weights(16, 6), v=weights(16, 8), u=weights(16, 8), zw=np.asarray(0, I8), sw=np.asarray(0.03, np.float32),
        su=np.asarray(0.01, np.float32), bias=normal(6),
    )  # fmt: skip
    path = tmp_path / "saved.onnx"
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(path)
    ort.InferenceSession(m.SerializeToString(), options, providers=["CPUExecutionProvider"])
    saved = onnx.load(path)
    assert {"DynamicQuantizeMatMul", "MatMulIntegerToFloat"} <= {node.op_type for node in saved.graph.node}
    session = planned(saved)
    assert explain(session).claimed == len(saved.graph.node)
    feeds = {"x": normal(2, 5, 16)}
    for got, want in zip(session.run(None, feeds), cpu(m, feeds), strict=True):
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-5 * np.abs(want).max())
