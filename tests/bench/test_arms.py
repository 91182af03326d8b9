"""Who is compared with whom, by scenario."""

from __future__ import annotations

import dataclasses

from bench.arms import Arm, arms_of
from bench.contenders import BASELINE, Contender
from bench.plan import Case, Scenario

XYNTRA, BF16 = Contender(provider="XyntraEP"), Contender.parse("XyntraEP:bf16")
PEER, PEER_BF16 = Contender.parse("OpenVINO"), Contender.parse("OpenVINO:bf16")
CASE = Case(model="m", threads=2)


def arms(scenario: Scenario, *contenders: Contender) -> dict[str, Arm]:
    found = arms_of(dataclasses.replace(CASE, scenario=scenario), contenders)
    assert len({arm.label for arm in found}) == len(found)
    assert found[0].contender.provider == BASELINE and not found[0].specialised
    return {arm.label: arm for arm in found}


def test_single_stream_compares_with_the_cpu_and_with_openvino_of_the_same_precision() -> None:
    found = arms(Scenario.SINGLE_STREAM, XYNTRA, BF16, PEER, PEER_BF16)
    assert [arm.against for arm in found.values()] == ["", *[BASELINE] * 4]
    assert found["XyntraEP"].peers == ("OpenVINO",)
    assert found["XyntraEP:precision=bf16"].peers == ("OpenVINO:precision=bf16",)
    assert found["OpenVINO"].peers == ()
    assert {(arm.threads, arm.streams, arm.specialised) for arm in found.values()} == {(2, 0, False)}


def test_the_cpu_against_itself_is_told_apart() -> None:
    found = arms(Scenario.SINGLE_STREAM, Contender(provider=BASELINE))
    assert list(found) == [BASELINE, f"{BASELINE} again"]


def test_scaling_compares_each_with_itself_on_one_thread() -> None:
    found = arms(Scenario.SCALING, XYNTRA)
    assert [(a.label, a.threads, a.against) for a in found.values()] == [
        (f"{BASELINE} t1", 1, ""),
        (f"{BASELINE} t2", 2, f"{BASELINE} t1"),
        ("XyntraEP t1", 1, ""),
        ("XyntraEP t2", 2, "XyntraEP t1"),
    ]


def test_offline_has_one_thread_a_call_and_compares_with_the_cpu_and_with_one_call() -> None:
    found = arms(Scenario.OFFLINE, XYNTRA, PEER)
    assert all(arm.threads == 1 for arm in found.values())
    compared = {label: (arm.streams, arm.against, arm.peers) for label, arm in found.items() if arm.peers}
    assert compared == {
        f"{BASELINE} x2": (2, "", (f"{BASELINE} x1", "OpenVINO x2")),
        "XyntraEP x2": (2, f"{BASELINE} x2", ("XyntraEP x1", "OpenVINO x2")),
        "OpenVINO x2": (2, f"{BASELINE} x2", ("OpenVINO x1",)),
    }
    assert [arm.streams for label, arm in found.items() if label not in compared] == [1, 1, 1]


def test_multi_stream_compares_as_single_stream_does() -> None:
    assert arms(Scenario.MULTI_STREAM, XYNTRA, PEER) == arms(Scenario.SINGLE_STREAM, XYNTRA, PEER)


def test_the_specialised_form_is_compared_with_the_dynamic_one() -> None:
    found = arms(Scenario.SPECIALISED, XYNTRA)
    assert found["XyntraEP fixed"].against == "XyntraEP" and found["XyntraEP fixed"].specialised
    assert found["XyntraEP"].against == "" and not found["XyntraEP"].specialised
    assert all(arm.threads == 2 for arm in found.values())
