"""Elementwise results that are read repeated to sizes which only a run tells are computed at those sizes.

    mask [b2, 1, 1, t2] = (1 - m) * lowest;  scores [b, h, s, t] + mask in every layer, b2 is 1 or b, t2 is 1 or t
 -> mask [b, 1, 1, t], whose m is read with strides of 0 or not

One small kernel then sees the strides that a run finds; what reads the result reads vectors instead of gathering elements, and is
the kernel that a mask of known sizes has.
"""

from __future__ import annotations

from collections.abc import Mapping

from xyntra_ep.fusion.checks import Checks
from xyntra_ep.fusion.egraph.body_cost import body_cost
from xyntra_ep.fusion.passes._pass import Fact, Pass
from xyntra_ep.fusion.scheduling.dag import Dag
from xyntra_ep.fusion.tensor import Expand, Leaf, Map, Tensor, View
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dims import Dim, Size
from xyntra_ep.tracea.core_ir.expr import Expr

# Per element, of nodes one above the other: more are done once, also where a run repeats their results.
MOST_OPERATIONS = 12


def settle_repeats(dag: Dag, checks: Checks) -> bool:
    """Compute at full size what all readers see repeated to one size; true when there was such a result."""
    changed = False
    for node in dag.order:
        if not isinstance(node, Map) or dag.is_output(node):
            continue
        readers = dag.uses[id(node)]
        repeats = [(r, r.base, r.step) for r in readers if isinstance(r, View) and isinstance(r.step, Expand)]
        if not repeats or len(repeats) < len(readers):
            continue
        narrow = dag.get(repeats[0][1])
        sizes = {_extents(narrow, step) for _, _, step in repeats}
        if len(sizes) > 1 or sizes == {narrow.shape}:
            continue
        whole = _Repeater(dag, checks).result(narrow, sizes.pop())
        if whole is not None:
            for view, _, step in repeats:
                dag.replace(view, whole.expand(step.shape))
            changed = True
    if changed:
        dag.refresh()
    return changed


def _extents(narrow: Tensor, step: Expand) -> tuple[Size, ...]:
    """The sizes of ``narrow`` where it is repeated to what a run tells; what is known to be repeated stays 1."""
    each = zip(narrow.shape, step.shape, step.factors, strict=True)
    return tuple(want if isinstance(factor, Dim) else have for have, want, factor in each)


class _Unfit(Exception):
    """The element does not come from one place for all that it is repeated to."""


class _Repeater:
    """Copies of elementwise nodes over larger domains."""

    def __init__(self, dag: Dag, checks: Checks) -> None:
        self._dag = dag
        self._checks = checks

    def result(self, t: Tensor, extents: tuple[Size, ...], cost: int = 0) -> Tensor | None:
        """The Map of ``t`` over ``extents``; None where it cannot or should not be computed there. ``cost``: of what reads it."""
        node = t.node
        if not isinstance(node, Map) or node.keep:
            return None
        cost += max(1, body_cost(node.body))
        if cost > MOST_OPERATIONS:
            return None
        if not all(self._is_elementwise(o) for o in self._dag.operands(node)):
            return None
        moved = {i: want for i, (have, want) in enumerate(zip(t.shape, extents, strict=True)) if have != want}
        inputs: list[Tensor] = []
        try:
            body = self._body(node, t.shape, moved, inputs, cost)
        except _Unfit:
            return None
        return Tensor(extents, t.dtype, Map(inputs=tuple(inputs), body=body, sources=node.sources))

    def _is_elementwise(self, t: Tensor) -> bool:
        """Not the result of a product or a reduction, which would lose what finishes it."""
        while isinstance(t.node, View):
            t = self._dag.get(t.node.base)
        return isinstance(t.node, (Leaf, Map))

    def _body(self, node: Map, shape: tuple[Size, ...], moved: Mapping[int, Size], inputs: list[Tensor], cost: int) -> Expr:
        """The body of ``node`` for axes whose extents are ``moved``, over new ``inputs``."""

        def leaf(e: Expr) -> Expr | None:
            if e.kind == "axis" and e.attr in moved:
                raise _Unfit
            if e.kind != "load":
                return None
            t = self._dag.get(node.inputs[e.attr])
            extents = list(t.shape)
            index: list[Expr] = []
            for j, position in enumerate(e.args):
                if position.kind == "axis" and position.attr in moved:
                    if extents[j] != shape[position.attr]:
                        raise _Unfit
                    extents[j] = moved[position.attr]
                    index.append(position)
                else:
                    index.append(E.rewrite(position, leaf))
            inputs.append(self._operand(node, t, tuple(extents), cost))
            return E.load(len(inputs) - 1, *index, dtype=e.dtype)

        return E.rewrite(node.body, leaf)

    def _operand(self, reader: Map, t: Tensor, extents: tuple[Size, ...], cost: int) -> Tensor:
        alone = all(r is reader for r in self._dag.uses.get(id(t.node), [])) and not self._dag.is_output(t.node)
        repeated = self.result(t, extents, cost) if alone and extents != t.shape else None
        return repeated if repeated is not None else self._checks.fit(t, extents)


PASS = Pass(
    name="settle_repeats",
    doc="elementwise results that are repeated to sizes of a run are computed at those sizes",
    requires=(Fact.TENSORS,),
    establishes=(Fact.REPEATS,),
    run=lambda draft: settle_repeats(draft.dag, draft.context.checks),
)
