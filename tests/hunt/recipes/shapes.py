"""Shapes: what reads them, what is made by them, and programs on sizes between the two."""

from __future__ import annotations

import numpy as np

from tests.hunt.generation.builder import Builder, Value
from tests.hunt.recipes._row import Recipe, axis_of, first_of, maybe, some_axes


def _shape(b: Builder) -> None:
    x = first_of(b, "Shape")
    start, end = (maybe(b, b.whole(-x.rank - 1, x.rank + 1), 0.4) if b.since("Shape") >= 15 else None for _ in range(2))
    b.one("Shape", [x], start=start, end=end)


def _size(b: Builder) -> None:
    b.one("Size", [first_of(b, "Size")])


def _factors(b: Builder, total: int) -> list[int]:
    """A shape of so many elements."""
    shape: list[int] = []
    while total > 1 and len(shape) < 3:
        divisors = [d for d in range(1, total + 1) if total % d == 0]
        shape.append(b.pick(divisors))
        total //= shape[-1]
    return [*shape, total]


def _reshape(b: Builder) -> None:
    x = first_of(b, "Reshape")
    if x.rank and b.chance(0.5):  # keeps or joins axes
        cut = b.whole(0, x.rank)
        wanted = [0 if b.chance(0.7) else n for n in x.shape[:cut]] + ([-1] if cut < x.rank else [])
    else:
        wanted = _factors(b, x.first.size)
        if b.chance(0.6):
            wanted[b.whole(0, len(wanted) - 1)] = -1
    if b.chance(0.03):
        wanted[b.whole(0, len(wanted) - 1)] = b.pick((0, -1, 7)) if wanted else 0
    allow = b.pick((None, None, 0, 1)) if b.since("Reshape") >= 14 else None
    b.one("Reshape", [x, b.ints(wanted)], allowzero=allow)


def _transpose(b: Builder) -> None:
    x = first_of(b, "Transpose", least=1)
    b.one("Transpose", [x], perm=maybe(b, [int(p) for p in b.rng.permutation(x.rank)], 0.85))


def _flatten(b: Builder) -> None:
    x = first_of(b, "Flatten")
    low = -x.rank if b.since("Flatten") >= 11 else 0
    b.one("Flatten", [x], axis=maybe(b, b.whole(low, x.rank)))


def _unsqueeze(b: Builder) -> None:
    x = first_of(b, "Unsqueeze", most=3)
    count = b.whole(1, 2)
    axes = [int(a) for a in b.rng.choice(x.rank + count, count, replace=False)]
    axes = [a - x.rank - count if b.chance(0.3) and b.opset >= 11 else a for a in axes]
    if b.since("Unsqueeze") < 13:
        b.one("Unsqueeze", [x], axes=axes)
    else:
        b.one("Unsqueeze", [x, b.ints(axes, fixed=0.95)])


def _squeeze(b: Builder) -> None:
    x = first_of(b, "Squeeze", least=1, where=lambda v: 1 in v.shape) if b.chance(0.7) else first_of(b, "Squeeze", least=1)
    ones = [i for i, n in enumerate(x.shape) if n == 1]
    axes = None if b.chance(0.2) else [a - x.rank if b.chance(0.3) and b.opset >= 11 else a for a in ones if b.chance(0.8)]
    if b.since("Squeeze") < 13:
        b.one("Squeeze", [x], axes=axes or None)
    else:
        b.one("Squeeze", [x, None if not axes else b.ints(axes, fixed=0.95)])


def _expand(b: Builder) -> None:
    x = first_of(b, "Expand")
    wanted = [b.pick((2, 3)) if n == 1 and b.chance(0.6) else b.pick((1, n)) for n in x.shape][b.whole(0, 1) if x.rank else 0 :]
    if b.chance(0.3):
        wanted = [b.whole(1, 3), *([1] * (x.rank - len(wanted))), *wanted]
    b.one("Expand", [x, b.ints(wanted)])


