"""The QLinear family of com.microsoft against ONNX Runtime's kernels: the same bytes, but where those round on the way.

``LEVELS`` says where that is, and by how much a byte may be another there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto

from tests.support.models.alternatives import OneIsland, one_island
from tests.support.models.model_text import cpu
from tests.support.models.onnx_text import model_of
from tests.support.sessions import planned
from xyntra_ep.diagnostics.explain import explain
from xyntra_ep.errors import UnsupportedError
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Conv, Gemm, Product
from xyntra_ep.tracea.core_ir.ops.memory import Array

U8, I8 = np.uint8, np.int8
TYPES = pytest.mark.parametrize("dtype", [U8, I8])
LEVELS = {
    "QLinearSigmoid": 1,  # MLAS's logistic function is a quotient of polynomials
    "QLinearSoftmax": 1,  # exponentials from a table, whose sum is in f32
    "QLinearAveragePool": 1,  # sums in f32, of dequantised bytes, in another order than ours
    "QLinearAdd": 1,  # the product of a byte and a ratio of scales is not rounded where processors have FMA
}


def every(dtype: type, *shape: int, seed: int = 0) -> Array:
    limits = np.iinfo(dtype)
    rng = np.random.default_rng((seed, *shape))
    return np.asarray(rng.integers(limits.min, limits.max + 1, shape)).astype(dtype)


def numbers(dtype: type, **given: tuple[float, int]) -> dict[str, Array]:
    """``a=(0.1, 3)``: the scale ``sa`` and the zero point ``za``, counted from the lowest byte."""
    found: dict[str, Array] = {}
    for name, (scale, zero) in given.items():
        found[f"s{name}"] = np.asarray(scale, np.float32)
        found[f"z{name}"] = np.asarray(np.iinfo(dtype).min + zero, dtype)
    return found


def text(dtype: type) -> str:
    return np.dtype(dtype).name


def model(graph: str, **constants: Array) -> ModelProto:
    return model_of(f"g {graph}", constants, contrib=True)


def same(m: ModelProto, feeds: Mapping[str, Array]) -> OneIsland:
    """The interpreter, with sizes that are known and with ones that are not, gives what the CPU provider gives."""
    want = cpu(m, feeds)
    levels = max(LEVELS.get(node.op_type, 0) for node in m.graph.node)
    islands = [one_island(m, trust) for trust in (True, False)]
    for island in islands:
        if not island.applies(feeds):
            continue
        for got, wanted in zip(island.run(feeds), want, strict=True):
            assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
            apart = np.abs(got.astype(np.float64) - wanted.astype(np.float64))
            assert apart.max(initial=0) <= levels, f"{(apart > levels).sum()} of {apart.size}"
            assert (apart > 0).sum() <= max(1, apart.size // 25)  # a tie that falls to the other side is no rule
    return islands[0]


SCALES = [(0.1, 0.1, 0.1), (0.02, 0.013, 0.031), (0.5, 0.25, 1.0), (0.003, 0.7, 0.004)]
ZEROS = [(0, 0, 0), (128, 128, 128), (3, 255, 77)]


@TYPES
@pytest.mark.parametrize("scales", SCALES)
@pytest.mark.parametrize("zeros", ZEROS)
@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
def test_two_operands(op: str, zeros: tuple[int, ...], scales: tuple[float, ...], dtype: type) -> None:
    given = numbers(dtype, a=(scales[0], zeros[0]), b=(scales[1], zeros[1]), c=(scales[2], zeros[2]))
    m = model(
        f"({text(dtype)}[B,N] a, {text(dtype)}[C,M] b) => ({text(dtype)}[D,K] y) "
        f"{{ y = com.microsoft.{op} (a, sa, za, b, sb, zb, sc, zc) }}",
        **given,
    )
    same(m, {"a": every(dtype, 9, 67), "b": every(dtype, 9, 67, seed=1)})
    same(m, {"a": every(dtype, 9, 67), "b": every(dtype, 1, 67, seed=2)})
    same(m, {"a": every(dtype, 9, 1), "b": every(dtype, 9, 67, seed=3)})


def test_a_zero_point_that_is_left_out() -> None:
    """The last one cannot be: ONNX Runtime reads beyond the inputs."""
    m = model(
        "(int8[N] a) => (int8[N] y) { y = com.microsoft.QLinearLeakyRelu (a, s, , s, z) }",
        s=np.asarray(0.1, np.float32),
        z=np.asarray(3, I8),
    )
    same(m, {"a": every(I8, 300)})


@TYPES
@pytest.mark.parametrize("op", ["QLinearLeakyRelu", "QLinearLeakyRelu <alpha = 0.3>", "QLinearSigmoid"])
@pytest.mark.parametrize("to", [(1 / 256, 0), (0.02, 100), (1.0, 3)])
def test_activations(op: str, to: tuple[float, int], dtype: type) -> None:
    name, _, attributes = op.partition(" ")
    given = numbers(dtype, a=(0.05, 120), y=to)
    m = model(
        f"({text(dtype)}[N] a) => ({text(dtype)}[N] y) {{ y = com.microsoft.{name} {attributes} (a, sa, za, sy, zy) }}", **given
    )
    same(m, {"a": np.arange(np.iinfo(dtype).min, np.iinfo(dtype).max + 1).astype(dtype)})


@TYPES
@pytest.mark.parametrize("alike", [True, False])
def test_where(alike: bool, dtype: type) -> None:
    given = numbers(dtype, x=(0.05, 120), y=(0.05, 120) if alike else (0.3, 0), z=(0.05, 120))
    m = model(
        f"(bool[B,1] p, {text(dtype)}[B,N] x, {text(dtype)}[N] v) => ({text(dtype)}[B,N] z) "
        "{ z = com.microsoft.QLinearWhere (p, x, sx, zx, v, sy, zy, sz, zz) }",
        **given,
    )
    feeds = {"p": np.asarray([[True], [False], [True]]), "x": every(dtype, 3, 200), "v": every(dtype, 200)}
    same(m, feeds)


@TYPES
def test_concat(dtype: type) -> None:
    """What has the numbers of the result is copied."""
    given = numbers(dtype, a=(0.05, 120), b=(0.3, 0), c=(0.011, 255))
    m = model(
        f"({text(dtype)}[B,N] a, {text(dtype)}[B,M] b, {text(dtype)}[B,K] c) => ({text(dtype)}[B,L] y) "
        "{ y = com.microsoft.QLinearConcat <axis = -1> (sa, za, a, sa, za, b, sb, zb, c, sc, zc) }",
        **given,
    )
    same(m, {"a": every(dtype, 2, 50), "b": every(dtype, 2, 90), "c": every(dtype, 2, 1)})


WINDOWS = [
    "kernel_shape = [2, 2], strides = [2, 2]",
    "kernel_shape = [3, 3], pads = [1, 1, 1, 1]",
    "kernel_shape = [3, 3], pads = [1, 1, 1, 1], count_include_pad = 1",
    "kernel_shape = [3, 2], strides = [2, 3], ceil_mode = 1",
    "kernel_shape = [3, 2], strides = [2, 2], pads = [1, 0, 1, 1], ceil_mode = 1, count_include_pad = 1",
    'kernel_shape = [3, 3], auto_pad = "SAME_UPPER"',
    "kernel_shape = [8, 11]",
]


@TYPES
@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("how", WINDOWS)
@pytest.mark.parametrize("scales", [(0.5, 0.5), (0.05, 0.03)])
def test_average_pool(scales: tuple[float, float], how: str, last: int, dtype: type) -> None:
    given = numbers(dtype, x=(scales[0], 120), y=(scales[1], 101))
    m = model(
        f"({text(dtype)}[N,C,H,W] x) => ({text(dtype)}[a,b,c,d] y) "
        f"{{ y = com.microsoft.QLinearAveragePool <{how}, channels_last = {last}> (x, sx, zx, sy, zy) }}",
        **given,
    )
    same(m, {"x": every(dtype, 2, 8, 11, 5) if last else every(dtype, 2, 5, 8, 11)})


@TYPES
@pytest.mark.parametrize(
    "how", ["strides = [2, 2]", "pads = [1, 1, 0, 1]", "dilations = [2, 2]", "strides = [2, 3], ceil_mode = 1"]
)
def test_max_pool_of_last_channels(how: str, dtype: type) -> None:
    m = model(
        f"({text(dtype)}[N,H,W,C] x) => ({text(dtype)}[a,b,c,d] y) "
        f"{{ y = com.microsoft.NhwcMaxPool <kernel_shape = [3, 2], {how}> (x) }}"
    )
    same(m, {"x": every(dtype, 2, 8, 11, 5)})


@TYPES
@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("shape", [(3, 40, 7, 7), (2, 5, 9), (1, 1, 4, 4)])
def test_global_average_pool(shape: tuple[int, ...], last: int, dtype: type) -> None:
    given = numbers(dtype, x=(0.05, 120), y=(0.01, 99))
    axes = ",".join("NCHW"[: len(shape)])
    m = model(
        f"({text(dtype)}[{axes}] x) => ({text(dtype)}[{axes.lower()}] y) "
        f"{{ y = com.microsoft.QLinearGlobalAveragePool <channels_last = {last}> (x, sx, zx, sy, zy) }}",
        **given,
    )
    same(m, {"x": every(dtype, *shape)})


@TYPES
@pytest.mark.parametrize(
    "how", ["opset = 13", "opset = 13, axis = 1", "opset = 12", "opset = 12, axis = 1", "opset = 17, axis = 0"]
)
@pytest.mark.parametrize("scales", [(0.05, 1 / 256), (0.2, 0.0123)])
def test_softmax(scales: tuple[float, float], how: str, dtype: type) -> None:
    given = numbers(dtype, x=(scales[0], 120), y=(scales[1], 0))
    m = model(
        f"({text(dtype)}[A,B,C] x) => ({text(dtype)}[A,B,C] y) "
        f"{{ y = com.microsoft.QLinearSoftmax <{how}> (x, sx, zx, sy, zy) }}",
        **given,
    )
    same(m, {"x": every(dtype, 3, 4, 19)})


def test_a_share_of_everything_saturates() -> None:
    given = numbers(I8, x=(1.0, 128), y=(1 / 256, 0))
    m = model("(int8[N,2] x) => (int8[N,2] y) { y = com.microsoft.QLinearSoftmax <opset = 13> (x, sx, zx, sy, zy) }", **given)
    x = np.asarray([[127, -128]], I8)
    assert same(m, {"x": x}).run({"x": x})[0].tolist() == [[127, -128]]


# -- products


@TYPES
@pytest.mark.parametrize("how", ["", "<transA = 1, transB = 1, alpha = 0.5>"])
@pytest.mark.parametrize("form", ["bytes", "floats"])
@pytest.mark.parametrize("each", [True, False])
def test_qgemm(each: bool, form: str, how: str, dtype: type) -> None:
    given = numbers(dtype, a=(0.02, 120), y=(0.3, 77))
    rng = np.random.default_rng(4)
    b = rng.integers(-64, 64, (16, 6)).astype(I8)
    scales = np.linspace(0.01, 0.05, 6, dtype=np.float32) if each else np.asarray(0.02, np.float32)
    zeros = np.asarray([0, 1, -2, 0, 5, 0], I8) if each else np.asarray(0, I8)
    bias = rng.integers(-500, 500, 6).astype(np.int32)
    out, more = ("float", "") if form == "floats" else (text(dtype), ", sy, zy")
    m = model(
        f"({text(dtype)}[M,K] a) => ({out}[M,N] y) {{ y = com.microsoft.QGemm {how} (a, sa, za, b, sb, zb, bias{more}) }}",
        **given, b=b.T.copy() if how else b, sb=scales, zb=zeros, bias=bias,
    )  # fmt: skip
    feeds = {"a": every(dtype, 30, 16).T.copy() if how else every(dtype, 30, 16)}
    if form == "floats":
        np.testing.assert_allclose(one_island(m).run(feeds)[0], cpu(m, feeds)[0], rtol=1e-6)
        island = one_island(m)
    else:
        island = same(m, feeds)
    [gemm] = island.ops(Gemm)
    assert gemm.product is Product.I32 and gemm.output.dtype is (DType.F32 if form == "floats" else DType(f"{text(dtype)[0]}8"))


@pytest.mark.parametrize("last", [0, 1])
def test_convolution(last: int) -> None:
    w = np.random.default_rng(4).integers(-64, 64, (4, 3, 3, 3)).astype(I8)
    given: dict[str, Any] = numbers(U8, x=(0.02, 120), y=(0.3, 77))
    m = model(
        "(uint8[A,B,C,D] x) => (uint8[a,b,c,d] y) { y = com.microsoft.QLinearConv "
        f"<pads = [1, 1, 1, 1], channels_last = {last}> (x, sx, zx, w, sw, zw, sy, zy) }}",
        **given, w=w, sw=np.linspace(0.01, 0.05, 4, dtype=np.float32), zw=np.zeros(4, I8),
    )  # fmt: skip
    [conv] = same(m, {"x": every(U8, 2, 7, 9, 3) if last else every(U8, 2, 3, 7, 9)}).ops(Conv)
    assert conv.product is Product.I32


def test_quantise_and_dequantise_of_the_other_domain() -> None:
    m = model(
        "(float[B,3] x) => (int8[B,3] q, float[B,3] y) { q = com.microsoft.QuantizeLinear <axis = 1> (x, s, z) "
        "y = com.microsoft.DequantizeLinear <axis = 1> (q, s, z) }",
        s=np.asarray([0.1, 0.02, 3], np.float32), z=np.asarray([0, -5, 100], I8),
    )  # fmt: skip
    same(m, {"x": np.random.default_rng(2).standard_normal((50, 3)).astype(np.float32) * 5})


# -- a whole file


@pytest.mark.native
@pytest.mark.compiler("cc")
def test_a_block_of_a_network_is_claimed() -> None:
    """Two convolutions and what is between them, in bytes from end to end."""
    given = numbers(U8, x=(0.02, 120), y=(0.3, 77), t=(0.1, 60))
    rng = np.random.default_rng(4)
    m = model(
        """(uint8[N,8,H,W] x) => (uint8[N,8,a,b] y) { c = QLinearConv <pads = [1, 1, 1, 1]> (x, sx, zx, w, sw, zw, sy, zy)
        l = com.microsoft.QLinearLeakyRelu <alpha = 0.1> (c, sy, zy, st, zt)
        a = com.microsoft.QLinearAdd (l, st, zt, x, sx, zx, st, zt)
        y = com.microsoft.QLinearGlobalAveragePool (a, st, zt, sx, zx) }""",
        **given, w=rng.integers(-64, 64, (8, 8, 3, 3)).astype(I8), sw=np.asarray(0.01, np.float32), zw=np.asarray(0, I8),
    )  # fmt: skip
    session = planned(m)
    assert explain(session).claimed == 4
    feeds = {"x": every(U8, 2, 8, 9, 11)}
    np.testing.assert_allclose(session.run(None, feeds)[0].astype(int), cpu(m, feeds)[0].astype(int), atol=1, rtol=0)


# -- what is declined


@pytest.mark.parametrize(
    ("graph", "said"),
    [
        ("(uint8[2,3] x) => (uint8[2,3] y) { y = com.microsoft.QLinearSigmoid (x, m, z, s, z) }", "not one number"),
        ("(uint8[2,3] x) => (uint8[2,6] y) { y = com.microsoft.QLinearConcat <axis = 1> (s, z, x, s, z, x, s) }", "threes"),
        ("(uint8[2,3] x) => (uint8[2,3] y) { y = com.microsoft.QLinearConcat <axis = 1> (s, z, x, s, n) }", "zero point in i8"),
        ("(uint8[2,3] x) => (uint8[2,3] y) { y = com.microsoft.QGemm (x, s, z, w, s, z, , s) }", "without a zero point"),
    ],
)
def test_declines(graph: str, said: str) -> None:
    constants = {"s": np.asarray(0.1, np.float32), "m": np.ones(3, np.float32), "z": U8(3), "n": I8(3), "w": np.ones((3, 3), U8)}
    with pytest.raises(UnsupportedError, match=said):
        one_island(
            model(graph, **{k: np.asarray(v) for k, v in constants.items() if k in graph.replace(",", " ").replace(")", " ")})
        )


def test_outputs_that_are_no_multiple_of_the_groups() -> None:
    """Known only when it runs: an error then, as ONNX Runtime's."""
    m = model("(uint8[N,4,H,W] x, int8[M,2,1,1] w) => (int32[a,b,c,d] y) { y = ConvInteger <group = 2> (x, w) }")
    island = one_island(m, False)
    island.run({"x": every(U8, 1, 4, 3, 3), "w": every(I8, 4, 2, 1, 1)})
    with pytest.raises(AssertionError, match="cannot be divided into the groups"):
        island.run({"x": every(U8, 1, 4, 3, 3), "w": every(I8, 3, 2, 1, 1)})
