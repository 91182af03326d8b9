"""Linear operations of a known kind on arrays: `Context().launch(OperatorTopology(kind=LowRank(16)), x, A, B)`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from xyntra_ep.frameworks.graph_draft import GraphDraft
from xyntra_ep.frameworks.ops.arrays import Shape
from xyntra_ep.frameworks.ops.functions import Call, matmul
from xyntra_ep.tracea.interface.context import Context
from xyntra_ep.tracea.interface.topology.kinds import Dense, LowRank, OperatorTopology

_LAST = (-1,)


def launch(context: Context, op: OperatorTopology, operands: Sequence[Any], *, out: Any = None) -> Any:
    """The way is what ``context`` plans for these sizes; each is compiled once for any number of rows."""
    if isinstance(op.kind, Dense):
        if len(operands) != 2:
            raise Call("launch", operands).error(f"launch({op.kind}): wants x and W, got {len(operands)} operands")
        x, w = operands
        return matmul(x, w, out=out)
    return _low_rank(context, op, op.kind, operands, out)


def _low_rank(context: Context, op: OperatorTopology, kind: LowRank, operands: Sequence[Any], out: Any) -> Any:
    call = Call("low_rank", operands)
    if len(operands) not in (3, 4):
        raise call.error(f"launch({kind}): wants x, A, B and perhaps W, got {len(operands)} operands")
    x, a, b, *rest = (call.shape(i) for i in range(len(operands)))
    if not x or len(a) != 2 or len(b) != 2 or a != (x[-1], kind.rank) or b[0] != kind.rank:
        raise call.error(f"launch({kind}): x {x}, A {a} and B {b} do not fit")
    n = b[1]
    if rest and rest[0] != (x[-1], n):
        raise call.error(f"launch({kind}): W {rest[0]} does not fit x {x} and B {b}")
    one = _is_one(context, op, x, n)

    def build(d: GraphDraft, names: Sequence[str | None]) -> str:
        x, a, b, *rest = call.promoted(d, names)
        found = d.node("MatMul", x, d.node("MatMul", a, b)) if one else d.node("MatMul", d.node("MatMul", x, a), b)
        return d.node("Add", d.node("MatMul", x, rest[0]), found) if rest else found

    def reference(torch: Any) -> Any:
        return lambda x, a, b, *w: torch.matmul(torch.matmul(x, a), b) + (torch.matmul(x, w[0]) if w else 0)

    fixed = (_LAST, *([None] * (len(operands) - 1)))
    return call.run(build, (*x[:-1], n), out, fixed=fixed, reference=reference, settings=(one,))


def _is_one(context: Context, op: OperatorTopology, x: Shape, n: int) -> bool:
    """Whether A B is made first, by the plan for so many rows."""
    m, k = math.prod(x[:-1]), x[-1]
    return bool(m and n and k) and context.plan_topology(op, m=m, n=n, k=k, constant=False).chosen != "two products"
