"""ORT's time for a node: which row of the table, how much work, near or far, and what its optimizer takes away."""

from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import onnx
import pytest

from tests.support.models.graph_from_model import graph_from_model
from tests.support.models.ml_models import single
from tests.support.models.model_text import normal, parse
from tests.support.models.onnx_text import Array, model_of
from tests.support.models.quantised_lstm import DEPTH, quantised_lstm
from xyntra_bench.ort_cases import KINDS
from xyntra_bench.ort_integer_cases import KINDS as OF_INTEGERS
from xyntra_ep.fusion.estimates.ort_cost import (
    GATE_PRODUCTS,
    INTEGERS,
    PICKED,
    QUANTISED_STEP,
    TABLES,
    WITH_TILES,
    WITHOUT_VNNI,
    Ceilings,
    Efficiency,
    Load,
    Rate,
    Sized,
    load,
    load_of,
    of_blocks,
    shared_ns,
    work_ns,
    work_of,
)
from xyntra_ep.fusion.estimates.ort_fusions import absorbed
from xyntra_ep.fusion.trace import OPS
from xyntra_ep.tracea.core_ir.dtypes import DType

MACHINE = Ceilings(gflops=100.0, dram_gbs=10.0, near_bytes=1 << 20)


def loads(text: str, **constants: object) -> list[Load | None]:
    """Of each node of a model whose sizes are all numbers."""
    return loads_of(parse(text, 18, **constants))


def loads_of(model: onnx.ModelProto) -> list[Load | None]:
    graph = graph_from_model(model)

    def sized(name: str) -> Sized | None:
        value = graph.values.get(name)
        if value is None or not name:
            return None
        assert value.shape is not None
        return Sized(shape=tuple(int(n or 0) for n in value.shape), dtype=value.dtype or DType.F32, is_const=value.is_constant)

    found = []
    for node in graph.nodes:
        outputs = [t for t in map(sized, node.outputs) if t is not None]
        found.append(load_of(node, [sized(i) for i in node.inputs], outputs, load()))
    return found