def _range(b: Builder) -> None:
    dtype = b.pick((np.int64, np.int64, np.int32, np.float32))
    start, step = b.whole(-3, 5), b.pick((1, 1, 2, -1, 3, -2))
    limit = start + step * b.whole(0, 6) + b.pick((0, 0, 1, -1))
    if dtype is np.float32:
        b.one("Range", [b.constant(v, dtype) for v in (start / 2, limit / 2, step / 2)])
        return
    b.one("Range", [b.ints(v, dtype, fixed=0.6) for v in (start, limit)] + [b.ints(step, dtype, fixed=0.9)])


def _constant_of_shape(b: Builder) -> None:
    wanted = b.ints([b.pick((1, 2, 3, 5, 0)) for _ in range(b.whole(0, 3))], fixed=0.5)
    dtype = b.pick((np.float32, np.int64, np.int32, np.bool_, np.float16))
    value = maybe(b, b.proto_of(np.asarray([b.pick((0, 1, 2))], dtype)), 0.8)
    b.one("ConstantOfShape", [wanted], value=value)


def _eye_like(b: Builder) -> None:
    x = first_of(b, "EyeLike", least=2, most=2)
    b.one("EyeLike", [x], k=maybe(b, b.whole(-2, 2)), dtype=maybe(b, b.pick((1, 6, 7))))


# -- programs on sizes


def _dims(b: Builder, x: Value) -> Value:
    """One size of ``x`` as [1], as exporters take it."""
    shape = b.one("Shape", [x])
    axis = b.whole(0, x.rank - 1)
    if b.chance(0.6):
        return b.one("Gather", [shape, b.constant([axis - x.rank if b.chance(0.2) else axis], np.int64)], axis=0)
    if b.opset < 10:
        return b.one("Slice", [shape], starts=[axis], ends=[axis + 1], axes=[0])
    return b.one("Slice", [shape, *(b.constant([v], np.int64) for v in (axis, axis + 1, 0))])


def _arithmetic(b: Builder, size: Value) -> Value:
    """Some steps on a size; both signs, division and remainders of all kinds."""
    for _ in range(b.whole(0, 3)):
        op = b.pick(
            ("Add", "Sub", "Mul", "Div", "Div", "Mod", "Neg", "Max", "Min", "Where", "Cast", "Abs", "fmod", "halve", "Sub from")
        )
        c = b.constant([b.pick((1, 2, 3, 4, 5, 7, -1, -2, -3))], size.dtype)
        if op in ("Mod", "fmod") and b.opset >= 10:
            size = b.one("Mod", [size, c], fmod=1 if op == "fmod" else None)
        elif op in ("Neg", "Abs"):
            size = b.one(op, [size])
        elif op in ("Max", "Min") and b.opset >= 12:
            size = b.one(op, [size, c])
        elif op == "Where" and b.opset >= 9:
            size = b.one("Where", [b.one(b.pick(("Less", "Greater", "Equal")), [size, c]), size, c])
        elif op == "Cast":
            size = b.one("Cast", [size], to=b.pick((6, 7)))
        elif op == "halve" and b.opset >= 11:  # as interpolate() is exported: through float
            real = b.one("Mul", [b.one("Cast", [size], to=1), b.constant([b.pick((0.5, 1.5, 2.0))], np.float32)])
            size = b.one("Cast", [b.one("Floor", [real])], to=7)
        elif op == "Sub from":
            size = b.one("Sub", [c, size])
        elif op in ("Add", "Sub", "Mul", "Div"):
            size = b.one(op, [size, c])
    return size if size.dtype == np.int64 else b.one("Cast", [size], to=7)


def _size_of(b: Builder, x: Value) -> Value:
    size = _arithmetic(b, _dims(b, x))
    if b.chance(0.15):
        size = b.one(b.pick(("Add", "Sub", "Mul")), [size, _dims(b, x)])
    if b.chance(0.1):
        size = b.one("Add", [size, b.ints([b.pick((0, 1, -1, 2))], fixed=0)])
    return size


