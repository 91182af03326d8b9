"""Which provider runs how many nodes, and what XyntraEP left to others and why."""

from __future__ import annotations

from xyntra_bench.results import CaseResult, Run
from xyntra_reports._markdown import table
from xyntra_reports.registry import Part, Section

HEADER = ("provider", "claims", "in groups", "all nodes", "kernels")
DECLINED = ("left to others", "why", "nodes", "such as")


def part(run: Run, case: CaseResult) -> Section | None:
    rows, declined = [], []
    for m in case.measurements:
        if m.placement is None:
            continue
        nodes, groups = m.placement.nodes, m.placement.groups
        kernels = str(len(m.inside.kernels)) if m.inside else "-"
        counts = (nodes.get(m.provider, 0), groups.get(m.provider, 0), sum(nodes.values()))
        rows.append([m.label, *map(str, counts), kernels])
        if m.inside and m.inside.declined:
            lines = [[d.op_type, d.reason, str(d.count), ", ".join(d.nodes)] for d in m.inside.declined]
            declined.append(f"**{m.label}**\n\n{table(DECLINED, lines, left=2)}")
    if not rows:
        return None
    note = (
        "Nodes are counted after ONNX Runtime's own optimisation; a group of XyntraEP's is an island, "
        "which it computes as a whole, with kernels of its own."
    )
    return Section(text="\n\n".join([table(HEADER, rows), note, *declined]))


PARTS = [Part(name="placement", title="Placement", order=10, render=part)]
