"""The operators that `bench device` measures: products, attention, and memory-bound ones, each a model of its own.

A point knows its inputs, the expected values of a few rows in float64, the least work that it needs, and how PyTorch is asked for
the same. Attention always has 16384 tokens and 2048 channels, as in the measurements of FlashAttention's authors (Dao,
"FlashAttention-2", 2023).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper

Array = npt.NDArray[Any]
TYPES = {"fp32": TensorProto.FLOAT, "fp16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16}
BYTES = {"fp32": 4, "fp16": 2, "bf16": 2}
SAMPLED = 16  # rows, or queries of the first head
TOKENS, CHANNELS = 16384, 2048
EPS = 1e-5
WARPGROUPS = "gemm.wgmma"


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """`shapes` of the inputs, of which those in `constant` are weights. `expected` gives the first rows of the output, flattened
    to [rows, last dim], from inputs that were rounded to `precision`; `library` the same operator of torch on tensors there, a
    call of which gives its output. `avoided` are kernel variants that are not to be chosen, to measure what is chosen without
    them."""

    name: str
    precision: str
    shapes: Mapping[str, tuple[int, ...]]
    constant: tuple[str, ...]
    output: tuple[int, ...]
    nodes: tuple[onnx.NodeProto, ...]
    flops: int
    expected: Callable[[Mapping[str, Array]], Array]
    library: Callable[[Any, Mapping[str, Any]], Callable[[], Any]]
    max_err: float
    avoided: tuple[str, ...] = ()

    @property
    def bytes(self) -> int:
        """Read and written once."""
        return BYTES[self.precision] * int(sum(np.prod(shape) for shape in (*self.shapes.values(), self.output)))

    def inputs(self) -> dict[str, Array]:
        """Normal numbers that the precision has, as float32. Weights keep the size of what they multiply."""
        rng = np.random.default_rng(0)
        made = {}
        for name, shape in self.shapes.items():
            x = rng.standard_normal(shape, dtype=np.float32)
            if name in self.constant and len(shape) > 1:
                x /= np.float32(shape[0] ** 0.5)
            made[name] = from_bits(to_bits(x, self.precision), self.precision)
        return made

    def model(self, inputs: Mapping[str, Array]) -> onnx.ModelProto:
        kind = TYPES[self.precision]
        given = [helper.make_tensor_value_info(name, kind, s) for name, s in self.shapes.items() if name not in self.constant]
        weights = [
            helper.make_tensor(name, kind, self.shapes[name], to_bits(inputs[name], self.precision).tobytes(), raw=True)
            for name in self.constant
        ]
        result = helper.make_tensor_value_info("y", kind, self.output)
        graph = helper.make_graph(list(self.nodes), self.name, given, [result], weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def to_bits(x: Array, precision: str) -> Array:
    """float32 as it is stored; bfloat16 as its bits, rounded to nearest even."""
    if precision == "bf16":
        bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
        return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return x.astype(np.float16 if precision == "fp16" else np.float32)


def from_bits(stored: Array, precision: str) -> Array:
    if precision == "bf16":
        return (stored.astype(np.uint32) << 16).view(np.float32)
    return stored.astype(np.float32)


def gemm(side: int, precision: str) -> Point:
    return Point(
        name=f"gemm-{side}-{precision}",
        precision=precision,
        shapes={"x": (side, side), "w": (side, side)},
        constant=("w",),
        output=(side, side),
        nodes=(helper.make_node("MatMul", ["x", "w"], ["y"]),),
        flops=2 * side**3,
        expected=lambda t: t["x"][:SAMPLED].astype(np.float64) @ t["w"],
        library=lambda torch, t: lambda: torch.matmul(t["x"], t["w"]),
        max_err=1e-4 if precision == "fp32" else 2e-2,
    )


def attention(length: int, head: int, precision: str, tokens: int = TOKENS, channels: int = CHANNELS) -> Point:
    """The output is [batch, length, heads, head], as the projection behind it wants it."""
    batch, heads = tokens // length, channels // head
    shape = (batch, heads, length, head)
    nodes = (
        helper.make_node("Constant", [], ["scale"], value=_scalar(head**-0.5, precision)),
        helper.make_node("Transpose", ["k"], ["turned"], perm=[0, 1, 3, 2]),
        helper.make_node("MatMul", ["q", "turned"], ["scores"]),
        helper.make_node("Mul", ["scores", "scale"], ["scaled"]),
        helper.make_node("Softmax", ["scaled"], ["weights"], axis=-1),
        helper.make_node("MatMul", ["weights", "v"], ["context"]),
        helper.make_node("Transpose", ["context"], ["y"], perm=[0, 2, 1, 3]),
    )

    def expected(t: Mapping[str, Array]) -> Array:
        found = []
        for row in range(min(SAMPLED, length * heads)):
            at, of_head = divmod(row, heads)
            q, k, v = (t[name][0, of_head].astype(np.float64) for name in ("q", "k", "v"))
            scores = k @ q[at] * head**-0.5
            weights = np.exp(scores - scores.max())
            found.append(weights @ v / weights.sum())
        return np.array(found)

    def library(torch: Any, t: Mapping[str, Any]) -> Callable[[], Any]:
        attend = torch.nn.functional.scaled_dot_product_attention
        return lambda: attend(t["q"], t["k"], t["v"])

    return Point(
        name=f"attention-s{length}-d{head}-{precision}",
        precision=precision,
        shapes={"q": shape, "k": shape, "v": shape},
        constant=(),
        output=(batch, length, heads, head),
        nodes=nodes,
        flops=4 * batch * heads * length * length * head,
        expected=expected,
        library=library,
        max_err=2e-2,
    )


def rows(kind: str, count: int, width: int, precision: str) -> Point:
    """What memory bounds: a copy (as the least that one node does), softmax and LayerNorm along the last dim."""
    shapes: dict[str, tuple[int, ...]] = {"x": (count, width)}
    weights: tuple[str, ...] = ()
    if kind == "softmax":
        node = helper.make_node("Softmax", ["x"], ["y"], axis=-1)
    elif kind == "layernorm":
        node = helper.make_node("LayerNormalization", ["x", "gain", "bias"], ["y"], axis=-1, epsilon=EPS)
        shapes |= {"gain": (width,), "bias": (width,)}
        weights = ("gain", "bias")
    else:
        node = helper.make_node("Neg", ["x"], ["y"])

    def expected(t: Mapping[str, Array]) -> Array:
        x: Array = t["x"][:SAMPLED].astype(np.float64)
        if kind == "softmax":
            x = np.exp(x - x.max(axis=1, keepdims=True))
            x /= x.sum(axis=1, keepdims=True)
        if kind == "layernorm":
            x = (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + EPS) * t["gain"] + t["bias"]
        if kind == "copy":
            x = -x
        return x

    def library(torch: Any, t: Mapping[str, Any]) -> Callable[[], Any]:
        f = torch.nn.functional
        calls: dict[str, Callable[[], Any]] = {
            "softmax": lambda: torch.softmax(t["x"], -1),
            "layernorm": lambda: f.layer_norm(t["x"], (width,), t["gain"], t["bias"], EPS),
            "copy": lambda: torch.neg(t["x"]),
        }
        return calls[kind]

    return Point(
        name=f"{kind}-{count}x{width}-{precision}",
        precision=precision,
        shapes=shapes,
        constant=weights,
        output=(count, width),
        nodes=(node,),
        flops=0,
        expected=expected,
        library=library,
        max_err=1e-5 if precision == "fp32" else 2e-2,
    )


def _scalar(value: float, precision: str) -> onnx.TensorProto:
    bits = to_bits(np.array([value], np.float32), precision)
    return helper.make_tensor("scale", TYPES[precision], [], bits.tobytes(), raw=True)


def without_warpgroups(point: Point) -> Point:
    """What devices have that know none, by `mma.sync`."""
    return replace(point, name=f"{point.name}-without-wgmma", avoided=(WARPGROUPS,))


LARGE = tuple(gemm(side, precision) for precision in ("bf16", "fp16") for side in (4096, 8192))
POINTS: tuple[Point, ...] = (
    *LARGE,
    *map(without_warpgroups, LARGE),
    gemm(4096, "fp32"),
    *(attention(length, head, "bf16") for head in (64, 128) for length in (512, 1024, 2048, 4096)),
    *(rows(kind, 65536, 1024, precision) for precision in ("fp32", "bf16") for kind in ("copy", "softmax", "layernorm")),
)
# To try the command with: each kind, small enough for a device that a CPU stands in for.
TINY_POINTS: tuple[Point, ...] = (
    gemm(128, "bf16"),
    without_warpgroups(gemm(128, "bf16")),
    gemm(96, "fp32"),
    attention(32, 64, "bf16", tokens=64, channels=128),
    *(rows(kind, 48, 64, "fp32") for kind in ("copy", "softmax", "layernorm")),
)
