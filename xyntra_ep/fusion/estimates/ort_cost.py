"""How long ONNX Runtime's CPU provider would take for a node: a committed table of its efficiency times this machine's ceilings.

There is a table for each width of the units that multiply, because what is no product takes as long on units half as wide, and so
half as many operations at the peak: AVX-512 on units of 256 bits (Zen 4) is like AVX2, not like AVX-512 elsewhere. What a table
lacks is that of the one for 256 bits. Products of bytes by matrix tiles have a table of their own. `python -m
xyntra_bench.ort_efficiency` writes those of the machine at hand, and says what their columns mean. An operator without a row is
taken for the plainest one, so that what is not known makes ORT look fast.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from xyntra_ep.fusion.graph import Node
from xyntra_ep.tracea.core_ir.dtypes import DType

TABLES = Path(__file__).with_name("ort_efficiency")
WITH_TILES = "tiles"  # the table of products of bytes by matrix tiles
USUAL = 256
PARALLEL_NS = 30_000.0  # below, work is not worth sharing out between threads
FEW_ROWS = 16
PICKED = 8  # taps of a pooling window that take as long as picking it out of its row, where it is no neighbour of the one before
GATE_PRODUCTS = 12.5  # what a gate's function costs ORT, in products: states of 64 take it a fifth longer than products tell
QUANTISED_STEP = 0.33  # of what products and gates of floats take, with VNNI: 0.23 to 0.6 (Zen 4, states of 64 to 1024)
CASE_CHANNELS = 64  # of the cases that rows of convolutions were measured with

# What costs ORT a node and nothing more: it hands the buffer on, or computes with a few integers.
_VIEWS = frozenset({"Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity", "Dropout", "Shape", "Size", "Range"})
_PRODUCTS = frozenset({"MatMul", "Gemm", "FusedMatMul"})
_LINEAR = frozenset({"LinearRegressor", "LinearClassifier"})  # products with weights that are attributes
_RECURRENT = frozenset({"LSTM", "GRU", "RNN"})
_MOVES = frozenset({"Gather", "GatherND", "GatherElements", "Slice", "Split", "Concat", "Transpose", "Expand", "Tile", "Pad"})
_POOLS = {"MaxPool": "MaxPool", "AveragePool": "AveragePool", "LpPool": "AveragePool", "QLinearAveragePool": "AveragePool"}
_INPUT_SIZED = ("Reduce", "Arg", "Global", "TopK")  # what such an operator costs follows from what it reads
_LIKE = {
    "FastGelu": "Gelu", "QuickGelu": "Gelu", "BiasGelu": "Gelu", "Mish": "Tanh", "Swish": "Sigmoid", "SwiGLU": "Sigmoid",
    "Selu": "Elu", "Celu": "Elu", "CumProd": "CumSum", "GlobalMaxPool": "GlobalAveragePool",
    "GlobalLpPool": "GlobalAveragePool", "ReduceMin": "ReduceMax", "ReduceProd": "ReduceSum", "ReduceL1": "ReduceSum",
    "ReduceL2": "ReduceSum", "ReduceSumSquare": "ReduceSum", "ReduceLogSum": "ReduceSum", "ArgMin": "ArgMax",
    "SimplifiedLayerNormalization": "LayerNormalization", "SkipLayerNormalization": "LayerNormalization",
    "SkipSimplifiedLayerNormalization": "LayerNormalization", "RMSNormalization": "LayerNormalization",
    "EmbedLayerNormalization": "LayerNormalization", "QEmbedLayerNormalization": "LayerNormalization",
    "QLinearSoftmax": "Softmax", "GatherBlockQuantized": "Gather",
    "GroupNormalization": "InstanceNormalization", "DepthToSpace": "Transpose.inner", "SpaceToDepth": "Transpose.inner",
    "Hardmax": "ArgMax", "GatherND": "Gather", "Tan": "Sin", "Asin": "Sin", "Acos": "Sin", "Atan": "Sin",
}  # fmt: skip
_DEFAULT = "Add"

INTEGERS = "integers."  # rows of products of bytes, as many of them as of floats
BLOCKS = ".int8"  # of products with weights in few bits, whose other operand is rounded to bytes
_OF_INTEGERS = {
    "MatMulInteger": (0, 1),
    "MatMulIntegerToFloat": (0, 1),
    "DynamicQuantizeMatMul": (0, 1),
    "QGemm": (0, 3),
    "QLinearMatMul": (0, 3),
    "ConvInteger": (0, 1),
    "QLinearConv": (0, 3),
}  # what they multiply
# The rows are measured with VNNI. Without it ONNX Runtime multiplies bytes by two instructions in 16 bits: Zen 3, BERT by dynamic
# quantisation at a length of 128, 202 ms, 1.2 times the peak of f32; Zen 4, with VNNI, 3.5 times.
WITHOUT_VNNI = 2.9


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """``flops``: what one unit of work costs near, in floating-point operations at the core's peak. ``dram``: the part of its
    DRAM bandwidth drawn far, 0 where computing hides the memory."""

    flops: float
    dram: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Efficiency:
    """The table. ``node_ns``: what a node costs that has nothing to do; ``step_ns``: a step of a recurrence."""

    node_ns: float
    step_ns: float = 0.0
    rows: Mapping[str, Rate]


@functools.cache
def load(unit_bits: int = USUAL, *, tiles: bool = False) -> Efficiency:
    """The table for cores whose units are so wide, with matrix ``tiles`` of bytes or without."""
    names = [f"units{USUAL}", f"units{unit_bits}", *([WITH_TILES] if tiles else [])]
    found = [json.loads((TABLES / f"{name}.json").read_text(encoding="utf-8")) for name in names]
    both = {**found[0], **found[1]}
    rows = {name: Rate(**row) for table in found for name, row in table["rows"].items()}
    return Efficiency(node_ns=1000.0 * both["node_us"], step_ns=1000.0 * both["step_us"], rows=rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceilings:
    """One core: 10^9 fp32 operations and bytes from DRAM a second, and the cache within which data is near.
    ``unit_bits``: the width of its units, 256 or 512; ``block``: output channels that ORT's convolutions compute together;
    ``vnni``: it multiplies four bytes at once; ``tiles``: and tiles of them."""

    gflops: float
    dram_gbs: float
    near_bytes: int
    unit_bits: int = USUAL
    block: int = 8
    vnni: bool = False
    tiles: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Sized:
    """A tensor at a node's border with its sizes as numbers."""

    shape: tuple[int, ...]
    dtype: DType
    is_const: bool = False

    @property
    def elements(self) -> int:
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        return self.elements * self.dtype.bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What a node does: ``units`` of a row of the table, over ``bytes`` of memory, in ``steps`` that follow from each other.
    ``channels``: output channels, where ORT computes whole blocks of them."""

    row: str
    units: float
    bytes: float
    steps: int = 0
    channels: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Of a node, what it takes one core, in so many ``steps`` that follow from each other."""

    ns: float
    steps: int = 1

    def on(self, threads: int) -> float:
        """With ``threads`` threads: steps are shared out where each is worth it."""
        return self.steps * shared_ns(self.ns / self.steps, threads)