@pytest.mark.parametrize(
    ("text", "constants", "row", "units"),
    [
        ("(float[1,64] x) => (float[1,32] y) { y = MatMul(x, w) }", {"w": normal(64, 32)}, "product.row", 2 * 64 * 32),
        ("(float[64] x) => (float y) { y = MatMul(x, w) }", {"w": normal(64)}, "product.row", 2 * 64),
        ("(float[8,64] x) => (float[8,32] y) { y = MatMul(x, w) }", {"w": normal(64, 32)}, "product.few", 2 * 8 * 64 * 32),
        ("(float[2,9,64] x) => (float[2,9,32] y) { y = MatMul(x, w) }", {"w": normal(64, 32)}, "product.many", 2 * 18 * 64 * 32),
        ("(float[64,9] x, float[64,5] w) => (float[9,5] y) { y = Gemm <transA=1> (x, w) }", {}, "product.two", 2 * 64 * 9 * 5),
        ("(float[2,3,4,8] x, float[2,3,8,5] w) => (float[2,3,4,5] y) { y = MatMul(x, w) }", {}, "product.heads", 2 * 6 * 160),
        ('(float[2,3,4] x, float[3,5] w) => (float[2,4,5] y) { y = Einsum <equation="abc,bd->acd"> (x, w) }', {},
         "product.heads", 2 * 2 * 3 * 4 * 5),
        ("(float[1,8,6,6] x) => (float[1,16,6,6] y) { y = Conv(x, w) }", {"w": normal(16, 8, 1, 1)}, "conv.point", 36 * 256),
        ("(float[1,8,6,6] x) => (float[1,16,4,4] y) { y = Conv(x, w) }", {"w": normal(16, 8, 3, 3)}, "conv.window", 72 * 512),
        ("(float[1,3,6,6] x) => (float[1,16,4,4] y) { y = Conv(x, w) }", {"w": normal(16, 3, 3, 3)}, "conv.stem", 27 * 512),
        ("(float[1,8,6,6] x) => (float[1,8,4,4] y) { y = Conv <group=8> (x, w) }", {"w": normal(8, 1, 3, 3)},
         "conv.depthwise", 2 * 8 * 16 * 9),
        ("(uint8[9,64] x) => (int32[9,32] y) { y = MatMulInteger(x, w) }", {"w": np.ones((64, 32), np.int8)},
         "integers.product.few", 2 * 9 * 64 * 32),
        ("(uint8[1,8,6,6] x) => (int32[1,16,4,4] y) { y = ConvInteger(x, w) }", {"w": np.ones((16, 8, 3, 3), np.int8)},
         "integers.conv.window", 72 * 512),
        ("(uint8[4] x) => (float[4] y) { y = DequantizeLinear(x, s) }", {"s": np.float32(1)}, "DequantizeLinear", 4),
        ("(float[1,8,6] x) => (float[1,64,4] y) { y = Conv(x, w) }", {"w": normal(64, 8, 3)}, "conv.line", 2 * 64 * 4 * 24),
        ("(float[1,8,6] x) => (float[1,8,4] y) { y = Conv <group=8> (x, w) }", {"w": normal(8, 1, 3)},
         "conv.line.depthwise", 2 * 32 * 3),
        ("(float[1,2,6,6] x) => (float[1,2,4,4] y) { y = MaxPool <kernel_shape=[3,3]> (x) }", {}, "MaxPool", 32 * 9),
        ("(float[1,2,7,7] x) => (float[1,2,3,3] y) { y = MaxPool <kernel_shape=[3,3], strides=[2,2]> (x) }", {},
         "MaxPool", 18 * (9 + PICKED)),
        ("(float[1,2,4,4] x) => (float[1,2,2,2] y) { y = AveragePool <kernel_shape=[9,9], pads=[3,3,3,3]> (x) }", {},
         "AveragePool", 8 * 16),
        ("(float[4,8] x) => (float[4] y) { y = ReduceMean <keepdims=0> (x, a) }", {"a": [1]}, "ReduceMean", 32),
        ("(float[4,8] x) => (float[4,8] y) { y = Celu(x) }", {}, "Elu", 32),
        ("(float[2,3,4] x) => (float[3,2,4] y) { y = Transpose <perm=[1,0,2]> (x) }", {}, "Transpose.outer", 24),
        ("(float[2,3,4] x) => (float[2,4,3] y) { y = Transpose <perm=[0,2,1]> (x) }", {}, "Transpose.inner", 24),
    ],
)  # fmt: skip
def test_a_node_is_some_units_of_a_row(text: str, constants: dict[str, object], row: str, units: int) -> None:
    [found] = loads(text, **constants)
    assert found is not None and (found.row, found.units) == (row, units)


def test_convolutions_to_few_channels_take_as_long_as_those_to_a_block() -> None:
    def time_ns(channels: int, rank: int, block: int) -> float:
        image = ",".join("6" * rank)
        text = f"(float[1,8,{image}] x) => (float[1,{channels},{image}] y) {{ y = Conv <pads={[1] * 2 * rank}> (x, w) }}"
        [found] = loads(text, w=normal(channels, 8, *[3] * rank))
        assert found is not None
        return work_ns(found, load(), dataclasses.replace(MACHINE, block=block))

    assert time_ns(3, 2, 16) == pytest.approx(time_ns(16, 2, 16))
    assert time_ns(17, 2, 16) == pytest.approx(time_ns(32, 2, 16))
    assert time_ns(3, 2, 8) == pytest.approx(time_ns(16, 2, 8) / 2)
    # Lines of any number of channels are copied once, and multiplied.
    assert time_ns(3, 1, 16) < time_ns(16, 1, 16) < 16 / 3 * time_ns(3, 1, 16)
    assert time_ns(3, 1, 16) == time_ns(3, 1, 8)


@pytest.mark.parametrize(
    "text",
    [
        "(float[4,8] x) => (float[8,4] y) { y = Reshape(x, s) }",
        "(float[1,4,8] x) => (float[4,1,8] y) { y = Transpose <perm=[1,0,2]> (x) }",
        "(float[4,8] x) => (int64[2] y) { y = Shape(x) }",
    ],
)
def test_what_only_hands_its_input_on_is_no_work(text: str) -> None:
    assert loads(text, s=[8, 4])[-1] is None


