"""scan.rows: cumulative sums and products along the last axis, one element after the other, rows in parallel."""

from __future__ import annotations

from collections.abc import Sequence

from xyntra_ep.tracea.core_ir.dims import Size, product
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import call
from xyntra_ep.tracea.core_ir.ops import ReduceKind, Scan
from xyntra_ep.tracea.kernels.cpu._loops_cost import call_cost_ns, estimate_ns
from xyntra_ep.tracea.kernels.cpu._row_units import rows_of_units, units_of
from xyntra_ep.tracea.kernels.shared.index import AccessTable
from xyntra_ep.tracea.kernels.shared.loops import Nest
from xyntra_ep.tracea.kernels.shared.loops_plan import Loop
from xyntra_ep.tracea.kernels.shared.operation_cost import expression_cycles
from xyntra_ep.tracea.kernels.variant import Axis, BuildContext, Config, KernelCall, Variant
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder
from xyntra_ep.tracea.semantic_ir.nodes import Const
from xyntra_ep.tracea.semantic_ir.scalar_code import value_type

_STEP_CYCLES = 4.0  # latency of an addition


def _admits(op: Scan, context: BuildContext) -> str | None:
    return None if op.kind in (ReduceKind.SUM, ReduceKind.PROD) else f"no scan by {op.kind}"


def _space(op: Scan, context: BuildContext) -> Sequence[Axis]:
    return ()


def _default(op: Scan, context: BuildContext) -> Config:
    return {}


def _cycles(op: Scan) -> float:
    return _STEP_CYCLES + expression_cycles(op.body)


def _cost_ns(op: Scan, config: Config, context: BuildContext) -> float:
    return estimate_ns(op.output.shape, _cycles(op))


def _build(op: Scan, config: Config, context: BuildContext) -> list[KernelCall]:
    b = KernelBuilder(f"xy_scan_{op.output.dtype}")
    table = AccessTable(b, op.output.shape)
    body = table.reading(op.body if op.body.dtype is not DType.BOOL else call("to_i", op.body), op.inputs)
    output = table.writing(op.output)
    nest = Nest(b, table, None, [body])
    *rows, (last, length) = enumerate(op.output.shape)
    units = units_of([Loop(i, extent) for i, extent in rows], length)
    outside = nest.outside()
    kind = value_type(body.dtype, 1)
    with rows_of_units(b, units) as coordinates:
        row = outside.bind({loop.axis: c for loop, c in zip(units.loops, coordinates, strict=True)})
        total = b.variable("total", Const(kind, 0 if op.kind is ReduceKind.SUM else 1))
        with b.loop("i", 0, b.param(length)) as i:
            here = row.bind({last: b.param(length) - 1 - i if op.reverse else i})
            value = b.let("x", here.value(body))
            if op.exclusive:
                here.store(output, total)
            b.assign(total, total + value if op.kind is ReduceKind.SUM else total * value)
            if not op.exclusive:
                here.store(output, total)
    kernel, params = b.finish()
    elements: tuple[Size, ...] = (product(op.output.shape),)
    return [
        KernelCall(
            kernel=kernel,
            buffers=tuple(table.buffers),
            params=params,
            units=units.count,
            cost_ns=call_cost_ns(elements, _cycles(op)),
        )
    ]


VARIANTS = [
    Variant(
        name="scan.rows",
        op=Scan,
        admits=_admits,
        space=_space,
        default=_default,
        cost_ns=_cost_ns,
        build=_build,
    )
]
