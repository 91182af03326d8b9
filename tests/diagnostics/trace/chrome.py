"""What a file in Chrome's trace format must be, so that a viewer shows it as it is meant."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

Event = Mapping[str, Any]


def spans(document: Mapping[str, Any], category: str = "") -> list[Event]:
    """Those of a category, in the order of time."""
    found = [e for e in document["traceEvents"] if e["ph"] == "X" and e["cat"].startswith(category)]
    return sorted(found, key=lambda e: (e["ts"], -e["dur"]))


def check(document: Mapping[str, Any]) -> None:
    """Each event is whole, each track has a name, and spans of a track lie within each other or apart."""
    assert set(document) == {"displayTimeUnit", "otherData", "traceEvents"}
    tracks = defaultdict(list)
    named = set()
    for event in document["traceEvents"]:
        assert {"ph", "ts", "pid", "tid", "name"} <= set(event), event
        assert isinstance(event["name"], str) and event["name"]
        assert isinstance(event["pid"], int) and isinstance(event["tid"], int)
        if event["ph"] == "M":
            named |= {event["tid"]} if event["name"] == "thread_name" else set()
            continue
        assert event["ph"] == "X" and event["ts"] >= 0 and event["dur"] >= 0, event
        tracks[event["tid"]].append(event)
    assert set(tracks) <= named
    for events in tracks.values():
        _check_nesting(events)


def _check_nesting(events: list[Event]) -> None:
    open_until: list[int] = []
    for event in sorted(events, key=lambda e: (e["ts"], -e["dur"])):
        begin, end = ns(event)
        while open_until and open_until[-1] <= begin:
            open_until.pop()
        assert not open_until or end <= open_until[-1], f"{event['name']} crosses what it began in"
        open_until.append(end)


def ns(event: Event) -> tuple[int, int]:
    """Begin and end."""
    begin = round(event["ts"] * 1000)
    return begin, begin + round(event["dur"] * 1000)


def within(outer: Event, inner: Event) -> bool:
    (a, b), (c, d) = ns(outer), ns(inner)
    return a <= c and d <= b
