"""Reductions, softmax and normalisations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.fx import Node as FxNode

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.frameworks.torch.aten._arguments import arguments, axes_of, is_used, normal, rank
from xyntra_ep.frameworks.torch.conversion import AtenRow, Conversion, Result, meta
from xyntra_ep.tracea.core_ir.dtypes import DType

Convert = Callable[[Conversion, FxNode], str]


def _reduce(op: str) -> Convert:
    def convert(c: Conversion, node: FxNode) -> str:
        args = arguments(node)
        count = rank(args["self"])
        axes = axes_of(args.get("dim"), count)
        x = c.operand(args["self"], c.dtype_of(node))
        if not axes:
            return c.node("Identity", x)
        return c.node(op, x, c.draft.ints(*axes), keepdims=int(bool(args.get("keepdim", False))))

    return convert


def _truth(op: str) -> Convert:
    """any and all, of what is not zero."""

    def convert(c: Conversion, node: FxNode) -> str:
        args = arguments(node)
        x = c.cast(c.cast(c.value(args["self"]), DType.BOOL), DType.I32)
        axes = c.draft.ints(*axes_of(args.get("dim"), rank(args["self"])))
        return c.cast(c.node(op, x, axes, keepdims=int(bool(args.get("keepdim", False)))), DType.BOOL)

    return convert


def _variance(c: Conversion, node: FxNode) -> Result:
    """var, and var_mean."""
    args = arguments(node)
    axes = axes_of(args.get("dim"), rank(args["self"]))
    sizes = [args["self"].meta["val"].shape[axis] for axis in axes]
    if not all(isinstance(size, int) for size in sizes):
        raise UnsupportedError("a variance over a size that is known at run time only")
    count = 1
    for size in sizes:
        count *= size
    correction = args.get("correction")
    correction = 1 if correction is None else correction
    if count <= correction:
        raise UnsupportedError("a variance of too few elements")
    x, names = c.value(args["self"]), c.draft.ints(*axes)
    mean = c.node("ReduceMean", x, names, keepdims=1)
    apart = c.node("Sub", x, mean)
    keep = int(bool(args.get("keepdim", False)))
    found = c.node("ReduceMean", c.node("Mul", apart, apart), names, keepdims=keep)
    if correction:
        found = c.node("Mul", found, c.number(count / (count - correction), x))
    if not isinstance(node.meta["val"], tuple):
        return found
    return found, mean if keep else c.node("ReduceMean", x, names, keepdims=0)


def _extreme(op: str, at: str) -> Callable[[Conversion, FxNode], Result]:
    """max and min along an axis, with the place."""

    def convert(c: Conversion, node: FxNode) -> Result:
        args = arguments(node)
        axis, keep = normal(int(args["dim"]), rank(args["self"])), int(bool(args["keepdim"]))
        x = c.value(args["self"])
        place = c.node(at, x, dtype=DType.I64, axis=axis, keepdims=keep) if is_used(node, 1) else None
        return c.node(op, x, c.draft.ints(axis), keepdims=keep), place

    return convert


def _argmax(op: str) -> Convert:
    def convert(c: Conversion, node: FxNode) -> str:
        args = arguments(node)
        x, keep = c.value(args["self"]), int(bool(args["keepdim"]))
        if args["dim"] is None:
            return c.node(op, c.node("Reshape", x, c.draft.ints(-1)), dtype=DType.I64, axis=0, keepdims=0)
        return c.node(op, x, dtype=DType.I64, axis=normal(int(args["dim"]), rank(args["self"])), keepdims=keep)

    return convert


def _softmax(op: str) -> Convert:
    def convert(c: Conversion, node: FxNode) -> str:
        args = arguments(node)
        return c.node(op, c.operand(args["self"], c.dtype_of(node)), axis=normal(int(args["dim"]), rank(node)))

    return convert


def _cumsum(c: Conversion, node: FxNode) -> str:
    args = arguments(node)
    x = c.operand(args["self"], c.dtype_of(node))
    return c.node("CumSum", x, c.draft.constant(normal(int(args["dim"]), rank(node)), DType.I64))


def _layer_norm(c: Conversion, node: FxNode) -> Result:
    args = arguments(node)
    x, shape = c.value(args["input"]), args["normalized_shape"]
    count = rank(args["input"])
    axes = list(range(count - len(shape), count))
    if not is_used(node, 1) and not is_used(node, 2) and args["weight"] is not None:
        operands = [c.value(args[name]) for name in ("weight", "bias") if args[name] is not None]
        return c.node("LayerNormalization", x, *operands, axis=axes[0], epsilon=float(args["eps"])), None, None
    mean, apart, scale = centred(c, x, axes, args["eps"])
    return scaled(c, c.node("Mul", apart, scale), args), mean, scale


def centred(c: Conversion, x: str, axes: list[int], epsilon: float) -> tuple[str, str, str]:
    """The mean, the distance from it, and one over the deviation."""
    names = c.draft.ints(*axes)
    mean = c.node("ReduceMean", x, names, keepdims=1)
    apart = c.node("Sub", x, mean)
    variance = c.node("ReduceMean", c.node("Mul", apart, apart), names, keepdims=1)
    deviation = c.node("Sqrt", c.node("Add", variance, c.number(epsilon, x)))
    return mean, apart, c.node("Reciprocal", deviation)


def scaled(c: Conversion, x: str, args: dict[str, Any], shape: list[int] | None = None) -> str:
    """Times the weight, plus the bias, where there are any; both as ``shape``."""
    for op, name in (("Mul", "weight"), ("Add", "bias")):
        if args[name] is not None:
            operand = c.value(args[name])
            x = c.node(op, x, operand if shape is None else c.node("Reshape", operand, c.draft.ints(*shape)))
    return x


def _per_channel(node: Any) -> list[int]:
    return [1, -1, *[1] * (rank(node) - 2)]


def _batch_norm(c: Conversion, node: FxNode) -> Result:
    args = arguments(node)
    x, shape = c.value(args["input"]), _per_channel(args["input"])
    mean, variance = (c.value(args[name]) for name in ("running_mean", "running_var"))
    if args["weight"] is not None and args["bias"] is not None:
        operands = (c.value(args["weight"]), c.value(args["bias"]), mean, variance)
        return c.node("BatchNormalization", x, *operands, epsilon=float(args["eps"])), None, None
    mean, variance = (c.node("Reshape", name, c.draft.ints(*shape)) for name in (mean, variance))
    scale = c.node("Reciprocal", c.node("Sqrt", c.node("Add", variance, c.number(args["eps"], x))))
    return scaled(c, c.node("Mul", c.node("Sub", x, mean), scale), args, shape), None, None


def _batch_norm_training(c: Conversion, node: FxNode) -> Result:
    """With the statistics of the batch, and new running ones."""
    args = arguments(node)
    if args["training"] is not True:
        raise UnsupportedError("batch normalisation that is not in training")
    if "running_mean" in args and args["running_mean"] is None:
        raise UnsupportedError("batch normalisation without running statistics")
    sizes = meta(args["input"]).shape
    count: Any = 1
    for axis, size in enumerate(sizes):
        count = count if axis == 1 else count * size
    axes = [axis for axis in range(len(sizes)) if axis != 1]
    x, shape, flat = c.value(args["input"]), _per_channel(args["input"]), c.draft.ints(-1)
    mean, apart, scale = centred(c, x, axes, args["eps"])
    result = scaled(c, c.node("Mul", apart, scale), args, shape)
    new: list[str | None] = [None, None]
    if "running_mean" in args and (is_used(node, 3) or is_used(node, 4)):
        if not isinstance(count, int):
            raise UnsupportedError("running statistics over a size that is known at run time only")
        variance = c.node("Sub", c.node("Reciprocal", c.node("Mul", scale, scale)), c.number(args["eps"], x))
        unbiased = c.node("Mul", variance, c.number(count / max(1, count - 1), x))
        momentum = float(args["momentum"])
        for i, (running, of_batch) in enumerate((("running_mean", mean), ("running_var", unbiased))):
            old = c.value(args[running])
            kept = c.node("Mul", old, c.number(1 - momentum, old))
            new[i] = c.node("Add", kept, c.node("Mul", c.node("Reshape", of_batch, flat), c.number(momentum, old)))
    return result, c.node("Reshape", mean, flat), c.node("Reshape", scale, flat), *new


def _group_norm(c: Conversion, node: FxNode) -> Result:
    args = arguments(node)
    sizes, groups = meta(args["input"]).shape, int(args["group"])
    x, shape = c.value(args["input"]), _per_channel(args["input"])
    channels = sizes[1]
    grouped = c.node("Reshape", x, c.draft.ints(0, groups, -1))
    mean, apart, scale = centred(c, grouped, [2], args["eps"])
    back = c.shape(sizes, of=x) if isinstance(channels, int) else c.shape(sizes)
    result = scaled(c, c.node("Reshape", c.node("Mul", apart, scale), back), args, shape)
    per_group = c.draft.ints(0, groups)
    return result, c.node("Reshape", mean, per_group), c.node("Reshape", scale, per_group)


_REDUCTIONS = {
    "sum.dim_IntList": "ReduceSum", "sum.default": "ReduceSum", "mean.dim": "ReduceMean", "mean.default": "ReduceMean",
    "amax.default": "ReduceMax", "amin.default": "ReduceMin", "max.default": "ReduceMax", "min.default": "ReduceMin",
    "prod.dim_int": "ReduceProd", "logsumexp.default": "ReduceLogSumExp",
}  # fmt: skip

ROWS = [
    *(AtenRow(name=f"aten.{name}", convert=_reduce(op)) for name, op in _REDUCTIONS.items()),
    *(AtenRow(name=f"aten.any.{name}", convert=_truth("ReduceMax")) for name in ("default", "dim", "dims")),
    *(AtenRow(name=f"aten.all.{name}", convert=_truth("ReduceMin")) for name in ("default", "dim", "dims")),
    *(AtenRow(name=f"aten.{name}.correction", convert=_variance) for name in ("var", "var_mean")),
    AtenRow(name="aten.max.dim", convert=_extreme("ReduceMax", "ArgMax")),
    AtenRow(name="aten.min.dim", convert=_extreme("ReduceMin", "ArgMin")),
    AtenRow(name="aten.argmax.default", convert=_argmax("ArgMax")),
    AtenRow(name="aten.argmin.default", convert=_argmax("ArgMin")),
    AtenRow(name="aten._softmax.default", convert=_softmax("Softmax")),
    AtenRow(name="aten._log_softmax.default", convert=_softmax("LogSoftmax")),
    AtenRow(name="aten.cumsum.default", convert=_cumsum),
    AtenRow(name="aten.native_layer_norm.default", convert=_layer_norm),
    AtenRow(name="aten._native_batch_norm_legit_no_training.default", convert=_batch_norm),
    AtenRow(name="aten._native_batch_norm_legit_functional.default", convert=_batch_norm_training),
    AtenRow(name="aten._native_batch_norm_legit.no_stats", convert=_batch_norm_training),
    AtenRow(name="aten.native_group_norm.default", convert=_group_norm),
]
