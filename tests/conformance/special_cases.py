"""Every operator alone on special values: NaN, infinities, zeros of both signs, denormals, the largest and their neighbours.

A case is one node and what it is fed. Values stand in all positions of a vector and behind it, since ONNX Runtime's own loops and
ours treat both alike or are wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import ValueInfoProto, helper, numpy_helper

Array = NDArray[Any]
OPSET, CONTRIB = 25, "com.microsoft"
ML, ML_OPSET = "ai.onnx.ml", 3
F32, F16 = np.float32, np.float16


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecialCase:
    """One node. ``feeds`` are inputs, of unknown sizes if they are not ``fixed``, ``constants`` the inputs after them."""

    op: str
    feeds: Sequence[Array]
    constants: Sequence[Array | None] = ()
    attributes: Mapping[str, Any] = field(default_factory=dict)
    domain: str = ""
    label: str = ""
    opset: int = OPSET
    outputs: int = 1
    absolute: float = 0.0  # an error that is allowed where the result is near 0
    fixed: bool = False
    only_strict: bool = False  # docs/precision.md names what is different without ``fp32_strict``

    @property
    def name(self) -> str:
        parts = (self.domain, self.op, self.label, *dict.fromkeys(a.dtype.name for a in self.feeds))
        return "-".join(part for part in parts if part)

    @property
    def inputs(self) -> Mapping[str, Array]:
        return {f"x{i}": a for i, a in enumerate(self.feeds)}

    def model(self) -> onnx.ModelProto:
        constants = {f"c{i}": a for i, a in enumerate(self.constants) if a is not None}
        names = [*self.inputs, *(f"c{i}" if a is not None else "" for i, a in enumerate(self.constants))]
        outputs = [f"y{i}" for i in range(self.outputs)]
        node = helper.make_node(self.op, names, outputs, domain=self.domain, **self.attributes)
        values = [
            helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape if self.fixed else [f"{name}_{i}" for i in range(a.ndim)]
            )
            for name, a in self.inputs.items()
        ]
        initializers = [numpy_helper.from_array(a, name) for name, a in constants.items()]
        graph = helper.make_graph([node], "g", values, [ValueInfoProto(name=name) for name in outputs], initializers)
        opsets = [helper.make_opsetid("", self.opset), helper.make_opsetid(CONTRIB, 1), helper.make_opsetid(ML, ML_OPSET)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def specials(dtype: Any) -> Array:
    """What there is of special values."""
    info = np.finfo(dtype)
    tiny, small, large = info.smallest_subnormal, info.tiny, info.max
    some = [0.0, 1.0, 0.5, 2.0, 3.0, 89.0, 104.0, 1e4, tiny, small, large, np.inf]
    return np.array([*some, *(-v for v in some), np.nan], dtype)


def everywhere(dtype: Any) -> Array:
    """Each special value in every lane of a vector, and in the rest that no vector holds."""
    once = specials(dtype)
    rows = [np.roll(once, k) for k in range(16)]
    return np.concatenate([*rows, once[:7]])


def pairs(dtype: Any) -> tuple[Array, Array]:
    """Each special value with each."""
    once = specials(dtype)
    return np.repeat(once, once.size), np.tile(once, once.size)


@dataclass(frozen=True, slots=True)
class Without:
    """Special values that a case leaves out."""

    nan: bool = False
    infinite: bool = False
    large: bool = False


ALL_VALUES = Without()
# ONNX Runtime's maximum over a vector loses the lane in which it meets NaN: the answer depends on where that stands.
LOST_LANES = Without(nan=True)
# A window of -inf alone is the lowest number to ONNX Runtime at the edges of a plane, -inf in the middle.
EDGES = Without(nan=True, infinite=True)
# Ours are sums in f32. ONNX Runtime's are in double here, or in another order.
OVERFLOWS = Without(large=True)
# ONNX Runtime's sum slides over the channels: what it once took in of NaN or infinity it never gets rid of.
SLIDING = Without(nan=True, infinite=True, large=True)


def rows_with(dtype: Any, length: int, without: Without = ALL_VALUES) -> Array:
    """Rows of tame numbers with special values in them: one in each place, two of a kind, a row of nothing else."""
    rng = np.random.default_rng(3)
    tame = rng.standard_normal(length).astype(dtype)
    info = np.finfo(dtype)

    def wanted(value: float) -> bool:
        left_out = (without.nan and np.isnan(value), without.infinite and np.isinf(value), without.large and value == info.max)
        return not any(left_out)

    rows = [tame]
    for value in filter(wanted, (np.inf, -np.inf, np.nan, 0.0, -0.0, info.max, info.tiny)):
        for at in range(length):
            row = tame.copy()
            row[at] = value
            rows.append(row)
        rows.append(np.full(length, value, dtype))
    for two in ((np.inf, -np.inf), (np.nan, np.inf), (np.nan, -np.inf), (np.inf, np.inf), (-np.inf, -np.inf)):
        if all(map(wanted, two)):
            row = tame.copy()
            row[length // 3], row[length // 2] = two
            rows.append(row)
    return np.stack(rows).astype(dtype)


UNARY = """
    Relu Sqrt Exp Log Sin Cos Tan Asin Acos Atan Sinh Cosh Tanh Asinh Acosh Atanh Erf Sigmoid Softplus Floor Ceil Round Neg Abs
    Reciprocal LeakyRelu HardSigmoid HardSwish Elu Selu Celu Shrink Swish Softsign ThresholdedRelu Mish IsNaN IsInf Identity
