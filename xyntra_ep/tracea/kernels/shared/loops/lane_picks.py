"""Elements at a constant distance as lanes of one vector: whole vectors are loaded, and lanes picked out of them by shuffles."""

from __future__ import annotations

from collections.abc import Sequence

from xyntra_ep.tracea.semantic_ir.builder import BlockBuilder
from xyntra_ep.tracea.semantic_ir.nodes import Pointer, Rvalue, Shuffle

MOST_APART = 4  # each element of distance is a load and a shuffle
_FEWEST_LANES = 8  # of fewer, loads of single elements are as good


def are_picked(step: object, lanes: int) -> bool:
    """Whether elements ``step`` apart are better picked than loaded one by one."""
    return isinstance(step, int) and 1 < step <= MOST_APART and lanes >= _FEWEST_LANES


def every(b: BlockBuilder, pointer: Pointer, at: Rvalue, step: int, lanes: int) -> Rvalue:
    """``lanes`` elements ``step`` apart, the first one at ``at``. Nothing before the first or behind the last one is read."""
    starts = [*(i * lanes for i in range(step - 1)), (step - 1) * (lanes - 1)]  # the last vector ends at the last element
    parts = [b.let("near", b.load(pointer, at + start, lanes)) for start in starts]
    places: list[tuple[int, int]] = []
    for element in range(0, step * lanes, step):
        part = min(element // lanes, step - 1)
        places.append((part, element - starts[part]))
    return picked(b, parts, places)


def picked(b: BlockBuilder, parts: Sequence[Rvalue], places: Sequence[tuple[int, int]]) -> Rvalue:
    """The vector whose lane i is lane ``places[i][1]`` of ``parts[places[i][0]]``."""
    result, lanes = parts[0], len(places)
    if len(parts) == 1:
        return result
    for i in range(1, len(parts)):
        kept = [lane if i > 1 else at for lane, (_, at) in enumerate(places)]
        chosen = tuple(lanes + at if part == i else kept[lane] for lane, (part, at) in enumerate(places))
        result = b.let("every", Shuffle(result, parts[i], chosen))
    return result
