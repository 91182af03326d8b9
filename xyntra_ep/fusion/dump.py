"""What passes did to islands: a file after each pass, and the graph nodes that it touched.

    dump = Dump(Path("dump"))
    build_program(..., watch=dump.watch(graph, members, "island0"))     # 000-island0-0-trace.txt, 000-island0-0-trace.dot, ...
    dump.steps["island0"]                                               # what `xyntra explain --passes` shows

Files begin with the number of the program among all that the process made, because an island is made again when a kernel of it is
declined, and with other sizes (`island0.1`). Nothing here is asked unless `dump_dir` is given.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from xyntra_ep.fusion.graph import Graph, NodeId
from xyntra_ep.fusion.passes import Draft
from xyntra_ep.fusion.reason import Reason
from xyntra_ep.fusion.schedule import Watch
from xyntra_ep.fusion.snapshot import Snapshot, snapshot
from xyntra_ep.tracea.core_ir.ops import Applied
from xyntra_ep.wording import counted

_programs = itertools.count()  # of the process: bodies of control flow and other sessions write into the same folder


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What one pass did to an island. ``before`` and ``after``: how many nodes compute something, graph nodes before the trace.

    ``fused``: graph nodes that one node stands for now and none did before; ``changed``: those of other nodes that were made
    anew; ``removed``: those that no node stands for any more, because they cost nothing or are known; ``refused``: why what
    looked like the pattern of the pass is none; ``rules``: those that were applied, with the graph nodes of what they were
    applied to.
    """

    name: str
    before: int
    after: int
    fused: tuple[tuple[NodeId, ...], ...]
    changed: tuple[NodeId, ...]
    removed: tuple[NodeId, ...]
    refused: tuple[Reason, ...] = ()
    rules: tuple[tuple[str, tuple[NodeId, ...]], ...] = ()

    @staticmethod
    def of_row(row: Mapping[str, Any]) -> Step:
        """From what `dataclasses.asdict` and JSON made of it."""
        fused = tuple(tuple(map(NodeId, group)) for group in row["fused"])
        changed, removed = (tuple(map(NodeId, row[name])) for name in ("changed", "removed"))
        return Step(
            name=str(row["name"]),
            before=int(row["before"]),
            after=int(row["after"]),
            fused=fused,
            changed=changed,
            removed=removed,
            refused=tuple(map(Reason.of_row, row["refused"])),
            rules=tuple((str(rule), tuple(map(NodeId, nodes))) for rule, nodes in row["rules"]),
        )


def traced(name: str, members: Sequence[NodeId], after: Snapshot) -> Step:
    """The step from graph nodes to lazy ones."""
    removed = _sorted(set(members) - after.sources)
    return Step(name=name, before=len(members), after=after.work, fused=(), changed=(), removed=removed)


def step(name: str, before: Snapshot, after: Snapshot, refused: Sequence[Reason], rules: Sequence[Applied]) -> Step:
    """What lies between two snapshots of a draft, what the pass ``refused``, and the ``rules`` that it applied."""
    old = {row.what for row in before.rows}
    made = [row.sources for row in after.rows if row.what not in old]
    known = {row.sources for row in before.rows}
    fused = tuple(dict.fromkeys(_sorted(sources) for sources in made if len(sources) > 1 and sources not in known))
    changed: set[NodeId] = set()
    if before.lowered == after.lowered:  # else all of them are
        changed = set[NodeId]().union(*made) - set[NodeId]().union(*fused)
    removed = _sorted(before.sources - after.sources)
    return Step(
        name=name,
        before=before.work,
        after=after.work,
        fused=fused,
        changed=_sorted(changed),
        removed=removed,
        refused=tuple(refused),
        rules=tuple((rule, _sorted(map(NodeId, nodes))) for rule, nodes in rules),
    )


def _sorted(nodes: Iterable[NodeId]) -> tuple[NodeId, ...]:
    return tuple(sorted(nodes))


class Dump:
    """Into ``folder``, as far as it can be written: ``problem`` says why not. ``steps``: by island, of its last program."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.problem = ""
        self.steps: dict[str, list[Step]] = {}

    def watch(self, graph: Graph, members: Sequence[NodeId], island: str) -> Watch:
        """Who looks at ``island``, which consists of ``members``, after each pass."""
        number = next(_programs)
        steps = self.steps[island] = []
        titles = {n: graph.nodes[n].title for n in members}
        last: Snapshot | None = None
        told = ruled = 0  # refusals and rules of earlier passes

        def watch(name: str, draft: Draft) -> None:
            nonlocal last, told, ruled
            now = snapshot(draft)
            file = f"{number:03}-{island}-{len(steps)}-{name}"
            head = f"{graph.name or 'graph'}, {island}, after {name}: {counted(now.work, 'op' if now.lowered else 'node')}"
            self._write(f"{file}.txt", f"{head}\n{now.text(titles)}\n")
            self._write(f"{file}.dot", f"{now.dot(titles)}\n")
            rules = draft.rules if draft.lowered is None else draft.lowered.rules
            steps.append(
                traced(name, members, now) if last is None else step(name, last, now, draft.refused[told:], rules[ruled:])
            )
            last, told, ruled = now, len(draft.refused), len(rules)

        return watch

    def _write(self, name: str, text: str) -> None:
        """A dump that fails must not fail the session."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            (self._folder / name).write_text(text, encoding="utf-8")
        except OSError as error:
            self.problem = f"dump_dir cannot be written ({error})"
