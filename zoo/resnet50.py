"""ResNet-50 (v1.5) as exported in training form: Conv and BatchNormalization stay separate nodes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import onnx

from zoo.graph_builder import GraphBuilder, Value
from zoo.layers import linear_2d
from zoo.model import Checkpoint, Family, Feeds, ZooModel
from zoo.params import F32, Init, OverlayParams, Params

BN_EPS = 1e-5
EXPANSION = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class ResNetConfig:
    blocks: tuple[int, ...]  # bottlenecks per stage
    width: int  # channels of the stem and of the first stage's 3x3
    image: int
    classes: int


def resnet(params: Params, c: ResNetConfig) -> onnx.ModelProto:
    """With random weights the statistics are measured first: unfitting ones give zeros or infinities."""
    if params.synthetic:
        params = OverlayParams(params, _measured_statistics(params, c))
    return _Network(params, c, measure=False).model()


class _Network:
    """One construction of the graph. With `measure`, each BatchNormalization normalises by the statistics of
    its own batch and returns them as outputs, so one run yields the statistics of all layers."""

    def __init__(self, params: Params, c: ResNetConfig, *, measure: bool) -> None:
        self.g = GraphBuilder("resnet", opset=13)
        self.p = params
        self.c = c
        self.measure = measure
        self.measured: list[tuple[str, Value]] = []

    def model(self) -> onnx.ModelProto:
        g, c = self.g, self.c
        x = g.input("pixel_values", np.float32, ["batch", 3, c.image, c.image])
        x = g.Relu(self.conv_bn(x, "conv1", "bn1", 3, c.width, kernel=7, stride=2))
        x = g.MaxPool(x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], ceil_mode=0)
        channels = c.width
        for stage, blocks in enumerate(c.blocks, start=1):
            for block in range(blocks):
                with g.scope(f"layer{stage}/layer{stage}.{block}"):
                    stride = 2 if stage > 1 and block == 0 else 1
                    width = c.width << (stage - 1)
                    x = self.bottleneck(x, f"layer{stage}.{block}", channels, width, stride)
                    channels = width * EXPANSION
        x = g.Flatten(g.GlobalAveragePool(x), axis=1)
        g.output("logits", linear_2d(g, self.p, x, "fc", channels, c.classes), ["batch", c.classes])
        for name, value in self.measured:
            g.output(name, value, ["channels"])
        return g.model()

    def bottleneck(self, x: Value, name: str, channels: int, width: int, stride: int) -> Value:
        g = self.g
        out = width * EXPANSION
        y = g.Relu(self.conv_bn(x, f"{name}.conv1", f"{name}.bn1", channels, width, kernel=1, stride=1))
        y = g.Relu(self.conv_bn(y, f"{name}.conv2", f"{name}.bn2", width, width, kernel=3, stride=stride))
        y = self.conv_bn(y, f"{name}.conv3", f"{name}.bn3", width, out, kernel=1, stride=1)
        if stride != 1 or channels != out:
            down = f"{name}.downsample"
            x = self.conv_bn(x, f"{down}.0", f"{down}.1", channels, out, kernel=1, stride=stride)
        return g.Relu(g.Add(y, x))

    def conv_bn(self, x: Value, conv: str, norm: str, n_in: int, n_out: int, *, kernel: int, stride: int) -> Value:
        g = self.g
        name = f"{conv}.weight"
        weight = g.weight(name, self.p(name, (n_out, n_in, kernel, kernel), Init.CONV))
        pad = kernel // 2
        x = g.Conv(
            x,
            weight,
            dilations=[1, 1],
            group=1,
            kernel_shape=[kernel, kernel],
            pads=[pad] * 4,
            strides=[stride] * 2,
        )
        gain = g.weight(f"{norm}.weight", self.p(f"{norm}.weight", (n_out,), Init.GAIN))
        bias = g.weight(f"{norm}.bias", self.p(f"{norm}.bias", (n_out,), Init.BIAS))
        mean, variance = self.statistics(x, norm, n_out)
        return g.BatchNormalization(x, gain, bias, mean, variance, epsilon=BN_EPS, momentum=0.9)

    def statistics(self, x: Value, norm: str, n: int) -> tuple[Value, Value]:
        g = self.g
        names = (f"{norm}.running_mean", f"{norm}.running_var")
        if not self.measure:
            inits = (Init.BIAS, Init.VARIANCE)
            mean, variance = (g.weight(name, self.p(name, (n,), init)) for name, init in zip(names, inits, strict=True))
            return mean, variance
        mean = g.ReduceMean(x, axes=[0, 2, 3], keepdims=1)
        centred = g.Sub(x, mean)
        variance = g.ReduceMean(g.Mul(centred, centred), axes=[0, 2, 3], keepdims=0)
        mean = g.Reshape(mean, g.ints(-1))
        self.measured += zip(names, (mean, variance), strict=True)
        return mean, variance


def _measured_statistics(params: Params, c: ResNetConfig) -> dict[str, F32]:
    import onnxruntime as ort  # building other models does not need a runtime

    network = _Network(params, c, measure=True).model()
    session = ort.InferenceSession(network.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()][1:]
    values = session.run(names, resnet_feeds(4, 1, 0, image=c.image))
    # Rounded, so that machines whose sums differ in the last bits still build the same model nearly always.
    return {name: value.astype(np.float16).astype(np.float32) for name, value in zip(names, values, strict=True)}


def resnet_feeds(batch: int, seq: int, seed: int, *, image: int) -> Feeds:
    """Normalised pixels: a coarse pattern, so that neighbours correlate as in photographs, plus noise."""
    rng = np.random.default_rng(seed)
    coarse = rng.standard_normal((batch, 3, image // 8, image // 8), dtype=np.float32)
    pixels = np.kron(coarse, np.ones((8, 8), np.float32))
    pixels += 0.3 * rng.standard_normal(pixels.shape, dtype=np.float32)
    return {"pixel_values": pixels.astype(np.float32)}


RESNET50 = ResNetConfig(blocks=(3, 4, 6, 3), width=64, image=224, classes=1000)
TINY = ResNetConfig(blocks=(1, 2), width=8, image=32, classes=10)

MODELS = [
    ZooModel(
        name="resnet50",
        family=Family.RESNET,
        build=partial(resnet, c=RESNET50),
        feeds=partial(resnet_feeds, image=RESNET50.image),
        checkpoint=Checkpoint(hub_id="timm/resnet50.a1_in1k"),
    ),
    ZooModel(
        name="resnet50-tiny",
        family=Family.RESNET,
        build=partial(resnet, c=TINY),
        feeds=partial(resnet_feeds, image=TINY.image),
        tiny=True,
    ),
]
