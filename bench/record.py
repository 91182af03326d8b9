"""From a runner that has had its turns to what is stored of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from bench.accuracy import compare
from bench.arms import Arm
from bench.contenders import OPENVINO
from bench.results import Accuracy, Check, Measurement, Ratio, Status, Warn
from bench.statistics import judge, latency, paired_ratio
from bench.turns import Runner

NOISY_CV = 0.10
SLOW_FIRST_RUN = 3.0


def conclude(
    runner: Runner, everyone: Mapping[str, Runner], names: Sequence[str], max_err: float, *, reference: Runner
) -> Measurement:
    """Latency, accuracy, ratios and verdict. A result that is not accurate, or cannot be told, has no speed."""
    arm, contender = runner.arm, runner.arm.contender
    check, speed_counts = None, True
    if runner is not reference:
        check = compare(names, runner.outputs, reference.outputs, contender.max_err(max_err))
        speed_counts = check.state is Accuracy.OK
    measured = latency(runner.samples_ns)
    ratio = _ratio(everyone.get(arm.against), runner) if speed_counts else None
    peers = {label: _ratio(everyone.get(label), runner) for label in arm.peers} if speed_counts else {}
    return Measurement(
        label=arm.label,
        provider=contender.provider,
        options=contender.options,
        threads=arm.threads,
        specialised=arm.specialised,
        streams=arm.streams,
        status=Status.OK,
        precision=runner.precision,
        notes=runner.factory.notes,
        latency=measured,
        first_run_ns=runner.first_run_ns,
        creation=runner.creation,
        placement=runner.placement,
        check=check,
        against=arm.against,
        ratio=ratio,
        peers={label: peer for label, peer in peers.items() if peer},
        verdict=judge(ratio),
        warnings=_warnings(runner, check, measured.cv, measured.p50_ns),
        samples_ns=tuple(runner.samples_ns),
    )


def without_void_peers(measured: Sequence[Measurement]) -> list[Measurement]:
    """No ratio to a peer whose own speed does not count."""
    good = {m.label for m in measured if m.check and m.check.state is Accuracy.OK}
    return [replace(m, peers={label: ratio for label, ratio in m.peers.items() if label in good}) for m in measured]


def unmeasured(arm: Arm, status: Status, error: str) -> Measurement:
    return Measurement(
        label=arm.label,
        provider=arm.contender.provider,
        options=arm.contender.options,
        threads=arm.threads,
        specialised=arm.specialised,
        streams=arm.streams,
        status=status,
        error=error,
        against=arm.against,
    )


def _ratio(other: Runner | None, runner: Runner) -> Ratio | None:
    """Other's time over this one's; None when the other could not be measured."""
    return paired_ratio(other.round_ns, runner.round_ns) if other else None


def _warnings(runner: Runner, check: Check | None, cv: float, p50_ns: int) -> tuple[Warn, ...]:
    contender, placement = runner.arm.contender, runner.placement
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
        Warn.NO_ASSIGNMENT: placement is None and contender.provider != OPENVINO,
        Warn.NOTHING_CLAIMED: placement is not None and not placement.nodes.get(contender.provider),
        Warn.OTHER_PRECISION: other,
    }
    return tuple(warn for warn, holds in facts.items() if holds)
