"""Sources of weights. A builder asks by checkpoint name and shape and does not know which source it has."""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from enum import StrEnum
from typing import Protocol

import numpy as np
import numpy.typing as npt

F32 = npt.NDArray[np.float32]


# Gain of the layers that write to a residual stream. At 1 a deep random transformer forgets its tokens: after
# twelve layers the positions differ by 3 % of their common part, and a wrong gather would go unseen. A deep random
# convolutional network amplifies rounding instead: weights rounded to bf16 move ResNet-50's logits by 7.5 %, with 0.25 by
# 0.6 %. Trained ones begin with 0 there (Goyal et al. 2017, arXiv:1706.02677, section 5.1).
RESIDUAL_GAIN = 0.25


class Init(StrEnum):
    """How a tensor is drawn when there is no checkpoint."""

    LINEAR = "linear"  # [out, in], variance 1 / in: keeps the scale of its input
    CONV1D = "conv1d"  # [in, out], GPT-2's transposed linear layer
    CONV = "conv"  # [out, in, kh, kw], variance 2 / fan_in: keeps the scale through Relu
    EMBEDDING = "embedding"
    GAIN = "gain"  # near 1, so that a forgotten gain is visible
    RESIDUAL_GAIN = "residual gain"  # of a normalisation that writes to a residual stream
    BIAS = "bias"  # near 0, but not 0
    VARIANCE = "variance"


class Params(Protocol):
    """The seam between builders and weights: random, checkpoint and calibrated sources look the same."""

    @property
    def synthetic(self) -> bool: ...

    def __call__(self, name: str, shape: tuple[int, ...], init: Init, gain: float = 1.0) -> F32: ...


class RandomParams:
    """Seeded weights. Each tensor has its own stream, so adding a layer does not change the others.

    >>> p = RandomParams(seed=0)
    >>> p("a", (2, 3), Init.LINEAR).shape
    (2, 3)
    >>> bool((p("a", (2, 3), Init.LINEAR) == p("a", (2, 3), Init.LINEAR)).all())
    True
    """

    synthetic = True

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def __call__(self, name: str, shape: tuple[int, ...], init: Init, gain: float = 1.0) -> F32:
        rng = np.random.default_rng([self._seed, zlib.crc32(name.encode())])
        noise = rng.standard_normal(shape, dtype=np.float32)
        match init:
            case Init.LINEAR:
                scale, offset = 1 / math.sqrt(math.prod(shape[1:])), 0.0
            case Init.CONV1D:
                scale, offset = 1 / math.sqrt(shape[0]), 0.0
            case Init.CONV:
                scale, offset = math.sqrt(2 / math.prod(shape[1:])), 0.0
            case Init.EMBEDDING:
                scale, offset = 0.05, 0.0
            case Init.GAIN:
                scale, offset = 0.1, 1.0
            case Init.RESIDUAL_GAIN:
                scale, offset = 0.1 * RESIDUAL_GAIN, RESIDUAL_GAIN
            case Init.BIAS:
                scale, offset = 0.05, 0.0
            case Init.VARIANCE:
                variance: F32 = np.exp(noise * np.float32(0.1))
                return variance
        noise *= np.float32(scale * gain)
        noise += np.float32(offset)
        return noise


class OverlayParams:
    """`base`, except for the tensors given here (the calibrated statistics of a BatchNormalization)."""

    synthetic = True

    def __init__(self, base: Params, tensors: Mapping[str, F32]) -> None:
        self._base = base
        self._tensors = tensors

    def __call__(self, name: str, shape: tuple[int, ...], init: Init, gain: float = 1.0) -> F32:
        if name in self._tensors:
            tensor = self._tensors[name]
            assert tensor.shape == shape, (name, tensor.shape, shape)
            return tensor
        return self._base(name, shape, init, gain)