def _scalar(b: Builder, size: Value) -> Value:
    if b.opset < 13:
        return b.one("Squeeze", [size], axes=[0])
    return b.one("Squeeze", [size, b.constant([0], np.int64)])


def _sized_reshape(b: Builder) -> None:
    x = b.any((np.float32,), least=2)
    parts = [_dims(b, x) if b.chance(0.6) else b.constant([b.pick((1, 2, 0))], np.int64) for _ in range(b.whole(1, 3))]
    if b.chance(0.8):
        parts.insert(b.whole(0, len(parts)), b.constant([-1], np.int64))
    b.one("Reshape", [x, b.one("Concat", parts, axis=0)])


def _product_reshape(b: Builder) -> None:
    """Axes joined by a product, or parted by a quotient."""
    x = b.any((np.float32,), least=2)
    shape = b.one("Shape", [x])
    cut = b.whole(1, x.rank - 1)
    first, rest = (_sliced(b, shape, *ends) for ends in ((0, cut), (cut, x.rank)))
    if b.chance(0.5):
        joined = (
            b.one("ReduceProd", [first], keepdims=1) if b.opset < 18 else b.one("ReduceProd", [first, b.constant([0], np.int64)])
        )
        b.one("Reshape", [x, b.one("Concat", [joined, rest], axis=0)])
        return
    k = b.pick((1, 2, 3))
    inner = b.one("Div", [_sliced(b, shape, x.rank - 1, x.rank), b.constant([k], np.int64)])
    parts = [_sliced(b, shape, 0, x.rank - 1), b.constant([k], np.int64), inner]
    b.one("Reshape", [x, b.one("Concat", parts, axis=0)])


def _sliced(b: Builder, v: Value, start: int, end: int) -> Value:
    if b.opset < 10:
        return b.one("Slice", [v], starts=[start], ends=[end], axes=[0])
    return b.one("Slice", [v, *(b.constant([n], np.int64) for n in (start, end, 0))])


def _sized_slice(b: Builder) -> None:
    x = b.any((np.float32, np.int64), least=1)
    y = x if b.chance(0.5) else b.any((np.float32,), least=1)
    axis = b.whole(0, x.rank - 1)
    ends = [_size_of(b, y) if b.chance(0.7) else b.ints([b.whole(-3, 5)], fixed=0.6) for _ in range(2)]
    steps = [b.constant([b.pick((1, 2, -1))], np.int64)] if b.chance(0.3) else []
    made = b.one("Slice", [x, *ends, b.constant([axis], np.int64), *steps])
    if made.dtype == np.float32 and b.chance(0.5):
        b.one(b.pick(("Relu", "Exp")), [made])


def _sized_expand(b: Builder) -> None:
    x = b.any((np.float32,), least=1)
    parts = [_size_of(b, x) if n == 1 or b.chance(0.2) else b.constant([1], np.int64) for n in x.shape]
    if b.chance(0.5):
        b.one("Expand", [x, b.one("Concat", parts, axis=0)])
    else:
        b.one("Tile", [x, b.one("Concat", parts, axis=0)])


def _sized_range(b: Builder) -> None:
    x = b.any((np.float32,), least=1)
    start, limit = (_scalar(b, _size_of(b, x)) if b.chance(0.6) else b.constant(b.whole(-2, 4), np.int64) for _ in range(2))
    count = b.one("Range", [start, limit, b.constant(b.pick((1, 1, 2, -1, -2)), np.int64)])
    if b.chance(0.4):
        b.one("Gather", [x, count], axis=b.whole(0, x.rank - 1))
    elif b.chance(0.5):
        b.one("Add", [b.one("Cast", [count], to=1), b.any((np.float32,), most=2)])


def _sized_constant(b: Builder) -> None:
    x = b.any((np.float32,), least=1)
    made = b.one("ConstantOfShape", [b.one("Concat", [_size_of(b, x) for _ in range(b.whole(1, 2))], axis=0)])
    if b.chance(0.6):
        b.one("Add", [made, x])
    elif b.chance(0.5):
        b.one("Concat", [made, b.input(made.extents)], axis=0)


