"""`plan_kernel`: ask Tracea what it would do with one op, in words, without a graph.

Context().plan_kernel("flash_attention_2", precision="BF16")      the variant, the backend, the configuration, and what
                                                                  was not taken and why
Context().plan_kernel("gemm", m=128, architecture="h200")         for a GPU that need not be here: compiled, not run
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xyntra_ep.errors import ConfigError, did_you_mean
from xyntra_ep.options import AUTO, Goal, Precision
from xyntra_ep.tracea.backends import BACKENDS, DeviceTarget
from xyntra_ep.tracea.backends.cpu import Processor
from xyntra_ep.tracea.core_ir.dims import evaluate
from xyntra_ep.tracea.core_ir.ops import ValueKind
from xyntra_ep.tracea.doctor.decision import Evidence
from xyntra_ep.tracea.interface.automatic import automatic
from xyntra_ep.tracea.interface.compiled import DeviceKernel, compiled_kernels
from xyntra_ep.tracea.interface.devices import known_target
from xyntra_ep.tracea.interface.index_width import limit_elements
from xyntra_ep.tracea.interface.named_ops import Draft, op_named
from xyntra_ep.tracea.interface.precision import agree
from xyntra_ep.tracea.kernels.variant import Phase

if TYPE_CHECKING:
    from xyntra_ep.tracea.interface.context import Context

_WHERE = "plan_kernel"
Reasons = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedLaunch:
    """``blocks`` of a kernel, on a device of so many multiprocessors (or compute units)."""

    kernel: DeviceKernel
    blocks: int
    units: int

    @property
    def waves(self) -> float:
        """How often the device is filled; 0 where that is not known."""
        held = self.kernel.occupancy
        return self.blocks / (self.units * held.blocks) if held is not None and held.blocks else 0.0

    def __str__(self) -> str:
        waves = f", {self.waves:.3g} waves" if self.waves else ""
        return f"{self.kernel.symbol}: {self.blocks} {self.kernel}{waves}"


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelPlan:
    """An answer. ``assumed``: the sizes that were not given, with what they are of; ``rejected``: variants, precisions and
    backends that were not taken, with the reason; ``launches``: of a run, on a device; ``goal``: what the choice is for, and
    ``reasons``: by which rules it was made (`doctor.policy`)."""

    op: str
    sizes: Mapping[str, int]
    assumed: tuple[str, ...]
    assumed_of: str
    variant: str
    backend: str
    device: str
    precision: str
    config: Mapping[str, int]
    cost_ns: float
    evidence: Evidence
    launches: tuple[PlannedLaunch, ...]
    rejected: Reasons
    goal: str
    reasons: Reasons

    @property
    def title(self) -> str:
        """The decision in a line."""
        sizes = " ".join(f"{name}={value}" for name, value in self.sizes.items())
        return f"{self.op} {sizes}: {self.variant} on {self.backend} ({self.device}), {self.precision}"

    def __str__(self) -> str:
        config = " ".join(f"{name}={value}" for name, value in self.config.items()) or "nothing to choose"
        lines = [
            self.title,
            f"  configuration: {config}",
            f"  cost: {self.cost_ns / 1000:.1f} us{'' if self.launches else ' on one core'} ({self.evidence})",
        ]
        if self.assumed:
            lines.append(f"  not given: {', '.join(self.assumed)}; taken from {self.assumed_of}")
        if self.goal != Goal.BALANCED:
            lines += [f"  policy={self.goal}, {name}: {why}" for name, why in self.reasons]
        lines += [f"  launch {launch}" for launch in self.launches]
        return "\n".join(lines + [f"  not {name}: {why}" for name, why in self.rejected])


def plan_kernel(
    context: Context,
    op: str,
    *,
    precision: str,
    backend: str | None = None,
    architecture: str | None = None,
    sizes: Mapping[str, int],
) -> KernelPlan:
    """What ``context`` would do for ``op``, a name or an alias of `named_ops`; sizes that are not given are usual ones.

    ``backend``: as the option names it; without it the context's device, or the one that a session which names none looks at
    first: it takes it for a model that gains there, after trials. ``architecture``: a GPU of `doctor.known_gpus`, which need not
    be here, by name (h200) or architecture (sm_90). Nothing is run. Raises ConfigError for what does not exist, UnsupportedError
    when no variant admits the op.
    """
    named = op_named(op)
    all_sizes = named.complete(sizes)
    device, passed = _device(context, backend, architecture)
    context = context.on(device)
    agreed = agree(_precision(precision), context)
    draft = Draft(agreed.product)
    built = named.build(draft, **all_sizes)
    known = frozenset(i for i, v in enumerate(draft.program.values) if v.kind is ValueKind.CONST)
    decision = context.estimate(built, draft.program, known)
    launched: Sequence[PlannedLaunch] = ()
    if device is not None:
        limit_elements(draft.program)
        launches = context.builder.build(built, draft.program, known).launches
        run = [(x.source, evaluate(x.call.units, {})) for x in launches if x.call.phase is Phase.RUN]
        run = [(source, blocks) for source, blocks in run if blocks]  # of others, sizes leave one out
        made = compiled_kernels(context, [source for source, _ in run])
        launched = [
            PlannedLaunch(kernel=kernel, blocks=blocks, units=device.gpu.units)
            for kernel, (_, blocks) in zip(made, run, strict=True)
        ]
    shortfall = ((f"precision {precision.lower()}", agreed.shortfall),) if agreed.shortfall else ()
    return KernelPlan(
        op=op,
        sizes=all_sizes,
        assumed=tuple(name for name in all_sizes if name not in sizes),
        assumed_of=named.of,
        variant=decision.chosen.name,
        backend=Processor.name if device is None else device.backend,
        device=context.machine.model if device is None else device.name,
        precision=agreed.precision.value,
        config=dict(decision.config),
        cost_ns=decision.cost_ns,
        evidence=decision.evidence,
        launches=tuple(launched),
        rejected=(*passed, *shortfall, *decision.rejected),
        goal=context.policy.goal,
        reasons=context.policy.reasons(),
    )


def _device(context: Context, backend: str | None, architecture: str | None) -> tuple[DeviceTarget | None, Reasons]:
    """The device to plan for, None for the processor; and why not what this machine is asked for first."""
    asked = (backend or AUTO).lower()
    if asked != AUTO and asked not in BACKENDS:
        raise ConfigError(f"no backend {backend!r}", where=_WHERE, hint=did_you_mean(asked, [AUTO, *BACKENDS.names()]))
    if architecture is not None:
        device = known_target(architecture)
        if backend is not None and asked != device.backend:
            hint = f"leave one of them out, or say backend={device.backend!r}"
            raise ConfigError(f"architecture={architecture!r} is not for backend={backend!r}", where=_WHERE, hint=hint)
        return device, ()
    if backend is None and context.device is not None:
        return context.device, ()
    if asked in BACKENDS:
        try:
            return BACKENDS[asked].target(), ()
        except ConfigError as error:
            hint = f"{error.hint}; architecture='h200', or another GPU's name, plans for one that is not here"
            raise ConfigError(error.what, where=_WHERE, hint=hint) from None
    choice = automatic(lambda: context.caps.fma_gflops * context.caps.cores)
    return choice.device, choice.passed


def _precision(text: str) -> Precision:
    names = [member.value for member in Precision]
    if text.lower() in names:
        return Precision(text.lower())
    raise ConfigError(f"no precision {text!r}", where=_WHERE, hint=did_you_mean(text.lower(), names))
