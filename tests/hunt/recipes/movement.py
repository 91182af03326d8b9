"""Elements put elsewhere: parts, joins, picks."""

from __future__ import annotations

import numpy as np

from tests.hunt.generation.builder import Builder, Extent, Value
from tests.hunt.generation.feeds import Fill, Kind
from tests.hunt.recipes._row import Recipe, axis_of, dtypes_of, first_of, maybe, some_axes

FAR = (2**63 - 1, 2**31 - 1, 1000, -(2**63), -(2**63) + 1, 2**62)


def _concat(b: Builder) -> None:
    x = first_of(b, "Concat", least=1)
    axis = axis_of(b, x)
    parts = [x]
    for _ in range(b.whole(0, 3)):
        wanted = list(x.extents)
        if -x.rank <= axis < x.rank and b.chance(0.6):
            wanted[axis] = b.extent() if b.chance(0.6) else (0, 0, 0)
        parts.append(b.tensor(wanted, x.dtype))
    b.rng.shuffle(parts)
    b.one("Concat", parts, axis=axis)


def _split(b: Builder) -> None:
    x = first_of(b, "Split", least=1)
    axis = b.whole(-x.rank, x.rank - 1)
    extent, count = x.shape[axis], b.whole(1, 3)
    cuts = sorted(int(v) for v in b.rng.integers(0, extent + 1, count - 1))
    sizes = [end - start for start, end in zip([0, *cuts], [*cuts, extent], strict=True)]
    if b.chance(0.5) and extent % count == 0:
        sizes = [extent // count] * count
    plain = b.chance(0.4)
    if b.since("Split") < 13:
        b.node("Split", [x], outputs=count, axis=axis, split=None if plain else sizes)
    elif plain:
        b.node("Split", [x], outputs=count, axis=axis, num_outputs=count if b.since("Split") >= 18 else None)
    else:  # no output is without a name: of that ONNX Runtime dies (its issue 18601)
        b.node("Split", [x, b.ints(sizes)], outputs=count, axis=axis)


def _bound(b: Builder, extent: int) -> int:
    return b.pick(FAR) if b.chance(0.15) else b.whole(-extent - 1, extent + 1)


def _slice(b: Builder) -> None:
    x = first_of(b, "Slice", least=1)
    axes = some_axes(b, x, 2)
    starts = [_bound(b, x.shape[a]) if b.chance(0.6) else 0 for a in axes]
    ends = [_bound(b, x.shape[a]) for a in axes]
    if b.since("Slice") < 10:
        b.one("Slice", [x], starts=starts, ends=ends, axes=axes if b.chance(0.8) or axes != list(range(len(axes))) else None)
        return
    kind = b.pick((np.int64, np.int64, np.int32))
    starts, ends = ([max(-(2**31), min(2**31 - 1, v)) if kind is np.int32 else v for v in side] for side in (starts, ends))
    steps = [b.pick((1, 1, 1, 2, -1, -2, 3)) for _ in axes]
    operands = [
        b.ints(starts, kind),
        b.ints(ends, kind),
        b.ints(axes, kind, fixed=0.95),
        maybe(b, b.ints(steps, kind, fixed=0.95), 0.7),
    ]
    b.one("Slice", [x, *operands])


def _tile(b: Builder) -> None:
    x = first_of(b, "Tile")
    b.one("Tile", [x, b.ints([b.pick((1, 1, 2, 3, 0)) if b.chance(0.9) else 1 for _ in range(x.rank)])])


def _pad(b: Builder) -> None:
    x = first_of(b, "Pad", least=1)
    modes = ["constant", "constant", "reflect", "edge", *(["wrap"] if b.since("Pad") >= 19 else [])]
    mode = b.pick(modes)
    axes = some_axes(b, x) if b.since("Pad") >= 18 and b.chance(0.3) else list(range(x.rank))
    pads = [b.pick((0, 0, 1, 2, -1, 3)) for _ in range(2 * len(axes))]
    shown = maybe(b, mode, 0.9 if mode != "constant" else 0.5)
    if b.since("Pad") < 11:
        b.one("Pad", [x], mode=shown, pads=pads, value=maybe(b, 0.5))
        return
    fill = maybe(b, b.tensor([], x.dtype, fixed=0.7))
    operands = [x, b.ints(pads), fill]
    if b.since("Pad") >= 18 and (b.chance(0.5) or axes != list(range(x.rank))):
        operands.append(b.ints(axes, fixed=0.95))
    b.one("Pad", operands, mode=shown)


def _image(b: Builder, op: str, channels: int, block: int) -> Value:
    """[N, C * ..., H * ..., W * ...], which the block divides in most worlds."""
    n = b.extent()
    h, w = (tuple(max(0, s % 4) * (block if b.chance(0.93) else 1) for s in b.extent()) for _ in range(2))
    return b.input([n, (channels,) * 3 if b.chance(0.7) else (channels, channels, channels + 1), h, w], dtypes_of(b, op)[0])


def _depth_to_space(b: Builder) -> None:
    block = b.pick((1, 2, 3))
    x = _image(b, "DepthToSpace", block * block * b.whole(1, 2), 1)
    mode = maybe(b, b.pick(("DCR", "CRD"))) if b.since("DepthToSpace") >= 11 else None
    b.one("DepthToSpace", [x], blocksize=block, mode=mode)


def _space_to_depth(b: Builder) -> None:
    block = b.pick((1, 2, 3))
    b.one("SpaceToDepth", [_image(b, "SpaceToDepth", b.whole(1, 3), block)], blocksize=block)


def _trilu(b: Builder) -> None:
    x = first_of(b, "Trilu", least=2)
    k = maybe(b, b.ints(b.pick((0, 1, -1, 2, -3, 100)), fixed=0.8))
    b.one("Trilu", [x, k], upper=b.pick((None, 0, 1)))


def _reverse_sequence(b: Builder) -> None:
    x = first_of(b, "ReverseSequence", least=2)
    batch = b.whole(0, 1)
    lengths = b.tensor([x.extents[batch]], np.int64, Fill(Kind.INDEX, 0, min(x.extents[1 - batch]) + 1), fixed=0.3)
    b.one("ReverseSequence", [x, lengths], batch_axis=batch, time_axis=1 - batch)


# -- picks


def _indices(b: Builder, extents: list[Extent], limit: Extent, dtype: type | None = None) -> Value:
    """Into an axis of ``limit``, from both ends; mostly legal in the first world only."""
    bound = limit[0] if b.chance(0.5) else max(1, min(limit))
    fill = Fill(Kind.INDEX, -bound if b.chance(0.5) else 0, bound)
    return b.tensor(extents, dtype or b.pick((np.int64, np.int64, np.int32)), fill, fixed=0.5)


def _gather(b: Builder) -> None:
    x = first_of(b, "Gather", least=1)
    axis = b.whole(-x.rank, x.rank - 1)
    shape = [b.extent() if b.chance(0.3) else (b.whole(1, 3),) * 3 for _ in range(b.whole(0, 2))]
    b.one("Gather", [x, _indices(b, shape, x.extents[axis])], axis=maybe(b, axis, 0.9) if axis % x.rank == 0 else axis)


def _gather_elements(b: Builder) -> None:
    x = first_of(b, "GatherElements", least=1)
    axis = b.whole(-x.rank, x.rank - 1)
    shape = list(x.extents)
    shape[axis] = b.extent() if b.chance(0.5) else shape[axis]
    b.one("GatherElements", [x, _indices(b, shape, x.extents[axis])], axis=axis)


def _gather_nd(b: Builder) -> None:
    x = first_of(b, "GatherND", least=1)
    batch = b.whole(0, x.rank - 1) if b.since("GatherND") >= 12 and b.chance(0.4) else 0
    depth = b.whole(1, x.rank - batch)
    low = tuple(min(e[w] for e in x.extents[batch : batch + depth]) for w in range(3))
    shape = [*x.extents[:batch], *((b.whole(1, 3),) * 3 for _ in range(b.whole(0, 1))), (depth,) * 3]
    b.one("GatherND", [x, _indices(b, shape, low, np.int64)], batch_dims=batch or None)


def _one_hot(b: Builder) -> None:
    depth = b.whole(1, 6)
    indices = b.any((np.int64,), most=2, fill=Fill(Kind.INDEX, -depth, depth)) if b.chance(0.9) else b.any((np.float32,), most=2)
    size = b.ints(depth, fixed=0.85) if b.chance(0.5) else b.ints([depth], fixed=0.85)
    values = b.tensor([(2, 2, 2)], b.pick((np.float32, np.int64)))
    b.one("OneHot", [indices, size, values], axis=maybe(b, b.whole(-indices.rank - 1, indices.rank)))


def _tensor_scatter(b: Builder) -> None:
    past = b.any((np.float32, np.float32, np.float16), least=3, most=4)
    axis = b.pick((-2, -2, 1))
    wanted = list(past.extents)
    wanted[axis] = tuple(max(1, min(2, n)) for n in wanted[axis])
    update = b.tensor(wanted, past.dtype)
    write = maybe(b, b.tensor([past.extents[0]], np.int64, Fill(Kind.INDEX, 0, max(1, min(past.extents[axis]) - 1))), 0.7)
    b.one("TensorScatter", [past, update, write], axis=maybe(b, axis), mode=maybe(b, b.pick(("linear", "circular"))))


ROWS = [
    Recipe(name="Concat", build=_concat, weight=2),
    Recipe(name="Split", build=_split, weight=1.5),
    Recipe(name="Slice", build=_slice, weight=2),
    Recipe(name="Tile", build=_tile),
    Recipe(name="Pad", build=_pad, weight=1.5),
    Recipe(name="DepthToSpace", build=_depth_to_space),
    Recipe(name="SpaceToDepth", build=_space_to_depth),
    Recipe(name="Trilu", build=_trilu, since=14),
    Recipe(name="ReverseSequence", build=_reverse_sequence, since=10),
    Recipe(name="Gather", build=_gather, weight=1.5),
    Recipe(name="GatherElements", build=_gather_elements, since=11),
    Recipe(name="GatherND", build=_gather_nd, since=11),
    Recipe(name="OneHot", build=_one_hot, since=9),
    Recipe(name="TensorScatter", build=_tensor_scatter, since=24),
]
