"""Which elements ONNX Runtime itself cannot be sure of.

Sums in another order differ in the last bits, and what follows may make much of it: a comparison falls on the other side, a
difference of nearly equal numbers keeps nothing else. So on suspicion the model is run again by ONNX Runtime with noise of a few
units in the last place behind every node that computes; where its own results move, ours may differ as far.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper

from tests.hunt.case import Array, Feeds
from tests.hunt.single import session_options, values_inside

# Their results are exact, or are what they were given: nothing to blur.
_EXACT = """
    Relu Neg Abs Max Min Clip Where Sign Floor Ceil Round Cast CastLike Identity Dropout Transpose Reshape Flatten Squeeze
    Unsqueeze Expand Tile Concat Split Slice Gather GatherElements GatherND OneHot Pad DepthToSpace SpaceToDepth Trilu
    ReverseSequence TensorScatter MaxPool GlobalMaxPool ReduceMax ReduceMin TopK ConstantOfShape EyeLike Range Hardmax Shrink
    ThresholdedRelu LeakyRelu
"""
EXACT = frozenset(_EXACT.split())
# Of each result, relative. Half precision: ORT rounds between steps that we take in float32. Double: ours are float32 inside.
LEVELS = {np.dtype(np.float32): 2e-6, np.dtype(np.float16): 2e-3, np.dtype(np.float64): 2e-6}
CANCELLED = 16  # so much less, but of the largest element: what is left of terms that cancel each other
SEEDS = (1.0, 2.0, 3.0)
AMPLIFIED = 8.0  # a few noisy runs are no bound on what could happen


def blurred(model: onnx.ModelProto, types: Mapping[str, np.dtype], seed: float) -> onnx.ModelProto:
    """``y`` of a node that computes becomes y * (1 + level * r), and a little of the largest element is added; r is random in
    [-1, 1) for each element, so that equal ones part.

    ``types``: of inner values.
    """
    noisy = onnx.ModelProto()
    noisy.CopyFrom(model)
    nodes: list[onnx.NodeProto] = []
    for node in noisy.graph.node:
        nodes.append(node)
        if node.op_type in EXACT:
            continue
        for k, name in enumerate(node.output):
            if not name or types.get(name) not in LEVELS:
                continue
            node.output[k] = f"{name}.sharp"
            nodes += _noise(f"{name}.sharp", name, types[name], seed)
    del noisy.graph.node[:]
    noisy.graph.node.extend(nodes)
    return noisy


def _noise(sharp: str, name: str, dtype: np.dtype, seed: float) -> list[onnx.NodeProto]:
    level, kind = LEVELS[dtype], helper.np_dtype_to_tensor_dtype(dtype)

    def uniform(what: str, low: float, high: float) -> onnx.NodeProto:
        output = f"{name}.{what}"
        return helper.make_node("RandomUniformLike", [sharp], [output], dtype=TensorProto.FLOAT, low=low, high=high, seed=seed)

    return [
        uniform("factor", 1 - level, 1 + level),
        helper.make_node("Cast", [f"{name}.factor"], [f"{name}.noise"], to=kind),
        helper.make_node("Mul", [sharp, f"{name}.noise"], [f"{name}.moved"]),
        helper.make_node("Cast", [sharp], [f"{name}.float"], to=TensorProto.FLOAT),
        helper.make_node("Abs", [f"{name}.float"], [f"{name}.size"]),
        helper.make_node("ReduceMax", [f"{name}.size"], [f"{name}.largest"], keepdims=0),
        uniform("part", -level / CANCELLED, level / CANCELLED),
        helper.make_node("Mul", [f"{name}.largest", f"{name}.part"], [f"{name}.rest"]),
        helper.make_node("Cast", [f"{name}.rest"], [f"{name}.left"], to=kind),
        helper.make_node("Add", [f"{name}.moved", f"{name}.left"], [name]),
    ]


def spread(model: onnx.ModelProto, feeds: Feeds, sharp: list[Array]) -> list[Array] | None:
    """For each output how far an element moved; None where nothing can be said."""
    found = [np.zeros(np.shape(a)) for a in sharp]
    types = {name: value.dtype for name, value in values_inside(model, feeds)[0].items()}
    for seed in SEEDS:
        try:
            noisy = ort.InferenceSession(
                blurred(model, types, seed).SerializeToString(),
                session_options(optimise=False),
                providers=["CPUExecutionProvider"],
            )
            results = noisy.run(None, dict(feeds))
        except Exception:  # ONNX Runtime's errors have no base class of their own
            return None
        for k, (a, want) in enumerate(zip(results, sharp, strict=True)):
            if a.shape != want.shape:
                return None
            with np.errstate(all="ignore"):
                x, y = a.astype(np.float64), want.astype(np.float64)
                moved = np.where(np.isnan(x) != np.isnan(y), np.inf, np.abs(x - y))
            found[k] = np.fmax(found[k], np.nan_to_num(moved, nan=0.0, posinf=np.inf))
    return [AMPLIFIED * f for f in found]
