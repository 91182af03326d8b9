"""Each quantised row's tiny sibling: what the quantiser made of the float model, and how far its outputs moved."""

from __future__ import annotations

import logging
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime as ort
import pytest

from xyntra_zoo import ZooModel, model_path, zoo

ROWS = [pytest.param(model, id=model.name) for model in zoo if model.tiny and model.float_model]
LARGE = 1024  # elements of a tensor that is a weight and not a scale, a bias or a mask
# Relative distance of the outputs to the float model's, about twice what was seen.
MOVED = {
    "bert-base-dq8-tiny": 0.03,
    "resnet50-qdq-tiny": 0.13,
    "mobilenetv2-qdq-tiny": 0.06,
    "vit-tiny16-qdq-tiny": 0.18,
    "gpt2-prefill-q4-tiny": 0.40,
    "gpt2-decode-q4-tiny": 0.40,
}


def graph_of(name: str) -> onnx.GraphProto:
    return onnx.load(str(model_path(zoo[name]))).graph


def tensors_of(graph: onnx.GraphProto) -> dict[str, npt.NDArray[Any]]:
    return {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in graph.initializer}


def kinds(graph: onnx.GraphProto) -> Counter[str]:
    return Counter(node.op_type for node in graph.node)


def outputs(model: ZooModel) -> list[npt.NDArray[np.float32]]:
    session = ort.InferenceSession(str(model_path(model)), providers=["CPUExecutionProvider"])
    values: list[npt.NDArray[np.float32]] = session.run(None, model.feeds(2, max(model.seqs, default=1), 5))
    return values


@pytest.mark.parametrize("model", ROWS)
def test_outputs_move_and_not_far(model: ZooModel) -> None:
    assert model.float_model
    moved = [
        float(np.linalg.norm(ours - exact) / np.linalg.norm(exact))
        for ours, exact in zip(outputs(model), outputs(model.float_model), strict=True)
    ]
    assert 1e-3 < max(moved) < MOVED[model.name], moved


def test_dynamic_quantisation_leaves_no_matrix_in_float() -> None:
    graph = graph_of("bert-base-dq8-tiny")
    found, tensors = kinds(graph), tensors_of(graph)
    assert found["MatMulInteger"] == 2 * 6 + 1, "six products of a layer, and the pooler's"
    assert found["MatMul"] == 2 * 2, "scores and context, both of whose operands are activations"
    assert found["DequantizeLinear"] == 3, "behind the Gather of each embedding table"
    assert 0 < found["DynamicQuantizeLinear"] < found["MatMulInteger"], "queries, keys and values share theirs"
    weights = Counter(tensor.dtype.name for tensor in tensors.values() if tensor.size >= LARGE)
    assert weights == {"int8": 13, "uint8": 2}, "the tables of words and positions are quantised as activations are"


@pytest.mark.parametrize("name", ["resnet50-qdq-tiny", "mobilenetv2-qdq-tiny", "vit-tiny16-qdq-tiny"])
def test_static_quantisation_has_a_scale_for_each_channel(name: str) -> None:
    graph = graph_of(name)
    found, tensors = kinds(graph), tensors_of(graph)
    assert found["DequantizeLinear"] > found["QuantizeLinear"] > 10 and not found["BatchNormalization"]
    read = {node.output[0]: node for node in graph.node if node.op_type == "DequantizeLinear"}
    products = [node for node in graph.node if node.op_type in ("Conv", "Gemm", "MatMul")]
    weights = [(node, read[node.input[1]]) for node in products if read[node.input[1]].input[0] in tensors]
    assert len(weights) == {"resnet50-qdq-tiny": 13, "mobilenetv2-qdq-tiny": 11, "vit-tiny16-qdq-tiny": 10}[name]
    for node, dequantised in weights:
        weight, scale = tensors[dequantised.input[0]], tensors[dequantised.input[1]]
        channels = weight.shape[-1 if node.op_type == "MatMul" else 0]
        assert weight.dtype == np.int8 and scale.shape == (channels,), node.name
        assert read[node.input[0]].input[2] in tensors and tensors[read[node.input[0]].input[2]].dtype == np.uint8, node.name


@pytest.mark.parametrize("name", ["gpt2-prefill-q4-tiny", "gpt2-decode-q4-tiny"])
def test_blocks_of_4_bits_replace_every_product_by_a_constant(name: str) -> None:
    graph = graph_of(name)
    found, tensors = kinds(graph), tensors_of(graph)
    assert found["MatMulNBits"] == 2 * 4 + 1, "four layers of each block, and the head"
    assert found["MatMul"] == 2 * 2 and not found["Gemm"]
    for node in graph.node:
        if node.op_type == "MatMulNBits":
            attributes = {attribute.name: attribute.i for attribute in node.attribute}
            assert (attributes["bits"], attributes["block_size"], attributes["accuracy_level"]) == (4, 32, 4)
            columns, blocks, packed = tensors[node.input[1]].shape
            assert (columns, blocks * 32, packed) == (attributes["N"], attributes["K"], 16)
            assert len(node.input) == 3, "no zero points"


def test_another_version_of_the_quantisers_is_another_file(monkeypatch: pytest.MonkeyPatch) -> None:
    quantised, exact = model_path(zoo["mobilenetv2-qdq-tiny"]), model_path(zoo["mobilenetv2-tiny"])
    monkeypatch.setattr(ort, "__version__", "0.0.0")
    assert model_path(zoo["mobilenetv2-qdq-tiny"]) != quantised and model_path(zoo["mobilenetv2-tiny"]) == exact


def test_quantising_leaves_the_log_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XYNTRA_ZOO_DIR", str(tmp_path))
    root = logging.getLogger()
    before = (list(root.handlers), root.level, root.manager.disable)
    assert model_path(zoo["bert-base-dq8-tiny"]).parent == tmp_path
    assert (list(root.handlers), root.level, root.manager.disable) == before
