"""ResNet-50 (v1.5) as exported in training form: Conv and BatchNormalization stay separate nodes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import onnx

from xyntra_zoo._convnet import ConvNet, calibrated, image_feeds
from xyntra_zoo.graph_builder import Value
from xyntra_zoo.model import Checkpoint, Family, Size, ZooModel
from xyntra_zoo.params import Params

EXPANSION = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class ResNetConfig:
    blocks: tuple[int, ...]  # bottlenecks per stage
    width: int  # channels of the stem and of the first stage's 3x3
    image: int
    classes: int


def resnet(params: Params, c: ResNetConfig) -> onnx.ModelProto:
    return calibrated(lambda p, measure: _ResNet(p, c, measure=measure), params, c.image)


class _ResNet(ConvNet):
    def __init__(self, params: Params, c: ResNetConfig, *, measure: bool) -> None:
        super().__init__("resnet", params, measure=measure)
        self.c = c

    def model(self) -> onnx.ModelProto:
        g, c = self.g, self.c
        x = self.pixels(c.image)
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
        return self.classified(x, "fc", channels, c.classes)

    def bottleneck(self, x: Value, name: str, channels: int, width: int, stride: int) -> Value:
        g = self.g
        out = width * EXPANSION
        y = g.Relu(self.conv_bn(x, f"{name}.conv1", f"{name}.bn1", channels, width, kernel=1, stride=1))
        y = g.Relu(self.conv_bn(y, f"{name}.conv2", f"{name}.bn2", width, width, kernel=3, stride=stride))
        y = self.conv_bn(y, f"{name}.conv3", f"{name}.bn3", width, out, kernel=1, stride=1, residual=True)
        if stride != 1 or channels != out:
            down = f"{name}.downsample"
            x = self.conv_bn(x, f"{down}.0", f"{down}.1", channels, out, kernel=1, stride=stride)
        return g.Relu(g.Add(y, x))


RESNET50 = ResNetConfig(blocks=(3, 4, 6, 3), width=64, image=224, classes=1000)
TINY = ResNetConfig(blocks=(1, 2), width=8, image=32, classes=10)

MODELS = [
    ZooModel(
        name="resnet50",
        family=Family.RESNET,
        build=partial(resnet, c=RESNET50),
        feeds=partial(image_feeds, image=RESNET50.image),
        served=(Size(batch=8),),
        checkpoint=Checkpoint(hub_id="timm/resnet50.a1_in1k"),
    ),
    ZooModel(
        name="resnet50-tiny",
        family=Family.RESNET,
        build=partial(resnet, c=TINY),
        feeds=partial(image_feeds, image=TINY.image),
        tiny=True,
    ),
]
