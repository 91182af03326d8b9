from __future__ import annotations

import dataclasses

import pytest

from bench.arms import Arm
from bench.contenders import Contender
from bench.record import unmeasured, without_void_peers
from bench.results import Accuracy, Check, Measurement, Ratio, Status

RATIO = Ratio(median=1.2, low=1.1, high=1.3, pairs=12, rounds=3)
PEER = "OpenVINO"


def measured(label: str, state: Accuracy = Accuracy.OK) -> Measurement:
    check = Check(state=state, max_err=2e-5, error=1e-6)
    return Measurement(label=label, provider=label, options={}, status=Status.OK, check=check)


@pytest.mark.parametrize("state", Accuracy)
def test_a_peer_whose_speed_does_not_count_is_no_measure(state: Accuracy) -> None:
    ours = dataclasses.replace(measured("XyntraEP"), peers={PEER: RATIO})
    kept, _ = without_void_peers([ours, measured(PEER, state)])
    assert kept.peers == ({PEER: RATIO} if state is Accuracy.OK else {})


def test_what_could_not_be_measured_keeps_its_place() -> None:
    arm = Arm(label="A t2", contender=Contender.parse("A:x=1"), threads=2, against="A t1")
    m = unmeasured(arm, Status.UNAVAILABLE, "A: not installed")
    assert (m.label, m.threads, m.against, m.status, m.error) == ("A t2", 2, "A t1", "unavailable", "A: not installed")
    assert m.contender == arm.contender and m.latency is None and m.ratio is None
