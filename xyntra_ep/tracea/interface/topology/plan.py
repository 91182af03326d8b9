"""How a linear operation of a known kind should be carried out, and what that leaves of a search.

    Context().plan_topology(OperatorTopology(kind=LowRank(16)), m=128, n=768, k=768)
                                                              two products in a row, or one with A B; why, and by which kernels

The kind is known before anything is tuned: `TopologyPlan.problems` are what is left to tune, without configurations of which
another one has the same tiles.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from xyntra_ep.errors import ConfigError
from xyntra_ep.options import Precision
from xyntra_ep.tracea.core_ir.expr import acc
from xyntra_ep.tracea.core_ir.ops import Gemm
from xyntra_ep.tracea.doctor.decision import Decision
from xyntra_ep.tracea.interface.named_ops import Draft
from xyntra_ep.tracea.interface.precision import PRODUCTS
from xyntra_ep.tracea.interface.topology.kinds import WHERE, LowRank, OperatorTopology
from xyntra_ep.tracea.interface.tuning.problem import Problem

if TYPE_CHECKING:
    from xyntra_ep.tracea.interface.context import Context


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyPlan:
    """``chosen``: one of the ways; ``costs``: of each, in ns on one core; ``decisions`` and ``problems``: of its products,
    as they are decided untuned, and for a tuner; ``rejected``: the other ways, with the reason."""

    topology: OperatorTopology
    sizes: Mapping[str, int]
    chosen: str
    costs: Mapping[str, float]
    decisions: tuple[Decision, ...]
    problems: tuple[Problem, ...]
    rejected: tuple[tuple[str, str], ...]

    @property
    def cost_ns(self) -> float:
        return self.costs[self.chosen]

    def __str__(self) -> str:
        sizes = " ".join(f"{name}={size}" for name, size in self.sizes.items())
        lines = [f"{self.topology.kind} {sizes}: {self.chosen}, {self.cost_ns / 1000:.1f} us on one core"]
        for decision, problem in zip(self.decisions, self.problems, strict=True):
            config = " ".join(f"{name}={value}" for name, value in decision.config.items())
            lines.append(f"  {'x'.join(map(str, _sizes_of(problem)))}: {decision.chosen.name} {config}".rstrip())
        return "\n".join(lines + [f"  not {name}: {why}" for name, why in self.rejected])


def plan_topology(
    context: Context, topology: OperatorTopology, *, m: int, n: int, k: int, precision: str = "fp32", constant: bool = True
) -> TopologyPlan:
    """The cheapest way by the estimates that sessions choose kernels by. ``constant``: weights are known beforehand, so that they
    are packed, and A B costs nothing; else a run multiplies that, too. Raises ConfigError for sizes that are none."""
    for name, size in (("m", m), ("n", n), ("k", k)):
        if size < 1:
            raise ConfigError(f"{name}={size} is no size", where=WHERE, hint="it wants an integer of at least 1")
    found: dict[str, tuple[float, list[Decision], list[Problem]]] = {}
    for name, products in topology.ways(m, n, k).items():
        made = list(products)
        if not constant and isinstance(topology.kind, LowRank) and len(made) == 1:
            made.insert(0, (k, n, topology.kind.rank))
        problems = [_problem(*sizes, precision, constant) for sizes in made]
        decisions = [context.estimate(p.op, p.program, p.constants) for p in problems]
        found[name] = (sum(d.cost_ns for d in decisions), decisions, problems)
    chosen = min(found, key=lambda name: found[name][0])
    cost, decisions, problems = found[chosen]
    others = {name: ns for name, (ns, _, _) in found.items() if name != chosen}
    return TopologyPlan(
        topology=topology,
        sizes={"m": m, "n": n, "k": k},
        chosen=chosen,
        costs={name: ns for name, (ns, _, _) in found.items()},
        decisions=tuple(decisions),
        problems=tuple(problems),
        rejected=tuple((name, f"{ns / 1000:.1f} us against {cost / 1000:.1f} us") for name, ns in others.items()),
    )


def _problem(m: int, n: int, k: int, precision: str, constant: bool) -> Problem:
    draft = Draft(PRODUCTS[Precision(precision.lower())])
    b = draft.weights(k, n) if constant else draft.input(k, n)
    op = Gemm(inputs=(draft.input(m, k), b), epilogue=acc(0), output=draft.output(m, n), product=draft.product)
    program = draft.program
    program.ops.append(op)
    program.sources.append(())
    program.constants.extend(["const0"] if constant else [])
    return replace(Problem(program=program, sizes={}), covers={"columns": n})


def _sizes_of(problem: Problem) -> tuple[int, ...]:
    a, b = problem.op.inputs[:2]
    return tuple(int(size) for size in (a.shape[-2], a.shape[-1], b.shape[-1]) if isinstance(size, int))
