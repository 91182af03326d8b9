"""Sessions that many threads run and create at the same time: right answers here, and no race under ThreadSanitizer
(python -m tests.sanitized thread).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser
import onnxruntime as ort
import pytest

from xyntra_ep.provider import registration

pytestmark = [pytest.mark.native, pytest.mark.compiler("cc")]
CALLERS, ROUNDS = 4, 12
WEIGHT = ", ".join(str((i % 7) - 3) for i in range(64 * 64))
MODEL = f"""<ir_version: 8, opset_import: ["" : 17]>
    graph (float[N, S, 64] x) => (float[N, S, 64] y) <float[64, 64] w = {{{WEIGHT}}}> {{
        a = MatMul(x, w) b = Relu(a) c = Softmax<axis = -1>(b) d = Add(c, x) y = ReduceMax<axes = [1], keepdims = 1>(d)
    }}"""


def together(work: Callable[[int], None]) -> None:
    """Every caller begins when all are there."""
    start = threading.Barrier(CALLERS)

    def begin(number: int) -> None:
        start.wait()
        work(number)

    with ThreadPoolExecutor(CALLERS) as pool:
        list(pool.map(begin, range(CALLERS)))


def model() -> bytes:
    content: bytes = onnx.parser.parse_model(MODEL).SerializeToString()
    return content


def session(provider: str, cache: Path, threads: int = 2) -> ort.InferenceSession:
    settings = ort.SessionOptions()
    settings.intra_op_num_threads = threads
    ours = [("XyntraEP", {"cache_dir": str(cache), "claim": "all"})] if provider == "XyntraEP" else []
    return ort.InferenceSession(model(), settings, providers=[*ours, "CPUExecutionProvider"])


def feed(number: int, round_: int) -> dict[str, Any]:
    shape = (1 + (number + round_) % 3, 5 + round_ % 4 * 40, 64)  # shapes come and go in every workspace
    return {"x": np.random.default_rng(number * ROUNDS + round_).standard_normal(shape).astype(np.float32)}


@pytest.mark.parametrize("threads", [1, 2])
def test_runs_of_one_session(tmp_path: Path, threads: int) -> None:
    registration.register()
    ours, theirs = session("XyntraEP", tmp_path, threads), session("CPUExecutionProvider", tmp_path)

    def run(number: int) -> None:
        for round_ in range(ROUNDS):
            given = feed(number, round_)
            np.testing.assert_allclose(ours.run(None, given)[0], theirs.run(None, given)[0], rtol=1e-4, atol=1e-4)

    together(run)


def test_sessions_of_one_process(tmp_path: Path) -> None:
    # Plans are made and read, kernels loaded, weights shared and given back, while others run.
    registration.register()
    expected = session("CPUExecutionProvider", tmp_path).run(None, feed(0, 0))[0]

    def create(number: int) -> None:
        for round_ in range(3):
            created = session("XyntraEP", tmp_path / str((number + round_) % 2))
            np.testing.assert_allclose(created.run(None, feed(0, 0))[0], expected, rtol=1e-4, atol=1e-4)

    together(create)
