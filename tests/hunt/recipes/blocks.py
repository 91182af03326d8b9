"""What files hold that ONNX Runtime has saved after its optimisations. Wherever the numbers lie: they are drawn at random."""

from __future__ import annotations

from typing import Any

from tests.hunt.generation.builder import Builder, Extent, Value
from tests.hunt.recipes._row import Build, Recipe, maybe
from tests.hunt.recipes.windows import window

MS, NCHWC = "com.microsoft", "com.microsoft.nchwc"
LARGEST_BLOCK = 16
_ACTIVATIONS: dict[str, list[float]] = {
    "Relu": [], "Tanh": [], "Sigmoid": [], "LeakyRelu": [0.1], "Clip": [-0.5, 1.0], "HardSigmoid": [0.25, 0.5],
}  # fmt: skip


def _image(b: Builder, channels: int) -> Value:
    spatial: list[Extent] = [tuple(min(n, 9) for n in b.extent()) for _ in range(2)]
    return b.input([b.pick([(1, 1, 1), (2, 1, 3)]), (channels,) * 3, *spatial])


def _blocks(b: Builder) -> int:
    return LARGEST_BLOCK * b.pick((1, 2, 3))


def _conv(b: Builder, domain: str, op: str, x: Value, outputs: int, group: int) -> None:
    kernel = [b.pick((1, 2, 3)) for _ in range(2)]
    w = b.tensor([(outputs,) * 3, (x.shape[1] // group,) * 3, *((k,) * 3 for k in kernel)], fixed=1.0)
    bias = maybe(b, b.tensor([(outputs,) * 3], fixed=1.0))
    attrs: dict[str, Any] = {"kernel_shape": kernel, "group": group, **window(b, 2, kernel)}
    if (activation := b.pick((None, *_ACTIVATIONS))) is not None:
        attrs["activation"] = activation
        attrs["activation_params"] = _ACTIVATIONS[activation] or None
    if b.chance(0.4):
        alone = b.one(op, [x, w, bias], domain=domain, **attrs)
        b.one(op, [x, w, bias, b.partner(alone)], domain=domain, **attrs)
    else:
        b.one(op, [x, w, bias], domain=domain, **attrs)


def _conv_of_blocks(b: Builder) -> None:
    kind = b.pick(("plain", "whole", "whole", "depthwise", "groups"))
    if kind == "plain":
        _conv(b, NCHWC, "Conv", _image(b, b.pick((1, 3, 4))), _blocks(b), 1)
    elif kind == "groups":
        _conv(b, NCHWC, "Conv", _image(b, 2 * LARGEST_BLOCK), 2 * LARGEST_BLOCK, 2)
    else:
        channels = _blocks(b)
        outputs, group = (channels, channels) if kind == "depthwise" else (_blocks(b), 1)
        _conv(b, NCHWC, "Conv", _image(b, channels), outputs, group)


def _fused_conv(b: Builder) -> None:
    group = b.pick((1, 1, 2))
    _conv(b, MS, "FusedConv", _image(b, group * b.pick((1, 3))), group * b.pick((1, 2, 5)), group)


def _pool(op: str) -> Build:
    def build(b: Builder) -> None:
        kernel = [b.pick((1, 2, 3)) for _ in range(2)]
        attrs = window(b, 2, kernel, dilates=op == "MaxPool")
        if attrs.get("auto_pad", "").startswith("SAME"):
            attrs["auto_pad"] = "VALID"
        if op == "AveragePool":
            attrs["count_include_pad"] = b.pick((None, 0, 1))
        b.one(op, [_image(b, _blocks(b))], domain=NCHWC, kernel_shape=kernel, **attrs)

    return build


def _reorder_output(b: Builder) -> None:
    channels = _blocks(b)
    attrs = {"channels": channels - b.pick((0, 0, 4)), "channels_last": b.pick((None, 0, 1))}
    b.one("ReorderOutput", [_image(b, channels)], domain=NCHWC, **attrs)


def _reorder_input(b: Builder) -> None:
    x = _image(b, _blocks(b))
    if b.chance(0.5):
        x = b.one("Relu", [x])
    y = b.one("ReorderInput", [x], domain=NCHWC)
    b.one("ReorderOutput", [b.one("Relu", [y])], domain=NCHWC, channels=x.shape[1])


def _global(op: str) -> Build:
    def build(b: Builder) -> None:
        b.one(op, [_image(b, _blocks(b))], domain=NCHWC)

    return build


ROWS = [
    Recipe(name=f"{MS}.FusedConv", build=_fused_conv),
    Recipe(name=f"{NCHWC}.Conv", build=_conv_of_blocks, weight=1.5),
    *(Recipe(name=f"{NCHWC}.{op}", build=_pool(op)) for op in ("MaxPool", "AveragePool")),
    *(Recipe(name=f"{NCHWC}.{op}", build=_global(op)) for op in ("GlobalMaxPool", "GlobalAveragePool")),
    Recipe(name=f"{NCHWC}.ReorderInput", build=_reorder_input),
    Recipe(name=f"{NCHWC}.ReorderOutput", build=_reorder_output),
]