"""
BINARY = "Add Sub Mul Div Pow Max Min Mean Sum Equal Less LessOrEqual Greater GreaterOrEqual PRelu"
REDUCTIONS = "Sum Prod Max Min Mean SumSquare L1 L2 LogSum LogSumExp"
CONTRIB_UNARY = ("Gelu", "BiasGelu", "FastGelu", "QuickGelu")


def _unary(dtype: Any) -> list[SpecialCase]:
    x = everywhere(dtype)
    found = [SpecialCase(op=op, feeds=[x]) for op in UNARY.split()]
    # ONNX Runtime's sign of NaN is 0 in f16 alone
    found.append(SpecialCase(op="Sign", feeds=[x if dtype is F32 else x[x == x]]))
    for op in CONTRIB_UNARY:
        bias = [np.zeros(x.size, dtype)] if op == "BiasGelu" else []
        found.append(SpecialCase(op=op, feeds=[x], constants=bias, domain=CONTRIB, absolute=3e-7))
    for how in ("none", "tanh"):
        found.append(SpecialCase(op="Gelu", feeds=[x], attributes={"approximate": how}, label=how, absolute=3e-7))
    found.append(SpecialCase(op="IsInf", feeds=[x], attributes={"detect_negative": 0}, label="positive"))
    for low, high in ((None, 2.0), (-1.0, None), (None, None), (-1.0, 2.0), (3.0, 1.0), (np.nan, 1.0), (0.0, np.nan)):
        limits = [None if v is None else np.array(v, dtype) for v in (low, high)]
        while limits and limits[-1] is None:
            limits.pop()
        found.append(SpecialCase(op="Clip", feeds=[x], constants=limits, label=f"{low}-{high}"))
    for exponent in (0.0, 0.5, 1.0, 2.0, 3.0, -1.0, -2.0, 0.3):
        found.append(SpecialCase(op="Pow", feeds=[x], constants=[np.array(exponent, dtype)], label=str(exponent)))
    return found


def _binary(dtype: Any) -> list[SpecialCase]:
    a, b = pairs(dtype)
    found = [SpecialCase(op=op, feeds=[a, b]) for op in BINARY.split()]
    found.append(SpecialCase(op="Mod", feeds=[a, b], attributes={"fmod": 1}))
    found.append(SpecialCase(op="Where", feeds=[a > b, a, b]))
    return found


def _casts() -> list[SpecialCase]:
    found = []
    for dtype in (F32, F16):
        x = everywhere(dtype)
        ends = [v + d for v in (128.0, 256.0, 32768.0, 2.0**31, 2.0**32, 2.0**63) for d in (-1, 0, 1)]
        edges = [v for v in ends if v < float(np.finfo(dtype).max)]
        x = np.concatenate([x, np.array([s * (v + h) for v in edges for s in (1, -1) for h in (0, 0.5)], dtype)])
        for target in (F32, F16, np.int64, np.int32, np.int8, np.uint8, np.bool_):
            to = helper.np_dtype_to_tensor_dtype(np.dtype(target))
            found.append(SpecialCase(op="Cast", feeds=[x], attributes={"to": to}, label=np.dtype(target).name))
    for source in (np.int64, np.int32, np.int8, np.uint8, np.bool_):
        x = integers(source)
        for target in (F32, F16, np.int64, np.int32, np.int8, np.uint8, np.bool_):
            to = helper.np_dtype_to_tensor_dtype(np.dtype(target))
            found.append(SpecialCase(op="Cast", feeds=[x], attributes={"to": to}, label=np.dtype(target).name))
    return found


def integers(dtype: Any) -> Array:
    """The ends of an integer type, and what is near them."""
    if dtype is np.bool_:
        return np.array([True, False] * 9)
    info = np.iinfo(dtype)
    some = [info.min, info.min + 1, -1, 0, 1, 2, 3, 7, 127, 128, 255, 256, 2**31 - 1, 2**31, info.max - 1, info.max]
    kept = [v for v in some if info.min <= v <= info.max]
    return np.array([*kept, *kept[::-1], *kept[:3]], dtype)


def _integers() -> list[SpecialCase]:
    found = []
    for dtype in (np.int64, np.int32, np.int8, np.uint8):
        x = integers(dtype)
        a, b = np.repeat(x, x.size), np.tile(x, x.size)
        found += [SpecialCase(op=op, feeds=[x]) for op in ("Neg", "Abs", "Sign", "BitwiseNot")]
        found += [SpecialCase(op=op, feeds=[a, b]) for op in ("Add", "Sub", "Mul", "Max", "Min", "Equal", "Less", "LessOrEqual")]
        found += [
            SpecialCase(op=op, feeds=[a, b]) for op in ("Greater", "GreaterOrEqual", "BitwiseAnd", "BitwiseOr", "BitwiseXor")
        ]
        divided = (b != 0) & ~((b == -1) & (a == np.iinfo(dtype).min)) if dtype is not np.uint8 else b != 0
        found += [SpecialCase(op=op, feeds=[a[divided], b[divided]]) for op in ("Div", "Mod")]
        found.append(SpecialCase(op="Mod", feeds=[a[divided], b[divided]], attributes={"fmod": 1}, label="fmod"))
        limits = [np.array(3, dtype), np.array(100, dtype)]
        found += [SpecialCase(op="Clip", feeds=[x], constants=limits[:k], label=str(k)) for k in (1, 2)]
        found.append(SpecialCase(op="Clip", feeds=[x], constants=[None, limits[1]], label="above"))
        matrix = np.stack([np.roll(x, k) for k in range(x.size)])
        axes = [np.array([1])]
        found += [SpecialCase(op=f"Reduce{kind}", feeds=[matrix], constants=axes) for kind in ("Prod", "Max", "Min")]
        # a sum that overflows wraps round here; ONNX Runtime's answers to it are not the same in all versions
        small = np.sign(matrix) * np.minimum(np.abs(matrix // 2), 100)
        found += [SpecialCase(op=f"Reduce{kind}", feeds=[small], constants=axes) for kind in ("Sum", "L1", "SumSquare")]
        found += [SpecialCase(op=f"Arg{kind}", feeds=[matrix], attributes={"axis": 1}) for kind in ("Max", "Min")]
        found.append(SpecialCase(op="CumSum", feeds=[matrix], constants=[np.array(1)]))
        found.append(SpecialCase(op="TopK", feeds=[matrix], constants=[np.array([3])], outputs=2))
    return found


def _quantised() -> list[SpecialCase]:
    """Bytes at both ends; floats of all kinds to bytes. Weights have 7 bits, or ONNX Runtime saturates without VNNI."""
    x = everywhere(F32)
    scale: Array = np.array(0.5, F32)
    finite = np.clip(x[np.isfinite(x)], -1e4, 1e4)
    found = [SpecialCase(op="DynamicQuantizeLinear", feeds=[finite[np.abs(finite) > 1e-30]], outputs=3)]
    image, weights = (np.resize(integers(np.uint8), (1, 4, 5, 5)), np.resize(integers(np.int8) // 2, (3, 4, 3, 3)))
    for dtype in (np.uint8, np.int8):
        bytes_ = integers(dtype)
        rows = np.stack([np.roll(bytes_, k) for k in range(bytes_.size)])
        columns = np.resize(integers(np.int8) // 2, (bytes_.size, 5))
        for zero in (np.iinfo(dtype).min, 0, np.iinfo(dtype).max):
            given: list[Array] = [scale, np.array(zero, dtype)]
            found.append(SpecialCase(op="QuantizeLinear", feeds=[x], constants=given, label=f"{dtype.__name__}-{zero}"))
            blocks: list[Array] = [
                np.resize(np.array([0.5, 0.25], F32), -(-x.size // 16)),
                np.full(-(-x.size // 16), zero, dtype),
            ]
            settings, label = {"axis": 0, "block_size": 16}, f"blocks-{dtype.__name__}-{zero}"
            found.append(SpecialCase(op="QuantizeLinear", feeds=[x], constants=blocks, attributes=settings, label=label))
            found.append(SpecialCase(op="DequantizeLinear", feeds=[bytes_], constants=given, label=str(zero)))
            found.append(SpecialCase(op="MatMulInteger", feeds=[rows], constants=[columns, given[1]], label=str(zero)))
            whole: list[Array] = [*given, columns, scale, np.array(0, np.int8), np.array(300, F32), given[1]]
            found.append(SpecialCase(op="QLinearMatMul", feeds=[rows], constants=whole, label=str(zero)))
    for zero in (0, 255):
        z: Array = np.array(zero, np.uint8)
        pads = {"pads": [1, 1, 1, 1]}
        found.append(SpecialCase(op="ConvInteger", feeds=[image], constants=[weights, z], attributes=pads, label=str(zero)))
        whole = [scale, z, weights, scale, np.array(0, np.int8), np.array(300, F32), z]
        found.append(SpecialCase(op="QLinearConv", feeds=[image], constants=whole, attributes=pads, label=str(zero)))
    found += _of_scaled_bytes()
    return list({case.name: case for case in found}.values())  # the lowest unsigned byte is 0


def _of_scaled_bytes() -> list[SpecialCase]:
    """Each byte with each; scales that are powers of two, so that nothing hangs on how a tie was rounded before."""
    found = []
    half: Array = np.array(0.5, F32)
    share, large, none = np.array(1 / 256, F32), np.array(300, F32), np.array(0, np.int8)

    def add(
        op: str, feeds: Sequence[Array], constants: Sequence[Array | None], label: str, absolute: float = 0.0, **attributes: Any
    ) -> None:
        found.append(
            SpecialCase(
                op=op,
                feeds=feeds,
                constants=constants,
                label=label,
                attributes=attributes,
                domain=CONTRIB,
                fixed=True,
                absolute=absolute,
            )
        )

    for dtype in (np.uint8, np.int8):
        x = integers(dtype)
        a, b = np.repeat(x, x.size), np.tile(x, x.size)
        rows = np.stack([np.roll(x, k) for k in range(x.size)])
        image = np.resize(x, (2, 3, 4, 5))
        columns = np.resize(integers(np.int8) // 2, (x.size, 5))
        for zero in (np.iinfo(dtype).min, 0, np.iinfo(dtype).max):
            z, label = np.array(zero, dtype), f"{dtype.__name__}-{zero}"
            numbers: list[Array] = [half, z]
            for op in ("QLinearAdd", "QLinearMul"):
                add(op, [a], [*numbers, b, *numbers, *numbers], label)
            add("QLinearLeakyRelu", [x], [*numbers, half, z], label, alpha=0.25)
            add("QLinearSigmoid", [x], [*numbers, share, z], label)
            add("QLinearWhere", [a > b, a], [*numbers, np.array(7, dtype), half, np.array(1, dtype), half, z], label)
            add("QLinearSoftmax", [rows], [*numbers, share, z], label, opset=13)
            add("QLinearGlobalAveragePool", [image], [*numbers, half, z], label)
            add("NhwcMaxPool", [image], [], label, kernel_shape=[2, 2])
            add("QLinearAveragePool", [image], [*numbers, half, z], label, kernel_shape=[2, 2], pads=[1, 0, 0, 1])
            gemm: list[Array] = [*numbers, columns, half, none, np.zeros(5, np.int32), large, z]
            add("QGemm", [rows], gemm, label)
            add("MatMulIntegerToFloat", [rows], [columns, half, half, z], label)
            add("QuantizeLinear", [everywhere(F32)], numbers, label)
            add("DequantizeLinear", [x], numbers, label)
    finite = np.clip(everywhere(F32)[np.isfinite(everywhere(F32))], -1e4, 1e4)
    wide = np.resize(finite[np.abs(finite) > 1e-30], (7, 9))
    add("DynamicQuantizeMatMul", [wide], [np.resize(integers(np.int8) // 2, (9, 5)), half], "")
    matrices = [np.resize(integers(np.int8) // 2, (1, k, 20)) for k in (9, 5)]
    parameters: list[Array] = [np.array([1 / 256], F32), np.array([0], np.int8)] * 2
    recurrent = [*matrices, *[None] * 5, *parameters]
    # Large numbers saturate its gates: ONNX Runtime's sigmoid is 0 where it should be small.
    add("DynamicQuantizeLSTM", [wide.reshape(7, 1, 9)], recurrent, "", absolute=1e-7, hidden_size=5)
    return found


def _reductions(dtype: Any, length: int) -> list[SpecialCase]:
    found = []
    label, last, first = str(length), [np.array([1])], [np.array([0])]
    for kind in REDUCTIONS.split():
        # of so few that no vector of them is loaded, or along columns, an extreme is what a loop finds
        lost = LOST_LANES if kind in ("Max", "Min") and length > 3 else OVERFLOWS if kind == "Prod" else ALL_VALUES
        x = rows_with(dtype, length, lost)
        found.append(SpecialCase(op=f"Reduce{kind}", feeds=[x], constants=last, label=label))
        columns = rows_with(dtype, length, ALL_VALUES if kind in ("Max", "Min") else lost).T.copy()
        found.append(SpecialCase(op=f"Reduce{kind}", feeds=[columns], constants=first, label=f"{label}-first"))
    x = rows_with(dtype, length)
    for op in ("ArgMax", "ArgMin"):
        found.append(SpecialCase(op=op, feeds=[x], attributes={"axis": 1}, label=label))
        found.append(SpecialCase(op=op, feeds=[x], attributes={"axis": 1, "select_last_index": 1}, label=f"{label}-last"))
        found.append(SpecialCase(op=op, feeds=[x.T.copy()], attributes={"axis": 0}, label=f"{label}-first"))
    found.append(SpecialCase(op="CumSum", feeds=[x], constants=[np.array(1)], label=label))
    found.append(SpecialCase(op="TopK", feeds=[x], constants=[np.array([2])], outputs=2, label=label))
    return found


def _normalisations(dtype: Any, length: int) -> list[SpecialCase]:
    found = []
    label, x, tame = str(length), rows_with(dtype, length), rows_with(dtype, length, OVERFLOWS)
    for op in ("Softmax", "LogSoftmax", "Hardmax"):
        rows = rows_with(dtype, length, LOST_LANES if op == "Hardmax" and length > 3 else ALL_VALUES)
        found.append(SpecialCase(op=op, feeds=[rows], attributes={"axis": 1}, label=label))
        found.append(SpecialCase(op=op, feeds=[rows.T.copy()], attributes={"axis": 0}, label=f"{label}-first"))
    gamma, beta = np.linspace(-1, 2, length).astype(dtype), np.linspace(3, -1, length).astype(dtype)
    near = 1e-6
    found.append(SpecialCase(op="LayerNormalization", feeds=[tame], constants=[gamma, beta], label=label, absolute=near))
    found.append(SpecialCase(op="RMSNormalization", feeds=[x], constants=[gamma], label=label, absolute=near))
    ones = [tame[None], np.ones_like(tame[None])]
    skip = SpecialCase(
        op="SkipLayerNormalization", feeds=ones, constants=[gamma, beta], domain=CONTRIB, label=label, absolute=near
    )
    found.append(skip)
    for p in (1, 2):
        found.append(SpecialCase(op="LpNormalization", feeds=[x], attributes={"axis": 1, "p": p}, label=f"{label}-{p}"))
    found.append(SpecialCase(op="MeanVarianceNormalization", feeds=[x], attributes={"axes": [1]}, label=label, absolute=near))
    image, one = tame.reshape(len(tame), 1, length), np.array([1], dtype)
    found.append(SpecialCase(op="InstanceNormalization", feeds=[image], constants=[2 * one, one], label=label, absolute=near))
    channels = x[..., None]
    statistics = [np.linspace(a, b, length).astype(dtype) for a, b in ((1, 2), (0, 3), (-1, 1), (0.1, 2))]
    found.append(SpecialCase(op="BatchNormalization", feeds=[channels], constants=statistics, label=label, absolute=near))
    channels = rows_with(dtype, length, SLIDING)[..., None, None]
    found.append(SpecialCase(op="LRN", feeds=[channels], attributes={"size": 3}, label=label))
    return found


def _pools(dtype: Any, length: int) -> list[SpecialCase]:
    found = []

    def image(without: Without = ALL_VALUES) -> Array:
        x = rows_with(dtype, length, without)
        return x.reshape(len(x), 1, length)

    found.append(SpecialCase(op="GlobalAveragePool", feeds=[image()], label=str(length)))
    found.append(SpecialCase(op="GlobalMaxPool", feeds=[image(LOST_LANES if length > 3 else ALL_VALUES)], label=str(length)))
    window = {"kernel_shape": [2, 3], "strides": [1, 2], "pads": [0, 1, 1, 1]}
    for op in ("MaxPool", "AveragePool", "LpPool"):
        found.append(SpecialCase(op=op, feeds=[image()], attributes={"kernel_shape": [2]}, label=f"{length}-1d"))
        x = image(EDGES if op == "MaxPool" else ALL_VALUES)
        plane = np.stack([x, x[:, :, ::-1]], axis=2)
        found.append(SpecialCase(op=op, feeds=[plane], attributes=window, label=f"{length}-2d"))
    return found


def _products(dtype: Any, length: int) -> list[SpecialCase]:
    """Sums of products: each of the first operand's rows has its own special values, and they show where they are multiplied."""
    rng = np.random.default_rng(5)
    label, near = str(length), 1e-5

    def tame(*shape: int) -> Array:
        return rng.standard_normal(shape).astype(dtype)

    def case(
        op: str, feeds: Sequence[Array], constants: Sequence[Array | None] = (), suffix: str = "", **more: Any
    ) -> SpecialCase:
        name = f"{label}-{suffix}" if suffix else label
        return SpecialCase(op=op, feeds=feeds, constants=constants, label=name, absolute=near, **more)

    x = rows_with(dtype, length, OVERFLOWS)
    w, bias = tame(length, 20), tame(20)
    found = [
        case("MatMul", [x], [w]),
        case("MatMul", [tame(7, length), np.ascontiguousarray(x.T)], [], "second"),
        case("FusedMatMul", [x], [w], domain=CONTRIB, attributes={"alpha": 0.5}),
        case("Gemm", [x], [np.ascontiguousarray(w.T), bias], attributes={"transB": 1}),
        case("Einsum", [x], [w], attributes={"equation": "ij,jk->ik"}),
    ]
    if dtype is F32:
        blocks = -(-length // 16)
        scales = rng.uniform(-0.2, 0.2, (20, blocks)).astype(F32)
        few_bits: list[Array] = [rng.integers(0, 256, (20, blocks, 8)).astype(np.uint8), scales]
        settings = {"K": length, "N": 20, "bits": 4, "block_size": 16}
        found.append(case("MatMulNBits", [x], few_bits, domain=CONTRIB, attributes=settings))
        for i in range(0, len(x), 9):
            row = x[i : i + 1]
            found.append(case("MatMulNBits", [row], few_bits, f"row{i}", domain=CONTRIB, attributes=settings, only_strict=True))
    signal = np.ascontiguousarray(np.broadcast_to(x[:, None], (len(x), 2, length)))  # [N, C, L]
    found.append(case("Conv", [signal], [tame(3, 2, 3), tame(3)], "1d", attributes={"pads": [1, 1]}))
    found.append(case("ConvTranspose", [signal], [tame(2, 3, 3), tame(3)], "1d", attributes={"strides": [2]}))
    plane = np.ascontiguousarray(np.stack([signal, signal[:, ::-1] + 1], axis=2))  # [N, C, 2, L]
    found.append(case("Conv", [plane], [tame(3, 2, 2, 3), tame(3)], "2d", attributes={"pads": [1, 1, 1, 1]}))
    found.append(case("Conv", [plane], [tame(2, 1, 2, 3), tame(2)], "depthwise", attributes={"group": 2, "pads": [1, 1, 1, 1]}))
    found.append(case("ConvTranspose", [plane], [tame(2, 3, 2, 3), tame(3)], "2d"))
    if dtype is F32:  # all that ONNX Runtime has
        found += [
            case(op, [x.reshape(1, *x.shape)], [tame(1, gates * 9, length), tame(1, gates * 9, 9)], attributes={"hidden_size": 9})
            for op, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1))
        ]
    return found


