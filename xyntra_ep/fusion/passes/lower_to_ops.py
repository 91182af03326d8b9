"""From lazy tensors to core-IR ops, with what the trace found out about sizes and data.

view, map, gemm, map    ->    Gemm(strided operands, epilogue)
"""

from __future__ import annotations

from xyntra_ep.fusion.lower import lower
from xyntra_ep.fusion.passes._pass import Draft, Fact, Pass
from xyntra_ep.tracea.core_ir.ops import Program


def _run(draft: Draft) -> None:
    context = draft.context
    program = Program(
        bindings=list(context.bindings),
        rules=list(draft.rules),
        remarks=[(text, int(node)) for text, node in context.remarks],
        definitions=list(context.checks.definitions),
        guards=list(context.checks.guards),
        checks=list(context.checks.conditions),
    )
    faults = lower(draft.dag, program, draft.inputs, draft.outputs, draft.algebra)
    program.faults = [(v, message) for v, (_, message) in zip(faults, context.faults, strict=True)]
    draft.lowered = program


PASS = Pass(
    name="lower_to_ops",
    doc="views are strides, groups of nodes are core-IR ops with epilogues; rewrite rules were applied to their expressions",
    requires=(Fact.TENSORS, Fact.ATTENTION, Fact.ROWS),
    establishes=(Fact.OPS,),
    ends=(Fact.TENSORS,),
    run=_run,
)
