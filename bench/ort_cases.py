"""Models of one operator each, at a tiny, a cached and a far size: what `xyntra_bench.ort_efficiency` runs.

A case's ``units`` are what its time is counted in: floating-point operations of products, window taps of pooling, input
elements of reductions, output elements of everything else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

Array = NDArray[Any]
OPSET = 17
TINY, CACHED, FAR = 16, 1 << 15, 1 << 23  # elements: nothing to do, within any L2, beyond it


@dataclass(frozen=True, slots=True, kw_only=True)
class OpCase:
    """One operator at one size. ``feeds`` are run-time inputs, ``weights`` initializers."""

    op: str
    feeds: Mapping[str, Array]
    units: float
    moved: float  # bytes
    weights: Mapping[str, Array] = field(default_factory=dict)
    attributes: Mapping[str, Any] = field(default_factory=dict)
    inputs: Sequence[str] = ()  # in order; default: the feeds, then the weights
    outputs: int = 1
    domain: str = ""

    def model(self) -> bytes:
        names = list(self.inputs) or [*self.feeds, *self.weights]
        made = [f"out{i}" for i in range(self.outputs)]
        node = helper.make_node(self.op, names, made, domain=self.domain, **self.attributes)
        graph = helper.make_graph(
            [node],
            self.op,
            [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in self.feeds.items()],
            [onnx.ValueInfoProto(name=n) for n in made],  # their types come from inference
            [numpy_helper.from_array(a, n) for n, a in self.weights.items()],
        )
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("com.microsoft", 1)]
        inferred = onnx.shape_inference.infer_shapes(helper.make_model(graph, opset_imports=opsets, ir_version=9))
        blob: bytes = inferred.SerializeToString()
        return blob


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A row of the table: ``at(n)`` is its case with about n elements (n^(1/3) along each side of a product)."""

    name: str
    at: Callable[[int], OpCase]
    sizes: tuple[int, int, int] = (TINY, CACHED, FAR)


def floats(*shape: int) -> Array:
    return np.random.default_rng(0).uniform(0.25, 1.0, shape).astype(np.float32)


def _unary(op: str, domain: str = "", source: type = np.float32, **attributes: Any) -> Kind:
    def at(n: int) -> OpCase:
        x = floats(n) if source is np.float32 else (floats(n) * 100).astype(source)
        return OpCase(op=op, feeds={"x": x}, units=n, moved=x.nbytes + 4 * n, attributes=attributes, domain=domain)

    return Kind(name=op, at=at)


def _binary(op: str, source: type = np.float32) -> Kind:
    def at(n: int) -> OpCase:
        x = floats(n) if source is np.float32 else floats(n) > 0.5
        return OpCase(op=op, feeds={"x": x, "y": x.copy()}, units=n, moved=3 * x.nbytes)

    return Kind(name=op, at=at)


def _where(n: int) -> OpCase:
    x = floats(n)
    return OpCase(op="Where", feeds={"c": x > 0.5, "x": x, "y": x.copy()}, units=n, moved=13 * n)


