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
F32, F16 = np.float32, np.float16


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecialCase:
    """One node. ``feeds`` are inputs of unknown sizes, ``constants`` the inputs after them."""

    op: str
    feeds: Sequence[Array]
    constants: Sequence[Array | None] = ()
    attributes: Mapping[str, Any] = field(default_factory=dict)
    domain: str = ""
    label: str = ""
    opset: int = OPSET
    outputs: int = 1

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
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(a.dtype), [f"{name}_{i}" for i in range(a.ndim)])
            for name, a in self.inputs.items()
        ]
        initializers = [numpy_helper.from_array(a, name) for name, a in constants.items()]
        graph = helper.make_graph([node], "g", values, [ValueInfoProto(name=name) for name in outputs], initializers)
        opsets = [helper.make_opsetid("", self.opset), helper.make_opsetid(CONTRIB, 1)]
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


def rows_with(dtype: Any, length: int, *, nan: bool = True) -> Array:
    """Rows of tame numbers with special values in them: one in each place, then two of a kind, then all of a row."""
    rng = np.random.default_rng(3)
    tame = rng.standard_normal(length).astype(dtype)
    values = [v for v in (np.inf, -np.inf, np.nan, 0.0, -0.0, np.finfo(dtype).max, np.finfo(dtype).tiny) if nan or v == v]
    rows = [tame]
    for value in values:
        for at in range(length):
            row = tame.copy()
            row[at] = value
            rows.append(row)
        rows.append(np.full(length, value, dtype))
    for first, second in ((np.inf, -np.inf), (np.nan, np.inf), (np.nan, -np.inf), (np.inf, np.inf), (-np.inf, -np.inf)):
        if nan or first == first:
            row = tame.copy()
            row[length // 3], row[length // 2] = first, second
            rows.append(row)
    return np.stack(rows).astype(dtype)


UNARY = (
    "Relu Sqrt Exp Log Sin Cos Tan Asin Acos Atan Sinh Cosh Tanh Asinh Acosh Atanh Erf Sigmoid Softplus Floor Ceil Round Neg Abs "
    "Sign Reciprocal Gelu LeakyRelu HardSigmoid HardSwish Elu Selu Celu Shrink Swish Softsign ThresholdedRelu Mish IsNaN IsInf"
).split()
CONTRIB_UNARY = ("Gelu", "FastGelu", "QuickGelu")
BINARY = "Add Sub Mul Div Pow Max Min Mean Sum Equal Less LessOrEqual Greater GreaterOrEqual PRelu".split()
REDUCTIONS = "Sum Prod Max Min Mean SumSquare L1 L2 LogSum LogSumExp".split()


def _unary(dtype: Any) -> list[SpecialCase]:
    x = everywhere(dtype)
    found = [SpecialCase(op=op, feeds=[x]) for op in UNARY]
    found += [SpecialCase(op=op, feeds=[x], domain=CONTRIB) for op in CONTRIB_UNARY]
    found.append(SpecialCase(op="Gelu", feeds=[x], attributes={"approximate": "tanh"}, label="tanh"))
    found.append(SpecialCase(op="Identity", feeds=[x]))
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
    found = [SpecialCase(op=op, feeds=[a, b]) for op in BINARY]
    found.append(SpecialCase(op="Mod", feeds=[a, b], attributes={"fmod": 1}))
    found.append(SpecialCase(op="Where", feeds=[a > b, a, b]))
    return found


def _casts() -> list[SpecialCase]:
    found = []
    for dtype in (F32, F16):
        x = everywhere(dtype)
        edges = [
            v + d for v in (128.0, 256.0, 32768.0, 2.0**31, 2.0**32, 2.0**63) for d in (-1, 0, 1) if v + d < np.finfo(dtype).max
        ]
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
        found += [
            SpecialCase(op=f"Reduce{kind}", feeds=[matrix], constants=axes)
            for kind in ("Sum", "Prod", "Max", "Min", "L1", "SumSquare")
        ]
        found += [SpecialCase(op=f"Arg{kind}", feeds=[matrix], attributes={"axis": 1}) for kind in ("Max", "Min")]
        found.append(SpecialCase(op="CumSum", feeds=[matrix], constants=[np.array(1)]))
        found.append(SpecialCase(op="TopK", feeds=[matrix], constants=[np.array([3])], outputs=2))
    return found


def _rows(dtype: Any) -> list[SpecialCase]:
    found = []
    for length in (3, 21):
        x = rows_with(dtype, length)
        label = str(length)
        found += [SpecialCase(op=f"Reduce{kind}", feeds=[x], constants=[np.array([1])], label=label) for kind in REDUCTIONS]
        found += [
            SpecialCase(op=f"Reduce{kind}", feeds=[x.T.copy()], constants=[np.array([0])], label=f"{label}-first")
            for kind in REDUCTIONS
        ]
        for op in ("ArgMax", "ArgMin"):
            found.append(SpecialCase(op=op, feeds=[x], attributes={"axis": 1}, label=label))
            found.append(SpecialCase(op=op, feeds=[x], attributes={"axis": 1, "select_last_index": 1}, label=f"{label}-last"))
            found.append(SpecialCase(op=op, feeds=[x.T.copy()], attributes={"axis": 0}, label=f"{label}-first"))
        for op in ("Softmax", "LogSoftmax", "Hardmax"):
            found.append(SpecialCase(op=op, feeds=[x], attributes={"axis": 1}, label=label))
            found.append(SpecialCase(op=op, feeds=[x.T.copy()], attributes={"axis": 0}, label=f"{label}-first"))
        gamma, beta = np.linspace(-1, 2, length).astype(dtype), np.linspace(3, -1, length).astype(dtype)
        found.append(SpecialCase(op="LayerNormalization", feeds=[x], constants=[gamma, beta], label=label))
        found.append(SpecialCase(op="RMSNormalization", feeds=[x], constants=[gamma], label=label))
        found.append(
            SpecialCase(
                op="SkipLayerNormalization",
                feeds=[x[None], x[None] * 0 + 1],
                constants=[gamma, beta],
                domain=CONTRIB,
                label=label,
            )
        )
        found.append(SpecialCase(op="LpNormalization", feeds=[x], attributes={"axis": 1, "p": 1}, label=f"{label}-1"))
        found.append(SpecialCase(op="LpNormalization", feeds=[x], attributes={"axis": 1, "p": 2}, label=f"{label}-2"))
        found.append(SpecialCase(op="MeanVarianceNormalization", feeds=[x], attributes={"axes": [1]}, label=label))
        found.append(SpecialCase(op="CumSum", feeds=[x], constants=[np.array(1)], label=label))
        found.append(SpecialCase(op="TopK", feeds=[x], constants=[np.array([2])], outputs=2, label=label))
        image = x.reshape(len(x), 1, length)
        found.append(
            SpecialCase(
                op="InstanceNormalization", feeds=[image], constants=[np.array([2], dtype), np.array([1], dtype)], label=label
            )
        )
        found.append(SpecialCase(op="GlobalAveragePool", feeds=[image], label=label))
        found.append(SpecialCase(op="GlobalMaxPool", feeds=[image], label=label))
        found.append(SpecialCase(op="GlobalLpPool", feeds=[image], label=label))
        for op in ("MaxPool", "AveragePool", "LpPool"):
            found.append(SpecialCase(op=op, feeds=[image], attributes={"kernel_shape": [2]}, label=f"{label}-1d"))
            plane = np.stack([image, image[:, :, ::-1]], axis=2)
            found.append(
                SpecialCase(
                    op=op,
                    feeds=[plane],
                    attributes={"kernel_shape": [2, 3], "strides": [1, 2], "pads": [0, 1, 1, 1]},
                    label=f"{label}-2d",
                )
            )
        channels = image.transpose(0, 2, 1).copy()
        statistics = [np.linspace(a, b, length).astype(dtype) for a, b in ((1, 2), (0, 3), (-1, 1), (0.1, 2))]
        found.append(SpecialCase(op="BatchNormalization", feeds=[channels], constants=statistics, label=label))
        found.append(SpecialCase(op="LRN", feeds=[channels[..., None]], attributes={"size": 3}, label=label))
    return found


def special_cases() -> Mapping[str, SpecialCase]:
    """All cases by name."""
    found = [*_unary(F32), *_binary(F32), *_casts(), *_integers(), *_rows(F32), *_unary(F16), *_binary(F16), *_rows(F16)]
    by_name = {case.name: case for case in found}
    assert len(by_name) == len(found), "two cases of one name"
    return by_name
