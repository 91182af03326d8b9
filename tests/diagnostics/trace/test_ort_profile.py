"""ONNX Runtime's profile between our islands: cut at their ends by less than a microsecond, and on our clock."""

from __future__ import annotations

import json
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from xyntra_ep.diagnostics.trace.ort_profile import OrtSpan, between, monotonic_start, read_profile
from xyntra_ep.errors import ConfigError


def node(begin_ns: int, end_ns: int, *, thread: int = 7, category: str = "node") -> OrtSpan:
    return OrtSpan(name="Det", category=category, thread=thread, begin_ns=begin_ns, end_ns=end_ns)


def cut(*spans: OrtSpan, islands: tuple[tuple[int, int], ...] = ()) -> list[tuple[int, int]]:
    """Of a run from 10,300 to 90,000 on thread 7."""
    return [(s.begin_ns, s.end_ns) for s in between(spans, {7: islands}, {7: [(10_300, 90_000)]})]


def test_nodes_are_cut_where_they_would_cross() -> None:
    assert cut(node(10_000, 12_000)) == [(10_300, 12_000)], "the run began within the microsecond"
    assert cut(node(20_000, 23_000), islands=((15_000, 20_600),)) == [(20_600, 23_000)]
    assert cut(node(20_000, 23_000), islands=((22_800, 30_000),)) == [(20_000, 22_800)]
    assert cut(node(20_000, 40_000), islands=((22_000, 30_000),)) == [(20_000, 40_000)], "a loop with an island in its body"
    assert cut(node(89_000, 91_000)) == [(89_000, 90_000)]


def test_nodes_of_runs_that_the_trace_has_not_are_left_out() -> None:
    assert cut(node(1_000, 2_000), node(95_000, 96_000)) == []
    assert cut(node(1_000, 2_000, category="session")) == [(1_000, 2_000)]


def test_nodes_may_be_on_another_thread_than_their_run() -> None:
    assert cut(node(20_000, 30_000, thread=8), node(1_000, 2_000, thread=8)) == [(20_000, 30_000)]


def test_our_own_and_what_is_no_node_are_not_taken(tmp_path: Path) -> None:
    event = {
        "cat": "Node",
        "pid": 1,
        "tid": 7,
        "dur": 5,
        "ts": 3,
        "ph": "X",
        "name": "det_kernel_time",
        "args": {"op_name": "Det"},
    }
    others = [
        event | {"args": {"provider": "XyntraEP"}},
        event | {"name": "det_fence_before"},
        event | {"cat": "Session", "name": "model_run"},
        event | {"cat": "Session", "name": "session_initialization"},
    ]
    path = tmp_path / "profile.json"
    path.write_text(json.dumps([event, *others]))
    found = read_profile(path, 1_000_000)
    assert [(s.name, s.category, s.begin_ns, s.end_ns) for s in found] == [
        ("det", "node", 1_003_000, 1_008_000),
        ("session_initialization", "session", 1_003_000, 1_008_000),
    ]
    path.write_text("{}x")
    with pytest.raises(ConfigError, match="is no profile of ONNX Runtime"):
        read_profile(path, 0)
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        read_profile(tmp_path / "none", 0)


@pytest.mark.parametrize("clock", [time.time_ns, time.monotonic_ns])
def test_whichever_clock_onnx_runtime_was_built_with(clock: object) -> None:
    session = SimpleNamespace(get_profiling_start_time_ns=lambda: clock() - 5_000_000_000)  # type: ignore[operator]
    assert monotonic_start(session) == pytest.approx(time.monotonic_ns() - 5_000_000_000, abs=1e8)
