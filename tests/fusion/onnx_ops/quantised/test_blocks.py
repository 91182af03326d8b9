"""Constants of integers of 4 and 8 bits with a scale for each block: products, and rows of a table."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.support.models.alternatives import one_island
from tests.support.models.model_text import check, cpu, normal
from tests.support.sessions import planned
from xyntra_ep.diagnostics.explain import explain
from xyntra_ep.errors import UnsupportedError
from xyntra_ep.tracea.core_ir.dtypes import DType, pack_nibbles, unpack_nibbles
from xyntra_ep.tracea.core_ir.ops import BlockGemm, Gemm, Product
from xyntra_ep.tracea.core_ir.ops.memory import Array

RANGES = {"INT4": (-8, 8), "UINT4": (0, 16), "INT8": (-128, 128), "UINT8": (0, 256)}
RNG = np.random.default_rng(0)


def integers(name: str, of: str, *shape: int) -> onnx.TensorProto:
    values = RNG.integers(*RANGES[of], shape).reshape(-1).tolist()
    return helper.make_tensor(name, getattr(TensorProto, of), shape, values)


def scales(name: str, *shape: int, dtype: type = np.float32) -> onnx.TensorProto:
    return numpy_helper.from_array(RNG.uniform(0.01, 0.1, shape).astype(dtype), name)


def model(graph: str, *constants: onnx.TensorProto) -> onnx.ModelProto:
    text = f'<ir_version: 10, opset_import: ["" : 21, "com.microsoft" : 1]> g {graph}'
    made = onnx.parser.parse_model(text)
    made.graph.initializer.extend(constants)
    return made


@pytest.mark.parametrize("count", [0, 1, 2, 7])
@pytest.mark.parametrize("of", ["INT4", "UINT4"])
def test_two_in_a_byte(of: str, count: int) -> None:
    values = RNG.integers(*RANGES[of], count)
    stored = pack_nibbles(values)
    assert stored.tobytes() == integers_of(of, values).raw_data
    unpacked = unpack_nibbles(stored, count, DType.I8 if of == "INT4" else DType.U8)
    assert unpacked.tolist() == values.tolist()


def integers_of(of: str, values: Array) -> onnx.TensorProto:
    return numpy_helper.from_array(values.astype(helper.tensor_dtype_to_np_dtype(getattr(TensorProto, of))), "t")


@pytest.mark.parametrize("depth", [96, 77])
@pytest.mark.parametrize("block", [16, 32, 128])
@pytest.mark.parametrize("zeros", [True, False])
@pytest.mark.parametrize("of", RANGES)
def test_a_product_of_blocks(of: str, zeros: bool, block: int, depth: int) -> None:
    """The weights stay integers: no float copy of them is made."""
    blocks = -(-depth // block)
    m = model(
        f"""(float[B,M,{depth}] x) => (float[B,M,40] y) {{
        d = DequantizeLinear <axis = 0, block_size = {block}> (w, s{", z" * zeros})  y = MatMul (x, d) }}""",
        *[integers("w", of, depth, 40), scales("s", blocks, 40), *[integers("z", of, blocks, 40)] * zeros],
    )
    island = check(m, {"x": normal(2, 3, depth)})
    [product] = island.ops(BlockGemm)
    assert isinstance(product, BlockGemm) and (product.bits, product.block) == (int(of.lstrip("UINT")), block)
    if zeros is False and of.startswith("I"):
        assert not product.has_zeros


def test_weights_that_gemm_transposes() -> None:
    m = model(
        """(float[M,64] x) => (float[M,24] y) { d = DequantizeLinear <axis = 1, block_size = 16> (w, s, z)
        y = Gemm <transB = 1> (x, d, b) }""",
        integers("w", "INT4", 24, 64), scales("s", 24, 4), integers("z", "INT4", 24, 4), scales("b", 24),
    )  # fmt: skip
    assert len(check(m, {"x": normal(5, 64)}).ops(BlockGemm)) == 1


@pytest.mark.parametrize(("axis", "block", "shape"), [(1, 16, (64, 3)), (0, 8, (8, 48)), (0, 48, (2, 48))])
def test_other_blocks_are_computed_as_written(axis: int, block: int, shape: tuple[int, int]) -> None:
    """Along the columns, or as no kernel has them."""
    m = model(
        f"""(float[M,64] x) => (float[M,48] y) {{ d = DequantizeLinear <axis = {axis}, block_size = {block}> (w, s)
        y = MatMul (x, d) }}""",
        integers("w", "INT4", 64, 48), scales("s", *shape),
    )  # fmt: skip
    island = check(m, {"x": normal(5, 64)})
    assert not island.ops(BlockGemm) and len(island.ops(Gemm)) == 1


def test_bytes_times_blocks_of_columns_are_floats() -> None:
    """Each product of a sum has a scale of its own."""
    m = model(
        """(uint8[M,64] q) => (float[M,48] y) { x = DequantizeLinear (q, sx)
        d = DequantizeLinear <axis = 1, block_size = 16> (w, s)
        y = MatMul (x, d) }""",
        integers("w", "INT8", 64, 48), scales("s", 64, 3), scales("sx"),
    )  # fmt: skip
    [gemm] = check(m, {"q": RNG.integers(0, 256, (5, 64)).astype(np.uint8)}).ops(Gemm)
    assert gemm.product is Product.F32


def test_blocks_that_are_no_constants() -> None:
    m = model(
        """(float[M,64] x, uint8[64,48] w, float[2,48] s) => (float[M,48] y) {
        d = DequantizeLinear <axis = 0, block_size = 32> (w, s)  y = MatMul (x, d) }""",
    )
    feeds: Mapping[str, Array] = {
        "x": normal(5, 64), "w": RNG.integers(0, 256, (64, 48)).astype(np.uint8), "s": np.abs(normal(2, 48)),
    }  # fmt: skip
    assert not check(m, feeds).ops(BlockGemm)


@pytest.mark.parametrize("size", [3, 300])
@pytest.mark.parametrize("of", ["INT4", "UINT4"])
def test_four_bits_with_a_scale_for_each_column(of: str, size: int) -> None:
    """Small constants are unpacked while planning, large ones where they lie; an integer product where activations are bytes."""
    m = model(
        f"""(uint8[M,16] q) => (float[M,{size}] y) {{ x = DequantizeLinear (q, sx, zx)  d = DequantizeLinear <axis = 1> (w, s, z)
        y = MatMul (x, d) }}""",
        integers("w", of, 16, size), scales("s", size), integers("z", of, size), scales("sx"),
        numpy_helper.from_array(np.asarray(120, np.uint8), "zx"),
    )  # fmt: skip
    [gemm] = check(m, {"q": RNG.integers(0, 256, (5, 16)).astype(np.uint8)}).ops(Gemm)
    assert gemm.product is Product.I32


@pytest.mark.parametrize("floats", ["float", "float16"])
@pytest.mark.parametrize("zeros", [True, False])
@pytest.mark.parametrize(("axis", "block"), [(0, 2), (1, 4), (-1, 16), (2, 1), (1, 7)])
@pytest.mark.parametrize("of", ["uint8", "int8", "uint16", "int16"])
def test_to_integers_in_blocks(of: str, axis: int, block: int, zeros: bool, floats: str) -> None:
    """Extents that a block does not divide, too."""
    shape = (3, 7, 20)
    blocks = [-(-extent // block) if i == axis % 3 else extent for i, extent in enumerate(shape)]
    attributes = f"axis = {axis}, block_size = {block}" + (
        "" if zeros else f", output_dtype = {TensorProto.DataType.Value(of.upper())}"
    )
    m = model(
        f"({floats}[A,B,C] x) => ({of}[A,B,C] y) {{ y = QuantizeLinear <{attributes}> (x, s{', z' if zeros else ''}) }}",
        scales("s", *blocks, dtype=np.float32 if floats == "float" else np.float16),
        *([numpy_helper.from_array(RNG.integers(0, 100, blocks).astype(of), "z")] if zeros else []),
    )
    check(m, {"x": (3 * normal(*shape)).astype(np.float32 if floats == "float" else np.float16)})


def test_integers_in_blocks_again() -> None:
    """What one scale for a block made is not undone by another."""
    m = model(
        """(uint8[4,32] q) => (uint8[4,32] y) { x = DequantizeLinear <axis = 1, block_size = 16> (q, s)
        y = QuantizeLinear <axis = 1, block_size = 8> (x, t) }""",
        scales("s", 4, 2), scales("t", 4, 4),
    )  # fmt: skip
    check(m, {"q": RNG.integers(0, 256, (4, 32)).astype(np.uint8)})


@pytest.mark.parametrize(
    ("attributes", "shape", "said"),
    [
        ("axis = 1, block_size = 16", (4, 3), "blocks are not as many as scales"),
        ("axis = 1, block_size = 16", (2,), "a scale or zero point of rank 1 for blocks of rank 2"),
        ("axis = 1, block_size = -16", (4, 2), "block_size = -16"),
    ],
)
def test_blocks_that_do_not_fit(attributes: str, shape: tuple[int, ...], said: str) -> None:
    m = model(f"(float[4,32] x) => (uint8[4,32] y) {{ y = QuantizeLinear <{attributes}> (x, s) }}", scales("s", *shape))
    with pytest.raises(UnsupportedError, match=said):
        one_island(m)


def test_more_blocks_than_scales() -> None:
    m = model(
        "(float[64,4] x) => (float[64,4] y) { d = DequantizeLinear <axis = 0, block_size = 16> (w, s)  y = Add (x, d) }",
        integers("w", "INT4", 64, 4), scales("s", 3, 4),
    )  # fmt: skip
    with pytest.raises(UnsupportedError, match="blocks are not as many as scales"):
        one_island(m)


# -- rows of a table

TABLES = [("UINT8", 4, 2), ("UINT8", 8, 1), ("UINT8", 2, 4), ("INT4", 4, 1), ("UINT4", 4, 1)]


@pytest.mark.parametrize("zeros", [True, False])
@pytest.mark.parametrize("width", [64, 40])
@pytest.mark.parametrize(("of", "bits", "per_byte"), TABLES)
def test_gather(of: str, bits: int, per_byte: int, width: int, zeros: bool) -> None:
    """Indices count from the end, too; one that is out of range gives zeros."""
    blocks = -(-width // 16)
    m = model(
        f"""(int64[B,S] i) => (float[B,S,{width}] y) {{
        y = com.microsoft.GatherBlockQuantized <bits = {bits}, block_size = 16, gather_axis = 0, quantize_axis = 1>
        (w, i, s{", z" * zeros}) }}""",
        *[integers("w", of, 50, width // per_byte), scales("s", 50, blocks)],
        *[integers("z", of, 50, -(-blocks // per_byte))] * zeros,
    )
    check(m, {"i": np.asarray([[0, 49, -1], [7, 7, -50]])})
    check(m, {"i": np.asarray([[0, 50, -51]])})


@pytest.mark.parametrize("of", ["INT4", "UINT4"])
def test_a_large_table_is_not_unpacked(of: str) -> None:
    m = model(
        "(int64[B,S] i) => (float[B,S,63] y) { y = com.microsoft.GatherBlockQuantized <block_size = 16> (t, i, ts) }",
        integers("t", of, 101, 63), scales("ts", 101, 4),
    )  # fmt: skip
    island = check(m, {"i": np.asarray([[1, 100, -1, 0]])})
    assert len(island.program.ops) == 1


def test_gather_along_another_axis() -> None:
    m = model(
        """(int32[S] i) => (float16[32,S,3] y) {
        y = com.microsoft.GatherBlockQuantized <block_size = 16, gather_axis = 1, quantize_axis = 0> (w, i, s, z) }""",
        integers("w", "UINT4", 32, 20, 3), scales("s", 2, 20, 3, dtype=np.float16), integers("z", "UINT4", 2, 20, 3),
    )  # fmt: skip
    check(m, {"i": np.asarray([1, 19, 0, -3], np.int32)}, 1e-3)


# -- whole files


@pytest.mark.native
@pytest.mark.compiler("cc")
def test_a_small_language_model_is_claimed() -> None:
    """Embeddings and products in 4 bits, as constants that ONNX Runtime keeps packed."""
    m = model(
        """(int64[B,S] i) => (float[B,S,50] y) { e = com.microsoft.GatherBlockQuantized <block_size = 16> (t, i, ts)
        d = DequantizeLinear <axis = 0, block_size = 32> (w, s, z)  h = MatMul (e, d)  g = Relu (h)
        o = DequantizeLinear <axis = 0, block_size = 16> (v, vs)  y = MatMul (g, o) }""",
        integers("t", "INT4", 50, 64), scales("ts", 50, 4), integers("w", "UINT4", 64, 96), scales("s", 2, 96),
        integers("z", "UINT4", 2, 96), integers("v", "INT4", 96, 50), scales("vs", 6, 50),
    )  # fmt: skip
    session = planned(m)
    assert explain(session).claimed == 6
    for shape in ((1, 1), (2, 9)):
        feeds = {"i": RNG.integers(0, 50, shape)}
        [got], [want] = session.run(None, feeds), cpu(m, feeds)
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-5 * np.abs(want).max())