def _attentions(dtype: Any, length: int) -> list[SpecialCase]:
    """One special value in queries, keys or values; masks that show them and masks that hide them."""
    rng = np.random.default_rng(6)
    found = []
    mask = rng.standard_normal((length, length)).astype(dtype)
    nothing = mask.copy()
    nothing[1] = -np.inf  # a row that sees nothing
    triangle = np.tril(np.ones((length, length), np.bool_))
    for value in (np.nan, np.inf, -np.inf, 0.0):
        for i, which in enumerate("qkv"):
            heads = [rng.standard_normal((2, 2, length, 8)).astype(dtype) for _ in range(3)]
            heads[i][0, 1, -1, 3] = value
            flat = [np.ascontiguousarray(t.transpose(0, 2, 1, 3)).reshape(2, length, 16) for t in heads]
            hidden = which != "q" and value != 0
            forms: Sequence[tuple[str, str, Sequence[Array], Mapping[str, Any], bool]] = (
                ("Attention", "plain", heads, {}, False),
                ("Attention", "added", [*heads, mask], {}, False),
                ("Attention", "nothing", [*heads, nothing if which != "k" else mask], {}, False),
                ("Attention", "booleans", [*heads, triangle], {}, hidden),
                ("Attention", "causal", heads, {"is_causal": 1}, hidden),
                ("MultiHeadAttention", "plain", flat, {"num_heads": 2}, False),
                ("MultiHeadAttention", "causal", flat, {"num_heads": 2, "unidirectional": 1}, hidden),
            )
            if which == "q":  # of x, of which all three are made
                weights = (rng.standard_normal((16, 48)) / 4).astype(dtype)  # scores near 50 would enlarge what rounding leaves
                joined = [flat[0], weights, np.zeros(48, dtype)]
                contrib = ("com.microsoft.Attention", "plain", joined, {"num_heads": 2}, False)
                causal = ("com.microsoft.Attention", "causal", joined, {"num_heads": 2, "unidirectional": 1}, value != 0)
                forms = (*forms, contrib, causal)
            for op, form, feeds, attributes, only_strict in forms:
                case = SpecialCase(
                    op=op.removeprefix(f"{CONTRIB}."),
                    feeds=feeds,
                    attributes=attributes,
                    domain="" if op == "Attention" else CONTRIB,
                    label=f"{length}-{value}-{which}-{form}",
                    absolute=1e-5,
                    fixed=True,
                    only_strict=only_strict,
                )
                found.append(case)
    return found


