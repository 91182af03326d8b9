"""A timeline in the format of Chrome's traces, which ui.perfetto.dev and chrome://tracing open.

One track for each thread, and one for what a device did; all times are CLOCK_MONOTONIC, in microseconds since the first event. On
a track, spans lie within each other or apart: session > stages of planning; run > ONNX Runtime's nodes and islands > steps > the
thread's share. What would cross another span, as compilers side by side do, gets a track of its own below.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from xyntra_ep.diagnostics.trace.ceilings import CpuCeilings
from xyntra_ep.diagnostics.trace.names import Names
from xyntra_ep.diagnostics.trace.ort_profile import OrtSpan, between
from xyntra_ep.diagnostics.trace.ring import Kind, Record
from xyntra_ep.errors import ConfigError

_DEVICES, _LANES = 1 << 40, 1 << 32  # numbers of tracks that are no threads'


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    name: str
    category: str
    track: int
    begin_ns: int
    end_ns: int
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """``lost``: records that were overwritten before they were read, the oldest of the trace."""

    spans: tuple[Span, ...]
    tracks: Mapping[int, str]
    pid: int
    lost: int = 0
    notes: Mapping[str, Any] = field(default_factory=dict)

    def as_chrome(self) -> dict[str, Any]:
        """The document that is written as JSON."""
        base = min((s.begin_ns for s in self.spans), default=0)
        common = {"ts": 0, "pid": self.pid}
        events: list[dict[str, Any]] = [
            {"ph": "M", "name": "process_name", "tid": 0, "args": {"name": f"process {self.pid}"}, **common}
        ]
        for order, (track, name) in enumerate(self.tracks.items()):
            events.append({"ph": "M", "name": "thread_name", "tid": track, "args": {"name": name}, **common})
            events.append({"ph": "M", "name": "thread_sort_index", "tid": track, "args": {"sort_index": order}, **common})
        for span in self.spans:
            events.append(
                {
                    "ph": "X",
                    "name": span.name,
                    "cat": span.category,
                    "pid": self.pid,
                    "tid": span.track,
                    "ts": (span.begin_ns - base) / 1000,
                    "dur": (span.end_ns - span.begin_ns) / 1000,
                    "args": dict(span.facts),
                }
            )
        other = {"clock": "CLOCK_MONOTONIC", "begin_ns": base, "lost_records": self.lost, **self.notes}
        return {"displayTimeUnit": "ns", "otherData": other, "traceEvents": events}

    def write(self, path: Path) -> None:
        """Replace ``path`` as a whole. Raises ConfigError where that cannot be."""
        aside = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            with open(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "w", encoding="utf-8") as file:
                json.dump(self.as_chrome(), file, ensure_ascii=True, separators=(",", ":"))
            os.replace(aside, path)
        except OSError as error:
            raise ConfigError(f"the trace cannot be written: {error.strerror}", where=str(path)) from error


def timeline(
    records: Iterable[Record],
    names: Names,
    *,
    pid: int,
    ceilings: CpuCeilings | None = None,
    ort: Sequence[OrtSpan] = (),
    lost: int = 0,
) -> Timeline:
    """Of what a ring held, and of what ONNX Runtime's own profiler says of the same time."""
    tracks: dict[int, str] = {}
    spans: list[Span] = []
    taken: dict[int, list[tuple[int, int]]] = {}  # on each track, by our islands
    runs: dict[int, list[tuple[int, int]]] = {}
    for record in records:
        span = _span(record, names, ceilings)
        if record.kind is Kind.DEVICE_STEP:
            tracks.setdefault(span.track, f"device {names.island(record.name).device}, started by thread {record.thread}")
        else:
            tracks.setdefault(span.track, "main thread" if span.track == pid else f"thread {span.track}")
        if record.kind is Kind.ISLAND:
            taken.setdefault(span.track, []).append((span.begin_ns, span.end_ns))
        elif record.kind is Kind.RUN:
            runs.setdefault(span.track, []).append((span.begin_ns, span.end_ns))
        spans.append(span)
    for node in between(ort, taken, runs):
        tracks.setdefault(node.thread, "main thread" if node.thread == pid else f"thread {node.thread}")
        spans.append(
            Span(
                name=node.name,
                category=f"onnxruntime.{node.category}",
                track=node.thread,
                begin_ns=node.begin_ns,
                end_ns=node.end_ns,
                facts=node.facts,
            )
        )
    placed = _without_crossings(spans, tracks)
    notes = {"ceilings": "measured" if ceilings.is_measured else "assumed"} if ceilings is not None else {}
    ordered = dict(sorted(tracks.items(), key=lambda row: (row[0] != pid, row[0] % _LANES, row[0])))
    return Timeline(spans=tuple(placed), tracks=ordered, pid=pid, lost=lost, notes=notes)


