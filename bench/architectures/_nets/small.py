"""Nets of a few nodes, of tables, points and clips."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F


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
