"""A row of a TopK: its elements as keys that can be compared, and where its results go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from xyntra_ep.tracea.core_ir.dims import Size
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import axis, load
from xyntra_ep.tracea.core_ir.ops import TopK
from xyntra_ep.tracea.kernels.shared.index import AccessTable
from xyntra_ep.tracea.kernels.shared.loops.nest import Nest
from xyntra_ep.tracea.semantic_ir.gpu.builder import GpuBuilder
from xyntra_ep.tracea.semantic_ir.nodes import Const, Rvalue, Select, binary, f32, i64, index, lt

_PAST_THE_END = 1 << 30  # what a position is that no row has


class Entry(NamedTuple):
    """An element as it is compared: its value, NaN as infinity, and an index that says where it is."""

    key: Rvalue
    position: Rvalue


class TopKRow:
    """Row ``number`` of all ``rows`` of ``op``."""

    def __init__(self, b: GpuBuilder, op: TopK, rows: Sequence[Size], number: Rvalue) -> None:
        source = op.inputs[0]
        table = AccessTable(b, source.shape)
        self._b, self._largest, self.k = b, op.largest, op.k
        self._element = table.reading(load(0, *map(axis, range(len(source.shape))), dtype=source.dtype), op.inputs)
        self._outputs = table.writing(op.values), table.writing(op.indices)
        self._last = len(rows)
        self.buffers = tuple(table.buffers)
        self.key_dtype = DType.F32 if source.dtype.is_float else DType.I64
        self.length = b.param(source.shape[-1])
        self._row = Nest(b, table, None, [self._element]).outside().bind(dict(enumerate(b.split(number, rows))) if rows else {})

    def key(self, at: Rvalue) -> Rvalue:
        value = self._b.let("value", self._row.bind({self._last: at}).value(self._element))
        if self.key_dtype is DType.I64:
            return value
        return Select(binary("eq", value, value), value, Const(f32(1), float("inf")))

    def nothing(self, number: Rvalue) -> Entry:
        """An entry after all that are in the row, with ``number`` unlike others of these."""
        position = self._b.let("p", number + _PAST_THE_END)
        if self.key_dtype is DType.F32:
            return Entry(Const(f32(1), float("-inf") if self._largest else float("inf")), position)
        return Entry(Const(i64(1), -(2**63) if self._largest else 2**63 - 1), position)

    def before(self, a: Entry, b: Entry) -> Rvalue:
        """Whether ``a`` comes before ``b`` in the result: 0 or 1."""
        first, second = (a.key, b.key) if self._largest else (b.key, a.key)
        tied = Select(binary("lt", first, second), index(0), lt(a.position, b.position))
        return Select(binary("lt", second, first), index(1), tied)

    def store(self, number: Rvalue, position: Rvalue) -> None:
        """The ``number``-th result is the element at ``position``."""
        values, indices = self._outputs
        here = self._row.bind({self._last: number})
        here.store(values, self._row.bind({self._last: position}).value(self._element))
        here.store(indices, position)
