"""LSTM, GRU and RNN, with all that they may be given, and an LSTM of bytes."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.hunt.generation.builder import WORLDS, Builder, Extent, Rejected, Value
from tests.hunt.generation.feeds import Fill, Kind
from tests.hunt.recipes._quantised import BYTES, ONE
from tests.hunt.recipes._row import Build, Recipe, maybe

UNIT = Fill(Kind.UNIT)
_BOUNDED = ("Tanh", "Sigmoid", "Softsign", "HardSigmoid")
_UNBOUNDED = (
    "Relu",
    "Softplus",
    "LeakyRelu",
    "Elu",
)  # with a clip alone: states grow by a power a step, and ORT's Softplus overflows


def _fixed(n: int) -> Extent:
    return (n,) * WORLDS


def _recurrent(op: str, gates: int, activations: int) -> Build:
    def build(b: Builder) -> None:
        x = b.any((np.float32,), least=3, most=3)
        direction = b.pick((None, "forward", "reverse", "bidirectional"))
        directions = 2 if direction == "bidirectional" else 1
        hidden = b.pick((1, 3, 4, 8, 17))
        steps, rows, depth = x.extents
        if op != "RNN" and not all((*steps, *rows, *depth)):
            raise Rejected(f"ONNX Runtime ends the process for a {op} over nothing")
        wide, state = _fixed(gates * hidden), [_fixed(directions), rows, _fixed(hidden)]
        w = b.tensor([_fixed(directions), wide, depth], x.dtype, UNIT, fixed=0.9)
        r = b.tensor([_fixed(directions), wide, _fixed(hidden)], x.dtype, UNIT, fixed=0.9)
        bias = maybe(b, b.tensor([_fixed(directions), _fixed(2 * gates * hidden)], x.dtype, UNIT, fixed=0.9), 0.7)
        lengths: Value | None = None
        if b.chance(0.3) and all(steps):
            most = min(steps)
            arrays = [np.asarray(b.rng.integers(0, most + 1, n), np.int32) for n in rows]
            lengths = b.by_world(arrays, low=0, high=most + 1)
        inputs: list[Value | None] = [x, w, r, bias, lengths, maybe(b, b.tensor(state, x.dtype, UNIT), 0.4)]
        attributes: dict[str, Any] = {"direction": direction, "hidden_size": hidden, "clip": b.pick((None, None, None, 0.5))}
        if op == "LSTM":
            inputs.append(maybe(b, b.tensor(state, x.dtype, UNIT), 0.4))
            inputs.append(maybe(b, b.tensor([_fixed(directions), _fixed(3 * hidden)], x.dtype, UNIT, fixed=0.9), 0.2))
            attributes["input_forget"] = b.pick((None, None, None, 1))
        if op == "GRU":
            attributes["linear_before_reset"] = b.pick((None, 0, 1, 1))
        if b.chance(0.2):
            usable = _BOUNDED + _UNBOUNDED if attributes["clip"] else _BOUNDED
            attributes["activations"] = [b.pick(usable) for _ in range(activations)] * directions
        outputs = 3 if op == "LSTM" else 2
        skip = [i for i in range(outputs) if b.chance(0.3)]
        b.node(op, inputs, outputs=outputs, skip=skip[: outputs - 1], **attributes)

    return build


def _quantised(b: Builder) -> None:
    """Of one row: ONNX Runtime quantises the states of several together. Its matrices are constants of 7 bits."""
    depth, hidden = b.pick((1, 3, 4, 8, 17)), b.pick((1, 3, 4, 8, 17))
    steps = tuple(max(1, n) for n in b.extent())  # ONNX Runtime ends the process for an LSTM over nothing
    x = b.input([steps, ONE, _fixed(depth)], np.float32, UNIT, least=[1, None, None])
    direction = b.pick((None, "forward", "reverse", "bidirectional"))
    directions, dtype = 2 if direction == "bidirectional" else 1, b.pick(BYTES)
    wide = 4 * hidden
    matrices, parameters = [], []
    for k in (depth, hidden):
        low, high = (-64, 64) if dtype is np.int8 else (0, 128)
        matrices.append(b.constant(b.rng.integers(low, high, (directions, k, wide)).astype(dtype)))
        shape = (directions, wide) if b.chance(0.4) else (directions,)
        zero = b.whole(low, high) if dtype is np.uint8 or len(shape) == 1 else 0
        scales = b.rng.uniform(0.5, 1.5, shape) / (40 * np.sqrt(k))
        parameters += [b.constant(scales.astype(np.float32)), b.constant(np.full(shape, zero, dtype))]
    bias = maybe(b, b.tensor([_fixed(directions), _fixed(2 * wide)], np.float32, UNIT, fixed=0.9), 0.7)
    lengths: Value | None = None
    if b.chance(0.3):
        most = min(steps)
        lengths = b.by_world([np.asarray([b.whole(1, most)], np.int32) for _ in steps], low=0, high=most + 1)
    state = [_fixed(directions), ONE, _fixed(hidden)]
    states = [maybe(b, b.tensor(state, np.float32, UNIT), 0.4) for _ in range(2)]
    peepholes = maybe(b, b.tensor([_fixed(directions), _fixed(3 * hidden)], np.float32, UNIT, fixed=0.9), 0.2)
    attributes: dict[str, Any] = {
        "direction": direction,
        "hidden_size": hidden,
        "clip": b.pick((None, None, None, 0.5)),
        "input_forget": b.pick((None, None, None, 1)),
    }
    inputs = [x, *matrices, bias, lengths, *states, peepholes, *parameters]
    skip = [i for i in range(3) if b.chance(0.3)]
    b.node("DynamicQuantizeLSTM", inputs, outputs=3, skip=skip[:2], domain="com.microsoft", **attributes)


ROWS = [
    Recipe(name="LSTM", build=_recurrent("LSTM", 4, 3)),
    Recipe(name="GRU", build=_recurrent("GRU", 3, 2)),
    Recipe(name="RNN", build=_recurrent("RNN", 1, 1)),
    Recipe(name="com.microsoft.DynamicQuantizeLSTM", build=_quantised),
]