@pytest.mark.parametrize(("rows", "row"), [(1, "product.row"), (8, "product.few"), (64, "product.many")])
def test_a_linear_model_is_a_product(rows: int, row: str) -> None:
    """Its weights are attributes."""
    model = single("LinearRegressor", {"x": np.zeros((rows, 4), np.float32)}, fixed=True, coefficients=[1.0] * 12, targets=3)
    node, x = graph_from_model(model).nodes[0], Sized(shape=(rows, 4), dtype=DType.F32)
    found = load_of(node, [x], [Sized(shape=(rows, 3), dtype=DType.F32)], load())
    assert found == Load(row=row, units=2.0 * rows * 12, bytes=48)


@pytest.mark.parametrize(
    ("rows", "level", "row"),
    [(1, "", "nbits4.row"), (8, ", accuracy_level=1", "nbits4.few"), (64, ", accuracy_level=4", "nbits4.int8.many")],
)
def test_a_product_with_few_bits_depends_on_what_its_rows_may_be_rounded_to(rows: int, level: str, row: str) -> None:
    text = f"""g (float[{rows},64] x) => (float[{rows},48] y)
               {{ y = com.microsoft.MatMulNBits <K=64, N=48, bits=4, block_size=32{level}> (x, q, s) }}"""
    weights: dict[str, Array] = {"q": np.zeros((48, 2, 16), np.uint8), "s": np.ones((48, 2), np.float32)}
    [found] = loads_of(model_of(text, weights, contrib=True))
    assert found == Load(row=row, units=2.0 * rows * 64 * 48, bytes=48 * 32)


def test_near_data_costs_computing_and_far_data_the_memory() -> None:
    table = Efficiency(node_ns=300.0, rows={"Add": Rate(flops=50.0, dram=0.5), "Erf": Rate(flops=100.0, dram=0.0)})
    near, far = Load(row="Add", units=1000, bytes=12_000), Load(row="Add", units=1e6, bytes=12e6)
    assert work_ns(near, table, MACHINE) == 1000 * 50 / 100
    assert work_ns(far, table, MACHINE) == 12e6 / (0.5 * 10)
    assert work_ns(Load(row="Erf", units=1e6, bytes=8e6), table, MACHINE) == 1e6  # computing hides the memory
    assert shared_ns(29_000, 2) == 29_000 and shared_ns(40_000, 2) == 20_000


def test_steps_of_a_recurrence_cost_something_and_are_shared_out_one_by_one() -> None:
    table = Efficiency(node_ns=300.0, step_ns=200.0, rows={"LSTM.row": Rate(flops=2.0, dram=0.0)})
    work = work_of(Load(row="LSTM.row", units=1e6, bytes=0, steps=10), table, MACHINE)
    assert work.ns == 1e6 * 2 / 100 + 10 * 200 and work.on(2) == work.ns  # 2.2 us each
    large = work_of(Load(row="LSTM.row", units=1e8, bytes=0, steps=10), table, MACHINE)
    assert large.on(2) == large.ns / 2
    assert work_of(Load(row="LSTM.row", units=1e6, bytes=0), table, MACHINE).ns == 1e6 * 2 / 100


WIDTHS = (256, 512)


@pytest.mark.parametrize("name", ["LSTM.rows", "GRU.row"])
def test_a_recurrence_is_counted_as_its_case_was(name: str) -> None:
    """Products and gates: of few units the gates take a good part."""
    case = next(kind for kind in KINDS if kind.name == name).at(64)
    sized = [Sized(shape=a.shape, dtype=DType.F32) for a in (case.feeds["x"], case.weights["w"], case.weights["r"])]
    node = graph_from_model(onnx.load_from_string(case.model())).nodes[0]
    found = load_of(node, sized, sized[:1], load())
    assert found is not None and found.row == name and found.units == case.units


def test_a_quantised_recurrence_is_a_part_of_that_of_floats() -> None:
    model, feeds = quantised_lstm(width=64, steps=10, rows=1, direction="bidirectional")
    node = graph_from_model(model).nodes[0]
    sized = [Sized(shape=feeds["X"].shape, dtype=DType.F32), *(Sized(shape=(2, k, 256), dtype=DType.I8) for k in (DEPTH, 64))]
    found = load_of(node, sized, sized[:1], load())
    products = 2 * 10 * 2 * 256 * (DEPTH + 64 + GATE_PRODUCTS)
    assert found is not None and (found.row, found.steps, found.bytes) == ("LSTM.row", 10, 2 * 256 * (DEPTH + 64))
    assert found.units == pytest.approx(QUANTISED_STEP * products)


