"""Estimates what a session would gain in another precision, by the same estimates that chose its kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from xyntra_ep.fusion.passes.choose_precision import choose_precision
from xyntra_ep.tracea.core_ir.dims import evaluate, symbols_of
from xyntra_ep.tracea.core_ir.ops import Product
from xyntra_ep.tracea.interface.context import Context
from xyntra_ep.tracea.planning.constants import constant_ops, live_ops
from xyntra_ep.tracea.planning.op_key import op_key
from xyntra_ep.tracea.planning.plan import PlannedProgram


def times(planned: Sequence[PlannedProgram], product: Product, context: Context) -> tuple[float, float]:
    """Nanoseconds of what the programs do in a run: as they are, and with products in ``product``. Raises UnsupportedError where
    nothing would compute one of the ops."""
    now = then = 0.0
    known: dict[Any, float] = {}  # the layers of a transformer are one
    for each in planned:
        usual = each.program.assumed[1]
        often = {op: evaluate(n, usual) if symbols_of(n) <= usual.keys() else 1 for op, n in each.times_of_op().items()}
        cost = {op: often[op] * decision.cost_ns for op, decision in each.decisions if op in often}
        now += sum(cost.values())
        old = each.program
        new = replace(old, values=list(old.values), ops=list(old.ops), sources=list(old.sources))
        choose_precision(new, product, halves=context.halves)
        _, constants = constant_ops(new, live_ops(new))
        for i in cost:
            if new.ops[i] != old.ops[i]:
                key = op_key(new.ops[i], new, constants).key
                if key not in known:
                    known[key] = context.estimate(new.ops[i], new, constants).cost_ns
                cost[i] = often[i] * known[key]
        then += sum(cost.values())
    return now, then
