"""Stored runs of earlier schemas, brought to the present one: what was not measured then stays empty."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from bench.contenders import BASELINE

Document = dict[str, Any]


def from_v1(data: Document) -> Document:
    """Version 2 added scenarios, memory, precision, peers and import times. Fields that are lacking or damaged are
    left for the strict reader to find."""
    cases = [_case_from_v1(case) for case in data.get("cases", [])]
    target = "model" if any(case.get("family") == "" for case in cases) else "zoo"
    return {**data, "schema": "xyntra-bench/2", "target": target, "imports_ns": {}, "cases": cases}


def _case_from_v1(case: Document) -> Document:
    threads = case.get("threads", 1)
    baseline = case.get("baseline")
    return {
        **case,
        "scenario": "single-stream",
        "baseline": _measurement_from_v1(baseline, threads, against="") if baseline else None,
        "contenders": [_measurement_from_v1(m, threads, against=BASELINE) for m in case.get("contenders", [])],
    }


def _measurement_from_v1(measurement: Document, threads: int, *, against: str) -> Document:
    added = {"threads": threads, "specialised": False, "streams": 0, "precision": "", "notes": [], "memory": None}
    return {**measurement, **added, "against": against, "peers": {}}


def from_v2(data: Document) -> Document:
    """Version 3 added the time inside of kernels and the ceilings of the machine."""
    cases = [_case_from_v2(case) for case in data.get("cases", [])]
    return {**data, "schema": "xyntra-bench/3", "ceilings": [], "cases": cases}


def _case_from_v2(case: Document) -> Document:
    baseline, contenders = case.get("baseline"), case.get("contenders", [])
    return {
        **case,
        "baseline": baseline and {**baseline, "inside": None},
        "contenders": [{**m, "inside": None} for m in contenders],
    }


UPGRADES: Mapping[str, Callable[[Document], Document]] = {"xyntra-bench/1": from_v1, "xyntra-bench/2": from_v2}
