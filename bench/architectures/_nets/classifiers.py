"""Nets that tell what is in an image, written as their papers have them, some of them with fewer blocks."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from xyntra_bench.architectures._nets.blocks import Joined, Residual, classifier, conv


class Vgg(nn.Sequential):
    def __init__(self) -> None:
        layers: list[nn.Module] = []
        c = 3
        for m in (32, 0, 64, 0, 128, 128, 0, 256, 256, 0, 256, 256, 0):
            layers += [nn.Conv2d(c, m, 3, padding=1), nn.ReLU()] if m else [nn.MaxPool2d(2)]
            c = m or c
        super().__init__(*layers, nn.Flatten(), nn.Linear(256 * 49, 512), nn.ReLU(), nn.Dropout(), nn.Linear(512, 100))


class ResNeXt(nn.Sequential):
    """32 groups, of 4 to 16 channels."""

    def __init__(self) -> None:
        blocks: list[nn.Module] = [conv(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1)]
        c = 64
        for width, stride, depth in ((128, 1, 2), (256, 2, 2), (512, 2, 2)):
            for i in range(depth):
                s = stride if i == 0 else 1
                body = nn.Sequential(conv(c, width, 1), conv(width, width, 3, s, groups=32), conv(width, 2 * width, 1, act=False))
                blocks.append(Residual(body, conv(c, 2 * width, 1, s, act=False) if i == 0 else None))
                c = 2 * width
        super().__init__(*blocks, classifier(c))


class _Dense(nn.Module):
    def __init__(self, c: int, growth: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.BatchNorm2d(c), nn.ReLU(), nn.Conv2d(c, 4 * growth, 1, bias=False),
            nn.BatchNorm2d(4 * growth), nn.ReLU(), nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False),
        )  # fmt: skip

    def forward(self, x: Any) -> Any:
        return torch.cat([x, self.body(x)], 1)


class DenseNet(nn.Sequential):
    def __init__(self, growth: int = 32) -> None:
        layers: list[nn.Module] = [conv(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1)]
        c = 64
        for depth in (4, 6, 8):
            for _ in range(depth):
                layers.append(_Dense(c, growth))
                c += growth
            layers += [nn.BatchNorm2d(c), nn.ReLU(), nn.Conv2d(c, c // 2, 1, bias=False), nn.AvgPool2d(2)]
            c //= 2
        super().__init__(*layers, classifier(c))


class SqueezeNet(nn.Sequential):
    def __init__(self) -> None:
        def fire(c: int, s: int, m: int) -> list[nn.Module]:
            squeeze = nn.Sequential(nn.Conv2d(c, s, 1), nn.ReLU())
            return [squeeze, Joined(*(nn.Sequential(nn.Conv2d(s, m, k, padding=k // 2), nn.ReLU()) for k in (1, 3)))]

        pool = nn.MaxPool2d(3, 2, ceil_mode=True)
        super().__init__(
            nn.Conv2d(3, 64, 3, 2), nn.ReLU(), pool, *fire(64, 16, 64), *fire(128, 16, 64), pool, *fire(128, 32, 128),
            *fire(256, 32, 128), pool, *fire(256, 48, 192), *fire(384, 64, 256), nn.Conv2d(512, 100, 1), nn.ReLU(),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        )  # fmt: skip


class _Shuffle(nn.Module):
    def __init__(self, c: int) -> None:
        super().__init__()
        h = c // 2
        self.body = nn.Sequential(conv(h, h, 1), conv(h, h, 3, groups=h, act=False), conv(h, h, 1))

    def forward(self, x: Any) -> Any:
        a, b = x.chunk(2, 1)
        y = torch.cat([a, self.body(b)], 1)
        n, c, h, w = y.shape
        return y.reshape(n, 2, c // 2, h, w).transpose(1, 2).reshape(n, c, h, w)


class ShuffleNet(nn.Sequential):
    def __init__(self) -> None:
        layers: list[nn.Module] = [conv(3, 24, 3, 2), nn.MaxPool2d(3, 2, 1)]
        c = 24
        for m, depth in ((116, 3), (232, 7), (464, 3)):
            h = m // 2
            left = nn.Sequential(conv(c, c, 3, 2, groups=c, act=False), conv(c, h, 1))
            right = nn.Sequential(conv(c, h, 1), conv(h, h, 3, 2, groups=h, act=False), conv(h, h, 1))
            layers += [Joined(left, right), *(_Shuffle(m) for _ in range(depth))]
            c = m
        super().__init__(*layers, conv(c, 1024, 1), classifier(1024))


class Inception(nn.Sequential):
    def __init__(self) -> None:
        def block(c: int, m: int) -> nn.Module:
            tall = nn.Sequential(conv(c, m, 1), *(nn.Sequential(nn.Conv2d(m, m, k, padding=(k[0] // 2, k[1] // 2), bias=False),
                                 nn.BatchNorm2d(m), nn.ReLU()) for k in ((1, 7), (7, 1))))  # fmt: skip
            pooled = nn.Sequential(nn.AvgPool2d(3, 1, 1), conv(c, m, 1))
            return Joined(conv(c, m, 1), nn.Sequential(conv(c, m // 2, 1), conv(m // 2, m, 5)), tall, pooled)

        down = nn.MaxPool2d(3, 2)
        super().__init__(
            conv(3, 32, 3, 2), conv(32, 64), down, conv(64, 96, 1), block(96, 48), block(192, 64), down, block(256, 96),
            block(384, 96), down, block(384, 128), classifier(512),
        )  # fmt: skip