def _sized_output(b: Builder) -> None:
    """The arithmetic itself is the result."""
    x = b.any((np.float32,), least=1)
    made = b.one("Concat", [_size_of(b, x) for _ in range(b.whole(1, 3))], axis=0)
    if b.chance(0.4):
        b.one(b.pick(("Mul", "Add")), [b.one("Cast", [made], to=1), b.constant(np.float32(0.5))])


def _sized_pad(b: Builder) -> None:
    x = b.any((np.float32,), least=1)
    sides = [_size_of(b, x) if b.chance(0.4) else b.constant([b.pick((0, 0, 1))], np.int64) for _ in range(2 * x.rank)]
    b.one("Pad", [x, b.one("Concat", sides, axis=0)], mode=b.pick((None, "constant", "edge", "reflect")))


def _sized_split(b: Builder) -> None:
    x = b.any((np.float32,), least=1)
    axis = b.whole(0, x.rank - 1)
    whole = _sliced(b, b.one("Shape", [x]), axis, axis + 1)
    half = b.one("Div", [whole, b.constant([b.pick((2, 3))], np.int64)])
    rest = b.one("Sub", [whole, half]) if b.chance(0.8) else half
    parts = b.node("Split", [x, b.one("Concat", [half, rest], axis=0)], outputs=2, axis=axis)
    if b.chance(0.5):
        b.one("Concat", list(reversed(parts)), axis=axis)


def _odd_axes(b: Builder) -> None:
    """Reduced axes, sizes and steps that arrive with the data."""
    x = b.any((np.float32,), least=1)
    if b.opset >= 13:
        b.one("ReduceSum", [x, b.ints(some_axes(b, x), fixed=0)])
    elif b.opset >= 11:
        b.one("CumSum", [x, b.ints(axis_of(b, x), fixed=0)])


def _wide_gather(b: Builder) -> None:
    """Positions computed on sizes: the last rows of a table."""
    x = b.any((np.float32,), least=1)
    table = b.tensor([(6, 6, 6), x.extents[-1]], fixed=0.8)
    index = b.one("Sub", [_dims(b, x), b.constant([1], np.int64)]) if b.chance(0.6) else _size_of(b, x)
    b.one("Gather", [table if b.chance(0.6) else x, index], axis=0)


ROWS = [
    Recipe(name="Shape", build=_shape),
    Recipe(name="Size", build=_size),
    Recipe(name="Reshape", build=_reshape, weight=2),
    Recipe(name="Transpose", build=_transpose, weight=1.5),
    Recipe(name="Flatten", build=_flatten),
    Recipe(name="Unsqueeze", build=_unsqueeze),
    Recipe(name="Squeeze", build=_squeeze),
    Recipe(name="Expand", build=_expand, since=8, weight=1.5),
    Recipe(name="Range", build=_range, since=11),
    Recipe(name="ConstantOfShape", build=_constant_of_shape, since=9),
    Recipe(name="EyeLike", build=_eye_like, since=9),
    Recipe(name="chain.sized_reshape", build=_sized_reshape, weight=2),
    Recipe(name="chain.product_reshape", build=_product_reshape, weight=2),
    Recipe(name="chain.sized_slice", build=_sized_slice, since=10, weight=3),
    Recipe(name="chain.sized_expand", build=_sized_expand, since=8, weight=2),
    Recipe(name="chain.sized_range", build=_sized_range, since=11, weight=2),
    Recipe(name="chain.sized_constant", build=_sized_constant, since=9, weight=2),
    Recipe(name="chain.sized_output", build=_sized_output, weight=2),
    Recipe(name="chain.sized_pad", build=_sized_pad, since=11, weight=1.5),
    Recipe(name="chain.sized_split", build=_sized_split, since=13, weight=1.5),
    Recipe(name="chain.sized_gather", build=_wide_gather, weight=1.5),
    Recipe(name="chain.fed_axes", build=_odd_axes, since=11),
]
