"""Models of ai.onnx.ml, as converters of scikit-learn write them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

Array = NDArray[Any]
DOMAIN = "ai.onnx.ml"


def ml_node(op: str, inputs: str, outputs: str, **attributes: Any) -> NodeProto:
    return helper.make_node(op, inputs.split(), outputs.split(), domain=DOMAIN, **attributes)


def ml_model(
    nodes: Sequence[NodeProto],
    feeds: Mapping[str, Array],
    outputs: Mapping[str, int],
    *,
    constants: Mapping[str, Array] | None = None,
    fixed: bool = False,
) -> ModelProto:
    """``outputs``: element types by name, 0 where ONNX Runtime is to infer what it is. Inputs have the types of ``feeds``, and
    their sizes if they are ``fixed``."""
    inputs = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape if fixed else [None] * a.ndim)
        for n, a in feeds.items()
    ]
    declared = [helper.make_tensor_value_info(n, kind, None) if kind else ValueInfoProto(name=n) for n, kind in outputs.items()]
    weights = [numpy_helper.from_array(a, n) for n, a in (constants or {}).items()]
    graph = helper.make_graph(list(nodes), "g", inputs, declared, weights)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid(DOMAIN, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def single(op: str, feeds: Mapping[str, Array], *, fixed: bool = False, **attributes: Any) -> ModelProto:
    """One node, that reads all of ``feeds``."""
    first = next(iter(feeds.values()))
    kind = TensorProto.FLOAT
    if op in ("Imputer", "ArrayFeatureExtractor"):
        kind = helper.np_dtype_to_tensor_dtype(first.dtype)
    outputs = {"label": TensorProto.INT64, "y": kind} if op == "LinearClassifier" else {"y": kind}
    return ml_model([ml_node(op, " ".join(feeds), " ".join(outputs), **attributes)], feeds, outputs, fixed=fixed)


def tree(inputs: str, outputs: str, *, labels: Mapping[str, Any]) -> NodeProto:
    """One split of column 0 at 0.25 between two classes."""
    return ml_node(
        "TreeEnsembleClassifier",
        inputs,
        outputs,
        nodes_treeids=[0, 0, 0],
        nodes_nodeids=[0, 1, 2],
        nodes_featureids=[0, 0, 0],
        nodes_values=[0.25, 0.0, 0.0],
        nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"],
        nodes_truenodeids=[1, 0, 0],
        nodes_falsenodeids=[2, 0, 0],
        nodes_hitrates=[1.0, 1.0, 1.0],
        nodes_missing_value_tracks_true=[0, 0, 0],
        class_treeids=[0, 0, 0, 0],
        class_nodeids=[1, 1, 2, 2],
        class_ids=[0, 1, 0, 1],
        class_weights=[0.75, 0.25, 0.125, 0.875],
        post_transform="NONE",
        **labels,
    )
