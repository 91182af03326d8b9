"""Small nets of common kinds whose sizes only a run knows: each at several sizes, dynamic and fixed.

`bench nets` measures ONNX Runtime and XyntraEP with the model as it is, and both with the sizes fixed before the session is
created. Weights are random: times do not depend on them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from xyntra_bench.errors import BenchError
from xyntra_bench.micro import matches
from xyntra_bench.plan import Budget, Case, Scenario
from xyntra_zoo.graph_builder import GraphBuilder, Value

FAMILY = "nets"
BUDGET = Budget(rounds=5, warmups=2, min_iterations=40, runs_per_iteration=1, min_time_s=2.0, max_time_s=20.0, may_cut=True)
QUICK_BUDGET = Budget(
    rounds=4, warmups=2, min_iterations=16, runs_per_iteration=1, min_time_s=0.0, max_time_s=8.0, may_cut=True, until_sure=False
)
CONTENDERS = ("XyntraEP",)
OPSET = 17
Size = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Net:
    """``build`` makes the output [N, ...] from x, whose dims are ``dims``: numbers are fixed in the model. ``sizes``: of the dims
    that are ``sized``."""

    name: str
    build: Callable[[_Layers, Value], Value]
    rank: int = 4  # of the output
    dims: tuple[int | str, ...] = ("batch", 3, "height", "width")
    sized: tuple[int, ...] = (2, 3)
    sizes: tuple[Size, ...] = ((160, 160), (224, 224), (320, 320), (256, 448), (136, 248))

    def shape(self, size: Size) -> tuple[int, ...]:
        """Of x at one of the sizes, a batch of one."""
        known = dict(zip(self.sized, size, strict=True))
        return tuple(known.get(i, 1 if isinstance(dim, str) else dim) for i, dim in enumerate(self.dims))

    def model(self) -> bytes:
        layers = _Layers(self.name)
        x = layers.g.input("x", np.float32, list(self.dims))
        layers.g.output("y", self.build(layers, x), [f"y_{i}" for i in range(self.rank)])
        return bytes(layers.g.model().SerializeToString())


class _Layers:
    def __init__(self, name: str) -> None:
        self.g = GraphBuilder(name, opset=OPSET)
        self._rng = np.random.default_rng(0)
        self._made = 0

    def weight(self, *dims: int) -> Value:
        self._made += 1
        fan_in = int(np.prod(dims[1:])) or 1
        values = self._rng.standard_normal(dims, dtype=np.float32) * np.float32(np.sqrt(2 / fan_in))
        return self.g.weight(f"w{self._made}", values)

    def linear(self, x: Value, c: int, m: int) -> Value:
        return self.g.Add(self.g.MatMul(x, self.weight(c, m)), self.g.weight(f"b{self._made}", np.zeros(m, np.float32)))

    def norm(self, x: Value, c: int) -> Value:
        self._made += 1
        gain, shift = (self.g.weight(f"{n}{self._made}", np.full(c, v, np.float32)) for n, v in (("gain", 1), ("shift", 0)))
        return self.g.LayerNormalization(x, gain, shift, axis=-1, epsilon=1e-5)

    def gelu(self, x: Value) -> Value:
        erf = self.g.Erf(self.g.Mul(x, self.g.const(np.sqrt(0.5))))
        return self.g.Mul(self.g.Mul(x, self.g.const(0.5)), self.g.Add(erf, self.g.const(1)))

    def conv(self, x: Value, c: int, m: int, *, k: int = 3, stride: int = 1, group: int = 1, act: str = "Relu") -> Value:
        """With bias and activation ("": none), padded to keep the size."""
        y = self.g.Conv(
            x, self.weight(m, c // group, k, k), self.g.weight(f"b{self._made}", np.zeros(m, np.float32)),
            dilations=[1, 1], group=group, kernel_shape=[k, k], pads=[k // 2] * 4, strides=[stride] * 2,
        )  # fmt: skip
        if act == "Silu":
            return self.g.Mul(y, self.g.Sigmoid(y))
        return self.g.node(act, y) if act else y

    def pool(self, x: Value, down: int = 2, across: int = 2) -> Value:
        return self.g.MaxPool(x, kernel_shape=[down, across], strides=[down, across])

    def twice(self, x: Value) -> Value:
        """To twice the size, nearest elements, as detectors and U-Nets do it."""
        scales = self.g.const([1, 1, 2, 2])
        how = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        return self.g.Resize(x, "", scales, mode="nearest", **how)


def _plain(n: _Layers, x: Value) -> Value:
    """3x3 convolutions alone, as in super-resolution and denoising."""
    x = n.conv(x, 3, 32)
    for _ in range(4):
        x = n.conv(x, 32, 32)
    x = n.conv(x, 32, 64, stride=2)
    for _ in range(4):
        x = n.conv(x, 64, 64)
    return x


def _unet(n: _Layers, x: Value) -> Value:
    c, above = 3, []
    for m in (24, 48, 96):
        x = n.conv(n.conv(x, c, m), m, m)
        above.append((x, m))
        x, c = n.pool(x), m
    x, c = n.conv(n.conv(x, c, 192), 192, 192), 192
    for y, m in reversed(above):
        x = n.g.Concat(n.twice(x), y, axis=1)
        x, c = n.conv(n.conv(x, c + m, m), m, m), m
    return n.conv(x, c, 2, k=1, act="")


def _detector(n: _Layers, x: Value) -> Value:
    """As YOLO: stages of split and joined channels, two scales, boxes of both in one tensor."""
    x, c, seen = n.conv(x, 3, 16, stride=2, act="Silu"), 16, []
    for m, blocks in ((32, 1), (64, 2), (128, 2), (256, 1)):
        x = n.conv(x, c, m, stride=2, act="Silu")
        a, b = (n.conv(x, m, m // 2, k=1, act="Silu") for _ in range(2))
        for _ in range(blocks):
            a = n.g.Add(a, n.conv(n.conv(a, m // 2, m // 2, act="Silu"), m // 2, m // 2, act="Silu"))
        x, c = n.conv(n.g.Concat(a, b, axis=1), m, m, k=1, act="Silu"), m
        seen.append(x)
    *_, near, far = seen
    near = n.conv(n.g.Concat(n.twice(far), near, axis=1), 256 + 128, 128, act="Silu")
    heads = [n.conv(n.conv(y, m, 64, act="Silu"), 64, 84, k=1, act="") for y, m in ((near, 128), (far, 256))]
    return n.g.Concat(*(n.g.Reshape(y, n.g.ints(0, 84, -1)) for y in heads), axis=2)


def _resnet(n: _Layers, x: Value) -> Value:
    x, c = n.conv(x, 3, 64, k=7, stride=2), 64
    x = n.g.MaxPool(x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    for m, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        for s in (stride, 1):
            y = n.conv(n.conv(x, c, m, stride=s), m, m, act="")
            x = n.g.Relu(n.g.Add(y, x if (s, c) == (1, m) else n.conv(x, c, m, k=1, stride=s, act="")))
            c = m
    return n.g.Flatten(n.g.GlobalAveragePool(x))


def _mobile(n: _Layers, x: Value) -> Value:
    """Inverted residuals: depthwise between 1x1."""
    x, c = n.conv(x, 3, 32, stride=2), 32
    for m, s in ((16, 1), (24, 2), (24, 1), (32, 2), (32, 1), (64, 2), (64, 1), (96, 1), (160, 2), (160, 1)):
        e = 6 * c
        y = n.conv(n.conv(n.conv(x, c, e, k=1), e, e, stride=s, group=e), e, m, k=1, act="")
        x, c = (n.g.Add(x, y) if (s, c) == (1, m) else y), m
    return n.g.Flatten(n.g.GlobalAveragePool(x))


def _recogniser(n: _Layers, x: Value) -> Value:
    """Of text in lines of one height: rows are pooled away, columns become steps of time."""
    c = 1
    for m, window in ((64, (2, 2)), (128, (2, 2)), (256, None), (256, (2, 1)), (512, None), (512, (2, 1))):
        x, c = n.conv(x, c, m), m
        x = n.pool(x, *window) if window else x
    x = n.g.Transpose(n.g.ReduceMean(x, axes=[2], keepdims=0), perm=[0, 2, 1])
    return n.g.Softmax(n.g.MatMul(x, n.weight(512, 96)), axis=-1)


def _segmenter(n: _Layers, x: Value) -> Value:
    """Features at a quarter of the size, brought back to that of the image by interpolation."""
    y = n.conv(n.conv(n.conv(x, 3, 32, stride=2), 32, 64, stride=2), 64, 64)

    def dims(t: Value, first: int) -> Value:
        return n.g.Slice(n.g.Shape(t), n.g.ints(first), n.g.ints(first + 2))

    sizes = n.g.Concat(dims(y, 0), dims(x, 2), axis=0)
    y = n.g.Resize(y, "", "", sizes, mode="linear", coordinate_transformation_mode="half_pixel")
    return n.conv(y, 64, 8, k=1, act="")


def _denoiser(n: _Layers, x: Value) -> Value:
    """A residual block of a diffusion net, twice: group normalisation as exporters write it."""
    x = n.conv(x, 4, 128, act="")
    ones, zeros = (n.g.weight(name, np.full((1, 128, 1, 1), v, np.float32)) for name, v in (("gain", 1), ("shift", 0)))
    one, zero = (n.g.weight(name, np.full(32, v, np.float32)) for name, v in (("one", 1), ("zero", 0)))

    def normal(y: Value) -> Value:
        groups = n.g.InstanceNormalization(n.g.Reshape(y, n.g.ints(0, 32, -1)), one, zero, epsilon=1e-5)
        z = n.g.Add(n.g.Mul(n.g.Reshape(groups, n.g.Shape(y)), ones), zeros)
        return n.g.Mul(z, n.g.Sigmoid(z))

    for _ in range(2):
        y = n.conv(normal(x), 128, 128, act="")
        x = n.g.Add(x, n.conv(normal(y), 128, 128, act=""))
    return x


def _encoder(n: _Layers, x: Value, c: int, layers: int) -> Value:
    """Of a transformer, over [N, length, ``c``]: heads of 64."""
    for _ in range(layers):
        y = n.norm(x, c)
        heads = [n.g.Reshape(n.linear(y, c, c), n.g.ints(0, 0, c // 64, 64)) for _ in range(3)]
        q, k, v = (n.g.Transpose(h, perm=perm) for h, perm in zip(heads, ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]), strict=True))
        seen = n.g.Softmax(n.g.Mul(n.g.MatMul(q, k), n.g.const(0.125)), axis=-1)
        z = n.g.Reshape(n.g.Transpose(n.g.MatMul(seen, v), perm=[0, 2, 1, 3]), n.g.ints(0, 0, c))
        x = n.g.Add(x, n.linear(z, c, c))
        x = n.g.Add(x, n.linear(n.gelu(n.linear(n.norm(x, c), c, 4 * c)), 4 * c, c))
    return n.norm(x, c)


def _transformer(n: _Layers, x: Value) -> Value:
    return _encoder(n, x, 384, 3)


def _speech(n: _Layers, x: Value) -> Value:
    """As Whisper's encoder: two 1-D convolutions over a spectrogram, then attention over all of time."""
    for c, stride in ((80, 1), (256, 2)):
        y = n.g.Conv(
            x, n.weight(256, c, 3), n.g.weight(f"b{c}", np.zeros(256, np.float32)),
            dilations=[1], group=1, kernel_shape=[3], pads=[1, 1], strides=[stride],
        )  # fmt: skip
        x = n.gelu(y)
    return _encoder(n, n.g.Transpose(x, perm=[0, 2, 1]), 256, 3)


