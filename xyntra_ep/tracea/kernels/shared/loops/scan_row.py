"""A scan along one row, one element after the other, on any target."""

from __future__ import annotations

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import call
from xyntra_ep.tracea.core_ir.ops import ReduceKind, Scan
from xyntra_ep.tracea.kernels.shared.index import AccessTable
from xyntra_ep.tracea.kernels.shared.loops.nest import Nest, Scope
from xyntra_ep.tracea.kernels.variant import BuildContext
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder
from xyntra_ep.tracea.semantic_ir.nodes import Const
from xyntra_ep.tracea.semantic_ir.scalar_code import value_type


def why_no_scan(op: Scan, context: BuildContext) -> str | None:
    return None if op.kind in (ReduceKind.SUM, ReduceKind.PROD) else f"no scan by {op.kind}"


class RowScan:
    """The code of a scan; the last axis of ``op``'s output is the one along which it goes."""

    def __init__(self, b: KernelBuilder, op: Scan) -> None:
        self._b = b
        self._op = op
        table = AccessTable(b, op.output.shape)
        self._body = table.reading(op.body if op.body.dtype is not DType.BOOL else call("to_i", op.body), op.inputs)
        self._output = table.writing(op.output)
        self._nest = Nest(b, table, None, [self._body])
        self.buffers = tuple(table.buffers)

    def outside(self) -> Scope:
        return self._nest.outside()

    def along(self, row: Scope) -> None:
        """All elements of ``row``, in which all axes but the last have values."""
        b, op = self._b, self._op
        last, length = len(op.output.shape) - 1, b.param(op.output.shape[-1])
        total = b.variable("total", Const(value_type(self._body.dtype, 1), 0 if op.kind is ReduceKind.SUM else 1))
        with b.loop("i", 0, length) as i:
            here = row.bind({last: length - 1 - i if op.reverse else i})
            value = b.let("x", here.value(self._body))
            if op.exclusive:
                here.store(self._output, total)
            b.assign(total, total + value if op.kind is ReduceKind.SUM else total * value)
            if not op.exclusive:
                here.store(self._output, total)
