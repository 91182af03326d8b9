"""The row, and what many recipes want."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx

from tests.hunt.generation.builder import Builder, Value
from tests.hunt.generation.feeds import Fill
from xyntra_ep.registry import Registry

Build = Callable[[Builder], object]
FLOATS = (np.float32, np.float32, np.float32, np.float32, np.float32, np.float16, np.float64)
INTS = (np.int64, np.int64, np.int32, np.int8, np.uint8)
NUMBERS = (*FLOATS, *INTS)
_WEIGHTS = {"float32": 16, "float16": 2, "float64": 1, "int64": 3, "int32": 2, "int8": 1, "uint8": 1, "bool": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """``since``, ``until``: the opsets of the model that have the operator. ``weight``: how often it is drawn, beside others."""

    name: str
    build: Build
    since: int = 7
    until: int = 10**6
    weight: float = 1.0


RECIPES: Registry[Recipe] = Registry("tests.hunt.recipes", "ROWS")


def dtypes_of(b: Builder, op: str, position: int = 0) -> Sequence[Any]:
    """What the schema of this opset allows for an input, of those types that XyntraEP has; float32 the most often."""
    schema = onnx.defs.get_schema(op, b.opset, "")
    given = schema.inputs[position]
    names = {t.removeprefix("tensor(").removesuffix(")") for t in given.types}
    names = {{"float": "float32", "double": "float64"}.get(n, n) for n in names}
    allowed = [np.dtype(n).type for n, weight in _WEIGHTS.items() for _ in range(weight) if n in names]
    return (b.pick(allowed),) if allowed else (np.float32,)


def first_of(b: Builder, op: str, *, fill: Fill = Fill(), **limits: Any) -> Value:  # noqa: B008 (frozen)
    """The operator's first input, of a type that it takes."""
    return b.any(dtypes_of(b, op), fill=fill, **limits)


def axis_of(b: Builder, v: Value) -> int:
    """Counted from either end; out of range now and then."""
    if b.chance(0.01):
        return b.pick((v.rank, -v.rank - 1))
    return b.whole(-v.rank, v.rank - 1) if v.rank else 0


def some_axes(b: Builder, v: Value, most: int = 4) -> list[int]:
    count = b.whole(1, max(1, min(most, v.rank)))
    if b.chance(0.5):
        chosen = list(range(v.rank - count, v.rank))
    else:
        chosen = sorted(int(a) for a in b.rng.choice(max(1, v.rank), min(count, max(1, v.rank)), replace=False))
    return [a - v.rank if b.chance(0.3) else a for a in chosen]


def maybe(b: Builder, value: Any, p: float = 0.5) -> Any:
    """``value``, or None: the attribute (or input) is left out."""
    return value if b.chance(p) else None
