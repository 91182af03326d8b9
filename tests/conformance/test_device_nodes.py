"""ONNX's node tests through sessions on the devices that the machine has: what the CPU provider computes, these compute
too. A driver compiles a kernel or more for each case, so all of them are for `-m slow`; a few operators of each kind are not.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
import pytest

from tests.conformance.node_cases import first_of_each_operator, node_cases, run_cpu, session_options
from tests.tolerances import difference
from xyntra_ep import explain

pytestmark = pytest.mark.native
DEVICES = [pytest.param(name, marks=pytest.mark.device(name)) for name in ("opencl", "webgpu", "cuda")]
SHARDS, FEW = 120, 40
MIN_FEW = 6  # a change that makes operators decline must not pass unseen


def ours(names: Sequence[str], backend: str, cache_dir: str) -> int:
    """How many of the cases have a node of ours; fails where results differ."""
    wrong: list[str] = []
    claimed = 0
    for name in names:
        case = node_cases()[name]
        wanted = run_cpu(case)
        if wanted is None:
            continue
        options: dict[str, Any] = {"backend": backend, "log_level": "error", "cache_dir": cache_dir}
        providers = [("XyntraEP", options), "CPUExecutionProvider"]
        session = ort.InferenceSession(case.model.SerializeToString(), session_options(), providers=providers)
        explained = explain(session)
        if not explained.claimed:
            continue
        assert all(graph.device for graph in explained.graphs)
        claimed += 1
        got = session.run(None, dict(case.feeds))
        texts = [difference(np.asarray(a), np.asarray(b)) for a, b in zip(got, wanted, strict=True)]
        wrong += [f"{name}, output {i}: {text}" for i, text in enumerate(texts) if text]
    assert not wrong, "\n".join(wrong)
    return claimed


@pytest.mark.parametrize("backend", DEVICES)
def test_a_few_operators(backend: str, device_cache: Path) -> None:
    assert ours(first_of_each_operator()[::FEW], backend, str(device_cache)) >= MIN_FEW


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(SHARDS))
@pytest.mark.parametrize("backend", DEVICES)
def test_every_case(backend: str, shard: int, device_cache: Path) -> None:
    assert ours(list(node_cases())[shard::SHARDS], backend, str(device_cache)) > 0
