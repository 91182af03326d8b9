"""Nets that no library in use here has, written as their papers have them, some of them with fewer blocks."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F


def conv(c: int, m: int, k: int = 3, stride: int = 1, *, groups: int = 1, dilation: int = 1, act: bool = True) -> nn.Sequential:
    """Convolution that keeps the size, BatchNorm, Relu."""
    layers = [nn.Conv2d(c, m, k, stride, dilation * (k // 2), dilation, groups, bias=False), nn.BatchNorm2d(m)]
    return nn.Sequential(*layers, *([nn.ReLU()] if act else []))


def classifier(channels: int, classes: int = 100) -> nn.Sequential:
    return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))


class Residual(nn.Module):
    def __init__(self, body: nn.Module, shortcut: nn.Module | None = None) -> None:
        super().__init__()
        self.body, self.shortcut = body, shortcut or nn.Identity()

    def forward(self, x: Any) -> Any:
        return F.relu(self.body(x) + self.shortcut(x))


class Joined(nn.Module):
    """Several bodies side by side."""

    def __init__(self, *bodies: nn.Module) -> None:
        super().__init__()
        self.bodies = nn.ModuleList(bodies)

    def forward(self, x: Any) -> Any:
        return torch.cat([body(x) for body in self.bodies], 1)


# ------------------------------------------------------------------------------------------------------ classifiers


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


# ------------------------------------------------------------------------------------------------- images from images


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


# ---------------------------------------------------------------------------------------------------------------- sound


class Vocoder(nn.Module):
    """As HiFi-GAN: a wave from a spectrum, by transposed convolutions and dilated residual blocks."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv1d(80, 128, 7, padding=3)
        self.up, self.blocks = nn.ModuleList(), nn.ModuleList()
        c = 128
        for stride in (8, 8, 2):
            self.up.append(nn.ConvTranspose1d(c, c // 2, 2 * stride, stride, stride // 2))
            c //= 2
            self.blocks.append(nn.ModuleList(nn.Conv1d(c, c, 3, padding=d, dilation=d) for d in (1, 3, 5)))
        self.last = nn.Conv1d(c, 1, 7, padding=3)

    def forward(self, x: Any) -> Any:
        x = self.first(x)
        for up, blocks in zip(self.up, self.blocks, strict=True):
            x = up(F.leaky_relu(x, 0.1))
            for block in blocks:
                x = x + block(F.leaky_relu(x, 0.1))
        return torch.tanh(self.last(F.leaky_relu(x)))


class DilatedWave(nn.Module):
    """As WaveNet: gated causal convolutions whose dilation doubles."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv1d(1, 32, 1)
        self.gated = nn.ModuleList(nn.Conv1d(32, 64, 2, dilation=2**i) for i in range(8))
        self.back = nn.ModuleList(nn.Conv1d(32, 32, 1) for _ in range(8))
        self.last = nn.Sequential(nn.ReLU(), nn.Conv1d(32, 64, 1), nn.ReLU(), nn.Conv1d(64, 256, 1))

    def forward(self, x: Any) -> Any:
        x, total = self.first(x), 0
        for i, (gated, back) in enumerate(zip(self.gated, self.back, strict=True)):
            a, b = gated(F.pad(x, (2**i, 0))).chunk(2, 1)
            y = back(torch.tanh(a) * torch.sigmoid(b))
            x, total = x + y, total + y
        return self.last(total)


class Separator(nn.Module):
    """As Conv-TasNet: a learned spectrum, a mask by depthwise dilated blocks, a wave again."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.decoder = nn.Conv1d(1, 128, 16, 8), nn.ConvTranspose1d(128, 1, 16, 8)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.Conv1d(128, 256, 1), nn.PReLU(), nn.GroupNorm(1, 256),
                nn.Conv1d(256, 256, 3, padding=2**i, dilation=2**i, groups=256), nn.PReLU(), nn.GroupNorm(1, 256),
                nn.Conv1d(256, 128, 1),
            ) for i in range(4)
        )  # fmt: skip

    def forward(self, x: Any) -> Any:
        seen = F.relu(self.encoder(x))
        y = seen
        for block in self.blocks:
            y = y + block(y)
        return self.decoder(seen * torch.sigmoid(y))


class KeywordSpotter(nn.Sequential):
    def __init__(self) -> None:
        blocks = [nn.Sequential(conv(64, 64, groups=64), conv(64, 64, 1)) for _ in range(4)]
        super().__init__(conv(1, 64, 5, 2), *blocks, classifier(64, 12))


# ------------------------------------------------------------------------------------------------------------- recurrent


