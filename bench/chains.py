"""Small graphs for `bench micro`: one costly operator with what usually follows it, over the shapes that models have."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import onnx

from xyntra_zoo.graph_builder import GraphBuilder, Value
from xyntra_zoo.layers import gelu_erf

Axes = Mapping[str, int]
Shape = tuple[int, ...]
OPSET = 17


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """`build` adds the nodes to a graph and returns the output; it asks for inputs by shape, of which the first dim is
    left dynamic, as exporters leave it."""

    name: str
    build: Callable[[_Graph, Axes], Value]
    axes: tuple[str, ...]
    shapes: tuple[Shape, ...]
    opset: int = OPSET

    def points(self) -> Iterator[Axes]:
        for shape in self.shapes:
            yield dict(zip(self.axes, shape, strict=True))

    def model(self, axes: Axes) -> tuple[onnx.ModelProto, Mapping[str, Shape]]:
        """The model and the shapes of its inputs."""
        graph = _Graph(self.name, self.opset)
        out = self.build(graph, axes)
        graph.g.output("out", out, [f"out_{i}" for i in range(graph.out_rank)])
        return graph.g.model(), graph.inputs


class _Graph:
    """A graph under construction that remembers the shapes of its inputs."""

    def __init__(self, name: str, opset: int) -> None:
        self.g = GraphBuilder(name, opset=opset)
        self.inputs: dict[str, Shape] = {}
        self.out_rank = 2
        self._rng = np.random.default_rng(0)

    def input(self, name: str, *dims: int, first: str = "", free: bool = False) -> Value:
        """``first``: the name of the first dim. ``free``: all dims behind the second are left dynamic, too."""
        self.inputs[name] = dims
        self.out_rank = len(dims)
        inner = [f"{name}_{i}" if free and i > 1 else size for i, size in enumerate(dims)]
        return self.g.input(name, np.float32, [first or f"{name}_0", *inner[1:]])

    def weight(self, name: str, *dims: int) -> Value:
        fan_in = int(np.prod(dims[:-1] if len(dims) == 2 else dims[1:])) or 1
        values = self._rng.standard_normal(dims, dtype=np.float32) / np.float32(np.sqrt(fan_in))
        return self.g.weight(name, values.astype(np.float32))


def _linear(graph: _Graph, axes: Axes) -> Value:
    g, (m, k, n) = graph.g, (axes["m"], axes["k"], axes["n"])
    return g.Add(graph.weight("bias", n), g.MatMul(graph.input("x", m, k), graph.weight("w", k, n)))


def _linear_gelu(graph: _Graph, axes: Axes) -> Value:
    return gelu_erf(graph.g, _linear(graph, axes))


def _residual_norm(graph: _Graph, axes: Axes) -> Value:
    g, (rows, n) = graph.g, (axes["rows"], axes["n"])
    x = g.Add(graph.input("x", rows, n), graph.input("y", rows, n))
    return g.LayerNormalization(x, graph.weight("gain", n), graph.weight("bias", n), axis=-1, epsilon=1e-5)


def _softmax(graph: _Graph, axes: Axes) -> Value:
    return graph.g.Softmax(graph.input("x", axes["rows"], axes["n"]), axis=-1)


def _pointwise(graph: _Graph, axes: Axes) -> Value:
    """`x * sigmoid(x) + y`."""
    g, dims = graph.g, (axes["rows"], axes["n"])
    x = graph.input("x", *dims)
    return g.Add(g.Mul(x, g.Sigmoid(x)), graph.input("y", *dims))


def _attention(graph: _Graph, axes: Axes) -> Value:
    g, dims = graph.g, (1, axes["heads"], axes["seq"], axes["dim"])
    query, key, value = (graph.input(name, *dims) for name in ("query", "key", "value"))
    scores = g.Mul(g.MatMul(query, g.Transpose(key, perm=[0, 1, 3, 2])), g.const(axes["dim"] ** -0.5))
    return g.MatMul(g.Softmax(scores, axis=-1), value)


def _masked(graph: _Graph, axes: Axes) -> Value:
    """`attention` with a constant triangle that is added to the scores, as exporters write it."""
    g, dims = graph.g, (1, axes["heads"], axes["seq"], axes["dim"])
    query, key, value = (graph.input(name, *dims) for name in ("query", "key", "value"))
    scores = g.Mul(g.MatMul(query, g.Transpose(key, perm=[0, 1, 3, 2])), g.const(axes["dim"] ** -0.5))
    triangle = np.where(np.tri(axes["seq"], dtype=bool), np.float32(0), np.float32(-1e9))
    return g.MatMul(g.Softmax(g.Add(scores, g.weight("mask", triangle[None, None])), axis=-1), value)


def _causal(graph: _Graph, axes: Axes) -> Value:
    return graph.g.Attention(*_grouped(graph, axes, axes["seq"], axes["seq"]), is_causal=1)


def _decode(graph: _Graph, axes: Axes) -> Value:
    """One query over ``past`` keys and values."""
    return graph.g.Attention(*_grouped(graph, axes, 1, axes["past"]))


def _grouped(graph: _Graph, axes: Axes, queries: int, keys: int) -> list[Value]:
    """Operands of ONNX's own operator; a key head serves ``heads`` / ``kv`` query heads."""
    pair = [graph.input(name, 1, axes["kv"], keys, axes["dim"]) for name in ("key", "value")]
    return [graph.input("query", 1, axes["heads"], queries, axes["dim"]), *pair]