NETS = (
    Net(name="plain", build=_plain),
    Net(name="unet", build=_unet),
    Net(name="detector", build=_detector, rank=3, sizes=((320, 320), (416, 416), (640, 640), (256, 448), (480, 640))),
    Net(name="resnet", build=_resnet, rank=2),
    Net(name="mobile", build=_mobile, rank=2),
    Net(
        name="recogniser", build=_recogniser, rank=3, dims=("batch", 1, 32, "width"),
        sizes=((32, 96), (32, 160), (32, 320), (32, 640), (32, 200)),
    ),
    Net(name="segmenter", build=_segmenter),
    Net(
        name="denoiser", build=_denoiser, dims=("batch", 4, "height", "width"),
        sizes=((32, 32), (64, 64), (48, 80), (96, 96), (40, 104)),
    ),
    Net(
        name="speech", build=_speech, rank=3, dims=("batch", 80, "frames"), sized=(2,),
        sizes=((100,), (300,), (500,), (1000,), (1500,)),
    ),
    Net(
        name="transformer", build=_transformer, rank=3, dims=("batch", "sequence", 384), sized=(1,),
        sizes=((16,), (64,), (128,), (300,), (512,)),
    ),
)  # fmt: skip


def net_cases(pattern: str, threads: Sequence[int], folder: Path) -> tuple[Case, ...]:
    """The points whose name matches, as in `unet` or `*/224x224`; their models are written to `folder`."""
    points = [(net, size) for net in NETS for size in net.sizes]
    wanted = [(net, size) for net, size in points if matches(point_name(net, size), pattern)]
    if not wanted:
        raise BenchError(f"'{pattern}': no net of that name. there are {', '.join(net.name for net in NETS)}")
    files = {net.name: folder / f"{net.name}.onnx" for net, _ in wanted}
    for net in NETS:
        if net.name in files:
            files[net.name].write_bytes(net.model())
    return tuple(
        Case(
            model=point_name(net, size),
            family=FAMILY,
            scenario=Scenario.SPECIALISED,
            threads=count,
            file=str(files[net.name]),
            shapes={"x": net.shape(size)},
        )
        for net, size in wanted
        for count in threads
    )


def point_name(net: Net, size: Size) -> str:
    """
    >>> point_name(NETS[0], (160, 224))
    'plain/160x224'
    """
    return f"{net.name}/{'x'.join(map(str, size))}"