class Crnn(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        pools = [nn.MaxPool2d(2), nn.MaxPool2d(2), nn.MaxPool2d((2, 1)), nn.MaxPool2d((4, 1))]
        widths = (1, 32, 64, 128, 128)
        self.body = nn.Sequential(*(nn.Sequential(conv(a, b), p) for a, b, p in zip(widths[:-1], widths[1:], pools, strict=True)))
        self.rnn, self.head = nn.LSTM(128, 96, num_layers=2, bidirectional=True), nn.Linear(192, 96)

    def forward(self, x: Any) -> Any:
        steps = self.body(x).squeeze(2).permute(2, 0, 1)
        return F.log_softmax(self.head(self.rnn(steps)[0]), -1)


class SpeechLstm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn, self.head = nn.LSTM(80, 256, num_layers=2, batch_first=True), nn.Linear(256, 40)

    def forward(self, x: Any) -> Any:
        return F.log_softmax(self.head(self.rnn(x)[0]), -1)


class GruDenoiser(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.rnn, self.head = nn.Linear(42, 48), nn.GRU(48, 96, num_layers=2, batch_first=True), nn.Linear(96, 22)

    def forward(self, x: Any) -> Any:
        return torch.sigmoid(self.head(self.rnn(torch.tanh(self.first(x)))[0]))


class Forecaster(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn, self.head = nn.LSTM(8, 64, num_layers=2, batch_first=True), nn.Linear(64, 4)

    def forward(self, x: Any) -> Any:
        return self.head(self.rnn(x)[0][:, -1])


class Tagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(5000, 100)
        self.rnn, self.head = nn.LSTM(100, 128, bidirectional=True, batch_first=True), nn.Linear(256, 17)

    def forward(self, ids: Any) -> Any:
        return self.head(self.rnn(self.words(ids))[0])


# ------------------------------------------------------------------------------------------------------------------ small


class Perceptron(nn.Sequential):
    def __init__(self, hidden: int = 32) -> None:
        super().__init__(nn.Linear(16, hidden), nn.ReLU(), nn.Linear(hidden, 8), nn.Softmax(-1))


class Autoencoder(nn.Sequential):
    def __init__(self) -> None:
        widths = (784, 256, 64, 16, 64, 256, 784)
        layers = [m for a, b in pairwise(widths) for m in (nn.Linear(a, b), nn.ELU())]
        super().__init__(*layers[:-1], nn.Sigmoid())


class LeNet(nn.Sequential):
    def __init__(self) -> None:
        super().__init__(
            nn.Conv2d(1, 6, 5, padding=2), nn.Tanh(), nn.AvgPool2d(2), nn.Conv2d(6, 16, 5), nn.Tanh(), nn.AvgPool2d(2),
            nn.Flatten(), nn.Linear(400, 120), nn.Tanh(), nn.Linear(120, 84), nn.Tanh(), nn.Linear(84, 10),
        )  # fmt: skip


class QNetwork(nn.Sequential):
    def __init__(self) -> None:
        super().__init__(
            nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(), nn.Conv2d(64, 64, 3), nn.ReLU(),
            nn.Flatten(), nn.Linear(64 * 49, 512), nn.ReLU(), nn.Linear(512, 6),
        )  # fmt: skip


class Recommender(nn.Module):
    """As DLRM: tables of features, products of all pairs, perceptrons around."""

    def __init__(self) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(1000, 16) for _ in range(26))
        self.below = nn.Sequential(nn.Linear(13, 64), nn.ReLU(), nn.Linear(64, 16), nn.ReLU())
        self.above = nn.Sequential(nn.Linear(16 + 27 * 27, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, dense: Any, sparse: Any) -> Any:
        x = self.below(dense)
        rows = torch.stack([x, *(table(sparse[:, i]) for i, table in enumerate(self.tables))], 1)
        pairs = torch.bmm(rows, rows.transpose(1, 2)).flatten(1)
        return torch.sigmoid(self.above(torch.cat([x, pairs], 1)))


class PointNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        widths = (3, 64, 64, 128, 512)
        layers = [nn.Sequential(nn.Conv1d(a, b, 1), nn.BatchNorm1d(b), nn.ReLU()) for a, b in pairwise(widths)]
        self.each, self.all = nn.Sequential(*layers), nn.Sequential(nn.Linear(512, 128), nn.ReLU(), nn.Linear(128, 40))

    def forward(self, x: Any) -> Any:
        return self.all(self.each(x).amax(2))


class Video(nn.Sequential):
    def __init__(self) -> None:
        layers: list[nn.Module] = []
        c = 3
        for m in (16, 32, 64):
            layers += [nn.Conv3d(c, m, 3, padding=1), nn.BatchNorm3d(m), nn.ReLU(), nn.MaxPool3d((1, 2, 2))]
            c = m
        super().__init__(*layers, nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(c, 20))


class TextCnn(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(5000, 128)
        self.windows = nn.ModuleList(nn.Conv1d(128, 100, k) for k in (3, 4, 5))
        self.head = nn.Linear(300, 5)

    def forward(self, ids: Any) -> Any:
        x = self.words(ids).transpose(1, 2)
        return self.head(torch.cat([F.relu(window(x)).amax(2) for window in self.windows], 1))