def _group_query(graph: _Graph, axes: Axes) -> Value:
    """GroupQueryAttention of ``seq`` tokens behind ``past`` keys; ``window`` 0: none."""
    g, heads, kv, dim = graph.g, axes["heads"], axes["kv"], axes["dim"]
    past = [graph.input(name, 1, kv, axes["past"], dim) for name in ("past_key", "past_value")]
    pair = [graph.input(name, 1, axes["seq"], kv * dim) for name in ("key", "value")]
    query = graph.input("query", 1, axes["seq"], heads * dim)
    total = axes["past"] + axes["seq"]
    lengths = g.weight("ends", np.full(1, total - 1, np.int32)), g.weight("total", np.full(1, total, np.int32))
    settings = {"domain": "com.microsoft", "num_heads": heads, "kv_num_heads": kv, "local_window_size": axes["window"] or -1}
    return g.multi("GroupQueryAttention", query, *pair, *past, *lengths, outputs=3, **settings)[0]


def _conv(graph: _Graph, axes: Axes) -> Value:
    return _convolution(graph, axes, axes["c"], axes["n"], group=1)


def _depthwise(graph: _Graph, axes: Axes) -> Value:
    return _convolution(graph, axes, axes["c"], axes["c"], group=axes["c"])


def _convolution(graph: _Graph, axes: Axes, c: int, n: int, *, group: int) -> Value:
    """With bias and Relu, padded to keep the size."""
    x, k = graph.input("x", 1, c, axes["size"], axes["size"]), axes["k"]
    return _relu_conv(graph, x, c, n, group, [k, k], [axes["stride"]] * 2, [1, 1], [k // 2] * 4)


def _few_channels(graph: _Graph, axes: Axes) -> Value:
    """The end of a net: a pointwise convolution to ``c`` channels, from as few, before the one to be seen."""
    x, c, n, k = graph.input("x", 1, 4, axes["size"], axes["size"], free=bool(axes["free"])), axes["c"], axes["n"], axes["k"]
    w = graph.weight("before", c, 4, 1, 1)
    x = graph.g.Relu(graph.g.Conv(x, w, kernel_shape=[1, 1]))
    return _relu_conv(graph, x, c, n, 1, [k, k], [axes["stride"]] * 2, [1, 1], [k // 2] * 4)


def _grouped_conv(graph: _Graph, axes: Axes) -> Value:
    x = graph.input("x", 1, axes["c"], axes["size"], axes["size"], free=bool(axes["free"]))
    k = axes["k"]
    return _relu_conv(graph, x, axes["c"], axes["n"], axes["groups"], [k, k], [axes["stride"]] * 2, [1, 1], [k // 2] * 4)


def _conv1d(graph: _Graph, axes: Axes) -> Value:
    """Padded at both ends by half of what the kernel reaches."""
    x = graph.input("x", 1, axes["c"], axes["length"], free=bool(axes["free"]))
    k, dilation = axes["k"], axes["dilation"]
    pads = [(k - 1) * dilation // 2] * 2
    return _relu_conv(graph, x, axes["c"], axes["n"], axes["groups"], [k], [axes["stride"]], [dilation], pads)


def _relu_conv(
    graph: _Graph, x: Value, c: int, n: int, groups: int, kernel: list[int], strides: list[int], dilations: list[int],
    pads: list[int],
) -> Value:  # fmt: skip
    w, bias = graph.weight("w", n, c // groups, *kernel), graph.weight("bias", n)
    y = graph.g.Conv(x, w, bias, dilations=dilations, group=groups, kernel_shape=kernel, pads=pads, strides=strides)
    return graph.g.Relu(y)


def _conv_transpose(graph: _Graph, axes: Axes) -> Value:
    """Over lines (rank 1) or squares (rank 2)."""
    g, rank, k = graph.g, axes["rank"], axes["k"]
    x = graph.input("x", 1, axes["c"], *[axes["size"]] * rank, free=bool(axes["free"]))
    w, bias = graph.weight("w", axes["c"], axes["n"] // axes["groups"], *[k] * rank), graph.weight("bias", axes["n"])
    y = g.ConvTranspose(
        x, w, bias, group=axes["groups"], kernel_shape=[k] * rank, strides=[axes["stride"]] * rank,
        pads=[axes["pad"]] * (2 * rank), output_padding=[axes["more"]] * rank,
    )  # fmt: skip
    return g.Relu(y)


def _heads_apart(graph: _Graph, axes: Axes) -> Value:
    """The transpose between a projection and attention, and the sum that keeps it from being a view."""
    g, dims = graph.g, (1, axes["seq"], axes["heads"], axes["dim"])
    return g.Transpose(g.Add(graph.input("x", *dims), graph.input("y", *dims)), perm=[0, 2, 1, 3])


def _lstm(graph: _Graph, axes: Axes) -> Value:
    return _recurrent(graph, axes, "LSTM", 4)


def _gru(graph: _Graph, axes: Axes) -> Value:
    return _recurrent(graph, axes, "GRU", 3, linear_before_reset=1)


def _recurrent(graph: _Graph, axes: Axes, op: str, gates: int, **attributes: int) -> Value:
    """Layers as PyTorch exports them: the directions of a step side by side before the next layer."""
    g, n, d = graph.g, axes["hidden"], axes["directions"]
    x = graph.input("x", axes["seq"], axes["batch"], axes["in"], first="sequence")
    depth = axes["in"]
    for layer in range(axes["layers"]):
        given = {"w": (gates * n, depth), "r": (gates * n, n), "b": (2 * gates * n,)}
        w, r, b = (graph.weight(f"{name}{layer}", d, *dims) for name, dims in given.items())
        direction = "bidirectional" if d == 2 else "forward"
        y = g.node(op, x, w, r, b, hidden_size=n, direction=direction, **attributes)
        x = g.Reshape(g.Transpose(y, perm=[0, 2, 1, 3]), g.const([0, 0, -1], np.int64))
        depth = d * n
    return x


GEMM = ("m", "k", "n")
LENGTHS = (128, 512, 1024, 2048, 4096)
RECURRENT = ("seq", "batch", "in", "hidden", "directions", "layers")
# As OCR and speech models have them, tiny ones, batches, and an audio codec's.
_SEQUENCES = (
    (80, 1, 512, 256, 2, 1),
    (200, 1, 80, 512, 1, 2),
    (50, 1, 64, 64, 1, 1),
    (50, 8, 128, 256, 1, 1),
    (50, 32, 128, 256, 1, 1),
    (150, 1, 512, 512, 1, 2),
)
CHAINS = [
    Chain(
        name="linear",
        build=_linear,
        axes=GEMM,
        shapes=(
            (4, 768, 768),
            (16, 768, 3072),
            (33, 512, 512),
            (128, 768, 768),
            (197, 192, 576),
            (384, 768, 768),
            (384, 3072, 768),
            (100, 300, 500),
            (512, 64, 64),
        ),
    ),
    Chain(
        name="linear_gelu",
        build=_linear_gelu,
        axes=GEMM,
        shapes=((16, 768, 3072), (128, 768, 3072), (197, 192, 768), (384, 768, 3072), (49, 1024, 4096)),
    ),
    Chain(
        name="gemv",
        build=_linear,
        axes=GEMM,
        shapes=((1, 768, 768), (1, 768, 3072), (1, 3072, 768), (1, 768, 50257), (1, 4096, 4096), (2, 2048, 2048)),
    ),
    Chain(
        name="few_rows",
        build=_linear,
        axes=GEMM,
        shapes=tuple((m, 4096, 4096) for m in (1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64)),
    ),
    Chain(
        name="residual_norm",
        build=_residual_norm,
        axes=("rows", "n"),
        shapes=((128, 768), (384, 768), (197, 192), (3136, 96), (64, 4096), (500, 333)),
    ),
    Chain(
        name="softmax",
        build=_softmax,
        axes=("rows", "n"),
        shapes=((1536, 128), (4608, 384), (591, 197), (3136, 49), (12, 1024), (8, 32000)),
    ),
    Chain(
        name="pointwise",
        build=_pointwise,
        axes=("rows", "n"),
        shapes=((16, 256), (128, 768), (384, 3072), (2048, 2048), (1000, 77)),
    ),
    Chain(
        name="attention",
        build=_attention,
        axes=("heads", "seq", "dim"),
        shapes=(
            (12, 128, 64),
            (12, 384, 64),
            (3, 197, 64),
            (8, 1024, 64),
            (6, 49, 32),
            (4, 500, 80),
            (8, 512, 128),
            (4, 2048, 64),
            (2, 4096, 64),
            (1, 8192, 64),
            (2, 2048, 256),
        ),
    ),
    Chain(
        name="attention_sizes",
        build=_attention,
        axes=("heads", "seq", "dim"),
        shapes=tuple((heads, seq, dim) for heads, dim in ((8, 32), (8, 64), (4, 128), (2, 256)) for seq in LENGTHS),
    ),
    Chain(
        name="attention_masked",
        build=_masked,
        axes=("heads", "seq", "dim"),
        shapes=tuple((8, seq, 64) for seq in LENGTHS[:4]),
    ),
    Chain(
        name="attention_causal",
        build=_causal,
        axes=("heads", "kv", "seq", "dim"),
        shapes=(*((8, 8, seq, 64) for seq in LENGTHS), (8, 2, 1024, 64), (4, 4, 1024, 128)),
        opset=23,
    ),
    Chain(
        name="attention_group_query",
        build=_group_query,
        axes=("heads", "kv", "seq", "past", "window", "dim"),
        shapes=(
            *((8, 4, seq, 0, window, 64) for seq in (1024, 4096) for window in (0, 256)),
            *((8, 4, 512, 1024, window, 64) for window in (0, 256)),
            *((32, 8, 1, 4095, window, 128) for window in (0, 256)),
        ),
    ),
    Chain(
        name="attention_decode",
        build=_decode,
        axes=("heads", "kv", "past", "dim"),
        shapes=tuple((heads, kv, past, 128) for heads, kv in ((32, 8), (4, 1)) for past in (4096, 8192, 16384, 32768)),
        opset=23,
    ),
    Chain(
        name="conv",
        build=_conv,
        axes=("c", "n", "k", "stride", "size"),
        shapes=(
            (3, 64, 7, 2, 224),
            (64, 64, 3, 1, 56),
            (128, 128, 3, 1, 28),
            (128, 128, 3, 2, 56),
            (256, 256, 3, 1, 14),
            (512, 512, 3, 1, 7),
            (256, 64, 1, 1, 56),
            (64, 256, 1, 1, 56),
            (1024, 256, 1, 1, 14),
            (512, 1024, 1, 2, 28),
            (3, 768, 16, 16, 224),
            (3, 96, 4, 4, 224),
            (24, 144, 1, 1, 56),
            (320, 1280, 1, 1, 7),
        ),
    ),
    Chain(
        name="depthwise",
        build=_depthwise,
        axes=("c", "k", "stride", "size"),
        shapes=(
            (32, 3, 1, 112),
            (96, 3, 2, 112),
            (144, 3, 1, 56),
            (384, 3, 1, 14),
            (960, 3, 1, 7),
            (672, 5, 1, 14),
            (240, 5, 2, 28),
            (96, 7, 1, 56),
        ),
    ),
    Chain(
        name="grouped",
        build=_grouped_conv,
        axes=("c", "n", "groups", "k", "stride", "size", "free"),
        shapes=(
            (128, 128, 32, 3, 1, 56, 0),  # ResNeXt-50 32x4d
            (256, 256, 32, 3, 1, 28, 0),
            (256, 256, 32, 3, 1, 28, 1),
            (512, 512, 32, 3, 1, 14, 0),
            (1024, 1024, 32, 3, 1, 7, 0),
            (512, 512, 32, 3, 2, 28, 0),
            (152, 152, 19, 3, 1, 14, 0),  # RegNets, by their groups of 8 to 112 channels
            (288, 288, 18, 3, 1, 14, 0),
            (168, 168, 7, 3, 1, 28, 0),
            (408, 408, 17, 3, 1, 14, 0),
            (408, 408, 17, 3, 1, 14, 1),
            (912, 912, 38, 3, 1, 7, 0),
            (240, 240, 6, 3, 1, 28, 0),
            (560, 560, 14, 3, 1, 14, 0),
            (512, 512, 8, 3, 1, 14, 0),
            (448, 448, 4, 3, 1, 28, 0),
            (1232, 1232, 11, 3, 1, 14, 0),
            (240, 60, 3, 1, 1, 28, 0),  # ShuffleNet
            (60, 240, 3, 1, 1, 28, 0),
            (480, 120, 3, 1, 1, 14, 0),
            (384, 96, 8, 1, 1, 28, 0),
        ),
    ),
    Chain(
        name="few_channels",
        build=_few_channels,
        axes=("c", "n", "k", "stride", "size", "free"),
        shapes=(
            (32, 3, 9, 1, 224, 0),  # style transfer
            (32, 3, 9, 1, 224, 1),
            (64, 3, 3, 1, 512, 0),  # restoration
            (128, 3, 3, 1, 256, 0),  # decoders of images
            (128, 3, 3, 1, 256, 1),
            (32, 1, 5, 1, 224, 0),  # super-resolution
            (32, 9, 3, 1, 224, 0),
            (16, 1, 3, 1, 320, 0),  # mattes, depth
            (64, 1, 1, 1, 320, 0),
            (256, 21, 1, 1, 65, 0),  # segmentation
            (256, 19, 3, 1, 64, 0),
            (3, 3, 5, 1, 256, 0),
            (64, 2, 3, 2, 128, 1),
        ),
    ),
    Chain(
        name="conv1d",
        build=_conv1d,
        axes=("c", "n", "groups", "k", "stride", "dilation", "length", "free"),
        shapes=(
            (768, 768, 16, 128, 1, 1, 50, 0),  # wav2vec 2.0: positions
            (768, 768, 16, 128, 1, 1, 200, 0),
            (768, 768, 16, 128, 1, 1, 200, 1),
            (768, 768, 16, 128, 1, 1, 500, 0),
            (1, 512, 1, 10, 5, 1, 16000, 0),  # and features
            (512, 512, 1, 3, 2, 1, 3199, 0),
            (512, 512, 1, 3, 2, 1, 799, 0),
            (512, 512, 1, 3, 2, 1, 799, 1),
            (512, 512, 1, 2, 2, 1, 199, 0),
            (64, 64, 1, 3, 1, 1, 1000, 0),  # dilated nets
            (64, 64, 1, 3, 1, 16, 1000, 0),
            (128, 128, 1, 3, 1, 8, 1000, 0),
            (128, 128, 1, 3, 1, 8, 1000, 1),
            (256, 256, 1, 3, 1, 64, 1000, 0),
            (80, 384, 1, 3, 1, 1, 3000, 0),  # Whisper
            (256, 256, 256, 31, 1, 1, 200, 0),  # Conformer
            (512, 512, 512, 31, 1, 1, 500, 0),
            (512, 512, 512, 31, 1, 1, 500, 1),
        ),
    ),
    Chain(
        name="conv_transpose",
        build=_conv_transpose,
        axes=("rank", "c", "n", "groups", "k", "stride", "pad", "more", "size", "free"),
        shapes=(
            (2, 512, 256, 1, 2, 2, 0, 0, 16, 0),  # U-Net
            (2, 256, 128, 1, 2, 2, 0, 0, 32, 0),
            (2, 64, 32, 1, 2, 2, 0, 0, 128, 0),
            (2, 64, 32, 1, 2, 2, 0, 0, 128, 1),
            (2, 512, 256, 1, 4, 2, 1, 0, 8, 0),  # generators
            (2, 128, 64, 1, 4, 2, 1, 0, 32, 0),
            (2, 128, 64, 1, 4, 2, 1, 0, 32, 1),
            (2, 64, 3, 1, 4, 2, 1, 0, 32, 0),
            (2, 128, 64, 1, 3, 2, 1, 1, 56, 0),
            (2, 128, 64, 1, 3, 2, 1, 1, 56, 1),
            (2, 256, 256, 4, 4, 2, 1, 0, 28, 0),
            (2, 64, 64, 64, 4, 2, 1, 0, 56, 0),
            (1, 512, 256, 1, 16, 8, 4, 0, 100, 0),  # vocoders
            (1, 256, 128, 1, 16, 8, 4, 0, 800, 0),
            (1, 128, 64, 1, 4, 2, 1, 0, 6400, 0),
            (1, 128, 64, 1, 4, 2, 1, 0, 6400, 1),
            (1, 64, 32, 1, 4, 2, 1, 0, 12800, 0),
            (1, 256, 128, 1, 10, 5, 0, 0, 400, 0),
        ),
    ),
    Chain(
        name="heads_apart",
        build=_heads_apart,
        axes=("seq", "heads", "dim"),
        shapes=((128, 12, 64), (384, 12, 64), (197, 3, 64), (1024, 8, 64)),
    ),
    Chain(name="lstm", build=_lstm, axes=RECURRENT, shapes=_SEQUENCES),
    Chain(name="gru", build=_gru, axes=RECURRENT, shapes=_SEQUENCES),
]
