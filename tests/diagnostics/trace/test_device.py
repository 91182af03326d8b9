"""What a device did, by its own clock."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.diagnostics.trace.chrome import check, spans, within
from xyntra_ep.diagnostics.sessions import open_session
from xyntra_ep.diagnostics.trace.names import Names
from xyntra_ep.diagnostics.trace.ring import ALL_STEPS, Kind, Ring
from xyntra_ep.diagnostics.trace.tracing import trace_model
from xyntra_ep.provider import registration

pytestmark = [pytest.mark.native, pytest.mark.device("opencl")]
ON_DEVICE = {"backend": "opencl", "claim": "all"}


def test_each_kernel_is_on_the_track_of_its_device(mlp: Path, tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    found = trace_model(mlp, path, runs=2, options=ON_DEVICE, sizes={"n": 64})
    document = json.loads(path.read_text())
    check(document)
    steps, islands = spans(document, "device"), spans(document, "island")
    assert {e["tid"] for e in steps}.isdisjoint({e["tid"] for e in islands})
    assert all(any(within(island, step) for island in islands) for step in steps)
    named = {node for e in steps for node in e["args"]["nodes"]}
    assert {"act", "gram"} <= named and all(e["args"]["kernel"] for e in steps)
    [track] = {e["tid"] for e in steps}
    [name] = {e["args"]["name"] for e in document["traceEvents"] if e["name"] == "thread_name" and e["tid"] == track}
    assert name.startswith("device OpenCL")
    assert all(kernel.of_ceiling is None for kernel in found.activity.kernels), "it is that of the processor"


def test_live_times_a_run_as_it_is(mlp: Path) -> None:
    session = open_session(mlp, ON_DEVICE)
    feeds = {"x": np.ones((64, 64), np.float32)}
    session.run(None, feeds)
    library = registration.library()
    library.xyntra_trace(1, 1 << 10)
    try:
        ring = Ring.own()
        assert ring is not None
        since = ring.now
        session.run(None, feeds)
        records = [r for r in ring.read(since) if r.kind is Kind.DEVICE_STEP]
    finally:
        library.xyntra_trace(0, 0)
    assert records and all(r.step == ALL_STEPS and r.ns > 0 for r in records)
    assert Names.of(ring.texts()).island(records[0].name).step(0, ALL_STEPS).label.startswith("all kernels of island")
