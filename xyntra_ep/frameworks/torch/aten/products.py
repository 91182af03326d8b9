"""Matrix products, convolutions, pooling, and their gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch.fx import Node as FxNode

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.frameworks.torch.aten._arguments import arguments, is_used, known_ints, rank
from xyntra_ep.frameworks.torch.conversion import AtenRow, Conversion, Result, meta


def _matmul(c: Conversion, node: FxNode) -> str:
    return c.node("MatMul", c.value(node.args[0]), c.value(node.args[1]))


def _addmm(c: Conversion, node: FxNode) -> str:
    """addmm and baddbmm: beta * self + alpha * (a @ b)."""
    args = arguments(node)
    a, b = (args[name] for name in (("mat1", "mat2") if "mat1" in args else ("batch1", "batch2")))
    product = c.node("MatMul", c.value(a), c.value(b))
    if args["alpha"] != 1:
        product = c.node("Mul", product, c.number(args["alpha"], product))
    if args["beta"] == 0:
        return product
    added = c.value(args["self"])
    if args["beta"] != 1:
        added = c.node("Mul", added, c.number(args["beta"], added))
    return c.node("Add", product, added)


def window(args: dict[str, Any], axes: int) -> dict[str, Any]:
    """Attributes of a convolution."""
    stride, padding, dilation = (_each(args[name], axes) for name in ("stride", "padding", "dilation"))
    return {"strides": stride, "pads": [*padding, *padding], "dilations": dilation, "group": int(args["groups"])}


def _each(values: Any, axes: int) -> list[int]:
    found = known_ints(values if isinstance(values, Sequence) else [values], "a window")
    return found * axes if len(found) == 1 else found


def _convolution(c: Conversion, node: FxNode) -> str:
    args = arguments(node)
    axes = rank(args["input"]) - 2
    operands = [c.value(args[name]) for name in ("input", "weight", "bias") if args[name] is not None]
    kernel = known_ints(meta(args["weight"]).shape[2:], "a kernel")
    attrs = window(args, axes)
    if args["transposed"]:
        return c.node(
            "ConvTranspose", *operands, kernel_shape=kernel, output_padding=_each(args["output_padding"], axes), **attrs
        )
    return c.node("Conv", *operands, kernel_shape=kernel, **attrs)


def _convolution_backward(c: Conversion, node: FxNode) -> Result:
    """Gradients of a convolution: by the input one that is transposed, by the weight one of what came in with what came back."""
    args = arguments(node)
    axes = rank(args["input"]) - 2
    if args["transposed"]:
        raise UnsupportedError("the gradient of a transposed convolution")
    attrs = window(args, axes)
    pads = attrs["pads"][:axes]
    sizes = {name: known_ints(meta(args[name]).shape[2:], "an image") for name in ("input", "weight", "grad_output")}
    # elements of the input behind the last window: no output has seen them
    rest = [
        n + 2 * p - d * (k - 1) - 1 - (out - 1) * s
        for n, p, d, k, out, s in zip(
            sizes["input"], pads, attrs["dilations"], sizes["weight"], sizes["grad_output"], attrs["strides"], strict=True
        )
    ]
    grad = c.value(args["grad_output"])
    wanted = args["output_mask"]
    by_input = by_weight = by_bias = None
    if wanted[0] and is_used(node, 0):
        by_input = c.node(
            "ConvTranspose", grad, c.value(args["weight"]), kernel_shape=sizes["weight"], output_padding=rest, **attrs
        )
    if wanted[1] and is_used(node, 1):
        by_weight = _by_weight(c, args, grad, attrs, sizes["weight"], rest)
    if wanted[2] and is_used(node, 2):
        by_bias = c.node("ReduceSum", grad, c.draft.ints(0, *range(2, axes + 2)), keepdims=0)
    return by_input, by_weight, by_bias


def _by_weight(c: Conversion, args: dict[str, Any], grad: str, attrs: dict[str, Any], kernel: list[int], rest: list[int]) -> str:
    """A convolution over the images of the batch, which are its channels: strides and dilations change places."""
    if attrs["group"] != 1:
        raise UnsupportedError("the gradient by the weights of a convolution in groups")
    axes = len(kernel)
    turn = [1, 0, *range(2, axes + 2)]
    x, g = (c.node("Transpose", name, perm=turn) for name in (c.value(args["input"]), grad))
    before = attrs["pads"][:axes]
    after = [p - r for p, r in zip(before, rest, strict=True)]
    if any(p < 0 for p in after):  # the last elements, which no window covers
        counts = [*meta(args["input"]).shape[2:]]
        ends = [int(n) + min(0, p) for n, p in zip(counts, after, strict=True)]
        ints = c.draft.ints
        x = c.node("Slice", x, ints(*[0] * axes), ints(*ends), ints(*range(2, axes + 2)), ints(*[1] * axes))
        after = [max(0, p) for p in after]
    found = c.node(
        "Conv",
        x,
        g,
        kernel_shape=known_ints(meta(args["grad_output"]).shape[2:], "an image"),
        strides=attrs["dilations"],
        dilations=attrs["strides"],
        pads=[*before, *after],
        group=1,
    )
    return c.node("Transpose", found, perm=turn)


def _pool_window(args: dict[str, Any], axes: int) -> dict[str, Any]:
    kernel = _each(args["kernel_size"], axes)
    stride = _each(args["stride"] or kernel, axes)
    padding = _each(args["padding"], axes)
    return {
        "kernel_shape": kernel,
        "strides": stride,
        "pads": [*padding, *padding],
        "ceil_mode": int(bool(args["ceil_mode"])),
    }


def _max_pool(c: Conversion, node: FxNode) -> Result:
    args = arguments(node)
    if is_used(node, 1):
        raise UnsupportedError("the places of the largest elements, which a gradient wants")
    axes = len(_each(args["kernel_size"], 2))
    _need_batch(args["self"], axes)
    attrs = _pool_window(args, axes)
    return c.node("MaxPool", c.value(args["self"]), dilations=_each(args["dilation"], axes), **attrs), None


def _average_pool(c: Conversion, node: FxNode) -> str:
    args = arguments(node)
    if args.get("divisor_override") is not None:
        raise UnsupportedError("a divisor of one's own")
    axes = 2
    _need_batch(args["self"], axes)
    attrs = _pool_window(args, axes)
    if attrs["ceil_mode"]:
        raise UnsupportedError("windows beyond the end")
    return c.node("AveragePool", c.value(args["self"]), count_include_pad=int(bool(args["count_include_pad"])), **attrs)


def _need_batch(x: Any, axes: int) -> None:
    if rank(x) != axes + 2:
        raise UnsupportedError("an image without a batch")


def _adaptive_average(c: Conversion, node: FxNode) -> str:
    if any(size != 1 for size in node.args[1]):
        raise UnsupportedError("an adaptive pool of several elements")
    return c.node("GlobalAveragePool", c.value(node.args[0]))


ROWS = [
    *(AtenRow(name=f"aten.{name}.default", convert=_matmul) for name in ("mm", "bmm", "matmul", "mv", "dot")),
    *(AtenRow(name=f"aten.{name}.default", convert=_addmm) for name in ("addmm", "baddbmm")),
    AtenRow(name="aten.convolution.default", convert=_convolution),
    AtenRow(name="aten.convolution_backward.default", convert=_convolution_backward),
    AtenRow(name="aten.max_pool2d_with_indices.default", convert=_max_pool),
    AtenRow(name="aten.avg_pool2d.default", convert=_average_pool),
    AtenRow(name="aten._adaptive_avg_pool2d.default", convert=_adaptive_average),
]
