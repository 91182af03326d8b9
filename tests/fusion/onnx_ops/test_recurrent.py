"""LSTM, GRU and RNN against ONNX Runtime, through the interpreter: every form, and what is declined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import helper, numpy_helper

from tests.support.models.graph_from_model import graph_from_model, interpret_model, trace_model
from xyntra_ep.fusion.partition import analyse
from xyntra_ep.tracea.core_ir.dims import Size, evaluate, symbols_of

STEPS, ROWS, DEPTH, WIDTH = 5, 3, 4, 6
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
ALL = ("B", "h", "c", "P")
MAX_ERR = 4e-6  # ONNX Runtime's own: its tanh and sigmoid are approximations in f32
CPU = ["CPUExecutionProvider"]


def recurrent(
    op: str,
    *,
    direction: str = "forward",
    given: Sequence[str] = ALL,
    lengths: Sequence[int] | None = None,
    outputs: Sequence[str] = ("Y", "Y_h", "Y_c"),
    layout: int = 0,
    fed: Sequence[str] = ("X", "h", "c", "lengths"),
    zeros: Sequence[str] = (),
    **attributes: Any,
) -> tuple[onnx.ModelProto, dict[str, Any]]:
    """A node and its feeds; what is not ``fed`` is a constant, of ``zeros`` perhaps."""
    rng = np.random.default_rng(1)
    g, d = GATES[op], 2 if direction == "bidirectional" else 1
    x, state = ((ROWS, STEPS, DEPTH), (ROWS, d, WIDTH)) if layout else ((STEPS, ROWS, DEPTH), (d, ROWS, WIDTH))
    shapes = {"X": x, "W": (d, g * WIDTH, DEPTH), "R": (d, g * WIDTH, WIDTH), "B": (d, 2 * g * WIDTH)}
    shapes |= {"h": state, "c": state, "P": (d, 3 * WIDTH)}
    data: dict[str, Any] = {n: (rng.standard_normal(s) * (n not in zeros)).astype(np.float32) for n, s in shapes.items()}
    if lengths is not None:
        data["lengths"] = np.array(lengths, np.int32)
    wanted = ["X", "W", "R", "B", "lengths", "h", *(("c", "P") if op == "LSTM" else ())]
    names = [n if n in data and (n not in ALL or n in given) else "" for n in wanted]
    results = [n if n in outputs else "" for n in ("Y", "Y_h", "Y_c")[: 2 + (op == "LSTM")]]
    if layout:
        attributes["layout"] = layout
    node = helper.make_node(op, names, results, "n", hidden_size=WIDTH, direction=direction, **attributes)
    inputs = []
    for name in (n for n in names if n in fed):
        kind = helper.np_dtype_to_tensor_dtype(data[name].dtype)
        named = [f"{name}_{i}" for i in range(data[name].ndim)]
        inputs.append(helper.make_tensor_value_info(name, kind, data[name].shape if name in ("W", "R") else named))
    graph = helper.make_graph(
        [node],
        "g",
        inputs,
        [onnx.ValueInfoProto(name=n) for n in results if n],
        [numpy_helper.from_array(data[n], n) for n in names if n and n not in fed],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)
    return onnx.shape_inference.infer_shapes(model), {i.name: data[i.name] for i in inputs}


def check(model: onnx.ModelProto, feeds: Mapping[str, Any]) -> None:
    wanted = ort.InferenceSession(model.SerializeToString(), providers=CPU).run(None, feeds)
    with np.errstate(all="ignore"):
        got = interpret_model(model, feeds)
    for a, b in zip(got, wanted, strict=True):
        assert a.shape == b.shape
        assert np.abs(a - b).max() <= MAX_ERR * max(1.0, np.abs(b).max())


def reasons(model: onnx.ModelProto) -> set[str]:
    declined, _ = analyse(graph_from_model(model))
    return {reason.text for reason in declined.values()}


def checks_of(model: onnx.ModelProto) -> list[tuple[Size, str]]:
    _, context = trace_model(model)
    return context.checks.conditions


FORMS: Sequence[tuple[str, dict[str, Any]]] = [
    ("LSTM", {}),
    ("LSTM", {"input_forget": 1}),
    ("GRU", {}),
    ("GRU", {"linear_before_reset": 1}),
    ("RNN", {}),
]


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize(("op", "attributes"), FORMS)
class TestForms:
    def test_all_that_may_be_given(self, op: str, attributes: dict[str, Any], direction: str) -> None:
        check(*recurrent(op, direction=direction, **attributes))
        check(*recurrent(op, direction=direction, lengths=[2, 0, 5], **attributes))
        check(*recurrent(op, direction=direction, clip=0.4, **attributes))

    def test_nothing_that_is_optional(self, op: str, attributes: dict[str, Any], direction: str) -> None:
        check(*recurrent(op, direction=direction, given=(), **attributes))
        for name in ("Y", "Y_h") if op != "LSTM" else ("Y", "Y_h", "Y_c"):
            check(*recurrent(op, direction=direction, given=("B",), outputs=(name,), **attributes))

    def test_weights_at_run_time(self, op: str, attributes: dict[str, Any], direction: str) -> None:
        fed = ("X", "W", "R", "B", "h", "c", "P", "lengths")
        check(*recurrent(op, direction=direction, fed=fed, lengths=[5, 1, 3], **attributes))

    def test_zeros_and_known_lengths(self, op: str, attributes: dict[str, Any], direction: str) -> None:
        zeros: dict[str, Any] = {"zeros": ("h", "c", "P", "B"), "fed": ("X",)}
        check(*recurrent(op, direction=direction, lengths=[5, 5, 5], **zeros, **attributes))
        check(*recurrent(op, direction=direction, lengths=[1, 5, 3], **zeros, **attributes))

    def test_the_batch_first(self, op: str, attributes: dict[str, Any], direction: str) -> None:
        """ONNX Runtime has no kernel for it: the same numbers in another order."""
        lengths = [2, 0, 5]
        model, feeds = recurrent(op, direction=direction, lengths=lengths, layout=1, **attributes)
        other, _ = recurrent(op, direction=direction, lengths=lengths, **attributes)
        turned = {n: a.swapaxes(0, 1) if a.ndim == 3 else a for n, a in feeds.items()}
        y, *finals = ort.InferenceSession(other.SerializeToString(), providers=CPU).run(None, turned)
        got, *others = interpret_model(model, feeds)
        np.testing.assert_allclose(got, y.transpose(2, 0, 1, 3), atol=MAX_ERR)
        for a, b in zip(others, finals, strict=True):
            np.testing.assert_allclose(a, b.swapaxes(0, 1), atol=MAX_ERR)


@pytest.mark.parametrize(
    ("name", "alpha", "beta"),
    [
        ("Relu", [], []), ("Tanh", [], []), ("Sigmoid", [], []), ("Softsign", [], []), ("Softplus", [], []),
        ("LeakyRelu", [], []), ("LeakyRelu", [0.3], []), ("ThresholdedRelu", [0.2], []), ("ScaledTanh", [0.5], [1.5]),
        ("HardSigmoid", [], []), ("HardSigmoid", [0.3], [0.4]), ("Elu", [], []), ("Elu", [0.5], []), ("Affine", [0.3], [0.1]),
    ],
)  # fmt: skip
def test_activations(name: str, alpha: list[float], beta: list[float]) -> None:
    lists: dict[str, Any] = {"activation_alpha": alpha, "activation_beta": beta}
    check(*recurrent("RNN", activations=[name], **{n: values for n, values in lists.items() if values}))
    activations = ["HardSigmoid", name, "Tanh"]
    check(*recurrent("LSTM", activations=activations, activation_alpha=[0.3, *alpha], activation_beta=[0.6, *beta]))


@pytest.mark.parametrize(
    ("op", "attributes", "reason"),
    [
        ("RNN", {"activations": ["Affine"]}, "activation Affine without its parameters"),
        ("RNN", {"activations": ["Cosine"]}, "activation Cosine"),
        ("LSTM", {"activations": ["Tanh", "Tanh"]}, "2 of 3 activations"),
        ("RNN", {"activations": ["Tanh", "Relu"], "direction": "bidirectional"}, "directions with activations of their own"),
    ],
)
def test_declined(op: str, attributes: dict[str, Any], reason: str) -> None:
    assert reasons(recurrent(op, **attributes)[0]) == {reason}


def test_shapes_that_do_not_fit_are_declined() -> None:
    model, _ = recurrent("GRU")
    b = next(t for t in model.graph.initializer if t.name == "B")
    b.CopyFrom(numpy_helper.from_array(np.zeros((1, 7), np.float32), "B"))
    assert any("the shape of B does not fit" in reason for reason in reasons(model))


def test_a_constant_length_beyond_the_sequence_fails() -> None:
    model, _ = recurrent("LSTM", lengths=[5, 6, 1], fed=("X", "h", "c"))
    found = [condition for condition, message in checks_of(model) if "sequence_lens is not within" in message]
    at_five = [evaluate(condition, dict.fromkeys(symbols_of(condition), 5)) for condition in found]
    assert at_five.count(0) == 1