def work_ns(load_: Load, table: Efficiency, ceilings: Ceilings) -> float:
    """On one core, without what every node costs."""
    rate = table.rows[load_.row]
    whole = -(-load_.channels // ceilings.block) * ceilings.block / load_.channels if load_.channels else 1.0
    computing = load_.units * whole * _slower(load_.row, ceilings) * rate.flops / ceilings.gflops + load_.steps * table.step_ns
    is_near = load_.bytes <= ceilings.near_bytes or rate.dram == 0
    return computing if is_near else max(computing, load_.bytes / (rate.dram * ceilings.dram_gbs))


def _slower(row: str, ceilings: Ceilings) -> float:
    """Than the table says, which is of machines with VNNI."""
    return WITHOUT_VNNI if row.startswith(INTEGERS) and not ceilings.vnni else 1.0


def work_of(load_: Load, table: Efficiency, ceilings: Ceilings) -> Work:
    return Work(ns=work_ns(load_, table, ceilings), steps=max(1, load_.steps))


def shared_ns(ns: float, threads: int) -> float:
    """Work that ORT divides evenly, where it is worth it."""
    return ns / threads if ns >= PARALLEL_NS else ns


def load_of(node: Node, inputs: Sequence[Sized | None], outputs: Sequence[Sized], table: Efficiency) -> Load | None:
    """What ``node`` does, None when it only hands its input on. A missing optional input is None."""
    op, given = node.op_type, [t for t in inputs if t is not None]
    if op in _VIEWS or not outputs or not given:
        return None
    made, size = outputs[0], sum(t.bytes for t in (*given, *outputs))
    if op in _OF_INTEGERS:
        multiplied = [t for i in _OF_INTEGERS[op] if (t := inputs[i]) is not None]
        of_floats = _conv(node, multiplied, made, table) if "Conv" in op else _product(node, multiplied, made)
        return of_integers(of_floats, table)
    if op in _PRODUCTS:
        return _product(node, given, made)
    if op == "MatMulNBits":
        return _nbits(node, given, made, table)
    if op in _LINEAR:
        return _linear(node, given[0])
    if op == "Einsum":
        return Load(row="product.heads", units=2.0 * _letters(node, given), bytes=size)
    if op in ("Conv", "ConvTranspose"):
        return _conv(node, given, made, table)
    if op in ("Attention", "MultiHeadAttention"):
        return _attention(node, given, size)
    if op == "QAttention":
        return of_integers(_attention(node, given, size), table)
    if op == "GroupQueryAttention" and len(outputs) > 1:  # the second is the cache after this step
        return Load(row="product.heads", units=4.0 * made.elements * outputs[1].shape[-2], bytes=size)
    if op in _RECURRENT:
        return _recurrent(node, given)
    if op == "DynamicQuantizeLSTM":
        return _quantised_recurrent(given)
    if op in _POOLS:
        window = zip(node.attr("kernel_shape", (1,)), given[0].shape[2:], strict=False)
        taps = math.prod(min(int(k), n) for k, n in window)
        if node.attr("strides", (1,))[-1] != 1:
            taps += PICKED
        return Load(row=_POOLS[op], units=made.elements * taps, bytes=size)
    if op == "Transpose":
        return _transpose(node, given[0], made)
    if op in ("Resize", "Upsample", "GridSample"):
        row = f"Resize.{node.attr('mode', 'nearest')}"
        return Load(row=row if row in table.rows else "Resize.linear", units=made.elements, bytes=size)
    row = _LIKE.get(op, op)
    if op in _MOVES or row.startswith("Transpose"):
        size = 2 * sum(t.bytes for t in outputs)
    units = given[0].elements if op.startswith(_INPUT_SIZED) else sum(t.elements for t in outputs)
    return Load(row=row if row in table.rows else _DEFAULT, units=units, bytes=size)


def of_integers(load_: Load, table: Efficiency) -> Load:
    """The same products of bytes; of floats where nobody measured them."""
    row = INTEGERS + load_.row
    return replace(load_, row=row) if row in table.rows else load_


def _product(node: Node, given: Sequence[Sized], made: Sized) -> Load:
    a, b = given[:2]
    depth = a.shape[-2] if node.op_type == "Gemm" and node.attr("transA", 0) else a.shape[-1]
    columns = made.shape[-1] if made.shape else 1  # two vectors make a scalar
    rows = made.elements // max(1, columns) if b.is_const else made.shape[-2] if len(made.shape) > 1 else 1
    stacked = math.prod(made.shape[:-2]) > 1
    row = _with_weights(rows) if b.is_const or rows == 1 else "product.heads" if stacked else "product.two"
    return Load(row=row, units=2.0 * made.elements * depth, bytes=b.bytes)


def _nbits(node: Node, given: Sequence[Sized], made: Sized, table: Efficiency) -> Load:
    """A product with weights in few bits; ``accuracy_level`` 4 lets ORT round its rows to 8 bits, which is much faster."""
    x, b = given[:2]
    rows, level = _with_weights(x.elements // max(1, x.shape[-1])), ".int8" if node.attr("accuracy_level", 0) == 4 else ""
    row = rows.replace("product", f"nbits{node.attr('bits', 4)}{level}")
    return Load(row=row if row in table.rows else rows, units=2.0 * made.elements * x.shape[-1], bytes=b.bytes)


def of_blocks(load_: Load, bits: str, made: Sized, table: Efficiency) -> Load:
    """The same products with weights that stay in so few ``bits``; of floats where nobody measured them."""
    rows = _with_weights(made.elements // max(1, made.shape[-1]))
    row = rows.replace("product", f"nbits{bits}{BLOCKS}")
    return replace(load_, row=row if row in table.rows else rows)


def _with_weights(rows: int) -> str:
    """The row of a product with a constant matrix."""
    return "product.row" if rows == 1 else "product.few" if rows < FEW_ROWS else "product.many"


def _linear(node: Node, x: Sized) -> Load:
    weights, rows = len(node.attr("coefficients", ())), x.elements // max(1, x.shape[-1])
    return Load(row=_with_weights(rows), units=2.0 * rows * weights, bytes=weights * DType.F32.bytes)


def _attention(node: Node, given: Sequence[Sized], size: float) -> Load:
    """Both products over the scores; ONNX Runtime's own ``Attention`` projects its input to queries, keys and values as well."""
    x, other = given[:2]
    if node.op_type in ("Attention", "QAttention") and node.domain:
        projected = 2.0 * x.elements * other.shape[-1]
        return Load(row="product.many", units=projected + 4.0 * x.elements * x.shape[-2], bytes=size)
    return Load(row="product.heads", units=4.0 * x.elements * other.shape[-2], bytes=size)


def _recurrent(node: Node, given: Sequence[Sized]) -> Load:
    """Products of each step's input and state with the matrices of all gates, and the gates' functions."""
    x, w, r = given[:3]
    rows = x.shape[0 if node.attr("layout", 0) else 1]
    units = 2.0 * math.prod(x.shape[:2]) * math.prod(w.shape[:2]) * (w.shape[2] + r.shape[2] + GATE_PRODUCTS)
    steps = x.shape[1 if node.attr("layout", 0) else 0]
    return Load(row=f"{node.op_type}.{'row' if rows == 1 else 'rows'}", units=units, bytes=w.bytes + r.bytes, steps=steps)


def _quantised_recurrent(given: Sequence[Sized]) -> Load:
    """As an LSTM, whose matrices lie the other way round."""
    x, w, r = given[:3]
    units = 2.0 * math.prod(x.shape[:2]) * w.shape[0] * w.shape[2] * (w.shape[1] + r.shape[1] + GATE_PRODUCTS)
    row = f"LSTM.{'row' if x.shape[1] == 1 else 'rows'}"
    return Load(row=row, units=QUANTISED_STEP * units, bytes=w.bytes + r.bytes, steps=x.shape[0])


def _letters(node: Node, given: Sequence[Sized]) -> int:
    """The size of the space that an Einsum walks."""
    terms = str(node.attr("equation", "")).replace(" ", "").partition("->")[0].split(",")
    sizes = {c: n for term, t in zip(terms, given, strict=False) for c, n in zip(term, t.shape, strict=False)}
    return math.prod(sizes.values())


def _conv(node: Node, given: Sequence[Sized], made: Sized, table: Efficiency) -> Load:
    x, w = given[:2]
    size, group, taps = x.bytes + made.bytes, int(node.attr("group", 1)), math.prod(w.shape[1:])
    if node.op_type == "ConvTranspose":
        # A product, whose elements are then added to where they belong.
        return Load(
            row="conv.transposed",
            units=2.0 * x.elements * taps * _beside("conv.transposed", x.shape[1] / group, table),
            bytes=size,
        )
    rank, window, units = len(w.shape) - 2, math.prod(w.shape[2:]), 2.0 * made.elements * taps
    if rank > 2:
        return Load(row="conv.volume", units=units, bytes=size)
    if group > 1:
        row = f"conv{'.line' if rank < 2 else ''}.{'depthwise' if w.shape[1] == 1 else 'grouped'}"
        return Load(row=row, units=units, bytes=size)
    if rank < 2:  # windows are copied, then multiplied
        return Load(row="conv.line", units=units * _beside("conv.line", w.shape[0], table), bytes=size)
    row = "conv.stem" if w.shape[1] <= 4 else "conv.point" if window == 1 else "conv.window"
    return Load(row=row, units=units, bytes=size, channels=w.shape[0])


def _beside(row: str, channels: float, table: Efficiency) -> float:
    """What a unit of ``row`` costs relative to the case it was measured with: beside a product there are moves, whose share
    falls with the channels that are multiplied."""
    product_, all_ = (table.rows[name].flops for name in ("product.many", row))
    return (product_ + max(0.0, all_ - product_) * CASE_CHANNELS / max(1.0, channels)) / all_


def _transpose(node: Node, x: Sized, made: Sized) -> Load | None:
    rank = len(x.shape)
    perm = [int(p) for p in node.attr("perm", range(rank)[::-1])]
    moved = [p for p in perm if x.shape[p] != 1]
    if moved == sorted(moved):
        return None
    row = "Transpose.outer" if moved[-1] == max(moved) else "Transpose.inner"
    return Load(row=row, units=made.elements, bytes=2 * made.bytes)
