"""Spans of sessions and runs for OpenTelemetry, where the program has set that up; nothing where it has not.

They are handed over when a trace is written: a run must not wait for Python. Their times are those at which they happened.
"""

from __future__ import annotations

import sys
import time
from typing import Any

from xyntra_ep.diagnostics.trace.ring import Batch, Kind

_NAMES = {Kind.SESSION: "XyntraEP create session", Kind.RUN: "XyntraEP run"}
_NONE = ("ProxyTracerProvider", "NoOpTracerProvider")  # of the API, where nobody has given another


def tracer() -> Any:
    """OpenTelemetry's, None where the program does not use it. Who has set it up has imported it."""
    api = sys.modules.get("opentelemetry.trace")
    if api is None:
        return None
    provider = api.get_tracer_provider()
    return None if type(provider).__name__ in _NONE else provider.get_tracer("xyntra_ep")


def emit(batch: Batch) -> int:
    """How many spans OpenTelemetry was given."""
    to = tracer()
    if to is None:
        return 0
    since_1970 = time.time_ns() - time.monotonic_ns()
    count = 0
    for record in batch:
        if (name := _NAMES.get(record.kind)) is None:
            continue
        span = to.start_span(name, start_time=record.begin_ns + since_1970, attributes={"xyntra.session": record.number})
        if record.failed:
            span.set_attribute("error", True)
        span.end(end_time=record.end_ns + since_1970)
        count += 1
    return count
