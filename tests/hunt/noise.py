"""Which elements ONNX Runtime itself cannot be sure of.

Sums in another order differ in the last bits, and what follows may make much of it: a comparison falls on the other side, a
difference of nearly equal numbers keeps nothing else. So on suspicion the model is run again by ONNX Runtime with noise of a few
units in the last place behind every node that computes, and before one that takes many steps and rounds between them; where its
own results move, ours may differ as far.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import onnx

from tests.hunt.case import Array, Feeds
from tests.hunt.generation.single import values_inside

# Their results are exact, or are what they were given: nothing to blur.
_EXACT = """
    Relu Neg Abs Max Min Clip Where Sign Floor Ceil Round Cast CastLike Identity Dropout Transpose Reshape Flatten Squeeze
    Unsqueeze Expand Tile Concat Split Slice Gather GatherElements GatherND OneHot Pad DepthToSpace SpaceToDepth Trilu
    ReverseSequence TensorScatter MaxPool GlobalMaxPool ReduceMax ReduceMin TopK ConstantOfShape EyeLike Range Hardmax Shrink
    ThresholdedRelu LeakyRelu
"""
EXACT = frozenset(_EXACT.split())
# Many steps inside, each rounded: an element that hangs on one of them hangs on the last bits of what they begin with.
_COMPOSED = """
    Attention QAttention MultiHeadAttention GroupQueryAttention GroupNormalization InstanceNormalization LayerNormalization
    SkipLayerNormalization EmbedLayerNormalization QEmbedLayerNormalization MeanVarianceNormalization
    QLinearAdd QLinearMul QLinearSigmoid QLinearSoftmax QLinearAveragePool DynamicQuantizeLSTM
"""
COMPOSED = frozenset(_COMPOSED.split())
# Of each result, relative. Half precision: ORT rounds between steps that we take in float32. Double: ours are float32 inside.
LEVELS = {np.dtype(np.float32): 2e-6, np.dtype(np.float16): 2e-3, np.dtype(np.float64): 2e-6}
CANCELLED = 16  # so much less, but of the largest element: what is left of terms that cancel each other
SEEDS = range(1, 17)  # what lies between two levels of a quantisation falls on either side as a coin does
AMPLIFIED = 8.0  # a few noisy runs are no bound on what could happen


def spread(model: onnx.ModelProto, feeds: Feeds, sharp: list[Array]) -> list[Array] | None:
    """For each output how far an element moved; None where nothing can be said."""
    found = [np.zeros(np.shape(a)) for a in sharp]
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        inside, _ = values_inside(model, feeds, partial(blurred, rng), partial(blurred_before, rng))
        for k, (output, want) in enumerate(zip(model.graph.output, sharp, strict=True)):
            got = inside.get(output.name)
            if got is None or got.shape != want.shape:
                return None
            with np.errstate(all="ignore"):
                x, y = got.astype(np.float64), want.astype(np.float64)
                moved = np.where(np.isnan(x) != np.isnan(y), np.inf, np.abs(x - y))
            found[k] = np.fmax(found[k], np.nan_to_num(moved, nan=0.0, posinf=np.inf))
    return [AMPLIFIED * f for f in found]


def blurred_before(rng: np.random.Generator, node: onnx.NodeProto, value: Array) -> Array:
    """``value`` that a node of many steps is given."""
    return blurred(rng, node, value) if node.op_type in COMPOSED else value


def blurred(rng: np.random.Generator, node: onnx.NodeProto, value: Array) -> Array:
    """``value`` of a node that computes, times 1 + level * r, and a little of its largest element added; r is random in [-1, 1)
    for each element, so that equal ones part."""
    level = LEVELS.get(value.dtype)
    if level is None or node.op_type in EXACT or not value.size:
        return value
    with np.errstate(all="ignore"):
        left = np.abs(value).max() * rng.uniform(-level / CANCELLED, level / CANCELLED, value.shape)
        return np.asarray(value * rng.uniform(1 - level, 1 + level, value.shape) + left).astype(value.dtype)