def _rows(op: str, *, domain: str = "", weights: int = 0, keeps: bool = True, outputs: int = 1, **attributes: Any) -> Kind:
    """Along rows of 256 (tiny: 4)."""

    def at(n: int) -> OpCase:
        width = 256 if n > TINY else 4
        x = floats(n // width, width)
        given = {f"w{i}": floats(width) for i in range(weights)}
        size = 8 * n if keeps else 4 * n
        return OpCase(
            op=op, feeds={"x": x}, weights=given, units=n, moved=size, attributes=attributes, domain=domain, outputs=outputs
        )

    return Kind(name=op, at=at)


def _with_axis(op: str, *axis: int, outputs: int = 1, keeps: bool = False) -> Kind:
    """A row operator that takes an integer input beside its data."""

    def at(n: int) -> OpCase:
        width = 256 if n > TINY else 4
        given = {"k": np.array(axis, np.int64)}
        size = 8 * n if keeps else 4 * n
        return OpCase(op=op, feeds={"x": floats(n // width, width)}, weights=given, units=n, moved=size, outputs=outputs)

    return Kind(name=op, at=at)


def _scan(n: int) -> OpCase:
    width = 256 if n > TINY else 4
    x = floats(n // width, width)
    return OpCase(op="CumSum", feeds={"x": x}, weights={"axis": np.array(1, np.int64)}, units=n, moved=8 * n)


def _image(n: int) -> Array:
    side = max(2, math.isqrt(n // 4 if n <= TINY else n // 32))
    return floats(1, 4 if n <= TINY else 32, side, side)


def _pool(op: str, side: int = 3) -> Kind:
    def at(n: int) -> OpCase:
        x = _image(n)
        attributes = {"kernel_shape": [side, side], "pads": [side // 2] * 4}
        return OpCase(op=op, feeds={"x": x}, units=x.size * side * side, moved=8 * x.size, attributes=attributes)

    return Kind(name=op, at=at)


def _global_pool(n: int) -> OpCase:
    x = _image(n)
    return OpCase(op="GlobalAveragePool", feeds={"x": x}, units=x.size, moved=4 * x.size)


def _channels(op: str, weights: int) -> Kind:
    """Normalisation over an image with per-channel parameters."""

    def at(n: int) -> OpCase:
        x = _image(n)
        given = {f"w{i}": floats(x.shape[1]) for i in range(weights)}
        return OpCase(op=op, feeds={"x": x}, weights=given, units=x.size, moved=8 * x.size)

    return Kind(name=op, at=at)


def _resize(mode: str) -> Kind:
    def at(n: int) -> OpCase:
        x = _image(n // 4 if n > TINY else n)
        given = {"scales": np.array([1, 1, 2, 2], np.float32)}
        return OpCase(
            op="Resize", feeds={"x": x}, weights=given, inputs=("x", "", "scales"), units=4 * x.size, moved=20 * x.size,
            attributes={"mode": mode, **({"nearest_mode": "floor"} if mode == "nearest" else {})},
        )  # fmt: skip

    return Kind(name=f"Resize.{mode}", at=at)


def _transpose(name: str, perm: Sequence[int]) -> Kind:
    def at(n: int) -> OpCase:
        inner = 2 if n <= TINY else 64
        outer = max(2, math.isqrt(n // inner))
        x = floats(2, outer // 2 or 1, outer, inner)
        return OpCase(op="Transpose", feeds={"x": x}, units=x.size, moved=8 * x.size, attributes={"perm": list(perm)})

    return Kind(name=name, at=at)


def _concat(n: int) -> OpCase:
    width = 64 if n > TINY else 2
    parts = {f"x{i}": floats(n // width // 2, width) for i in range(2)}
    return OpCase(op="Concat", feeds=parts, units=n, moved=8 * n, attributes={"axis": 1})


def _slice(n: int) -> OpCase:
    width = 128 if n > TINY else 4
    given = {k: np.array([v], np.int64) for k, v in (("starts", 0), ("ends", width // 2), ("axes", 1))}
    return OpCase(op="Slice", feeds={"x": floats(2 * n // width, width)}, weights=given, units=n, moved=8 * n)


def _split(n: int) -> OpCase:
    width = 128 if n > TINY else 4
    return OpCase(op="Split", feeds={"x": floats(n // width, width)}, units=n, moved=8 * n, outputs=2, attributes={"axis": 1})


def _gather(n: int) -> OpCase:
    width = 64 if n > TINY else 4
    rows = np.random.default_rng(0).integers(0, max(1, n // width), n // width)
    return OpCase(op="Gather", feeds={"x": floats(n // width, width), "i": rows}, units=n, moved=8 * n)


def _gather_elements(n: int) -> OpCase:
    width = 64 if n > TINY else 4
    at = np.random.default_rng(0).integers(0, width, (n // width, width))
    return OpCase(
        op="GatherElements", feeds={"x": floats(n // width, width), "i": at}, units=n, moved=16 * n, attributes={"axis": 1}
    )


def _expand(n: int) -> OpCase:
    width = 64 if n > TINY else 4
    given = {"shape": np.array([n // width, width], np.int64)}
    return OpCase(op="Expand", feeds={"x": floats(1, width)}, weights=given, units=n, moved=4 * n)


def _tile(n: int) -> OpCase:
    width = 64 if n > TINY else 4
    given = {"repeats": np.array([2, 1], np.int64)}
    return OpCase(op="Tile", feeds={"x": floats(n // width // 2, width)}, weights=given, units=n, moved=6 * n)


def _pad(n: int) -> OpCase:
    width = 64 if n > TINY else 4
    x = floats(n // width, width)
    return OpCase(op="Pad", feeds={"x": x}, weights={"pads": np.array([1, 1, 1, 1], np.int64)}, units=n, moved=8 * n)


def matmul(m: int, *, constant: bool) -> Callable[[int], OpCase]:
    """[m, k] x [k, k]: n is k."""

    def at(n: int) -> OpCase:
        weight = {"b": floats(n, n)}
        feeds = {"a": floats(m, n), **({} if constant else weight)}
        given = weight if constant else {}
        return OpCase(op="MatMul", feeds=feeds, weights=given, units=2 * m * n * n, moved=4 * n * n)

    return at


def _nbits(m: int, *, bits: int, level: int) -> Callable[[int], OpCase]:
    """The same with weights in few bits, in blocks of 32."""

    def at(n: int) -> OpCase:
        blocks = -(-n // 32)
        q = np.random.default_rng(0).integers(0, 256, (n, blocks, 4 * bits)).astype(np.uint8)
        weights = {"b": q, "scales": floats(n, blocks)}
        attributes = {"K": n, "N": n, "bits": bits, "block_size": 32, "accuracy_level": level}
        return OpCase(
            op="MatMulNBits", domain="com.microsoft", feeds={"a": floats(m, n)}, weights=weights, attributes=attributes,
            units=2 * m * n * n, moved=sum(w.nbytes for w in weights.values()),
        )  # fmt: skip

    return at


def _few_bits() -> Iterator[Kind]:
    """With rows as they are, and rounded to 8 bits."""
    for bits in (4, 8):
        for level, name in ((0, ""), (4, ".int8")):
            for m, rows in ((1, "row"), (8, "few"), (128, "many")):
                sizes = (4, 256, 2048) if m == 1 else SQUARE_SIZES
                yield Kind(name=f"nbits{bits}{name}.{rows}", at=_nbits(m, bits=bits, level=level), sizes=sizes)


def _heads(n: int) -> OpCase:
    """As the scores of attention: 12 heads of 64."""
    feeds = {"a": floats(1, 12, n, 64), "b": floats(1, 12, 64, n)}
    return OpCase(op="MatMul", feeds=feeds, units=2 * 12 * 64 * n * n, moved=4 * 12 * n * n)


def conv(side: int, group: str = "", cin: int = 64, stride: int = 1, rank: int = 2) -> Callable[[int], OpCase]:
    """cin -> 64 channels over an image of n x n (rank 1: n*n)."""

    def at(n: int) -> OpCase:
        groups = {"": 1, "grouped": 4, "depthwise": cin}[group]
        spatial = (n,) * rank if rank > 1 else (n * n,)
        x, w = floats(1, cin, *spatial), floats(64, cin // groups, *(side,) * rank)
        out = math.prod(-(-s // stride) for s in spatial) * 64
        return OpCase(
            op="Conv", feeds={"x": x}, weights={"w": w}, units=2 * out * w[0].size, moved=4 * (x.size + out),
            attributes={"pads": [side // 2] * 2 * rank, "group": groups, "strides": [stride] * rank},
        )  # fmt: skip

    return at


def _conv_transpose(n: int) -> OpCase:
    x, w = floats(1, 64, n, n), floats(64, 64, 2, 2)
    return OpCase(
        op="ConvTranspose", feeds={"x": x}, weights={"w": w}, units=2 * x.size * w[0].size, moved=4 * 5 * x.size,
        attributes={"strides": [2, 2]},
    )  # fmt: skip


def recurrent(op: str, *, gates: int, rows: int, steps: int = 32) -> Callable[[int], OpCase]:
    """Steps of n units, fed with as many."""

    def at(n: int) -> OpCase:
        from xyntra_ep.fusion.estimates.ort_cost import GATE_PRODUCTS

        weights = {"w": floats(1, gates * n, n) / n, "r": floats(1, gates * n, n) / n, "b": floats(1, 2 * gates * n)}
        units = 2 * steps * rows * gates * n * (2 * n + GATE_PRODUCTS)
        return OpCase(
            op=op, feeds={"x": floats(steps, rows, n)}, weights=weights, units=units, moved=4 * steps * gates * n * n,
            attributes={"hidden_size": n},
        )  # fmt: skip

    return at


def _recurrent(op: str, gates: int, rows: int) -> Kind:
    return Kind(name=f"{op}.{'row' if rows == 1 else 'rows'}", at=recurrent(op, gates=gates, rows=rows), sizes=(4, 256, 512))


_UNARY = (
    "Neg", "Abs", "Relu", "Sqrt", "Exp", "Log", "Erf", "Tanh", "Sigmoid", "Softplus", "Softsign", "Elu", "LeakyRelu",
    "HardSigmoid", "HardSwish", "Sin", "Cos", "Floor", "Ceil", "Round", "Reciprocal", "Sign", "IsNaN",
)  # fmt: skip
_BINARY = ("Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual", "PRelu")
IMAGE_SIZES = (2, 14, 56)
SQUARE_SIZES = (4, 256, 1024)

KINDS = [
    *(_unary(op) for op in _UNARY),
    _unary("Clip"),
    _unary("Gelu", domain="com.microsoft"),
    _unary("Not", source=np.bool_),
    _unary("Cast", to=TensorProto.INT64),
    *(_binary(op) for op in _BINARY),
    *(_binary(op, np.bool_) for op in ("And", "Or", "Xor")),
    Kind(name="Where", at=_where),
    _rows("Softmax"),
    _rows("LogSoftmax"),
    _rows("LayerNormalization", weights=2),
    _rows("ReduceMean", keeps=False, axes=[1]),
    _rows("ReduceMax", keeps=False, axes=[1]),
    _with_axis("ReduceSum", 1),
    _rows("ArgMax", keeps=False, axis=1),
    _with_axis("TopK", 2, outputs=2),
    Kind(name="CumSum", at=_scan),
    _pool("MaxPool"),
    _pool("AveragePool"),
    Kind(name="GlobalAveragePool", at=_global_pool),
    _channels("BatchNormalization", 4),
    _channels("InstanceNormalization", 2),
    _resize("nearest"),
    _resize("linear"),
    _resize("cubic"),
    _transpose("Transpose.outer", (0, 2, 1, 3)),
    _transpose("Transpose.inner", (0, 1, 3, 2)),
    Kind(name="Concat", at=_concat),
    Kind(name="Slice", at=_slice),
    Kind(name="Split", at=_split),
    Kind(name="Gather", at=_gather),
    Kind(name="GatherElements", at=_gather_elements),
    Kind(name="Expand", at=_expand),
    Kind(name="Tile", at=_tile),
    Kind(name="Pad", at=_pad),
    Kind(name="product.row", at=matmul(1, constant=True), sizes=(4, 256, 2048)),
    Kind(name="product.few", at=matmul(8, constant=True), sizes=SQUARE_SIZES),
    Kind(name="product.many", at=matmul(128, constant=True), sizes=SQUARE_SIZES),
    Kind(name="product.two", at=matmul(128, constant=False), sizes=SQUARE_SIZES),
    Kind(name="product.heads", at=_heads, sizes=(4, 128, 512)),
    *_few_bits(),
    *(_recurrent(op, gates, rows) for op, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)) for rows in (1, 16)),
    Kind(name="conv.point", at=conv(1), sizes=IMAGE_SIZES),
    Kind(name="conv.window", at=conv(3), sizes=IMAGE_SIZES),
    Kind(name="conv.stem", at=conv(7, cin=3, stride=2), sizes=(2, 56, 224)),
    Kind(name="conv.grouped", at=conv(3, "grouped"), sizes=IMAGE_SIZES),
    Kind(name="conv.depthwise", at=conv(3, "depthwise"), sizes=IMAGE_SIZES),
    Kind(name="conv.line", at=conv(3, rank=1), sizes=IMAGE_SIZES),
    Kind(name="conv.line.grouped", at=conv(9, "grouped", rank=1), sizes=IMAGE_SIZES),
    Kind(name="conv.line.depthwise", at=conv(9, "depthwise", rank=1), sizes=IMAGE_SIZES),
    Kind(name="conv.volume", at=conv(3, cin=16, rank=3), sizes=(2, 6, 16)),
    Kind(name="conv.transposed", at=_conv_transpose, sizes=IMAGE_SIZES),
]
