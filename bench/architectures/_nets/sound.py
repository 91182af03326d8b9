"""Nets of waves and spectra, written as their papers have them, some of them smaller."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from xyntra_bench.architectures._nets.blocks import classifier, conv


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
