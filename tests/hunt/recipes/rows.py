"""Reductions, softmaxes, normalisations, scans."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.hunt.generation.builder import Builder
from tests.hunt.generation.feeds import Fill, Kind
from tests.hunt.recipes._row import Build, Recipe, axis_of, dtypes_of, first_of, maybe, some_axes

POSITIVE = Fill(Kind.POSITIVE)
EPSILONS = (None, 1e-3, 0.1)
_REDUCTIONS = (
    "ReduceSum", "ReduceProd", "ReduceMax", "ReduceMin", "ReduceMean", "ReduceSumSquare", "ReduceL1", "ReduceL2", "ReduceLogSum",
    "ReduceLogSumExp",
)  # fmt: skip


def _reduce(op: str) -> Build:
    def build(b: Builder) -> None:
        x = first_of(b, op, fill=POSITIVE if op == "ReduceLogSum" else Fill())
        axes: list[int] | None = None if b.chance(0.15) else some_axes(b, x) if x.rank else []
        keep = b.pick((None, 0, 1))
        if b.since(op) < (13 if op == "ReduceSum" else 18):
            b.one(op, [x], axes=axes or None, keepdims=keep)
            return
        noop = b.pick((None, None, 0, 1))
        b.one(op, [x, None if axes is None else b.ints(axes, fixed=0.95)], keepdims=keep, noop_with_empty_axes=noop)

    return build


def _arg(op: str) -> Build:
    def build(b: Builder) -> None:
        x = first_of(b, op, least=1)
        last = b.pick((None, 0, 1)) if b.since(op) >= 12 else None
        b.one(op, [x], axis=axis_of(b, x), keepdims=b.pick((None, 0, 1)), select_last_index=last)

    return build


def _softmax(op: str) -> Build:
    def build(b: Builder) -> None:
        x = first_of(b, op, least=1)
        b.one(op, [x], axis=maybe(b, axis_of(b, x), 0.7))

    return build


def _layer_normalization(b: Builder) -> None:
    x = first_of(b, "LayerNormalization", least=1)
    axis = b.pick((None, -1, -1, b.whole(-x.rank, x.rank - 1)))
    shape = x.extents[-1 if axis is None else axis :]
    if b.chance(0.1):
        shape = [(1, 1, 1)] * len(shape)
    scale, bias = (b.tensor(shape, x.dtype, POSITIVE if i == 0 else Fill()) for i in range(2))
    b.node(
        "LayerNormalization", [x, scale, maybe(b, bias, 0.7)], outputs=b.pick((1, 1, 1, 3)), axis=axis, epsilon=b.pick(EPSILONS)
    )


def _rms_normalization(op: str) -> Build:
    def build(b: Builder) -> None:
        x = b.any((np.float32,) if op.startswith("Simplified") else dtypes_of(b, op), least=1)
        axis = b.pick((None, -1, -1, b.whole(-x.rank, x.rank - 1)))
        scale = b.tensor(x.extents[-1 if axis is None else axis :], x.dtype)
        b.one(op, [x, scale], axis=axis, epsilon=b.pick(EPSILONS))

    return build


def _batch_normalization(b: Builder) -> None:
    x = first_of(b, "BatchNormalization", least=2)
    four = [b.tensor([x.extents[1]], x.dtype, Fill() if i in (1, 2) else POSITIVE) for i in range(4)]
    b.one("BatchNormalization", [x, *four], epsilon=b.pick(EPSILONS))


def _instance_normalization(b: Builder) -> None:
    x = first_of(b, "InstanceNormalization", least=3)
    scale, bias = (b.tensor([x.extents[1]], x.dtype) for _ in range(2))
    b.one("InstanceNormalization", [x, scale, bias], epsilon=b.pick((1e-3, 0.1)))


def _group_normalization(b: Builder) -> None:
    groups, per = b.pick((1, 2, 3)), b.pick((1, 2))
    channels = (groups * per,) * 3
    x = b.input([b.extent(), channels, *b.extents(b.whole(1, 2))], dtypes_of(b, "GroupNormalization")[0])
    size = channels if b.since("GroupNormalization") >= 21 else (groups,) * 3
    scale, bias = (b.tensor([size], x.dtype) for _ in range(2))
    b.one("GroupNormalization", [x, scale, bias], num_groups=groups, epsilon=b.pick((1e-3, 0.1)))


def _lp_normalization(b: Builder) -> None:
    x = first_of(b, "LpNormalization", least=1)
    b.one("LpNormalization", [x], axis=maybe(b, axis_of(b, x)), p=b.pick((None, 1, 2)))


def _mean_variance(b: Builder) -> None:
    x = first_of(b, "MeanVarianceNormalization", least=4 if b.chance(0.5) else 1)
    axes = None if x.rank == 4 and b.chance(0.5) else some_axes(b, x)
    b.one("MeanVarianceNormalization", [x], axes=axes)


def _lrn(b: Builder) -> None:
    x = first_of(b, "LRN", least=4)
    attrs: dict[str, Any] = {"alpha": maybe(b, 0.1), "beta": maybe(b, 0.5), "bias": maybe(b, 2.0)}
    b.one("LRN", [x], size=b.pick((1, 3, 5)), **attrs)


def _scan(op: str) -> Build:
    def build(b: Builder) -> None:
        x = first_of(b, op, least=1)
        axis = axis_of(b, x)
        at = b.ints(axis, fixed=0.9) if b.chance(0.7) else b.ints([axis], fixed=0.9)
        b.one(op, [x, at], exclusive=b.pick((None, 0, 1)), reverse=b.pick((None, 0, 1)))

    return build


def _top_k(b: Builder) -> None:
    x = first_of(b, "TopK", least=1)
    axis = b.whole(-x.rank, x.rank - 1)
    k = b.whole(0, x.shape[axis])
    operands = [x] if b.since("TopK") < 10 else [x, b.ints([k], fixed=0.85)]
    largest, ordered = (b.pick((None, 1, 0)), b.pick((None, 1))) if b.since("TopK") >= 11 else (None, None)
    shown = maybe(b, axis) if axis in (-1, x.rank - 1) else axis
    own = k if len(operands) == 1 else None
    b.node("TopK", operands, outputs=2, axis=shown, largest=largest, sorted=ordered, k=own)


def _mask_rows(b: Builder) -> None:
    """A softmax some of whose rows have nothing left, as padding masks make them."""
    x = b.any((np.float32,), least=2)
    mask = b.partner(x, np.bool_, wider=0)
    hidden = b.one("Where", [mask, x, b.constant(np.float32(b.pick((-np.inf, -1e9, -3.4e38))))])
    b.one("Softmax", [hidden], axis=-1)


def _normalise(b: Builder) -> None:
    """A normalisation written out, with other readers of its parts."""
    x = b.any((np.float32,), least=2)
    axes = some_axes(b, x)
    given: dict[str, Any] = {"axes": axes} if b.opset < 18 else {}
    operand = [] if b.opset < 18 else [b.constant(np.asarray(axes, np.int64))]
    mean = b.one("ReduceMean", [x, *operand], keepdims=1, **given)
    centred = b.one("Sub", [x, mean])
    square = b.one("Mul", [centred, centred]) if b.chance(0.5) else b.one("Pow", [centred, b.constant(np.float32(2))])
    variance = b.one("ReduceMean", [square, *operand], keepdims=1, **given)
    root = b.one("Sqrt", [b.one("Add", [variance, b.constant(np.float32(0.1))])])
    y = b.one("Div", [centred, root])
    if b.chance(0.6):
        scaled = b.one("Mul", [y, b.partner(y)])
        b.one("Add", [scaled, b.partner(scaled)])


ROWS = [
    *(Recipe(name=op, build=_reduce(op)) for op in _REDUCTIONS),
    *(Recipe(name=op, build=_arg(op)) for op in ("ArgMax", "ArgMin")),
    *(Recipe(name=op, build=_softmax(op), weight=1.5) for op in ("Softmax", "LogSoftmax", "Hardmax")),
    Recipe(name="LayerNormalization", build=_layer_normalization, since=17, weight=2),
    Recipe(name="RMSNormalization", build=_rms_normalization("RMSNormalization"), since=23),
    Recipe(name="SimplifiedLayerNormalization", build=_rms_normalization("SimplifiedLayerNormalization")),
    Recipe(name="BatchNormalization", build=_batch_normalization, since=9),
    Recipe(name="InstanceNormalization", build=_instance_normalization),
    Recipe(name="GroupNormalization", build=_group_normalization, since=18),
    Recipe(name="LpNormalization", build=_lp_normalization),
    Recipe(name="MeanVarianceNormalization", build=_mean_variance, since=9),
    Recipe(name="LRN", build=_lrn),
    Recipe(name="CumSum", build=_scan("CumSum"), since=11),
    Recipe(name="CumProd", build=_scan("CumProd"), since=26),
    Recipe(name="TopK", build=_top_k),
    Recipe(name="chain.masked_softmax", build=_mask_rows, since=9),
    Recipe(name="chain.normalisation", build=_normalise, since=7, weight=2),
]
