"""Simplifies expressions by a set of rules.

    Algebra(RULES).simplify(x * 0.5 * (erf(x / 1.414) + 1))  ->  gelu_erf(x), by the rules ("gelu.erf",)

An expression in which no rule can match, because an operation that all of them need is not there, is returned at once; forms are
searched only beside rules that can match.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from xyntra_ep.errors import ConfigError
from xyntra_ep.fusion.egraph.extract import Extraction
from xyntra_ep.fusion.egraph.formula import NAME, NUMBER, ROW_KINDS, SOFTMAX
from xyntra_ep.fusion.egraph.graph import EGraph
from xyntra_ep.fusion.egraph.rule import ALL_SPECIAL, ARITHMETIC, Compiled, Rule, compiled
from xyntra_ep.fusion.egraph.saturate import saturate
from xyntra_ep.tracea.core_ir.expr import Expr, walk
from xyntra_ep.tracea.core_ir.ops import Stage

_REMEMBERED = 4096  # expressions: the layers of a model have the same ones


class Simplified(NamedTuple):
    """An expression, and the names of the rules by which it came about."""

    expr: Expr
    rules: tuple[str, ...]


class Algebra:
    """``strict``: only rules that keep zero, infinity and NaN. Raises ConfigError for a rule that is none, or a name that comes
    twice."""

    def __init__(self, rules: Iterable[Rule], *, strict: bool = False) -> None:
        self._goals: list[Compiled] = []
        self._forms: list[Compiled] = []
        names: set[str] = set()
        for rule in rules:
            if rule.name in names:
                raise ConfigError(f"rule {rule.name} is there twice", where=rule.source or "rules")
            names.add(rule.name)
            if rule.keeps >= ALL_SPECIAL or not strict:
                (self._forms if rule.form else self._goals).append(compiled(rule))
        self._known: dict[Expr, Simplified] = {}

    def simplify(self, root: Expr) -> Simplified:
        """The cheapest expression that equals ``root``; itself, where no rule applies."""
        found = self._known.get(root)
        if found is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            found = self._known[root] = self._simplified(root)
        return found

    def _simplified(self, root: Expr) -> Simplified:
        as_it_is = Simplified(root, ())
        goals = self._possible({e.attr for e in walk(root) if e.kind == "call"})
        if not goals:
            return as_it_is
        graph = EGraph()
        top = graph.add_expr(root)
        applied = saturate(graph, goals)
        if not any(each.rule.name in applied for each in goals if not each.rule.form):
            return as_it_is
        extraction = Extraction(graph)
        found = extraction.expr(top)
        # what a rule takes away leaves no node that it made
        taken_away = {each.rule.name for each in goals if each.replacement.op in (NAME, NUMBER) and not each.rule.form}
        rules = tuple(sorted(extraction.rules or applied & taken_away))
        return Simplified(found, rules) if found is not None and rules and found is not root else as_it_is

    def softmax_of(self, stages: Sequence[Stage], body: Expr, inner: frozenset[int]) -> Simplified | None:
        """What ``body`` is the softmax of, along the axes ``inner`` of a row; None where it is none. Accumulator j of ``body``
        and of later stages is the result of ``stages[j]``."""
        bodies = [*(stage.body for stage in stages), body]
        ops = {e.attr for b in bodies for e in walk(b) if e.kind == "call"}
        goals = self._possible(ops | ROW_KINDS.keys())
        if all(SOFTMAX not in each.makes for each in goals):
            return None
        graph = EGraph(inner)
        results: dict[int, int] = {}
        for j, stage in enumerate(stages):
            c = graph.add_row(stage.kind, graph.add_expr(stage.body, results))
            if c is not None:
                results[j] = c
        top = graph.add_expr(body, results)
        saturate(graph, goals)
        extraction = Extraction(graph)
        found = (node for node in graph.nodes(top) if node.op == SOFTMAX)
        operands = [x for node in found if (x := extraction.expr(node.args[0])) is not None]
        if not operands:
            return None
        names = {origin.rule for node, origin in graph.nodes(top).items() if node.op == SOFTMAX}
        return Simplified(min(operands, key=extraction.signature), tuple(sorted(names)))

    def _possible(self, ops: set[str]) -> list[Compiled]:
        """The rules that can match where there are ``ops``, and what these rules make, with the forms beside them; none without a
        rule that is no form."""
        have = set(ops)
        possible: list[Compiled] = []
        waiting = self._goals
        while fits := [e for e in waiting if e.needs <= have and (not e.arithmetic or have & ARITHMETIC)]:
            possible += fits
            have |= {op for each in fits for op in each.makes}
            waiting = [each for each in waiting if each not in fits]
        if not possible:
            return []
        return [*possible, *(form for form in self._forms if form.needs <= have)]
