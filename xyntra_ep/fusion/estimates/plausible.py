"""What a size that only a run knows is taken for in estimates: what people serve.

Of a dimension of the model's inputs its name tells, else its place: the first is a batch, four dimensions are images. What inner
values have follows by the model's own arithmetic, so that behind a stride of 32 an image of 224 has 7 rows. Every size has three
values: what is claimed follows the expected gain over all of them, and kernels are made for the one in the middle.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from xyntra_ep.fusion.graph import DeclaredDim, Graph, GraphValue
from xyntra_ep.fusion.tensor import Tensor
from xyntra_ep.tracea.core_ir.dims import Size, evaluate, symbols_of
from xyntra_ep.tracea.core_ir.ops import Range

BATCH = Range(1, 1, 8)
SEQUENCE = Range(16, 128, 512)  # also what nothing tells of
IMAGE = Range(160, 224, 640)
MAP = Range(20, 28, 80)  # of features: images behind a stride of 8
AUDIO = Range(16_000, 48_000, 160_000)  # samples of 1, 3 and 10 seconds
COLOURS = Range(3, 3, 3)

_WORDS: Mapping[Range, tuple[str, ...]] = {
    BATCH: ("batch", "bs"),
    AUDIO: ("audio", "wave"),
    SEQUENCE: ("seq", "past", "len", "time", "token", "context", "position", "frame", "step"),
    IMAGE: ("height", "width", "image", "pixel"),
    COLOURS: ("channel",),
}
_LETTERS = {"n": BATCH, "b": BATCH, "h": IMAGE, "w": IMAGE, "c": COLOURS, "s": SEQUENCE, "t": SEQUENCE, "l": SEQUENCE}
_FEW = (1, 3, 4)  # channels of an image


def by_name(name: str) -> Range | None:
    """What the name of a dimension tells.

    >>> by_name("image_height"), by_name("N"), by_name("nodes")
    (Range(small=160, usual=224, large=640), Range(small=1, usual=1, large=8), None)
    """
    folded = name.lower()
    return _LETTERS.get(folded) or next((size for size, words in _WORDS.items() if any(word in folded for word in words)), None)


def of_dim(shape: Sequence[DeclaredDim], axis: int) -> Range:
    """Of one dimension of a value that the model declares as ``shape``; an unknown one may be a negative number, too."""
    declared, rank = shape[axis], len(shape)
    if isinstance(declared, str) and (told := by_name(declared)) is not None:
        return told
    if axis == 0 and rank > 1:
        return BATCH
    if rank != 4:
        return SEQUENCE
    channels, last = shape[1], shape[-1]
    if _is_known(last) and last in _FEW and not _is_known(channels):  # channels last
        return IMAGE
    if axis == 1:
        return COLOURS
    if not _is_known(channels) or channels in _FEW:
        return IMAGE
    return SEQUENCE if any(_is_known(d) for d in shape[2:]) else MAP


def _is_known(dim: DeclaredDim) -> bool:
    return isinstance(dim, int) and dim >= 0


@dataclass(frozen=True, slots=True)
class Sizes:
    """``hints``: the user's, by the names of dimensions. ``known``: of values that were traced, every axis."""

    hints: Mapping[str, int]
    known: Mapping[str, tuple[Range, ...]]

    @classmethod
    def of(cls, graph: Graph) -> Sizes:
        return cls(hints=graph.dim_hints, known=graph.plausible)

    def of_axis(self, value: GraphValue, axis: int, like: Sequence[Range] = ()) -> Range:
        """``like``: what there is instead of its place, of as many axes: the sizes of what it was made of."""
        assert value.shape is not None
        declared = value.shape[axis]
        if isinstance(declared, str) and declared in self.hints:
            return Range(*(self.hints[declared],) * 3)
        known = self.known.get(value.name)
        if known is not None and len(known) == len(value.shape):
            return known[axis]
        if isinstance(declared, int):
            return Range(*(declared,) * 3)
        if len(like) != len(value.shape):
            return of_dim(value.shape, axis)
        return (by_name(declared) if declared else None) or like[axis]


def enlarged(ranges: Mapping[str, Range], tensors: Iterable[Tensor]) -> dict[str, Range]:
    """``ranges`` of symbols, those of sequences by which a tensor would vanish taken for sound: a net that leaves nothing of 128
    elements is meant for thousands."""
    found = dict(ranges)
    for size in (size for t in tensors for size in t.shape if not isinstance(size, int)):
        names = symbols_of(size)
        if names <= found.keys() and evaluate(size, {name: found[name].usual for name in names}) < 1:
            found |= {name: AUDIO for name in names if found[name] == SEQUENCE}
    return found


def traced_sizes(t: Tensor, ranges: Mapping[str, Range]) -> tuple[Range, ...]:
    """Of each axis of a tensor that a walk over the whole graph has traced, by the ``ranges`` of symbols; () where one of its
    sizes depends on data."""
    try:
        return tuple(_range_of(size, ranges) for size in t.shape)
    except KeyError:
        return ()


def _range_of(size: Size, ranges: Mapping[str, Range]) -> Range:
    if isinstance(size, int):
        return Range(size, size, size)
    known = {name: ranges[name] for name in symbols_of(size)}
    return Range(*(max(0, evaluate(size, {name: r[k] for name, r in known.items()})) for k in range(len(Range._fields))))


def assumed_text(graph: Graph) -> str:
    """The sizes in the middle, of the dimensions of the model's inputs that have names; "" where all is known.

    Those without a name are told by their input: ``x: [1, 3, 224, 224]``.
    """
    sizes = Sizes.of(graph)
    named: dict[str, int] = {}
    unnamed: list[str] = []
    for value in graph.values.values():
        if not value.is_input or value.is_constant or value.shape is None:
            continue
        usual = [sizes.of_axis(value, axis).usual for axis in range(len(value.shape))]
        named |= {d: n for d, n in zip(value.shape, usual, strict=True) if isinstance(d, str)}
        if None in value.shape:
            unnamed.append(f"{value.name}: {usual}")
    return ", ".join([*(f"{name}={size}" for name, size in named.items()), *unnamed])
