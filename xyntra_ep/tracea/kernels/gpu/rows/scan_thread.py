"""scan.thread: cumulative sums and products, a thread for each row."""

from __future__ import annotations

from xyntra_ep.tracea.core_ir.dims import ceildiv, product
from xyntra_ep.tracea.core_ir.ops import Scan
from xyntra_ep.tracea.kernels.gpu.shared.launch import estimate_ns, gpu_of, launch_of, steps_ns
from xyntra_ep.tracea.kernels.shared.loops.scan_row import RowScan, why_no_scan
from xyntra_ep.tracea.kernels.variant import FALLBACK_RANK, BuildContext, Config, KernelCall, Variant
from xyntra_ep.tracea.semantic_ir.gpu.builder import GpuBuilder
from xyntra_ep.tracea.semantic_ir.nodes import lt

_THREADS = 128
_STEP = 8  # a load, what is computed from it, and a store, one after the other


def _cost_ns(op: Scan, config: Config, context: BuildContext) -> float:
    return estimate_ns(product(op.output.shape) * _STEP, gpu_of(context))


def _build(op: Scan, config: Config, context: BuildContext) -> list[KernelCall]:
    b = GpuBuilder(f"xy_scan_{op.output.dtype}", _THREADS)
    scan = RowScan(b, op)
    outside = scan.outside()
    rows = op.output.shape[:-1]
    number = b.let("row", b.block * _THREADS + b.thread)
    with b.when(lt(number, b.param(product(rows)))):
        scan.along(outside.bind(dict(enumerate(b.split(number, rows))) if rows else {}))
    return [
        launch_of(
            b,
            scan.buffers,
            units=ceildiv(product(rows), _THREADS),
            cost_ns=steps_ns(product(op.output.shape) * _STEP, gpu_of(context)),
        )
    ]


VARIANTS = [
    Variant(
        name="scan.thread",
        op=Scan,
        admits=why_no_scan,
        cost_ns=_cost_ns,
        build=_build,
        rank=FALLBACK_RANK,
    )
]
