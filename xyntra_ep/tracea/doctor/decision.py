"""Which variant computes an op, and why not the others. A pure function of the op, the machine and stored tuning results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.tracea.core_ir.dims import expected, product, typical
from xyntra_ep.tracea.core_ir.ops import CoreOp
from xyntra_ep.tracea.kernels.variant import FALLBACK_RANK, BuildContext, Config, Phase, TempBuffer, Variant


class Evidence(StrEnum):
    MEASURED = "measured"  # a stored tuning result
    ESTIMATE = "estimate"  # the variant's analytic default and cost


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuned:
    """What tuning has found to be best for an op on this machine: ``ratio`` times as fast as what is chosen without it."""

    variant: str
    config: Config
    ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerUp:
    """The variant that an op would get without the one that it has, and what it is estimated to take."""

    variant: str
    cost_ns: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The choice for one op. ``rejected``: every other variant's name and the reason. ``runner_up``: of those that admit it the
    first; None where the chosen one alone does."""

    chosen: Variant[Any]
    config: Config
    cost_ns: float
    evidence: Evidence
    rejected: tuple[tuple[str, str], ...]
    runner_up: RunnerUp | None = None


def decide(
    op: CoreOp,
    context: BuildContext,
    variants: Sequence[Variant[Any]],
    tuned: Tuned | None = None,
    slack: float = 1.0,
) -> Decision:
    """The cheapest variant that admits ``op``; equal costs go to the lower rank, then to the name. Fallbacks (rank of
    ``FALLBACK_RANK`` and above) are only for ops that nothing else admits: estimates for run-time sizes can be far off.

    ``tuned``: a measured result, which is taken whatever is estimated, unless its variant or its configuration is no longer
    to be had; its cost is what is estimated without it, less what was gained. ``slack``: without one, of the variants that are
    estimated to take at most so many times as long as the cheapest, the one that holds the least memory is taken. Raises
    UnsupportedError with every variant's reason when none admits the op.
    """
    admitted: list[tuple[float, int, str, Variant[Any], Config]] = []
    rejected: list[tuple[str, str]] = []
    for variant in variants:
        if (why := variant.admits(op, context)) is not None:
            rejected.append((variant.name, why))
            continue
        config = variant.default(op, context)
        cost_ns = expected(partial(variant.cost_ns, op, config, context))
        admitted.append((cost_ns, variant.rank, variant.name, variant, config))
    if not admitted:
        reasons = "; ".join(f"{name}: {why}" for name, why in rejected) or "there is no variant for it"
        raise UnsupportedError(f"no kernel for {type(op).__name__} ({reasons})", where=op.label)
    admitted.sort(key=lambda row: (row[1] >= FALLBACK_RANK, *row[:3]))
    cost_ns, _, _, chosen, config = admitted[0]
    evidence = Evidence.ESTIMATE
    measured = next((row for row in admitted if tuned is not None and row[2] == tuned.variant), None)
    if tuned is not None and measured is not None and not refusal(tuned.config, measured[3], op, context):
        admitted.remove(measured)
        admitted.insert(0, measured)
        cost_ns, chosen, config, evidence = cost_ns / max(1.0, tuned.ratio), measured[3], tuned.config, Evidence.MEASURED
    held: dict[str, int] = {}
    if slack > 1.0 and evidence is Evidence.ESTIMATE:
        near = [row for row in admitted if row[0] <= slack * cost_ns and (row[1] < FALLBACK_RANK or row is admitted[0])]
        if len(near) > 1:
            held = {name: held_bytes(variant, op, config, context) for _, _, name, variant, config in near}
            least = min(near, key=lambda row: held[row[2]])  # the cheapest of those that hold as little
            admitted.remove(least)
            admitted.insert(0, least)
            cost_ns, _, _, chosen, config = least
    for other_ns, rank, name, _, _ in admitted[1:]:
        if evidence is Evidence.MEASURED:
            why = f"{chosen.name} was measured to be the fastest"
        elif name in held:
            why = f"holds {held[name]} bytes against {held[chosen.name]}"
        elif rank >= FALLBACK_RANK > chosen.rank:
            why = "only for what nothing else admits"
        elif other_ns == cost_ns:
            why = "ranks lower at equal cost"
        else:
            why = f"{other_ns:.0f} ns against {cost_ns:.0f} ns"
        rejected.append((name, why))
    return Decision(
        chosen=chosen,
        config=config,
        cost_ns=cost_ns,
        evidence=evidence,
        rejected=tuple(rejected),
        runner_up=next((RunnerUp(variant=name, cost_ns=other_ns) for other_ns, _, name, _, _ in admitted[1:]), None),
    )


def held_bytes(variant: Variant[Any], op: CoreOp, config: Config, context: BuildContext) -> int:
    """What a kernel of ``op`` holds: between runs packed weights, or constants that it reads as they are, and buffers of its own
    during them. At typical sizes."""
    held: dict[object, int] = {}
    for call in variant.build(op, config, context):
        for buffer in call.buffers:
            if isinstance(buffer, TempBuffer):
                held[buffer.name] = typical(buffer.size_bytes)
            elif call.phase is Phase.RUN and context.is_constant(buffer.value):
                value = context.program.values[buffer.value]
                held[buffer.value] = typical(product(value.shape)) * value.dtype.bytes
    return sum(held.values())


def refusal(config: Config, variant: Variant[Any], op: CoreOp, context: BuildContext) -> str:
    """Why a configuration is not one of the variant's search space for an op; empty for one that is."""
    axes = {axis.name: axis.values for axis in variant.space(op, context)}
    if config.keys() != axes.keys():
        return f"it wants {', '.join(axes) or 'nothing'}"
    wrong = [name for name, values in axes.items() if config[name] not in values]
    return f"{wrong[0]} cannot be {config[wrong[0]]}" if wrong else variant.refuses(op, config, context)
