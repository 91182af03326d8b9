"""ResNet-18 as PyTorch's exporter writes it, with weights that are made up: the model that a user brings."""

from __future__ import annotations

from pathlib import Path

import onnx

from xyntra_zoo._convnet import ConvNet, calibrated
from xyntra_zoo.graph_builder import Value
from xyntra_zoo.params import RandomParams

IMAGE, CLASSES = 224, 1000


class _ResNet18(ConvNet):
    def model(self) -> onnx.ModelProto:
        g = self.g
        x = g.Relu(self.conv_bn(self.pixels(IMAGE), "conv1", "bn1", 3, 64, kernel=7, stride=2))
        x = g.MaxPool(x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], ceil_mode=0)
        channels = 64
        for stage in range(1, 5):
            for block in range(2):
                width = 64 << (stage - 1)
                x = self._block(x, f"layer{stage}.{block}", channels, width, 2 if stage > 1 and block == 0 else 1)
                channels = width
        return self.classified(x, "fc", channels, CLASSES)

    def _block(self, x: Value, name: str, channels: int, out: int, stride: int) -> Value:
        g = self.g
        y = g.Relu(self.conv_bn(x, f"{name}.conv1", f"{name}.bn1", channels, out, kernel=3, stride=stride))
        y = self.conv_bn(y, f"{name}.conv2", f"{name}.bn2", out, out, kernel=3, stride=1, residual=True)
        if stride != 1 or channels != out:
            x = self.conv_bn(x, f"{name}.downsample.0", f"{name}.downsample.1", channels, out, kernel=1, stride=stride)
        return g.Relu(g.Add(y, x))


def write_resnet18(file: Path) -> None:
    onnx.save(calibrated(lambda params, measure: _ResNet18("resnet18", params, measure=measure), RandomParams(0), IMAGE), file)
