"""What several nets are made of."""

from __future__ import annotations

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