def _samples(dtype: Any, length: int) -> list[SpecialCase]:
    """Interpolations: weights that are 0 meet infinity and NaN."""
    found = []
    x = rows_with(dtype, length, OVERFLOWS)
    plane = np.ascontiguousarray(np.stack([x, x[:, ::-1]], axis=1)[:, None])  # [N, 1, 2, L]
    grid = np.random.default_rng(7).uniform(-1.2, 1.2, (len(x), 3, 5, 2)).astype(dtype)
    scales = np.array([1, 1, 2, 1.5], np.float32)

    def add(op: str, feeds: Sequence[Array], constants: Sequence[Array | None], **attributes: str) -> None:
        label = "-".join((str(length), *attributes.values()))
        case = SpecialCase(op=op, feeds=feeds, constants=constants, attributes=attributes, label=label, absolute=1e-5, fixed=True)
        found.append(case)

    for how in ("half_pixel", "asymmetric", "align_corners"):
        for mode in ("nearest", "linear", "cubic"):
            add("Resize", [plane], [None, scales], mode=mode, coordinate_transformation_mode=how)
    for padding in ("zeros", "border", "reflection"):
        for mode in ("nearest", "linear"):
            add("GridSample", [plane, grid], [], mode=mode, padding_mode=padding)
    return found