def _span(record: Record, names: Names, ceilings: CpuCeilings | None) -> Span:
    island = names.island(record.name)
    track, facts = record.thread, dict[str, Any]()
    match record.kind:
        case Kind.SESSION:
            name, category, facts = "create session", "session", {"session": record.number}
        case Kind.SPAN:
            name, category = names.plain.get(record.name, "a stage"), "planning"
        case Kind.RUN:
            name, category, facts = "run", "run", {"session": record.number}
        case Kind.ISLAND:
            name, category = island.name, "island"
            facts = {"graph": island.graph, "nodes": list(island.nodes)}
        case Kind.SHARE:
            name, category = island.step(record.alternative, record.step).title, "share"
            facts = {"island": island.name, "tasks": record.tasks}
        case _:
            name, category = island.step(record.alternative, record.step).title, "step"
            facts = step_facts(record, names, ceilings)
            if record.kind is Kind.DEVICE_STEP:
                category, track = "device", _DEVICES + record.thread
    if record.failed:
        facts["failed"] = True
    return Span(
        name=name, category=category, track=track, begin_ns=record.begin_ns, end_ns=record.end_ns, facts=facts
    )  # fmt: skip


def step_facts(record: Record, names: Names, ceilings: CpuCeilings | None) -> dict[str, Any]:
    """What a step computed, and how well."""
    island = names.island(record.name)
    step = island.step(record.alternative, record.step)
    facts: dict[str, Any] = {
        "island": island.name,
        "nodes": list(step.nodes),
        "op_types": list(step.op_types),
        "variant": step.variant,
        "kernel": step.symbol,
        "flops": record.flops,
        "bytes": record.bytes,
        "threads": record.threads,
        "tasks": record.tasks,
        "iterations": record.number,
    }
    if record.ns > 0:
        facts |= {"gflops": round(record.flops / record.ns, 3), "gbs": round(record.bytes / record.ns, 3)}
    if ceilings is not None and record.kind is Kind.STEP:
        share = ceilings.share(
            ns=record.ns, flops=record.flops, size_bytes=record.bytes, precision=step.precision, threads=record.threads
        )
        if share is not None:
            facts["share_of_ceiling"] = round(share, 4)
    return facts


def _without_crossings(spans: Sequence[Span], tracks: dict[int, str]) -> list[Span]:
    """The spans in order of time, those that would cross another one of their track on tracks beside it."""
    open_until: dict[int, list[int]] = {}
    placed = []
    for span in sorted(spans, key=lambda s: (s.begin_ns, -s.end_ns)):
        lane, track = 0, span.track
        while True:
            ends = open_until.setdefault(track, [])
            while ends and ends[-1] <= span.begin_ns:
                ends.pop()
            if not ends or span.end_ns <= ends[-1]:
                break
            lane += 1
            track = span.track + lane * _LANES
            tracks.setdefault(track, f"{tracks[span.track]}, beside ({lane})")
        ends.append(span.end_ns)
        placed.append(
            span
            if lane == 0
            else Span(
                name=span.name,
                category=span.category,
                track=track,
                begin_ns=span.begin_ns,
                end_ns=span.end_ns,
                facts=span.facts,
            )
        )
    return placed
