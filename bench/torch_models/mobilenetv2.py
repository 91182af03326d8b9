"""MobileNetV2, channels last."""

from __future__ import annotations

from functools import partial
from typing import Any

from xyntra_bench.torch_models._torch_model import TorchModel, Weights, conv_bn, linear
from xyntra_zoo._convnet import BN_EPS
from xyntra_zoo.mobilenetv2 import MOBILENETV2, TINY, MobileNetConfig


def mobilenet(weights: Weights, c: MobileNetConfig) -> Any:
    import torch

    def layer(conv: str, bn: str, *, stride: int = 1, depthwise: bool = False, active: bool = True) -> list[Any]:
        groups = weights[f"{conv}.weight"].shape[0] if depthwise else 1
        made = conv_bn(weights, conv, bn, stride=stride, groups=groups, eps=BN_EPS)
        return [made, torch.nn.ReLU6()] if active else [made]

    class Residual(torch.nn.Module):
        def __init__(self, *layers: Any) -> None:
            super().__init__()
            self.layers = torch.nn.Sequential(*layers)

        def forward(self, x: Any) -> Any:
            return self.layers(x) + x

    def block(name: str, stage: int, stride: int) -> Any:
        if stage == 0:
            depthwise = layer(f"{name}.conv_dw", f"{name}.bn1", depthwise=True)
            return torch.nn.Sequential(*depthwise, *layer(f"{name}.conv_pw", f"{name}.bn2", active=False))
        layers = layer(f"{name}.conv_pw", f"{name}.bn1")
        layers += layer(f"{name}.conv_dw", f"{name}.bn2", stride=stride, depthwise=True)
        layers += layer(f"{name}.conv_pwl", f"{name}.bn3", active=False)
        same = weights[f"{name}.conv_pw.weight"].shape[1] == weights[f"{name}.conv_pwl.weight"].shape[0]
        return (Residual if stride == 1 and same else torch.nn.Sequential)(*layers)

    class MobileNet(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            blocks = [
                block(f"blocks.{stage}.{i}", stage, first if i == 0 else 1)
                for stage, (count, _, first) in enumerate(c.stages)
                for i in range(count)
            ]
            self.layers = torch.nn.Sequential(*layer("conv_stem", "bn1", stride=2), *blocks, *layer("conv_head", "bn2"))
            self.classifier = linear(weights, "classifier")

        def forward(self, pixel_values: Any) -> tuple[Any, ...]:
            x = self.layers(pixel_values.contiguous(memory_format=torch.channels_last))
            return (self.classifier(x.mean((2, 3))),)

    return MobileNet().to(memory_format=torch.channels_last)


TORCH_MODELS = [
    TorchModel(name="mobilenetv2", make=partial(mobilenet, c=MOBILENETV2)),
    TorchModel(name="mobilenetv2-tiny", make=partial(mobilenet, c=TINY)),
]
