"""Every family's tiny variant: it runs, its outputs are alive, its graph has the form that was promised."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime as ort
import pytest

from xyntra_zoo import ZooModel, model_path, zoo
from xyntra_zoo.params import RandomParams

TINY = [pytest.param(model, id=model.name) for model in zoo if model.tiny]


def session(model: ZooModel) -> Any:  # onnxruntime has no types
    return ort.InferenceSession(str(model_path(model)), providers=["CPUExecutionProvider"])


def run(model: ZooModel, feeds: dict[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[np.float32]]:
    s = session(model)
    names = [output.name for output in s.get_outputs()]
    return dict(zip(names, s.run(names, feeds), strict=True))


@pytest.mark.parametrize("model", TINY)
@pytest.mark.parametrize("batch", [1, 4])
def test_outputs_are_alive_at_every_shape(model: ZooModel, batch: int) -> None:
    for seq in model.seqs or (1,):
        for name, value in run(model, model.feeds(batch, seq, 7)).items():
            assert np.isfinite(value).all(), name
            assert np.abs(value).max() >= 1e-3, name
            assert value.std() > 0.05, name
            assert value.shape[0] == batch, name


@pytest.mark.parametrize("model", TINY)
def test_rows_of_a_batch_differ_and_do_not_mix(model: ZooModel) -> None:
    """Row 0 alone gives what row 0 of a batch gives, and the other rows give something else. With dynamic
    quantisation a scale is the whole batch's, so a row's rounding depends on the others."""
    apart = 0.02 if model.float_model else 1e-5
    seq = max(model.seqs, default=1)
    feeds = model.feeds(4, seq, 3)
    together = run(model, feeds)
    alone = run(model, {name: value[:1] for name, value in feeds.items()})
    for name, value in together.items():
        np.testing.assert_allclose(alone[name], value[:1], atol=apart * float(np.abs(value).max()))
        assert np.abs(value[0] - value[1]).max() > max(0.01, 5 * apart) * np.abs(value).max(), name


@pytest.mark.parametrize("model", TINY)
def test_same_seed_same_model_and_feeds(model: ZooModel) -> None:
    once, again = (model.build(RandomParams(model.seed)) for _ in range(2))
    assert once.SerializeToString(deterministic=True) == again.SerializeToString(deterministic=True)
    other = model.build(RandomParams(model.seed + 1))
    assert once.SerializeToString(deterministic=True) != other.SerializeToString(deterministic=True)
    for name, value in model.feeds(2, 8, 5).items():
        np.testing.assert_array_equal(value, model.feeds(2, 8, 5)[name])


@pytest.mark.parametrize("model", TINY)
def test_shapes_are_inferred_as_declared(model: ZooModel) -> None:
    """The declared output shapes agree with what ONNX's own inference derives from the nodes."""
    onnx.shape_inference.infer_shapes(model.build(RandomParams(0)), check_type=True, strict_mode=True)


def ops(name: str) -> Counter[str]:
    return Counter(node.op_type for node in zoo[name].build(RandomParams(0)).graph.node)


def constants(name: str) -> set[float]:
    nodes = zoo[name].build(RandomParams(0)).graph.node
    arrays = [onnx.numpy_helper.to_array(node.attribute[0].t) for node in nodes if node.op_type == "Constant"]
    return {float(array) for array in arrays if array.size == 1}


def test_graph_forms_are_those_of_the_exporter() -> None:
    bert, vit = ops("bert-base-tiny"), ops("vit-tiny16-tiny")
    prefill, decode, resnet = ops("gpt2-prefill-tiny"), ops("gpt2-decode-tiny"), ops("resnet50-tiny")
    assert bert["LayerNormalization"] == 0 and bert["ReduceMean"] == 2 * 5
    assert bert["Erf"] == 2 and bert["Softmax"] == 2 and bert["MatMul"] == 2 * 8
    assert vit["LayerNormalization"] == 5 and vit["Erf"] == 2 and vit["Expand"] == 1
    assert prefill["LayerNormalization"] == 5 and prefill["Tanh"] == 2 and prefill["Where"] == 2
    assert decode["LayerNormalization"] == 0 and decode["Sqrt"] == 5
    assert resnet["Conv"] == resnet["BatchNormalization"] > 0 and resnet["Gemm"] == 1
    mobilenet = ops("mobilenetv2-tiny")
    assert mobilenet["Conv"] == mobilenet["BatchNormalization"] == 10 and mobilenet["Clip"] == 7 and mobilenet["Add"] == 1
    assert constants("mobilenetv2-tiny") == {0.0, 6.0}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["resnet50", "mobilenetv2"])
def test_deep_networks_do_not_amplify_rounding(name: str) -> None:
    """With weights rounded to bf16, 8 bits of mantissa, the logits move by less than the bound of a bf16 run."""
    model = zoo[name].build(RandomParams(0))
    feeds = zoo[name].feeds(1, 1, 0)

    def logits() -> npt.NDArray[np.float32]:
        made = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        (out,) = made.run(["logits"], feeds)
        return np.asarray(out)

    exact = logits()
    for tensor in model.graph.initializer:
        values = onnx.numpy_helper.to_array(tensor)
        if values.ndim == 4:
            rounded = ((values.view(np.uint32) + 0x8000) & 0xFFFF0000).view(np.float32)
            tensor.CopyFrom(onnx.numpy_helper.from_array(rounded, tensor.name))
    assert 1e-4 < np.abs(logits() - exact).max() / np.abs(exact).max() < 2e-2


def test_bert_ignores_padding() -> None:
    model = zoo["bert-base-tiny"]
    feeds = model.feeds(1, 16, 1)
    kept = int(feeds["attention_mask"].sum())
    assert 0 < kept < 16
    changed = feeds | {"input_ids": feeds["input_ids"].copy()}
    changed["input_ids"][:, kept:] = 5
    before, after = (run(model, f)["last_hidden_state"] for f in (feeds, changed))
    np.testing.assert_allclose(before[:, :kept], after[:, :kept], atol=1e-6)
    assert np.abs(before[:, kept:] - after[:, kept:]).max() > 0.1


def test_gpt2_is_causal() -> None:
    model = zoo["gpt2-prefill-tiny"]
    feeds = model.feeds(1, 16, 1)
    changed = {"input_ids": feeds["input_ids"].copy()}
    changed["input_ids"][:, 9] = (changed["input_ids"][:, 9] + 1) % 101
    before, after = (run(model, f)["logits"] for f in (feeds, changed))
    np.testing.assert_allclose(before[:, :9], after[:, :9], atol=1e-6)
    assert np.abs(before[:, 9:] - after[:, 9:]).max() > 0.01


def test_gpt2_decode_continues_prefill() -> None:
    """Feeding the prompt token by token through the decode graph gives the logits of the prefill graph."""
    prompt = zoo["gpt2-prefill-tiny"].feeds(2, 6, 1)["input_ids"]
    expected = run(zoo["gpt2-prefill-tiny"], {"input_ids": prompt})["logits"]
    step = session(zoo["gpt2-decode-tiny"])
    cache = {i.name: np.zeros((2, 4, 0, 16), np.float32) for i in step.get_inputs() if i.name != "input_ids"}
    for position in range(prompt.shape[1]):
        logits, *presents = step.run(None, {"input_ids": prompt[:, position : position + 1], **cache})
        names = [output.name.replace("present", "past") for output in step.get_outputs()[1:]]
        cache = dict(zip(names, presents, strict=True))
        np.testing.assert_allclose(logits[:, 0], expected[:, position], atol=1e-5)
