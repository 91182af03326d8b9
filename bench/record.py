"""Turns a runner, once its iterations are over, into what is stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from statistics import median

from xyntra_bench.contenders import PEERS, TORCH_BACKENDS
from xyntra_bench.interleaving import Runner
from xyntra_bench.plan import Case
from xyntra_bench.results import Accuracy, CaseResult, Generation, Measurement, Ratio, Status, Warn, Weights
from xyntra_bench.serve import rate_ratio
from xyntra_bench.setups import Setup
from xyntra_bench.statistics import latency, paired_ratio
from xyntra_bench.verdicts import judge

NOISY_CV = 0.10
SLOW_FIRST_RUN = 3.0
MOST_SAMPLES = 5000  # of a longer run the histogram alone is kept


def conclude(runner: Runner, everyone: Mapping[str, Runner]) -> Measurement:
    """Latency, ratios and verdict. A result that is not accurate, or cannot be told, has no speed, and neither has one
    beside it."""
    setup = runner.setup
    samples_ns = [sample.ns for sample in runner.samples]
    measured = latency(samples_ns)
    ratio = _ratio(everyone.get(setup.against), runner)
    peers = {label: _ratio(everyone.get(label), runner) for label in setup.peers}
    return replace(
        row_of(setup, Status.OK),
        precision=runner.precision,
        device=runner.device,
        notes=runner.factory.notes,
        latency=measured,
        cpu_ns=int(median(sample.cpu_ns for sample in runner.samples)),
        first_run_ns=runner.first_run_ns,
        creation=runner.creation,
        placement=runner.placement,
        check=runner.check,
        float_error=runner.float_error,
        ratio=ratio,
        peers={label: peer for label, peer in peers.items() if peer},
        verdict=judge(ratio),
        generation=_generation(runner, everyone.get(setup.against)),
        serving=runner.serving,
        warnings=_warnings(runner, measured.cv, measured.p50_ns),
        samples_ns=tuple(samples_ns) if len(samples_ns) <= MOST_SAMPLES else (),
    )


def result_of(case: Case, status: Status, *, error: str = "", model_sha256: str = "") -> CaseResult:
    """A case without measurements: those of one that failed, and what others are added to."""
    return CaseResult(
        model=case.model,
        family=case.family,
        scenario=case.scenario,
        shape=case.shape,
        batch=case.batch,
        seq=case.seq,
        threads=case.threads,
        model_sha256=model_sha256,
        weights=Weights.FILE if case.file and not case.module else Weights.RANDOM,
        status=status,
        error=error,
    )


def row_of(setup: Setup, status: Status, error: str = "") -> Measurement:
    """A row without figures: that of a setup that failed, and what figures are added to."""
    return Measurement(
        label=setup.label,
        provider=setup.contender.provider,
        options=setup.contender.options,
        threads=setup.threads,
        specialised=setup.specialised,
        streams=setup.streams,
        status=status,
        error=error,
        against=setup.against,
    )


def _ratio(other: Runner | None, runner: Runner) -> Ratio | None:
    """Other's time over this one's; None when one could not be measured or is wrong."""
    if other is None or not (other.speed_counts and runner.speed_counts):
        return None
    if other.serving and runner.serving:
        return rate_ratio(other.serving, runner.serving)
    return paired_ratio(other.round_ns, runner.round_ns)


def _generation(runner: Runner, other: Runner | None) -> Generation | None:
    """None of anything but a loop of more than one token."""
    loops = [sample.steps_ns for sample in runner.samples if len(sample.steps_ns) > 1]
    if not loops:
        return None
    compared = other if other and other.speed_counts and runner.speed_counts else None
    return Generation(
        tokens=len(loops[0]),
        first_token=latency([steps[0] for steps in loops]),
        later_token=latency([ns for steps in loops for ns in steps[1:]]),
        tokens_per_s=round(1e9 / median(sum(steps[1:]) / (len(steps) - 1) for steps in loops), 2),
        first_token_ratio=paired_ratio(compared.first_ns, runner.first_ns) if compared else None,
        later_token_ratio=paired_ratio(compared.later_ns, runner.later_ns) if compared else None,
    )


def _warnings(runner: Runner, cv: float, p50_ns: int) -> tuple[Warn, ...]:
    contender, placement, check = runner.setup.contender, runner.placement, runner.check
    state = check.state if check else None
    # A runtime that tells what it ran in is believed; another may have warned of the option that it could not follow.
    other = runner.precision not in ("", contender.precision)
    other |= any(f"precision={contender.precision}" in note for note in runner.factory.notes)
    facts = {
        Warn.NOISY: cv > NOISY_CV,
        Warn.SLOW_FIRST_RUN: runner.first_run_ns > SLOW_FIRST_RUN * p50_ns,
        Warn.INACCURATE: state in (Accuracy.INACCURATE, Accuracy.MISMATCH),
        Warn.DEAD_REFERENCE: state is Accuracy.DEAD_REFERENCE,
        Warn.DEAD_OUTPUT: check is not None and bool(check.dead_outputs) and state is not Accuracy.DEAD_REFERENCE,
        Warn.NO_ASSIGNMENT: placement is None and contender.provider not in (*PEERS, *TORCH_BACKENDS),
        Warn.NOTHING_CLAIMED: placement is not None and not placement.nodes.get(contender.provider),
        Warn.NO_RATE: runner.serving is not None and runner.serving.rate_per_s is None,
        Warn.OTHER_PRECISION: other,
    }
    return tuple(warn for warn, holds in facts.items() if holds)
