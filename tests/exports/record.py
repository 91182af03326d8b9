"""What became of an exported model: one row for the table at the end of a test run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from xyntra_ep.diagnostics.explain import Explanation


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """``kernels`` counts by label, alternatives of one kernel once; ``declined`` nodes by (operator, reason); ``error`` is
    max |a - b| / max |b| of the worst output."""

    name: str
    nodes: int
    claimed: int
    islands: int
    kernels: Mapping[str, int]
    declined: Mapping[tuple[str, str], int]
    error: float

    def text(self) -> str:
        """One line, and one for each reason of a decline."""
        kernels = ", ".join(f"{label} {n}" for label, n in sorted(self.kernels.items()))
        claimed = f"{self.claimed:>4} of {self.nodes:>4} nodes, {self.islands} islands"
        lines = [f"{self.name:<26} {claimed}, error {self.error:.1e}: {kernels}"]
        lines += [f"    {n} {op_type}: {why}" for (op_type, why), n in self.declined.items()]
        return "\n".join(lines)


ROWS: list[Row] = []


def record(name: str, explanation: Explanation, error: float) -> Row:
    """The row of a session."""
    graphs = explanation.graphs
    row = Row(
        name=name,
        nodes=sum(len(g.nodes) for g in graphs),
        claimed=explanation.claimed,
        islands=sum(len(g.islands) for g in graphs),
        kernels=Counter(label for label, _ in {(k.label, k.nodes) for g in graphs for i in g.islands for k in i.kernels}),
        declined=Counter((d.op_type, d.reason) for g in graphs for d in g.declined),
        error=error,
    )
    ROWS.append(row)
    return row
