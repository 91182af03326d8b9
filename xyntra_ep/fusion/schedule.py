"""An island's passes, one after the other: from what a trace found to a core-IR program."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xyntra_ep.fusion.egraph import Algebra
from xyntra_ep.fusion.passes import PASSES, Draft, Target
from xyntra_ep.fusion.rules import built_in
from xyntra_ep.fusion.scheduling.dag import Dag
from xyntra_ep.fusion.trace import Context
from xyntra_ep.spans import span
from xyntra_ep.tracea.core_ir.ops import Program

Watch = Callable[[str, Draft], None]
TRACED = "trace"  # what comes before the first pass


def build_program(
    context: Context,
    inputs: Sequence[str],
    outputs: Sequence[str],
    *,
    target: Target | None = None,
    algebra: Algebra | None = None,
    watch: Watch | None = None,
) -> Program:
    """The program of an island from its traced ``context``; ``inputs`` and ``outputs`` are graph names in order. ``target`` is
    the machine it is for, ``algebra`` has other rules than our own. ``watch`` is shown the draft when it is traced and after each
    pass, with the name of that. Raises UnsupportedError where the target cannot compute it."""
    dag = Dag([*(context.tensors[name] for name in outputs), *(t for t, _ in context.faults)])
    draft = Draft(context=context, inputs=inputs, outputs=outputs, dag=dag, target=target, algebra=algebra or built_in())
    if watch is not None:
        watch(TRACED, draft)
    for each in PASSES:
        with span("pass", each.name):
            each.run(draft)
        if watch is not None:
            watch(each.name, draft)
    return draft.program