@pytest.mark.parametrize("bits", WIDTHS)
def test_a_committed_table_is_plausible(bits: int) -> None:
    table = load(bits)
    assert 100 <= table.node_ns <= 2000 and 50 <= table.step_ns <= 2000
    for name, rate in table.rows.items():
        assert rate.flops > 0 and 0 <= rate.dram <= 1, name
    products = [r.flops for n, r in table.rows.items() if n in ("product.many", "product.two", "conv.window", "conv.point")]
    assert all(1.0 <= flops <= 4.0 for flops in products), "nobody multiplies faster than the ceiling"
    said = json.loads((TABLES / f"units{bits}.json").read_text(encoding="utf-8"))["environment"]
    assert {"cpu", "cpu_flags", "packages", "threads"} <= said.keys()


def test_every_kind_that_is_measured_has_a_row() -> None:
    assert {kind.name for kind in (*KINDS, *OF_INTEGERS)} == load().rows.keys()


def test_a_table_has_its_own_rows_and_the_usual_ones_beside() -> None:
    own = json.loads((TABLES / "units512.json").read_text(encoding="utf-8"))["rows"]
    table, usual = load(512), load()
    assert {name: table.rows[name] for name in own} == {name: Rate(**row) for name, row in own.items()}
    lacking = usual.rows.keys() - own.keys()
    assert lacking and {name: table.rows[name] for name in lacking} == {name: usual.rows[name] for name in lacking}
    assert {file.stem for file in TABLES.glob("*.json")} == {f"units{bits}" for bits in WIDTHS} | {WITH_TILES}


def test_every_operator_of_ours_has_a_row_or_is_taken_for_the_plainest() -> None:
    table = load()
    shape = Sized(shape=(2, 4, 4, 4), dtype=DType.F32)
    node = graph_from_model(parse("(float[4] x) => (float[4] y) { y = Neg(x) }")).nodes[0]
    for spec in OPS:
        node = dataclasses.replace(node, op_type=spec.name.rpartition(".")[2])
        found = load_of(node, [shape] * 4, [shape], table)
        assert found is None or (found.row in table.rows and math.isfinite(work_ns(found, table, MACHINE))), spec.name


def fused(text: str, **constants: object) -> list[str | None]:
    """What became of each node: None as it is, "" taken in, else the name of its fused form."""
    graph = graph_from_model(parse(text, 21 if "block_size" in text else 18, **constants))
    found = absorbed(graph, [n.id for n in graph.nodes])
    return [found.get(n.id) for n in graph.nodes]


def test_ort_fuses_what_follows_a_convolution() -> None:
    text = "(float[1,8,6,6] x) => (float[1,8,6,6] y) { c = Conv(x, w) a = Add(c, x) y = Relu(a) }"
    assert fused(text, w=normal(8, 8, 1, 1)) == [None, "", ""]


PAIR = "q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z) v = DequantizeLinear(w, s, n) "
QUANTISED = {"s": np.float32(1), "z": np.uint8(0), "n": np.int8(0), "w": np.ones((8, 8, 1, 1), np.int8)}


def test_ort_computes_what_is_between_pairs_in_integers() -> None:
    text = f"(float[1,8,6,6] x) => (uint8[1,8,6,6] y) {{ {PAIR} c = Conv(d, v) r = Relu(c) y = QuantizeLinear(r, s, z) }}"
    assert fused(text, **QUANTISED) == [None, "", "", INTEGERS, "", ""]


def test_ort_computes_in_floats_what_is_not_quantised_again() -> None:
    text = f"(float[1,8,6,6] x) => (float[1,8,6,6] y) {{ {PAIR} y = Conv(d, v) }}"
    assert fused(text, **QUANTISED) == [None, None, None, None]


def test_ort_scales_in_the_product_of_integers() -> None:
    text = """(uint8[4,8] x) => (float[4,8] y)
    { i = MatMulInteger(x, w) f = Cast <to = 1> (i) g = Mul(f, s) y = Add(g, b) }"""
    assert fused(text, w=np.ones((8, 8), np.int8), s=np.float32(1), b=normal(8)) == [None, "", "", ""]


BLOCKS_OF_8 = {"w": np.ones((32, 8), np.int8), "s": np.ones((2, 8), np.float32)}


