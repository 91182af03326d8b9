"""ONNX Runtime's own profile, on the clock of our trace: its nodes, and what it did to create a session.

ONNX Runtime counts microseconds from when the session's profiler was started, and tells when that was by the clock of the date.
The two clocks are read together here, so that both files are on one. What its file has of our islands is left out: the trace has
them in more detail.
"""

from __future__ import annotations

import json
import time
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from xyntra_ep.errors import ConfigError

_OURS = "XyntraEP"
_KERNEL = "_kernel_time"
_OF_CREATION = ("model_loading", "session_initialization")  # other events of a session are its runs, which the trace has
_FACTS = ("op_name", "provider", "output_size", "input_type_shape", "output_type_shape")
Intervals = Mapping[int, Sequence[tuple[int, int]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class OrtSpan:
    name: str
    category: str  # node or session
    thread: int
    begin_ns: int
    end_ns: int
    facts: Mapping[str, Any] = field(default_factory=dict)


def monotonic_start(session: Any) -> int:
    """When the profiler of ``session`` was started, by our clock. Ask before it is ended."""
    told = int(session.get_profiling_start_time_ns())
    date, here = time.time_ns(), time.monotonic_ns()
    # Which clock it is hangs on the C++ library that ONNX Runtime was built with.
    return told if abs(told - here) < abs(told - date) else told - (date - here)


def read_profile(path: Path, start_ns: int) -> list[OrtSpan]:
    """The spans of a file that ONNX Runtime wrote; ``start_ns``: see `monotonic_start`. Raises ConfigError for another file."""
    try:
        events = json.loads(path.read_text(encoding="utf-8", errors="replace"))
        return [span for event in events if (span := _span(event, start_ns)) is not None]
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", where=str(path)) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError("is no profile of ONNX Runtime", where=str(path)) from error


def _span(event: Mapping[str, Any], start_ns: int) -> OrtSpan | None:
    category, name, args = event["cat"], event["name"], event.get("args", {})
    if category == "Node":
        if not name.endswith(_KERNEL) or args.get("provider") == _OURS:
            return None
        name, category = name.removesuffix(_KERNEL), "node"
    elif category == "Session" and name.startswith(_OF_CREATION):
        category = "session"
    else:
        return None
    begin = start_ns + int(event["ts"]) * 1000
    return OrtSpan(
        name=name,
        category=category,
        thread=int(event["tid"]),
        begin_ns=begin,
        end_ns=begin + int(event["dur"]) * 1000,
        facts={key: args[key] for key in _FACTS if key in args},
    )


def between(spans: Sequence[OrtSpan], islands: Intervals, runs: Intervals) -> Iterator[OrtSpan]:
    """The spans, nodes cut where they would cross an island or the begin of a run: ONNX Runtime leaves off what is below a
    microsecond, the trace does not. Nodes of no run that the trace has are left out."""
    sorted_islands = {track: sorted(known) for track, known in islands.items()}
    sorted_runs = {track: sorted(known) for track, known in runs.items()}
    for span in spans:
        if span.category != "node":
            yield span
            continue
        run = _around(sorted_runs.get(span.thread, ()), span.begin_ns)
        if run is None:
            continue
        begin, end = max(span.begin_ns, run[0]), min(span.end_ns, run[1])
        ours = sorted_islands.get(span.thread, ())
        at = bisect_left(ours, (begin, 0))
        if at > 0 and begin < ours[at - 1][1] < end:
            begin = ours[at - 1][1]
        if at < len(ours) and begin < ours[at][0] < end < ours[at][1]:
            end = ours[at][0]
        if begin <= end:
            yield replace(span, begin_ns=begin, end_ns=end)


def _around(runs: Sequence[tuple[int, int]], begin_ns: int) -> tuple[int, int] | None:
    """The run in which something began, to the microsecond."""
    at = bisect_left(runs, (begin_ns + 1000, 0)) - 1
    return runs[at] if at >= 0 and begin_ns < runs[at][1] else None
