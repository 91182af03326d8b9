"""Nets that make images, masks and boxes from images, written as their papers have them, some of them smaller."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from xyntra_bench.architectures._nets.blocks import Joined, Residual, conv


class UNet(nn.Module):
    def __init__(self, widths: tuple[int, ...] = (24, 48, 96, 192)) -> None:
        super().__init__()
        self.down, self.up, self.join = nn.ModuleList(), nn.ModuleList(), nn.ModuleList()
        c = 3
        for m in widths:
            self.down.append(nn.Sequential(conv(c, m), conv(m, m)))
            c = m
        for m in reversed(widths[:-1]):
            self.up.append(nn.ConvTranspose2d(c, m, 2, 2))
            self.join.append(nn.Sequential(conv(2 * m, m), conv(m, m)))
            c = m
        self.head = nn.Conv2d(c, 2, 1)

    def forward(self, x: Any) -> Any:
        seen = []
        for i, body in enumerate(self.down):
            x = body(F.max_pool2d(x, 2) if i else x)
            seen.append(x)
        for up, join, y in zip(self.up, self.join, reversed(seen[:-1]), strict=True):
            x = join(torch.cat([y, up(x)], 1))
        return self.head(x)


class DeepLab(nn.Module):
    """Dilated convolutions over one feature map, and a picture of the first size by interpolation."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone = nn.Sequential(conv(3, 32, 3, 2), conv(32, 64, 3, 2), conv(64, 128, 3, 2), conv(128, 128, dilation=2))
        self.pyramid = Joined(conv(128, 64, 1), *(conv(128, 64, dilation=d) for d in (6, 12, 18)))
        self.head = nn.Sequential(conv(256, 64, 1), nn.Conv2d(64, 21, 1))

    def forward(self, x: Any) -> Any:
        y = self.head(self.pyramid(self.backbone(x)))
        return F.interpolate(y, size=x.shape[2:], mode="bilinear", align_corners=False)


class _Silu(nn.Sequential):
    def __init__(self, c: int, m: int, k: int = 3, stride: int = 1) -> None:
        super().__init__(nn.Conv2d(c, m, k, stride, k // 2, bias=False), nn.BatchNorm2d(m), nn.SiLU())


class _Stage(nn.Module):
    """Half of the channels go through ``depth`` bottlenecks, and all that were on the way are joined."""

    def __init__(self, c: int, m: int, depth: int) -> None:
        super().__init__()
        h = m // 2
        self.first, self.last = _Silu(c, m, 1), _Silu((2 + depth) * h, m, 1)
        self.blocks = nn.ModuleList(nn.Sequential(_Silu(h, h), _Silu(h, h)) for _ in range(depth))

    def forward(self, x: Any) -> Any:
        parts = list(self.first(x).chunk(2, 1))
        for block in self.blocks:
            parts.append(parts[-1] + block(parts[-1]))
        return self.last(torch.cat(parts, 1))


class Yolo(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(_Silu(3, 16, 3, 2), _Silu(16, 32, 3, 2), _Stage(32, 32, 1))
        self.c3 = nn.Sequential(_Silu(32, 64, 3, 2), _Stage(64, 64, 2))
        self.c4 = nn.Sequential(_Silu(64, 128, 3, 2), _Stage(128, 128, 2))
        self.c5 = nn.Sequential(_Silu(128, 256, 3, 2), _Stage(256, 256, 1))
        self.squeeze, self.mix = _Silu(256, 128, 1), _Silu(512, 256, 1)
        self.p4, self.p3 = _Stage(384, 128, 1), _Stage(192, 64, 1)
        self.heads = nn.ModuleList(nn.Sequential(_Silu(c, 64), nn.Conv2d(64, 84, 1)) for c in (64, 128, 256))

    def forward(self, x: Any) -> Any:
        c3 = self.c3(self.stem(x))
        c4 = self.c4(c3)
        y = self.squeeze(self.c5(c4))
        pools = [y]
        for _ in range(3):
            pools.append(F.max_pool2d(pools[-1], 5, 1, 2))
        p5 = self.mix(torch.cat(pools, 1))
        p4 = self.p4(torch.cat([F.interpolate(p5, scale_factor=2.0), c4], 1))
        p3 = self.p3(torch.cat([F.interpolate(p4, scale_factor=2.0), c3], 1))
        found = [head(p).flatten(2) for head, p in zip(self.heads, (p3, p4, p5), strict=True)]
        boxes, classes = torch.cat(found, 2).split((4, 80), 1)
        return torch.cat([boxes.exp(), classes.sigmoid()], 1)


class StyleTransfer(nn.Sequential):
    def __init__(self) -> None:
        def layer(c: int, m: int, k: int, stride: int = 1) -> list[nn.Module]:
            return [nn.ReflectionPad2d(k // 2), nn.Conv2d(c, m, k, stride), nn.InstanceNorm2d(m, affine=True), nn.ReLU()]

        up = nn.Upsample(scale_factor=2.0, mode="nearest")
        middle = [Residual(nn.Sequential(*layer(64, 64, 3), *layer(64, 64, 3)[:-1])) for _ in range(2)]
        super().__init__(
            *layer(3, 16, 9), *layer(16, 32, 3, 2), *layer(32, 64, 3, 2), *middle, up, *layer(64, 32, 3), up,
            *layer(32, 16, 3), nn.ReflectionPad2d(4), nn.Conv2d(16, 3, 9),
        )  # fmt: skip


class SubPixel(nn.Sequential):
    def __init__(self) -> None:
        super().__init__(
            nn.Conv2d(1, 64, 5, padding=2), nn.ReLU(), nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(),
            nn.Conv2d(64, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 9, 3, padding=1), nn.PixelShuffle(3),
        )  # fmt: skip


class Generator(nn.Module):
    """Of a GAN: a picture of 64 x 64 from 100 numbers."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        c = 256
        for m in (128, 64, 32):
            layers += [nn.ConvTranspose2d(c, m, 4, 2, 1, bias=False), nn.BatchNorm2d(m), nn.ReLU()]
            c = m
        self.first, self.body = nn.Linear(100, 256 * 16), nn.Sequential(*layers, nn.ConvTranspose2d(c, 3, 4, 2, 1), nn.Tanh())

    def forward(self, z: Any) -> Any:
        return self.body(self.first(z).reshape(-1, 256, 4, 4))


class Hourglass(nn.Module):
    """Heat maps of key points: depthwise and pointwise, down and up by interpolation."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = conv(3, 32, 3, 2)
        self.down = nn.ModuleList(self._separable(32 * 2**i, 64 * 2**i, 2) for i in range(3))
        self.up = nn.ModuleList(self._separable(64 * 2**i, 32 * 2**i, 1) for i in reversed(range(3)))
        self.head = nn.Conv2d(32, 17, 1)

    @staticmethod
    def _separable(c: int, m: int, stride: int) -> nn.Module:
        return nn.Sequential(conv(c, c, 5, stride, groups=c), conv(c, m, 1))

    def forward(self, x: Any) -> Any:
        seen = [self.stem(x)]
        for down in self.down:
            seen.append(down(seen[-1]))
        y = seen.pop()
        for up in self.up:
            z = seen.pop()
            y = z + F.interpolate(up(y), size=z.shape[2:], mode="bilinear", align_corners=False)
        return self.head(y).sigmoid()
