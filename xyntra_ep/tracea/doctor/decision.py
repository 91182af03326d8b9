"""Which variant computes an op, and why not the others. A pure function of the op, the machine and stored tuning results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.tracea.core_ir.dims import expected
from xyntra_ep.tracea.core_ir.ops import CoreOp
from xyntra_ep.tracea.kernels.variant import FALLBACK_RANK, BuildContext, Config, Variant


class Evidence(StrEnum):
    MEASURED = "measured"  # a stored tuning result
    ESTIMATE = "estimate"  # the variant's analytic default and cost


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuned:
    """A stored tuning result of one variant on this machine at this shape."""

    config: Config
    time_ns: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The choice for one op. ``rejected``: every other variant's name and the reason."""

    chosen: Variant[Any]
    config: Config
    cost_ns: float
    evidence: Evidence
    rejected: tuple[tuple[str, str], ...]


def decide(
    op: CoreOp,
    context: BuildContext,
    variants: Sequence[Variant[Any]],
    tuned: Mapping[str, Tuned] | None = None,
) -> Decision:
    """The cheapest variant that admits ``op``; equal costs go to the lower rank, then to the name. Fallbacks (rank of
    ``FALLBACK_RANK`` and above) are only for ops that nothing else admits: estimates for run-time sizes can be far off.

    ``tuned`` holds measured results by variant name; one whose configuration has left the variant's search
    space is ignored. Raises UnsupportedError with every variant's reason when none admits the op.
    """
    admitted: list[tuple[float, int, str, Variant[Any], Config, Evidence]] = []
    rejected: list[tuple[str, str]] = []
    for variant in variants:
        if (why := variant.admits(op, context)) is not None:
            rejected.append((variant.name, why))
            continue
        result = (tuned or {}).get(variant.name)
        if result is not None and _in_space(result.config, variant, op, context):
            config, cost_ns, evidence = result.config, result.time_ns, Evidence.MEASURED
        else:
            config, evidence = variant.default(op, context), Evidence.ESTIMATE
            cost_ns = expected(partial(variant.cost_ns, op, config, context))
        admitted.append((cost_ns, variant.rank, variant.name, variant, config, evidence))
    if not admitted:
        reasons = "; ".join(f"{name}: {why}" for name, why in rejected) or "there is no variant for it"
        raise UnsupportedError(f"no kernel for {type(op).__name__} ({reasons})", where=op.label)
    admitted.sort(key=lambda row: (row[1] >= FALLBACK_RANK, *row[:3]))
    cost_ns, _, _, chosen, config, evidence = admitted[0]
    for other_ns, rank, name, _, _, _ in admitted[1:]:
        if rank >= FALLBACK_RANK > chosen.rank:
            why = "only for what nothing else admits"
        elif other_ns == cost_ns:
            why = "ranks lower at equal cost"
        else:
            why = f"{other_ns:.0f} ns against {cost_ns:.0f} ns"
        rejected.append((name, why))
    return Decision(chosen=chosen, config=config, cost_ns=cost_ns, evidence=evidence, rejected=tuple(rejected))


def _in_space(config: Config, variant: Variant[Any], op: CoreOp, context: BuildContext) -> bool:
    axes = {axis.name: axis.values for axis in variant.space(op, context)}
    return config.keys() == axes.keys() and all(config[name] in values for name, values in axes.items())
