"""OpenTelemetry is given sessions and runs where a program uses it, and is left alone otherwise."""

from __future__ import annotations

import sys
import time
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from xyntra_ep.diagnostics.trace import otel
from xyntra_ep.diagnostics.trace.ring import Batch, Kind


def batch() -> Batch:
    now = time.monotonic_ns()
    rows = [(Kind.SESSION, 0, 10), (Kind.RUN, 20, 30), (Kind.ISLAND, 21, 29), (Kind.RUN, 40, 60)]
    failed = 1 << 8
    words = [[0, int(kind) | (failed if begin == 40 else 0), 0, now + begin, now + end, 0, 0, 3] for kind, begin, end in rows]
    return Batch(words=np.array(words, np.uint64), next=4, lost=0)


class Provider:
    def __init__(self) -> None:
        self.spans: list[Any] = []

    def get_tracer(self, name: str) -> Any:
        def start_span(called: str, *, start_time: int, attributes: dict[str, object]) -> Any:
            span = SimpleNamespace(name=called, start=start_time, attributes=dict(attributes))
            span.set_attribute = span.attributes.__setitem__

            def end(end_time: int) -> None:
                span.finish = end_time
                self.spans.append(span)

            span.end = end
            return span

        assert name == "xyntra_ep"
        return SimpleNamespace(start_span=start_span)


class ProxyTracerProvider(Provider):
    """What the API has where nobody has set anything up."""


def installed(monkeypatch: pytest.MonkeyPatch, provider: Provider) -> Provider:
    module = ModuleType("opentelemetry.trace")
    module.get_tracer_provider = lambda: provider  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", module)
    return provider


def test_sessions_and_runs_are_spans_at_their_times(monkeypatch: pytest.MonkeyPatch) -> None:
    provider = installed(monkeypatch, Provider())
    assert otel.emit(batch()) == 3
    names = [span.name for span in provider.spans]
    assert names == ["XyntraEP create session", "XyntraEP run", "XyntraEP run"]
    assert [span.finish - span.start for span in provider.spans] == [10, 10, 20]
    assert all(abs(span.start - time.time_ns()) < 60e9 and span.attributes["xyntra.session"] == 3 for span in provider.spans)
    assert ["error" in span.attributes for span in provider.spans] == [False, False, True]


def test_none_where_it_is_not_set_up(monkeypatch: pytest.MonkeyPatch) -> None:
    provider = installed(monkeypatch, ProxyTracerProvider())
    assert otel.emit(batch()) == 0 and not provider.spans


def test_none_where_the_program_does_not_use_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "opentelemetry.trace", raising=False)
    assert otel.emit(batch()) == 0 and "opentelemetry.trace" not in sys.modules
