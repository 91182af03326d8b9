"""Files that ONNX Runtime has saved after its optimisations, against ONNX Runtime: its blocks of channels are read as what they
mean, and what lies in them by chance is read as ONNX Runtime reads it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest

from tests.support.models.graph_from_model import graph_from_model
from tests.support.models.onnx_text import assert_same, model_of
from tests.support.sessions import planned
from tests.tolerances import difference
from xyntra_ep.diagnostics.explain import explain
from xyntra_ep.errors import UnsupportedError
from xyntra_ep.fusion.graph import Graph
from xyntra_ep.fusion.trace import trace
from xyntra_zoo import model_path, zoo

RNG = np.random.default_rng(0)
DOMAIN = "com.microsoft.nchwc"


def _f32(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return RNG.standard_normal(shape).astype(np.float32)


CONSTANTS = {
    "plain": _f32(32, 3, 3, 3),
    "whole": _f32(48, 32, 3, 3),
    "depthwise": _f32(32, 1, 3, 3),
    "groups": _f32(32, 16, 1, 1),
    "b32": _f32(32),
    "b48": _f32(48),
}


@pytest.mark.parametrize(
    "call",
    [
        f"{DOMAIN}.Conv <pads = [1, 1, 1, 1]> (image, plain, b32)",
        f'{DOMAIN}.Conv <strides = [2, 1], activation = "Relu"> (x, whole)',
        f'{DOMAIN}.Conv <auto_pad = "SAME_UPPER", activation = "Clip", activation_params = [-10.0, 20.0]> (x, whole, b48)',
        f"{DOMAIN}.Conv <pads = [1, 1, 1, 1], group = 32> (x, depthwise, b32)",
        f'{DOMAIN}.Conv <group = 2, activation = "LeakyRelu", activation_params = [0.25]> (x, groups, b32, x)',
        f"{DOMAIN}.MaxPool <kernel_shape = [3, 2], strides = [2, 2], pads = [1, 0, 1, 0]> (x)",
        f"{DOMAIN}.AveragePool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (x)",
        f"{DOMAIN}.AveragePool <kernel_shape = [3, 3], pads = [1, 1, 1, 1], count_include_pad = 1> (x)",
        f"{DOMAIN}.GlobalMaxPool (x)",
        f"{DOMAIN}.GlobalAveragePool (x)",
        f"{DOMAIN}.ReorderInput (x)",
        f"{DOMAIN}.ReorderOutput <channels = 28> (x)",
        f"{DOMAIN}.ReorderOutput <channels = 32, channels_last = 1> (x)",
        "com.microsoft.FusedConv <pads = [1, 1, 1, 1]> (image, plain, b32, x)",
        'com.microsoft.FusedConv <activation = "HardSigmoid", activation_params = [0.25, 0.5]> (image, plain, b32)',
        'com.microsoft.FusedConv <pads = [1, 1, 1, 1], activation = "Tanh", group = 2> (x, groups, b32)',
    ],
)
def test_like_ort(call: str) -> None:
    body = f"g (float[N, 32, H, 7] x, float[N, 3, H, 7] image) => (float[a, b, c, d] y) {{ y = {call} }}"
    assert_same(model_of(body, CONSTANTS, contrib=True), {"x": _f32(2, 32, 6, 7), "image": _f32(2, 3, 6, 7)})


def test_between_two_operators_the_blocks_are_nothing() -> None:
    """A chain has the kernels of the same chain without blocks."""

    def kernels(text: str) -> list[str]:
        body = f"g (float[1, 3, 16, 16] image) => (float[a, b, c, d] y) {{ {text} }}"
        session = planned(model_of(body, CONSTANTS, contrib=True), level=ort.GraphOptimizationLevel.ORT_DISABLE_ALL)
        found = [k for g in explain(session).graphs for i in g.islands for k in i.kernels]
        return [k.variant for k in found if k.label != "copy"]  # of weights, when the session is created

    blocks = kernels(
        f"""h = {DOMAIN}.Conv <pads = [1, 1, 1, 1], activation = "Relu"> (image, plain, b32)
        d = {DOMAIN}.Conv <pads = [1, 1, 1, 1], group = 32> (h, depthwise, b32)
        s = {DOMAIN}.Conv <group = 2> (d, groups, b32, h)
        y = {DOMAIN}.ReorderOutput <channels = 32> (s)"""
    )
    without = kernels(
        """c = Conv <pads = [1, 1, 1, 1]> (image, plain, b32)
        h = Relu (c)
        d = Conv <pads = [1, 1, 1, 1], group = 32> (h, depthwise, b32)
        g = Conv <group = 2> (d, groups, b32)
        y = Add (g, h)"""
    )
    assert blocks == without and len(without) > 2


@pytest.mark.native
@pytest.mark.parametrize("name", ["resnet50-tiny", "mobilenetv2-tiny"])
@pytest.mark.parametrize("level", ["ORT_ENABLE_EXTENDED", "ORT_ENABLE_ALL"])
def test_a_saved_model_is_claimed_whole(name: str, level: str, tmp_path: Path) -> None:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, level)
    options.optimized_model_filepath = str(tmp_path / "saved.onnx")
    session = ort.InferenceSession(str(model_path(zoo[name])), options, providers=["CPUExecutionProvider"])
    saved = onnx.load(tmp_path / "saved.onnx")
    domains = {node.domain for node in saved.graph.node}
    assert ("com.microsoft" if level.endswith("EXTENDED") else DOMAIN) in domains
    ours = planned(saved)
    [graph] = explain(ours).graphs
    assert not graph.declined and len(graph.islands) == 1
    feeds = {i.name: _f32(*(2 if isinstance(d, str) else d for d in i.shape)) for i in session.get_inputs()}
    for got, want in zip(ours.run(None, feeds), session.run(None, feeds), strict=True):
        assert not (text := difference(np.asarray(got), np.asarray(want))), text


@pytest.mark.parametrize(
    ("call", "block", "reason"),
    [
        (f"{DOMAIN}.GlobalMaxPool (x)", 0, "blocks of channels, whose size on this machine is not known"),
        (f"{DOMAIN}.GlobalMaxPool (x)", 24, "32 channels in blocks of 24"),
        (f'{DOMAIN}.Conv <activation = "Clip"> (x, whole)', 16, "activation Clip with 0 parameters"),
        (f'{DOMAIN}.Conv <activation = "Elu2"> (x, whole)', 16, "activation Elu2 with 0 parameters"),
        (f"{DOMAIN}.AveragePool <kernel_shape = [2, 2], ceil_mode = 1> (x)", 16, "ceil_mode = 1"),
        (f'{DOMAIN}.MaxPool <kernel_shape = [2, 2], auto_pad = "SAME_UPPER"> (x)', 16, "auto_pad = SAME_UPPER"),
        (f"{DOMAIN}.ReorderOutput <channels = 33> (x)", 16, "33 of 32 channels"),
        (f"{DOMAIN}.ReorderOutput <channels = 16> (x)", 16, "16 of 32 channels"),
    ],
)
def test_declined(call: str, block: int, reason: str) -> None:
    body = f"g (float[1, 32, 6, 7] x) => (float[a, b, c, d] y) {{ y = {call} }}"
    graph: Graph = replace(graph_from_model(model_of(body, CONSTANTS, contrib=True)), channel_block=block)
    with pytest.raises(UnsupportedError, match=reason):
        trace(graph, [node.id for node in graph.nodes], ["x"], trust=True)
