"""Kernels for devices count elements in 32 bits: runs that would need more of them fail with a message.

Program for a device    ->    the same with a check of the size of each value
"""

from __future__ import annotations

from xyntra_ep.fusion.passes._pass import Draft, Fact, Pass
from xyntra_ep.tracea.interface.index_width import limit_elements


def _run(draft: Draft) -> None:
    if draft.target is not None and draft.target.counts_in_32_bits:
        limit_elements(draft.program)


PASS = Pass(
    name="limit_elements",
    doc="for a device: a run in which a value has too many elements is refused",
    requires=(Fact.OPS, Fact.PRECISION),
    establishes=(Fact.INDICES,),
    run=_run,
)
