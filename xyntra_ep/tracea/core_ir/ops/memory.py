"""What ops are interpreted in: the contents of values, and expressions over them, in float64 (int64, bool)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xyntra_ep.tracea.core_ir.dims import Size, evaluate
from xyntra_ep.tracea.core_ir.dtypes import from_float64, to_float64
from xyntra_ep.tracea.core_ir.expr import SCALAR_OPS, Expr, walk
from xyntra_ep.tracea.core_ir.ops.operand import Operand, Value

Array = NDArray[Any]


class Memory:
    """The flat contents of every value of a program while it is interpreted, in stored types."""

    def __init__(self, values: Sequence[Value], symbols: Mapping[str, int], keep_float64: bool = False) -> None:
        self.values = values
        self.symbols = symbols
        self.keep_float64 = keep_float64
        self.flat: dict[int, Array] = {}

    def size(self, value: Size) -> int:
        return evaluate(value, self.symbols)

    def shape(self, sizes: Sequence[Size]) -> tuple[int, ...]:
        return tuple(self.size(s) for s in sizes)

    def positions(self, operand: Operand) -> Array:
        """Flat element positions of a view, as an int64 array of its shape."""
        at = np.asarray(self.size(operand.offset), dtype=np.int64)
        shape = self.shape(operand.shape)
        for i, (extent, stride) in enumerate(zip(shape, operand.strides, strict=True)):
            step = np.arange(extent, dtype=np.int64) * self.size(stride)
            at = at + step.reshape((-1,) + (1,) * (len(shape) - 1 - i))
        return np.broadcast_to(at, shape)

    def read(self, operand: Operand) -> Array:
        return self.flat[operand.value][self.positions(operand)]

    def write(self, operand: Operand, data: Array) -> None:
        value = self.values[operand.value]
        if operand.value not in self.flat:
            count = int(np.prod(self.shape(value.shape), dtype=np.int64))
            self.flat[operand.value] = to_float64(np.zeros(count, dtype=value.dtype.numpy), value.dtype)
        rounded = np.asarray(data)
        if not self.keep_float64 or not value.dtype.is_float:
            rounded = to_float64(from_float64(rounded, value.dtype), value.dtype)
        self.flat[operand.value][self.positions(operand)] = np.broadcast_to(rounded, self.shape(operand.shape))


def evaluate_expr(
    root: Expr,
    memory: Memory,
    inputs: Sequence[Operand],
    domain: tuple[int, ...],
    acc: Mapping[int, Array] | None = None,
    at: Mapping[int, Array] | None = None,
) -> Array:
    """``root`` for every index of ``domain``; ``acc`` holds arrays that broadcast to it, ``at`` those of axes that are not
    counted but given."""
    values: dict[int, Array] = {}
    for e in walk(root):
        args = [values[id(a)] for a in e.args]
        if e.kind == "axis" and at is not None and e.attr in at:
            result = at[e.attr]
        elif e.kind == "axis":
            shape = [1] * len(domain)
            shape[e.attr] = domain[e.attr]
            result = np.arange(domain[e.attr], dtype=np.int64).reshape(shape)
        elif e.kind == "const":
            result = np.asarray(e.attr)
        elif e.kind == "size":
            result = np.asarray(memory.size(e.attr), dtype=np.int64)
        elif e.kind == "acc":
            assert acc is not None
            result = acc[e.attr]
        elif e.kind == "load":
            operand = inputs[e.attr]
            place: Array = np.asarray(memory.size(operand.offset), dtype=np.int64)
            for index, stride in zip(args, operand.strides, strict=True):
                place = place + index * memory.size(stride)
            flat = memory.flat[operand.value]
            # A window's select may guard an index outside the buffer: what is read there is not used.
            result = flat[np.clip(place, 0, max(len(flat) - 1, 0))] if len(flat) else np.zeros(place.shape, flat.dtype)
        else:
            result = SCALAR_OPS[e.attr].reference(*args)
        values[id(e)] = np.asarray(result)
    return np.broadcast_to(values[id(root)], domain)