@pytest.mark.parametrize(
    ("how", "product", "expected"),
    [
        ("axis = 0, block_size = 16", "MatMul(x, d)", ["", "8.int8"]),
        ("axis = 0, block_size = 16", "Gemm(x, d)", ["", "8.int8"]),
        ("axis = 0, block_size = 16", "Add(x, d)", [None, None]),
        ("axis = 1, block_size = 16", "MatMul(x, d)", [None, None]),
        ("axis = 0, block_size = 8", "MatMul(x, d)", [None, None]),
    ],
)
def test_ort_makes_products_of_blocks_its_own(how: str, product: str, expected: list[str | None]) -> None:
    """So that nobody claims the blocks alone, and leaves it a product of floats."""
    text = f"(float[4,32] x) => (float[4,8] y) {{ d = DequantizeLinear <{how}> (w, s) y = {product} }}"
    assert fused(text, **BLOCKS_OF_8) == expected


def test_products_of_blocks_have_rows_of_their_own() -> None:
    made, of_floats = Sized(shape=(4, 8), dtype=DType.F32), Load(row="product.two", units=1e6, bytes=1000)
    for rows, row in ((1, "row"), (4, "few"), (64, "many")):
        found = of_blocks(of_floats, "4", dataclasses.replace(made, shape=(rows, 8)), load())
        assert (found.row, found.units) == (f"nbits4.int8.{row}", 1e6)


@pytest.mark.parametrize(("op", "second"), [("MatMulIntegerToFloat", 1), ("DynamicQuantizeMatMul", 1), ("QGemm", 3)])
def test_products_that_scale_their_sums_are_products(op: str, second: int) -> None:
    """Not elements of their results."""
    [node] = graph_from_model(parse("(float[4] x) => (float[4] y) { y = Neg(x) }")).nodes
    inputs: list[Sized | None] = [Sized(shape=(), dtype=DType.F32, is_const=True)] * 4
    inputs[0], inputs[second] = Sized(shape=(4, 32), dtype=DType.U8), Sized(shape=(32, 8), dtype=DType.I8, is_const=True)
    node = dataclasses.replace(node, op_type=op, domain="com.microsoft")
    found = load_of(node, inputs, [Sized(shape=(4, 8), dtype=DType.F32)], load())
    assert found is not None and (found.row, found.units) == ("integers.product.few", 2 * 4 * 8 * 32)


def test_bytes_without_vnni_take_longer() -> None:
    load_ = Load(row="integers.product.many", units=1e6, bytes=1000)
    with_vnni, without = (work_ns(load_, load(), dataclasses.replace(MACHINE, vnni=vnni)) for vnni in (True, False))
    assert without == pytest.approx(WITHOUT_VNNI * with_vnni)


def test_bytes_by_tiles_have_rows_of_their_own() -> None:
    """All products of bytes, and nothing else."""
    usual, wide, with_tiles = load(), load(512), load(512, tiles=True)
    of_bytes = {name for name in usual.rows if name.startswith("integers.")}
    assert {name for name, rate in with_tiles.rows.items() if rate != wide.rows[name]} == of_bytes
    assert all(wide.rows[name] == usual.rows[name] for name in of_bytes)
    assert with_tiles.rows["integers.product.many"].flops < wide.rows["integers.product.many"].flops


def test_an_activation_that_others_read_before_it_is_not_taken_in() -> None:
    text = "(float[4,8] x) => (float[4,8] y, float[4,8] g) { g = Gemm(x, w) y = Relu(g) }"
    assert fused(text, w=normal(8, 8)) == [None, None]


def test_ort_fuses_gelu_and_layer_normalisation() -> None:
    gelu = "(float[4] x) => (float[4] y) { d = Div(x, r) e = Erf(d) p = Add(e, one) m = Mul(x, p) y = Mul(m, h) }"
    assert fused(gelu, r=1.41421, one=1.0, h=0.5) == ["", "Gelu", "", "", ""]
    norm = """(float[4,8] x) => (float[4,8] y) {
        m = ReduceMean(x, a) s = Sub(x, m) q = Pow(s, two) v = ReduceMean(q, a) w = Add(v, e) r = Sqrt(w)
        d = Div(s, r) k = Mul(d, g) y = Add(k, b) }"""
    assert fused(norm, a=[1], two=2.0, e=1e-5, g=normal(8), b=normal(8)) == ["", "LayerNormalization", *[""] * 7]