def _ml(length: int) -> list[SpecialCase]:
    """Features: there is no half precision of them."""
    found = []
    x = rows_with(F32, length)

    def add(op: str, feeds: Sequence[Array], label: str = "", outputs: int = 1, absolute: float = 0.0, **attributes: Any) -> None:
        name = "-".join((str(length), label))
        case = SpecialCase(op=op, feeds=feeds, attributes=attributes, domain=ML, label=name, outputs=outputs, absolute=absolute)
        found.append(case)

    each = np.linspace(-1, 2, length).tolist()
    for label, values in (("each", each), ("all", [0.5])):
        add("Scaler", [x], label, offset=values, scale=values)
        for replaced in (np.nan, np.inf, 0.0):
            add("Imputer", [x], f"{label}-{replaced}", imputed_value_floats=values, replaced_value_float=replaced)
    for norm in ("MAX", "L1", "L2"):
        add("Normalizer", [x], norm, norm=norm)
        for dtype in (np.int32, np.int64):
            wide = np.resize(integers(dtype)[integers(dtype) != np.iinfo(dtype).min], (9, length))
            add("Normalizer", [wide], norm, norm=norm)
    add("Binarizer", [x[~np.isnan(x).any(axis=1)]], threshold=0.25)
    add("ArrayFeatureExtractor", [x, np.array([length - 1, 0])])
    add("FeatureVectorizer", [x, x], inputdimensions=[length - 1, length + 1])
    for how in ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"):
        for classes in (1, 2, 3):
            tame = rows_with(F32, length, OVERFLOWS)
            weights = np.random.default_rng(classes).standard_normal(classes * length).tolist()
            linear = {"coefficients": weights, "intercepts": [0.5, -1.0, 2.0][:classes], "post_transform": how}
            label = f"{how}-{classes}"
            add("LinearRegressor", [tame], label, absolute=1e-5, targets=classes, **linear)
            labels = [7, -2, 5][: max(2, classes)]
            add("LinearClassifier", [tame], label, 2, absolute=1e-5, classlabels_ints=labels, **linear)
    return found


def _rows(dtype: Any) -> list[SpecialCase]:
    parts = (_reductions, _normalisations, _pools, _products, _samples, _attentions)
    return [case for length in (3, 21) for part in parts for case in part(dtype, length)]


def special_cases(dtype: Any = F32) -> Mapping[str, SpecialCase]:
    """All cases by name: those of float32 with integers, or those of another float type."""
    found = [*_unary(dtype), *_binary(dtype), *_rows(dtype)]
    if dtype is F32:
        found += [*_casts(), *_integers(), *_quantised(), *_ml(3), *_ml(21)]
    by_name = {case.name: case for case in found}
    assert len(by_name) == len(found), "two cases of one name"
    return by_name
