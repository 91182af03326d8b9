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
    """Version 3 added the stop rule, the clock, the quota, processor time, further percentiles, the time inside of kernels
    and the ceilings of the machine; its ratio is an
    interquartile mean where version 2 kept the median, and `concurrent` became part of `offline`."""
    return {
        **data,
        "schema": "xyntra-bench/3",
        "environment": {**data.get("environment", {}), "clock_mhz": None},
        "budget": {**data.get("budget", {}), "until_sure": False},
        "ceilings": [],
        "cases": [_case_from_v2(case) for case in data.get("cases", [])],
    }


def _case_from_v2(case: Document) -> Document:
    added = dict.fromkeys(("stopped", "cpu_s", "throttled_s", "clock_before_mhz", "clock_after_mhz"))
    concurrent = case.get("scenario") == "concurrent"
    baseline = case.get("baseline")
    measured = {
        "baseline": _measurement_from_v2(baseline, against_itself=concurrent) if baseline else None,
        "contenders": [_measurement_from_v2(m, against_itself=concurrent) for m in case.get("contenders", [])],
    }
    return {**case, **added, **measured, **({"scenario": "offline"} if concurrent else {})}


def _measurement_from_v2(m: Document, *, against_itself: bool) -> Document:
    """What `concurrent` compared with itself is now compared with the CPU provider first and with itself beside."""
    now = {
        **m,
        "cpu_ns": None,
        "inside": None,
        "generation": None,
        "serving": None,
        "latency": _with(m.get("latency"), p90_ns=None, p999_ns=None),
        "creation": _with(m.get("creation"), artefact_bytes=None),
        "memory": _with(m.get("memory"), pss_bytes=None),
        "ratio": _ratio_from_v2(m.get("ratio")),
        "peers": {label: _ratio_from_v2(ratio) for label, ratio in m.get("peers", {}).items()},
    }
    if against_itself and now["ratio"]:
        now |= {"peers": {m.get("against", ""): now["ratio"]}, "against": "", "ratio": None, "verdict": "no data"}
    return now


def _with(part: Document | None, **added: None) -> Document | None:
    return None if part is None else {**part, **added}


def _ratio_from_v2(ratio: Document | None) -> Document | None:
    return None if ratio is None else {"middle" if key == "median" else key: value for key, value in ratio.items()}


def from_v3(data: Document) -> Document:
    """Version 4 added what planning and compiling take, the compiler, and more about the machine."""
    unknown = {"smt": None, "virtual": None, "container": "", "memory_limit_bytes": None, "compiler": ""}
    return {
        **data,
        "schema": "xyntra-bench/4",
        "environment": {**data.get("environment", {}), **unknown},
        "cases": [_case_from_v3(case) for case in data.get("cases", [])],
    }


def _case_from_v3(case: Document) -> Document:
    def upgraded(m: Document) -> Document:
        return {**m, "creation": _with(m.get("creation"), planned_ns=None, compile_cpu_ns=None)}

    baseline = case.get("baseline")
    contenders = [upgraded(m) for m in case.get("contenders", [])]
    return {**case, "baseline": upgraded(baseline) if baseline else None, "contenders": contenders}


def from_v4(data: Document) -> Document:
    """Version 5 added devices that are not the CPU: which there are, what they reach, and times by their clocks."""
    return {
        **data,
        "schema": "xyntra-bench/5",
        "environment": {**data.get("environment", {}), "gpus": []},
        "device_ceilings": [],
        "cases": [_case_from_v4(case) for case in data.get("cases", [])],
    }


def _case_from_v4(case: Document) -> Document:
    def upgraded(m: Document) -> Document:
        inside = m.get("inside")
        if inside is not None:
            kernels = [{**kernel, "resident": None} for kernel in inside.get("kernels", [])]
            inside = {**inside, "device": "", "kernels": kernels}
        return {**m, "device_ns": None, "inside": inside}

    baseline = case.get("baseline")
    contenders = [upgraded(m) for m in case.get("contenders", [])]
    return {**case, "baseline": upgraded(baseline) if baseline else None, "contenders": contenders}


def from_v5(data: Document) -> Document:
    """Version 6 added where each contender computed, and what devices reach in tf32. Its device time is that of a run as it is,
    where version 5 had the sum over XyntraEP's kernels, each launched by itself; that sum is still in `inside`."""
    untold = {"tf32_gflops": 0.0, "library_tf32_gflops": 0.0}
    return {
        **data,
        "schema": "xyntra-bench/6",
        "device_ceilings": [{**found, **untold} for found in data.get("device_ceilings", [])],
        "cases": [_case_from_v5(case) for case in data.get("cases", [])],
    }


def _case_from_v5(case: Document) -> Document:
    def upgraded(m: Document) -> Document:
        device = (m.get("inside") or {}).get("device", "")
        return {**m, "device": device, "device_ns": None if device else m.get("device_ns")}

    baseline = case.get("baseline")
    contenders = [upgraded(m) for m in case.get("contenders", [])]
    return {**case, "baseline": upgraded(baseline) if baseline else None, "contenders": contenders}


UPGRADES: Mapping[str, Callable[[Document], Document]] = {
    "xyntra-bench/1": from_v1,
    "xyntra-bench/2": from_v2,
    "xyntra-bench/3": from_v3,
    "xyntra-bench/4": from_v4,
    "xyntra-bench/5": from_v5,
}
