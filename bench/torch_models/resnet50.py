"""ResNet-50, channels last: what PyTorch recommends for convolutions on tensor cores."""

from __future__ import annotations

from functools import partial
from typing import Any

from xyntra_bench.torch_models._torch_model import TorchModel, Weights, conv_bn, linear
from xyntra_zoo._convnet import BN_EPS
from xyntra_zoo.resnet50 import RESNET50, TINY, ResNetConfig


def resnet(weights: Weights, c: ResNetConfig) -> Any:
    import torch
    from torch.nn import functional

    class Bottleneck(torch.nn.Module):
        def __init__(self, name: str, stride: int) -> None:
            super().__init__()
            strides = (1, stride, 1)
            self.parts = torch.nn.ModuleList(
                conv_bn(weights, f"{name}.conv{i}", f"{name}.bn{i}", stride=s, eps=BN_EPS) for i, s in enumerate(strides, start=1)
            )
            down = f"{name}.downsample"
            has_down = f"{down}.0.weight" in weights
            self.down = conv_bn(weights, f"{down}.0", f"{down}.1", stride=stride, eps=BN_EPS) if has_down else torch.nn.Identity()

        def forward(self, x: Any) -> Any:
            y = functional.relu(self.parts[0](x))
            y = self.parts[2](functional.relu(self.parts[1](y)))
            return functional.relu(y + self.down(x))

    class ResNet(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.stem = conv_bn(weights, "conv1", "bn1", stride=2, eps=BN_EPS)
            self.blocks = torch.nn.Sequential(
                *(
                    Bottleneck(f"layer{stage}.{block}", 2 if stage > 1 and block == 0 else 1)
                    for stage, blocks in enumerate(c.blocks, start=1)
                    for block in range(blocks)
                )
            )
            self.fc = linear(weights, "fc")

        def forward(self, pixel_values: Any) -> tuple[Any, ...]:
            x = pixel_values.contiguous(memory_format=torch.channels_last)
            x = functional.max_pool2d(functional.relu(self.stem(x)), 3, stride=2, padding=1)
            return (self.fc(self.blocks(x).mean((2, 3))),)

    return ResNet().to(memory_format=torch.channels_last)


TORCH_MODELS = [
    TorchModel(name="resnet50", make=partial(resnet, c=RESNET50)),
    TorchModel(name="resnet50-tiny", make=partial(resnet, c=TINY)),
]
