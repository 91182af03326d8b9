"""Quantised operators as the interpreter has them, against ONNX Runtime where it keeps to the definition, and against the
definition itself on bytes of all values."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.models.alternatives import one_island
from tests.support.models.model_text import check, normal, parse
from xyntra_ep.errors import UnsupportedError
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Conv, Gemm, Product, RowReduce
from xyntra_ep.tracea.core_ir.ops.memory import Array

U8, I8 = np.uint8, np.int8


def bytes_of(dtype: type, *shape: int, seed: int = 0, bits: int = 8) -> Array:
    limits = np.iinfo(dtype)
    rng = np.random.default_rng((seed, *shape))
    return np.asarray(rng.integers(limits.min >> (8 - bits), (limits.max >> (8 - bits)) + 1, shape)).astype(dtype)


def floats(values: list[float]) -> Array:
    return np.asarray(values, np.float32)


def text(dtype: type) -> str:
    return np.dtype(dtype).name


def full(dtype: type, value: int, *shape: int) -> Array:
    return np.full(shape, value, dtype)


# -- between floats and bytes


@pytest.mark.parametrize("dtype", [U8, I8])
@pytest.mark.parametrize("zero", [0, 7, -128, 127, 255])
def test_quantize_and_dequantize(dtype: type, zero: int) -> None:
    if not np.iinfo(dtype).min <= zero <= np.iinfo(dtype).max:
        return
    model = parse(
        f"(float[N,9] x) => ({text(dtype)}[N,9] q, float[N,9] y) {{ q = QuantizeLinear (x, s, z) "
        "y = DequantizeLinear (q, s, z) }",
        s=np.float32(0.05), z=np.asarray(zero, dtype),
    )  # fmt: skip
    ties = (np.arange(-300, 303, dtype=np.float32) * np.float32(0.025)).reshape(-1, 9)
    odd = floats([0, -0.0, 1e30, -1e30, np.inf, -np.inf, 1e-30, 6.4, -6.4])[None]
    for x in (normal(5, 9) * 8, ties, odd):
        check(model, {"x": x})


@pytest.mark.parametrize("dtype", [np.uint16, np.int16])
@pytest.mark.parametrize("end", ["min", "max"])
def test_levels_of_16_bits(dtype: type, end: str) -> None:
    zero: np.ndarray = np.asarray(getattr(np.iinfo(dtype), end), dtype)
    model = parse(
        f"(float[N,9] x) => ({text(dtype)}[9,N] t, float[9,N] y) {{ q = QuantizeLinear (x, s, z)  t = Transpose (q) "
        "y = DequantizeLinear (t, s, z) }",
        21, s=np.float32(0.05), z=zero,
    )  # fmt: skip
    ties = (np.arange(-300, 303, dtype=np.float32) * np.float32(0.025)).reshape(-1, 9)
    odd = floats([0, -0.0, 1e30, -1e30, np.inf, -np.inf, np.nan, 3276.8, -3276.8])[None]
    for x in (normal(5, 9) * 800, ties, odd):
        check(model, {"x": x})


def test_each_channel_has_its_own() -> None:
    model = parse(
        "(float[2,3,N] x) => (int8[2,3,N] q, float[2,3,N] y) { q = QuantizeLinear <axis = 1> (x, s, z) "
        "y = DequantizeLinear <axis = -2> (q, s, z) }",
        s=floats([0.1, 0.02, 3]), z=np.asarray([0, -5, 100], I8),
    )  # fmt: skip
    check(model, {"x": normal(2, 3, 7) * 5})


def test_what_is_dequantised_of_words() -> None:
    model = parse("(int32[M,4] q) => (float[M,4] y) { y = DequantizeLinear <axis = 1> (q, s) }", s=floats([0.1, 2, 0.5, 1e-3]))
    check(model, {"q": np.arange(-8, 8, dtype=np.int32).reshape(4, 4) * 100_000})


@pytest.mark.parametrize("shape", [(3, 40), (7,), (2, 3, 5), ()])
def test_dynamic_quantize(shape: tuple[int, ...]) -> None:
    sizes = ",".join(f"d{i}" for i in range(len(shape)))
    of = f"[{sizes}]" if shape else ""
    model = parse(f"(float{of} x) => (uint8{of} q, float s, uint8 z) {{ q, s, z = DynamicQuantizeLinear (x) }}")
    for x in (normal(*shape), normal(*shape) + 9, normal(*shape) - 9, np.zeros(shape, np.float32)):
        check(model, {"x": np.asarray(x, np.float32)})


def test_a_pair_undoes_itself() -> None:
    """Quantising what was just dequantised gives the same bytes: nothing is computed, and pools and views move bytes."""
    model = parse(
        "(uint8[N,4] q) => (uint8[4,N] y) { d = DequantizeLinear (q, s, z)  t = Transpose (d)  y = QuantizeLinear (t, s, z) }",
        s=np.float32(0.037), z=U8(3),
    )  # fmt: skip
    island = check(model, {"q": bytes_of(U8, 64, 4)})
    [op] = island.program.ops
    assert op.inputs[0].dtype is op.written[0].dtype is DType.U8
    assert not [e for body in op.expressions() for e in [body.expr] if e.kind == "call"]


# -- products


def exact(a: Array, b: Array, za: int = 0, zb: int = 0) -> Array:
    return (a.astype(np.int64) - za) @ (b.astype(np.int64) - zb)


@pytest.mark.parametrize("a", [U8, I8])
@pytest.mark.parametrize("b", [U8, I8])
@pytest.mark.parametrize("zeros", [(None, None), (0, 0), (1, 1), (0, 1), (1, 0)])
@pytest.mark.parametrize("constant", [True, False])
def test_matmul_integer(a: type, b: type, zeros: tuple[int | None, int | None], constant: bool) -> None:
    """Of all bytes, with zero points at both ends, against the definition."""
    left, right = bytes_of(a, 5, 37), bytes_of(b, 37, 11, seed=1)
    za, zb = (None if z is None else int((np.iinfo(t).min, np.iinfo(t).max)[z]) for t, z in zip((a, b), zeros, strict=True))
    constants: dict[str, Array] = {} if za is None or zb is None else {"za": np.asarray(za, a), "zb": np.asarray(zb, b)}
    if constant:
        constants["w"] = right
    given = f"{text(a)}[M,37] x" + ("" if constant else f", {text(b)}[37,11] w")
    operands = "x, w" + ("" if za is None else ", za, zb")
    model = parse(f"({given}) => (int32[M,11] y) {{ y = MatMulInteger ({operands}) }}", **constants)
    island = one_island(model)
    feeds = {"x": left} if constant else {"x": left, "w": right}
    [got] = island.run(feeds)
    np.testing.assert_array_equal(got, exact(left, right, za or 0, zb or 0))
    [gemm] = island.ops(Gemm)
    assert gemm.product is Product.I32 and [o.dtype for o in gemm.inputs[:2]] == [DType.U8, DType.I8]


@pytest.mark.parametrize(("a", "b"), [(0, -128), (255, -128), (255, 127)])
def test_extremes_do_not_saturate(a: int, b: int) -> None:
    model = parse("(uint8[M,3072] x) => (int32[M,2] y) { y = MatMulInteger (x, w) }", w=full(I8, b, 3072, 2))
    [got] = one_island(model).run({"x": full(U8, a, 3, 3072)})
    assert (got == 3072 * a * b).all()


def test_zero_points_of_rows_and_columns() -> None:
    model = parse(
        "(uint8[B,4,9] x) => (int32[B,4,5] y) { y = MatMulInteger (x, w, za, zb) }",
        w=bytes_of(I8, 9, 5, bits=7), za=np.asarray([1, 2, 3, 250], U8), zb=np.asarray([0, 1, -2, 63, -64], I8),
    )  # fmt: skip
    x = bytes_of(U8, 3, 4, 9)
    [got] = one_island(model).run({"x": x})
    wanted = (x.astype(int) - np.asarray([1, 2, 3, 250])[:, None]) @ (
        bytes_of(I8, 9, 5, bits=7).astype(int) - np.asarray([0, 1, -2, 63, -64])
    )
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("shapes", [("K", "K,3"), ("2,K", "K"), ("K", "K"), ("4,2,K", "4,K,3"), ("2,K", "4,K,3")])
def test_ranks(shapes: tuple[str, str]) -> None:
    model = parse(f"(uint8[{shapes[0]}] x, int8[{shapes[1]}] w) => (int32[] y) {{ y = MatMulInteger (x, w) }}")
    sizes = [[6 if s == "K" else int(s) for s in shape.split(",")] for shape in shapes]
    check(model, {"x": bytes_of(U8, *sizes[0]), "w": bytes_of(I8, *sizes[1], bits=7)})


def test_qlinear_matmul() -> None:
    model = parse(
        "(uint8[M,16] x) => (uint8[M,6] y) { y = QLinearMatMul (x, sx, zx, w, sw, zw, sy, zy) }",
        sx=np.float32(0.02), zx=U8(120), w=bytes_of(I8, 16, 6, bits=7), sw=np.float32(0.03), zw=I8(0),
        sy=np.float32(0.2), zy=U8(9),
    )  # fmt: skip
    check(model, {"x": bytes_of(U8, 30, 16)})


def test_pairs_around_a_product_become_one_of_bytes() -> None:
    """With a bias, an activation and the next quantisation in its epilogue."""
    model = parse(
        """(float[M,16] x) => (uint8[M,6] y) { q = QuantizeLinear (x, sx, zx)  d = DequantizeLinear (q, sx, zx)
        v = DequantizeLinear <axis = 1> (w, sw)  m = MatMul (d, v)  a = Add (m, b)  r = Relu (a)
        y = QuantizeLinear (r, sy, zy) }""",
        sx=np.float32(0.02), zx=U8(120), w=bytes_of(I8, 16, 6, bits=7), sw=floats([0.03, 0.1, 0.2, 0.01, 0.07, 1]),
        b=normal(6), sy=np.float32(0.2), zy=U8(9),
    )  # fmt: skip
    island = check(model, {"x": normal(30, 16)})
    [gemm] = island.ops(Gemm)
    assert gemm.product is Product.I32 and gemm.output.dtype is DType.U8


@pytest.mark.parametrize("dtype", [U8, I8])
@pytest.mark.parametrize("pads", ["", ", pads = [1, 1, 1, 1]"])
def test_the_largest_of_levels_are_levels(dtype: type, pads: str) -> None:
    """MaxPool between two pairs of one scale moves bytes; padding is lower than all of them."""
    name = np.dtype(dtype).name
    window = f"MaxPool <kernel_shape = [3, 3], strides = [2, 2]{pads}>"
    pair = parse(
        f"""({name}[N,4,9,9] q) => ({name}[] y) {{ d = DequantizeLinear (q, s, z)  p = {window} (d)
        y = QuantizeLinear (p, s, z) }}""",
        s=np.float32(0.02), z=dtype(120),
    )  # fmt: skip
    q = bytes_of(dtype, 2, 4, 9, 9)
    island = check(pair, {"q": q})
    [pool] = island.ops(RowReduce)
    assert {o.dtype for o in pool.inputs} == {pool.outputs[0].operand.dtype} and pool.inputs[0].dtype in (DType.U8, DType.I8)
    check(parse(f"({name}[N,4,9,9] q) => ({name}[] y) {{ y = {window} (q) }}"), {"q": q})


def test_the_largest_of_what_a_negative_scale_makes() -> None:
    """These are the lowest levels: it is computed as written."""
    model = parse(
        """(uint8[N,4,9,9] q) => (float[] y) { d = DequantizeLinear (q, s, z)  y = MaxPool <kernel_shape = [3, 3]> (d) }""",
        s=np.float32(-0.02), z=U8(120),
    )  # fmt: skip
    check(model, {"q": bytes_of(U8, 2, 4, 9, 9)})


def test_transposed_weights_of_gemm() -> None:
    model = parse(
        """(uint8[M,16] q) => (float[M,6] y) { d = DequantizeLinear (q, sx, zx)  v = DequantizeLinear <axis = 0> (w, sw)
        y = Gemm <transB = 1> (d, v, b) }""",
        sx=np.float32(0.02), zx=U8(128), w=bytes_of(I8, 6, 16, bits=7), sw=np.linspace(0.01, 1, 6, dtype=np.float32), b=normal(6),
    )  # fmt: skip
    island = check(model, {"q": bytes_of(U8, 5, 16)})
    [gemm] = island.ops(Gemm)
    assert gemm.product is Product.I32


def test_scales_along_the_depth_stay_floats() -> None:
    """Each product of a sum has a scale of its own there: that is no sum of integers."""
    model = parse(
        """(uint8[M,4] q) => (float[M,6] y) { d = DequantizeLinear (q, sx, zx)  v = DequantizeLinear <axis = 0> (w, sw)
        y = MatMul (d, v) }""",
        sx=np.float32(0.02), zx=U8(128), w=bytes_of(I8, 4, 6, bits=7), sw=floats([0.03, 0.1, 0.2, 0.01]),
    )  # fmt: skip
    island = check(model, {"q": bytes_of(U8, 5, 4)})
    [gemm] = island.ops(Gemm)
    assert gemm.product is Product.F32
    [(remark, node)] = island.program.remarks
    assert remark == "product of floats: b has a scale for each index of axis 0" and node in island.program.sources[-1]


def test_one_factor_alone_stays_floats_and_that_is_told() -> None:
    def remarks(nodes: str) -> list[str]:
        model = parse(
            f"(float[M,4] x, uint8[M,4] q) => (float[] y) {{ {nodes} }}",
            sx=np.float32(0.02), zx=U8(128), w=bytes_of(I8, 4, 6, bits=7), sw=np.float32(0.1), v=normal(4, 6),
            t=np.asarray([3, 4, 5, 6], np.int32).reshape(4, 1),
        )  # fmt: skip
        island = check(model, {"x": normal(5, 4), "q": bytes_of(U8, 5, 4)})
        return [text for text, _ in island.program.remarks]

    weights, activations = "e = DequantizeLinear (w, sw)", "d = DequantizeLinear (q, sx, zx)"
    assert remarks(f"{weights} y = MatMul (x, e)") == ["product of floats: a is not quantised"]
    assert remarks(f"{activations} y = MatMul (d, v)") == ["product of floats: b is not quantised"]
    assert remarks(f"{activations} e = DequantizeLinear (t, sw) y = MatMul (d, e)") == ["product of floats: b is of i32"]
    assert not remarks(f"{activations} {weights} y = MatMul (d, e)") and not remarks("y = MatMul (x, v)")


# -- convolutions

CONVS = [
    ("2,3,9,8", (4, 3, 3, 3), "pads = [1, 1, 1, 1]"),
    ("1,8,6,7", (4, 8, 1, 1), "strides = [2, 2]"),
    ("2,6,9,8", (6, 1, 3, 3), "group = 6, pads = [1, 0, 0, 2]"),
    ("1,4,9", (5, 4, 3), "pads = [1, 1], dilations = [2]"),
]


@pytest.mark.parametrize("zero", [None, 0, 77])
@pytest.mark.parametrize(("sizes", "w", "how"), CONVS)
def test_conv_integer(sizes: str, w: tuple[int, ...], how: str, zero: int | None) -> None:
    constants = {} if zero is None else {"z": U8(zero)}
    operands = "x, w" + ("" if zero is None else ", z")
    model = parse(
        f"(uint8[{sizes}] x) => (int32[] y) {{ y = ConvInteger <{how}> ({operands}) }}", w=bytes_of(I8, *w, bits=7), **constants
    )
    island = check(model, {"x": bytes_of(U8, *map(int, sizes.split(",")))})
    [conv] = island.ops(Conv)
    assert conv.product is Product.I32


@pytest.mark.parametrize("dtype", [U8, I8])
@pytest.mark.parametrize("zero", [0, 55])
@pytest.mark.parametrize(("sizes", "w", "how"), CONVS)
def test_qlinear_conv(sizes: str, w: tuple[int, ...], how: str, zero: int, dtype: type) -> None:
    model = parse(
        f"({text(dtype)}[{sizes}] x) => ({text(dtype)}[] y) {{ y = QLinearConv <{how}> (x, sx, zx, w, sw, zw, sy, zy, b) }}",
        sx=np.float32(0.02), zx=np.asarray(zero, dtype), w=bytes_of(I8, *w, bits=7), zw=np.zeros(w[0], I8),
        sw=np.linspace(0.01, 0.05, w[0], dtype=np.float32), sy=np.float32(0.3), zy=np.asarray(11, dtype),
        b=np.arange(w[0], dtype=np.int32) * 100,
    )  # fmt: skip
    check(model, {"x": bytes_of(dtype, *map(int, sizes.split(",")))})


def test_weights_with_a_zero_point() -> None:
    """The definition: a window's sum of x is taken from it."""
    x, w = bytes_of(U8, 1, 3, 6, 5), bytes_of(U8, 4, 3, 3, 3, seed=2)
    model = parse(
        "(uint8[1,3,6,5] x) => (int32[] y) { y = ConvInteger <pads = [1, 1, 1, 1]> (x, w, zx, zw) }", w=w, zx=U8(9), zw=U8(200)
    )
    [got] = one_island(model).run({"x": x})
    padded = np.pad(x.astype(int) - 9, [(0, 0), (0, 0), (1, 1), (1, 1)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    np.testing.assert_array_equal(got, np.einsum("nchwij,mcij->nmhw", windows, w.astype(int) - 200))


def test_a_block_of_pairs_stays_in_bytes() -> None:
    """Convolution, residual, activation between pairs: two kernels, whose results are bytes."""
    model = parse(
        """(uint8[1,8,6,6] q) => (uint8[1,8,6,6] y) { d = DequantizeLinear (q, s, z)  v = DequantizeLinear <axis = 0> (w, sw)
        c = Conv <pads = [1, 1, 1, 1]> (d, v, b)  cq = QuantizeLinear (c, s2, z)  cd = DequantizeLinear (cq, s2, z)
        a = Add (cd, d)  r = Relu (a)  y = QuantizeLinear (r, s, z) }""",
        s=np.float32(0.05), z=U8(0), w=bytes_of(I8, 8, 8, 3, 3, bits=7), sw=np.linspace(0.001, 0.002, 8, dtype=np.float32),
        b=normal(8), s2=np.float32(0.1),
    )  # fmt: skip
    island = check(model, {"q": bytes_of(U8, 1, 8, 6, 6)})
    [conv] = island.ops(Conv)
    assert conv.product is Product.I32 and conv.output.dtype is DType.U8
    assert all(o.dtype in (DType.U8, DType.I8, DType.F32) for op in island.program.ops for o in op.written)


# -- what is declined


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("y = DequantizeLinear <block_size = 2, axis = 0> (q, v)", "rank 1 for blocks of rank 2"),
        ("y = DequantizeLinear <axis = 1> (q, m)", "the scale of rank 2"),
    ],
)
def test_declines(body: str, said: str) -> None:
    model = parse(f"(uint8[4,3] q) => (float[4,3] y) {{ {body} }}", 21, v=np.ones(3, np.float32), m=np.ones((4, 3), np.float32))
    with pytest.raises(UnsupportedError, match=said):
        one_island(model)
