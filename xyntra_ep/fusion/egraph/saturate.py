"""Applies rules until nothing new comes, or until there is too much.

All matches of a round are found before one of them is applied, and a round that would be too large is not begun: so what comes
out does not depend on the order of the rules.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from xyntra_ep.fusion.egraph.formula import NAME, NUMBER, Term
from xyntra_ep.fusion.egraph.graph import BY_FORM, BY_RULE, EGraph, Origin
from xyntra_ep.fusion.egraph.rule import ROOT, Compiled

# Of all our rules, gelu.tanh needs most: it is found in six rounds, of which the largest has 265 matches. Numbers that forms
# multiply and divide by each other have no end, and every layer of a quantised model has some.
ROUNDS = 9
MOST_NODES = 4000
MOST_MATCHES = 1500  # of a round

Bound = dict[str, int]  # names of a pattern: classes


def saturate(graph: EGraph, rules: Sequence[Compiled]) -> set[str]:
    """The names of the rules that were applied."""
    applied: set[str] = set()
    done: set[tuple[str, int, tuple[int, ...]]] = set()
    for _ in range(ROUNDS):
        found = _round(graph, rules, done)
        if found is None:
            break
        before = graph.version
        for each, c, bound in found:
            origin = Origin(BY_FORM if each.rule.form else BY_RULE, each.rule.name)
            graph.union(c, graph.add_term(each.replacement, bound, origin))
        graph.rebuild()
        applied |= {each.rule.name for each, _, _ in found}
        if graph.version == before or graph.size > MOST_NODES:
            break
    return applied


def _round(
    graph: EGraph, rules: Sequence[Compiled], done: set[tuple[str, int, tuple[int, ...]]]
) -> list[tuple[Compiled, int, Bound]] | None:
    """What is to be applied now; None for too much."""
    by_op: dict[str, list[int]] = {}
    for c, nodes in graph.classes():
        for op in dict.fromkeys(node.op for node in nodes):
            by_op.setdefault(op, []).append(c)
    found: list[tuple[Compiled, int, Bound]] = []
    for each in rules:
        for c in by_op.get(each.pattern.op, ()):
            if graph.facts(c).dtype is not each.pattern.dtype:
                continue
            for bound in matches(graph, each.pattern, c, {}, each.rule.tolerance):
                key = (each.rule.name, c, tuple(bound.values()))
                if key in done or not _holds(graph, each, c, bound):
                    continue
                done.add(key)
                found.append((each, c, bound))
            if len(found) > MOST_MATCHES:
                return None
    return found


def _holds(graph: EGraph, each: Compiled, c: int, bound: Bound) -> bool:
    return all(guard(graph.facts(c if name == ROOT else bound[name])) for _, guard, name in each.guards)


def matches(graph: EGraph, term: Term, c: int, bound: Bound, tolerance: float) -> Iterator[Bound]:
    """The ways in which class ``c`` is ``term``, each with what its names stand for beyond ``bound``."""
    if term.op == NAME:
        known = bound.get(term.name)
        if known is not None:
            if graph.find(known) == c:
                yield bound
            return
        facts = graph.facts(c)
        if facts.dtype is term.dtype and (not term.is_constant or isinstance(facts.constant, float)):
            yield {**bound, term.name: c}
        return
    if term.op == NUMBER:
        value = graph.facts(c).constant
        if isinstance(value, float) and math.isclose(value, term.value, rel_tol=tolerance, abs_tol=1e-12 if tolerance else 0.0):
            yield bound
        return
    for node in graph.nodes(c):
        if node.op == term.op:
            yield from _operands(graph, term.args, node.args, bound, tolerance)


def _operands(
    graph: EGraph, terms: tuple[Term, ...], classes: tuple[int, ...], bound: Bound, tolerance: float
) -> Iterator[Bound]:
    if not terms:
        yield bound
        return
    for found in matches(graph, terms[0], graph.find(classes[0]), bound, tolerance):
        yield from _operands(graph, terms[1:], classes[1:], found, tolerance)
