"""Nets with LSTM and GRU."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from xyntra_bench.architectures._nets.blocks import conv


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
