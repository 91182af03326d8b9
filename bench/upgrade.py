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


UPGRADES: Mapping[str, Callable[[Document], Document]] = {"xyntra-bench/1": from_v1}
