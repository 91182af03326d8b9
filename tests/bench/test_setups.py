"""Who is compared with whom, by scenario."""

from __future__ import annotations

import dataclasses

from xyntra_bench.contenders import BASELINE, Contender
from xyntra_bench.plan import Case, Scenario
from xyntra_bench.setups import Setup, setups_of

XYNTRA, BF16 = Contender(provider="XyntraEP"), Contender.parse("XyntraEP:bf16")
PEER, PEER_BF16 = Contender.parse("OpenVINO"), Contender.parse("OpenVINO:bf16")
CASE = Case(model="m", threads=2)


def setups(scenario: Scenario, *contenders: Contender) -> dict[str, Setup]:
    found = setups_of(dataclasses.replace(CASE, scenario=scenario), contenders)
    assert len({setup.label for setup in found}) == len(found)
    assert found[0].contender.provider == BASELINE and not found[0].specialised
    return {setup.label: setup for setup in found}


def test_single_stream_compares_with_the_cpu_and_with_openvino_of_the_same_precision() -> None:
    found = setups(Scenario.SINGLE_STREAM, XYNTRA, BF16, PEER, PEER_BF16)
    assert [setup.against for setup in found.values()] == ["", *[BASELINE] * 4]
    assert found["XyntraEP"].peers == ("OpenVINO",)
    assert found["XyntraEP:precision=bf16"].peers == ("OpenVINO:precision=bf16",)
    assert found["OpenVINO"].peers == ()
    assert {(setup.threads, setup.streams, setup.specialised) for setup in found.values()} == {(2, 0, False)}


def test_the_cpu_against_itself_is_told_apart() -> None:
    found = setups(Scenario.SINGLE_STREAM, Contender(provider=BASELINE))
    assert list(found) == [BASELINE, f"{BASELINE} again"]


def test_scaling_compares_each_with_itself_on_one_thread() -> None:
    found = setups(Scenario.SCALING, XYNTRA)
    assert [(a.label, a.threads, a.against) for a in found.values()] == [
        (f"{BASELINE} t1", 1, ""),
        (f"{BASELINE} t2", 2, f"{BASELINE} t1"),
        ("XyntraEP t1", 1, ""),
        ("XyntraEP t2", 2, "XyntraEP t1"),
    ]


def test_offline_has_one_thread_a_call_and_compares_with_the_cpu_and_with_one_call() -> None:
    found = setups(Scenario.OFFLINE, XYNTRA, PEER)
    assert all(setup.threads == 1 for setup in found.values())
    compared = {label: (setup.streams, setup.against, setup.peers) for label, setup in found.items() if setup.peers}
    assert compared == {
        f"{BASELINE} x2": (2, "", (f"{BASELINE} x1", "OpenVINO x2")),
        "XyntraEP x2": (2, f"{BASELINE} x2", ("XyntraEP x1", "OpenVINO x2")),
        "OpenVINO x2": (2, f"{BASELINE} x2", ("OpenVINO x1",)),
    }
    assert [setup.streams for label, setup in found.items() if label not in compared] == [1, 1, 1]


def test_multi_stream_compares_as_single_stream_does() -> None:
    assert setups(Scenario.MULTI_STREAM, XYNTRA, PEER) == setups(Scenario.SINGLE_STREAM, XYNTRA, PEER)


def test_the_specialised_form_is_compared_with_the_dynamic_one() -> None:
    found = setups(Scenario.SPECIALISED, XYNTRA)
    assert found["XyntraEP fixed"].against == "XyntraEP" and found["XyntraEP fixed"].specialised
    assert found["XyntraEP"].against == "" and not found["XyntraEP"].specialised
    assert all(setup.threads == 2 for setup in found.values())
