"""MobileNetV2 (width 1.0) as exported in training form: Conv and BatchNormalization stay separate nodes.

Inverted residuals: a 1x1 convolution widens, a depthwise 3x3 mixes neighbours, a 1x1 without activation narrows. ReLU6
is `Clip(0, 6)`. Names are those of timm's `mobilenetv2_100`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import onnx

from xyntra_zoo._convnet import ConvNet, calibrated, image_feeds
from xyntra_zoo.graph_builder import Value
from xyntra_zoo.model import Checkpoint, Family, Size, ZooModel
from xyntra_zoo.params import Params

EXPANSION = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class MobileNetConfig:
    stem: int
    stages: tuple[tuple[int, int, int], ...]  # blocks, channels, stride of the first; the first stage does not widen
    head: int
    image: int
    classes: int


def mobilenet(params: Params, c: MobileNetConfig) -> onnx.ModelProto:
    return calibrated(lambda p, measure: _MobileNet(p, c, measure=measure), params, c.image)


class _MobileNet(ConvNet):
    def __init__(self, params: Params, c: MobileNetConfig, *, measure: bool) -> None:
        super().__init__("mobilenetv2", params, measure=measure)
        self.c = c

    def model(self) -> onnx.ModelProto:
        g, c = self.g, self.c
        x = self.pixels(c.image)
        x = self.relu6(self.conv_bn(x, "conv_stem", "bn1", 3, c.stem, kernel=3, stride=2))
        channels = c.stem
        for stage, (blocks, out, first_stride) in enumerate(c.stages):
            for block in range(blocks):
                with g.scope(f"blocks.{stage}/blocks.{stage}.{block}"):
                    name, stride = f"blocks.{stage}.{block}", first_stride if block == 0 else 1
                    x = self.separable(x, name, channels, out) if stage == 0 else self.inverted(x, name, channels, out, stride)
                    channels = out
        x = self.relu6(self.conv_bn(x, "conv_head", "bn2", channels, c.head, kernel=1, stride=1))
        return self.classified(x, "classifier", c.head, c.classes)

    def separable(self, x: Value, name: str, channels: int, out: int) -> Value:
        x = self.conv_bn(x, f"{name}.conv_dw", f"{name}.bn1", channels, channels, kernel=3, stride=1, group=channels)
        return self.conv_bn(self.relu6(x), f"{name}.conv_pw", f"{name}.bn2", channels, out, kernel=1, stride=1)

    def inverted(self, x: Value, name: str, channels: int, out: int, stride: int) -> Value:
        wide = channels * EXPANSION
        y = self.relu6(self.conv_bn(x, f"{name}.conv_pw", f"{name}.bn1", channels, wide, kernel=1, stride=1))
        y = self.conv_bn(y, f"{name}.conv_dw", f"{name}.bn2", wide, wide, kernel=3, stride=stride, group=wide)
        y = self.conv_bn(
            self.relu6(y),
            f"{name}.conv_pwl",
            f"{name}.bn3",
            wide,
            out,
            kernel=1,
            stride=1,
            residual=stride == 1 and channels == out,
        )
        return self.g.Add(y, x) if stride == 1 and channels == out else y

    def relu6(self, x: Value) -> Value:
        return self.g.Clip(x, self.g.const(0.0), self.g.const(6.0))


MOBILENETV2 = MobileNetConfig(
    stem=32,
    stages=((1, 16, 1), (2, 24, 2), (3, 32, 2), (4, 64, 2), (3, 96, 1), (3, 160, 2), (1, 320, 1)),
    head=1280,
    image=224,
    classes=1000,
)
TINY = MobileNetConfig(stem=8, stages=((1, 8, 1), (2, 12, 2)), head=32, image=32, classes=10)

MODELS = [
    ZooModel(
        name="mobilenetv2",
        family=Family.MOBILENET,
        build=partial(mobilenet, c=MOBILENETV2),
        feeds=partial(image_feeds, image=MOBILENETV2.image),
        served=(Size(batch=8),),
        checkpoint=Checkpoint(hub_id="timm/mobilenetv2_100.ra_in1k"),
    ),
    ZooModel(
        name="mobilenetv2-tiny",
        family=Family.MOBILENET,
        build=partial(mobilenet, c=TINY),
        feeds=partial(image_feeds, image=TINY.image),
        served=(Size(batch=2), Size(batch=3)),
        tiny=True,
    ),
]
