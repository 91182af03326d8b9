"""What files hold that ONNX Runtime has saved after its optimisations: a few layers of a network of images, as it writes them.

No run has a smaller image than the one of which every layer still makes something, nor a batch of nothing: there ONNX Runtime
divides by zero (``least`` of ``Builder.input``).
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from tests.hunt.case import Array
from tests.hunt.generation.builder import MOST_ELEMENTS, WORLDS, Builder, Extent, Rejected, Value
from tests.hunt.generation.saved import Plain, grow
from tests.hunt.recipes._row import Recipe, maybe

MS, NCHWC = "com.microsoft", "com.microsoft.nchwc"
LARGEST_BLOCK = 16  # a multiple of every machine's
POOLS = ("MaxPool", "AveragePool")
GLOBAL_POOLS = ("GlobalMaxPool", "GlobalAveragePool")
_ACTIVATIONS: dict[str, dict[str, float]] = {
    "Relu": {}, "Tanh": {}, "Sigmoid": {}, "LeakyRelu": {"alpha": 0.1}, "Clip": {"min": -0.5, "max": 1.0},
    "HardSigmoid": {"alpha": 0.25, "beta": 0.5},
}  # fmt: skip
Window = dict[str, Any]  # the attributes of one layer


# -- windows


def _window(b: Builder, op: str) -> Window:
    """Pads are shorter than the kernel, dilated as it is, and windows that pad themselves leave no gaps."""
    kernel = [b.pick((1, 2, 3, 3)) for _ in range(2)]
    attrs: Window = {"kernel_shape": kernel, "strides": [b.pick((1, 1, 2)) for _ in range(2)], "dilations": None, "pads": None}
    if op == "Conv" and b.chance(0.2):
        attrs["auto_pad"] = b.pick(("SAME_UPPER", "SAME_LOWER", "VALID"))
        attrs["strides"] = [min(s, k) for s, k in zip(attrs["strides"], kernel, strict=True)]
        return attrs
    if b.chance(0.15) and (op == "Conv" or (op == "MaxPool" and b.opset >= 10)):
        attrs["dilations"] = [b.pick((1, 2)) for _ in range(2)]
    if b.chance(0.6):
        extents = _extents(attrs) if op == "Conv" else kernel
        attrs["pads"] = [b.whole(0, extent - 1) for _ in range(2) for extent in extents]
    if op == "AveragePool":
        attrs["count_include_pad"] = b.pick((None, 0, 1))
    return attrs


def _extents(attrs: Window) -> list[int]:
    """How far the kernel reaches along H and W."""
    return [d * (k - 1) + 1 for k, d in zip(attrs["kernel_shape"], attrs["dilations"] or (1, 1), strict=True)]


def _before(attrs: Window, after: tuple[int, int]) -> tuple[int, int]:
    """H and W of the smallest image of which this layer makes one of ``after``."""
    pads = attrs["pads"] or (0, 0, 0, 0)
    least = []
    for axis, (n, extent) in enumerate(zip(after, _extents(attrs), strict=True)):
        reach = 1 if attrs.get("auto_pad", "").startswith("SAME") else extent - pads[axis] - pads[axis + 2]
        least.append(max(1, (n - 1) * attrs["strides"][axis] + reach))
    return least[0], least[1]


# -- images


def _image(b: Builder, channels: int, least: tuple[int, int], *, last: bool = False) -> Value:
    """An input [N, C, H, W] (``last``: [N, H, W, C]) that never is smaller than ``least``; C is the same in every run."""
    if channels * least[0] * least[1] > MOST_ELEMENTS // 2:
        raise Rejected("a large image")
    is_static = b.chance(0.4)
    room = max(0, 9 - channels // LARGEST_BLOCK - max(least) // 2)
    sides: list[Extent] = []
    for n in least:
        first = n + b.whole(0, room)
        sides.append((first,) * WORLDS if is_static else (first, n, n + b.whole(0, room)))
    batch = b.pick([(1, 1, 1), (1, 1, 1), (2, 1, 3)])
    fixed = [None if is_static else n for n in least]
    if last:
        return b.input([batch, *sides, (channels,) * WORLDS], least=[1, *fixed, None])
    return b.input([batch, (channels,) * WORLDS, *sides], least=[1, None, *fixed])


def _weights(b: Builder, outputs: int, depth: int, kernel: list[int]) -> Array:
    """[M, C / group, kH, kW], so that results are about as large as what they are made of."""
    shape = (outputs, depth, *kernel)
    return np.asarray(b.rng.uniform(-1, 1, shape) * 2 / np.sqrt(np.prod(shape[1:])), np.float32)


# -- layers


def _convolution(b: Builder, p: Plain, x: str, channels: int, outputs: int, group: int, attrs: Window) -> str:
    w = p.constant(_weights(b, outputs, channels // group, attrs["kernel_shape"]))
    bias = [p.constant(b.rng.uniform(-1, 1, outputs).astype(np.float32))] if b.chance(0.5) else []
    return p.node("Conv", [x, w, *bias], group=group if group > 1 else None, **attrs)


def _activated(b: Builder, p: Plain, x: str) -> str:
    if (op := b.pick((None, *_ACTIVATIONS))) is None:
        return x
    attrs = _ACTIVATIONS[op]
    if op == "Clip" and b.opset >= 11:
        return p.node(op, [x, *(p.constant(np.asarray(v, np.float32)) for v in attrs.values())])
    return p.node(op, [x], **attrs)


def _conv_layer(b: Builder, p: Plain, x: str, channels: int, attrs: Window) -> tuple[str, int]:
    """A convolution or two that are joined, and an activation: its name and channels."""
    whole = channels % LARGEST_BLOCK == 0
    outputs, group = b.pick((LARGEST_BLOCK, 2 * LARGEST_BLOCK, 20)), 1
    if whole and b.chance(0.4):
        outputs, group = channels, b.pick((channels, channels // LARGEST_BLOCK))
    y = _convolution(b, p, x, channels, outputs, group, attrs)
    if b.chance(0.3):
        how = b.pick(("Add", "Add", "Mul", "Concat"))
        other = _convolution(b, p, x, channels, outputs, group, attrs)
        y = p.node(how, [y, other], axis=1 if how == "Concat" else None)
        outputs *= 2 if how == "Concat" else 1
    return _activated(b, p, y), outputs


def _saved(op: str, b: Builder) -> None:
    """A few layers; one of them is saved as ``op``."""
    ops = [b.pick(("Conv", "Conv", *POOLS)) for _ in range(b.pick((0, 0, 1, 1, 2)))]
    if op in ("Conv", *POOLS):
        ops.insert(b.whole(0, len(ops)), op)
    elif not ops:
        ops.append("Conv")
    windows = [_window(b, o) for o in ops]
    least = (1, 1)
    for attrs in reversed(windows):
        least = _before(attrs, least)
    few = ops[0] == "Conv" and op != "ReorderInput"
    channels = b.pick((1, 3, 4, LARGEST_BLOCK, 2 * LARGEST_BLOCK) if few else (LARGEST_BLOCK, 2 * LARGEST_BLOCK))
    last = b.chance(0.2)
    x = _image(b, channels, least, last=last)
    p = Plain(opset=b.opset)
    y = p.node("Transpose", [x.name], perm=[0, 3, 1, 2]) if last else x.name
    for o, attrs in zip(ops, windows, strict=True):
        if o == "Conv":
            y, channels = _conv_layer(b, p, y, channels, attrs)
        else:
            y = p.node(o, [y], **attrs)
    if op in GLOBAL_POOLS:
        y = p.node(op, [y])
    if b.chance(0.2):
        y = p.node("Transpose", [y], perm=[0, 2, 3, 1])
    model = p.saved({x.name: b.inputs[-1].sizes}, [y])
    if not any(n.domain == NCHWC and n.op_type == op for n in model.graph.node):
        raise Rejected(f"ONNX Runtime's optimiser makes no {op} of it")
    grow(b, model, {x.name: x})


def _fused_conv(b: Builder) -> None:
    """As it is saved where there are no blocks. A fourth input, which is added, comes from optimisers for GPUs."""
    group = b.pick((1, 1, 2))
    attrs = _window(b, "Conv")
    channels, outputs = group * b.pick((1, 3)), group * b.pick((1, 2, 5))
    x = _image(b, channels, _before(attrs, (1, 1)))

    def conv(*added: Value, **activation: Any) -> Value:
        w = b.constant(_weights(b, outputs, channels // group, attrs["kernel_shape"]))
        bias = maybe(b, b.constant(b.rng.uniform(-1, 1, outputs).astype(np.float32)))
        return b.one("FusedConv", [x, w, bias, *added], domain=MS, group=group, **attrs, **activation)

    name = b.pick((None, *_ACTIVATIONS))
    parameters = None if name is None else list(_ACTIVATIONS[name].values()) or None
    conv(*([conv()] if b.chance(0.4) else []), activation=name, activation_params=parameters)


ROWS = [
    Recipe(name=f"{MS}.FusedConv", build=_fused_conv),
    Recipe(name=f"{NCHWC}.Conv", build=partial(_saved, "Conv"), weight=1.5),
    *(Recipe(name=f"{NCHWC}.{op}", build=partial(_saved, op)) for op in (*POOLS, *GLOBAL_POOLS)),
    *(Recipe(name=f"{NCHWC}.{op}", build=partial(_saved, op)) for op in ("ReorderInput", "ReorderOutput")),
]
