"""scan.rows: cumulative sums and products along the last axis, one element after the other, rows in parallel."""

from __future__ import annotations

from xyntra_ep.tracea.core_ir.dims import Size, product
from xyntra_ep.tracea.core_ir.ops import Scan
from xyntra_ep.tracea.kernels.cpu.shared.loops_cost import call_cost_ns, estimate_ns
from xyntra_ep.tracea.kernels.cpu.shared.row_units import rows_of_units, units_of
from xyntra_ep.tracea.kernels.shared.loops.plan import Loop
from xyntra_ep.tracea.kernels.shared.loops.scan_row import RowScan, why_no_scan
from xyntra_ep.tracea.kernels.shared.operation_cost import expression_cycles
from xyntra_ep.tracea.kernels.variant import BuildContext, Config, KernelCall, Variant
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder

_STEP_CYCLES = 4.0  # latency of an addition


def _cycles(op: Scan) -> float:
    return _STEP_CYCLES + expression_cycles(op.body)


def _cost_ns(op: Scan, config: Config, context: BuildContext) -> float:
    return estimate_ns(op.output.shape, _cycles(op))


def _build(op: Scan, config: Config, context: BuildContext) -> list[KernelCall]:
    b = KernelBuilder(f"xy_scan_{op.output.dtype}")
    scan = RowScan(b, op)
    *rows, length = op.output.shape
    units = units_of([Loop(i, extent) for i, extent in enumerate(rows)], length)
    outside = scan.outside()
    with rows_of_units(b, units) as coordinates:
        scan.along(outside.bind({loop.axis: c for loop, c in zip(units.loops, coordinates, strict=True)}))
    kernel, params = b.finish()
    elements: tuple[Size, ...] = (product(op.output.shape),)
    return [
        KernelCall(
            kernel=kernel,
            buffers=scan.buffers,
            params=params,
            units=units.count,
            cost_ns=call_cost_ns(elements, _cycles(op)),
        )
    ]


VARIANTS = [
    Variant(
        name="scan.rows",
        op=Scan,
        admits=why_no_scan,
        cost_ns=_cost_ns,
        build=_build,
    )
]
