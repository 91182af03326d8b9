"""Sessions that begin with prebuilt kernels and go on with others: a small model, and a library of its kernels alone."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from numpy.typing import NDArray

from tests.provider.compiled.prebuilt import TARGETS, library_of
from tests.support.models.model_text import close, cpu, normal, parse
from tests.support.sessions import Planned, planned, watched_planner
from xyntra_ep import explain, knobs
from xyntra_ep.options import parse as parse_options
from xyntra_ep.provider.first_run import begins_prebuilt, unlike_asked
from xyntra_ep.tracea.interface.context import Context
from xyntra_ep.tracea.planning.manifest import KernelEntry
from xyntra_ep.tracea.runtime import background

LOOK_S = 1.1  # an island looks for files once a second
PATIENCE_S = 120.0  # for a child of low priority on a busy machine


pytestmark = [
    pytest.mark.native,
    pytest.mark.compiler("cc"),
    pytest.mark.skipif(not TARGETS, reason="kernels are prebuilt for machines with AVX2"),
]


def layer(width: int, more: str = "") -> onnx.ModelProto:
    """Two products of which one has other sizes, so that a general kernel has two successors."""
    last = more or "y = Softmax<axis = 1>(second)"
    return parse(
        f"""(float[N,{width}] x) => (float[N,{width}] y) {{
        first = MatMul(x, w) active = Relu(first) second = MatMul(active, v) {last} }}""",
        20,
        w=normal(width, 3 * width) / 16,
        v=normal(3 * width, width) / 16,
    )


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return library_of(layer(128), tmp_path_factory.mktemp("prebuilt"))


@pytest.fixture
def calls(library: Path) -> Iterator[Planned]:
    with knobs.scope(prebuilt_dir=library), watched_planner() as watched:
        yield watched


def _options(cache: Path, **more: str) -> dict[str, str]:
    return {"first_run": "prebuilt", "cache_dir": str(cache), **more}


def _successors(calls: Planned, cache: Path, call: int = 0) -> list[Path]:
    kernels: Sequence[KernelEntry] = calls.answers[call].kernels
    return [cache / kernel.successor for kernel in kernels if kernel.successor]


def _wait_for(files: Sequence[Path]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not all(file.exists() for file in files):
        assert time.monotonic() < end, "the child has not compiled them"
        time.sleep(0.05)


def _is_mapped(files: Sequence[Path]) -> bool:
    """Kernels that were compiled together are one file, which is mapped under one of its names."""
    inodes = {str(file.stat().st_ino) for file in files}
    lines = [line.split() for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()]
    return inodes <= {line[4] for line in lines}


def _run(session: ort.InferenceSession, rows: int = 5) -> NDArray[np.float32]:
    result: NDArray[np.float32] = session.run(None, {"x": normal(rows, 128)})[0]
    return result


def test_a_session_goes_on_with_kernels_for_its_sizes(calls: Planned, tmp_path: Path) -> None:
    model = layer(128)
    session = planned(model, _options(tmp_path))
    assert calls.reasons(0) == {}
    wanted = cpu(model, {"x": normal(5, 128)})
    close([_run(session)], wanted)
    successors = _successors(calls, tmp_path)
    general = {kernel.path for kernel in calls.answers[0].kernels if kernel.successor}
    assert len(successors) >= 3 and len(general) <= len(TARGETS), "prebuilt ones are in one file each"
    _wait_for(successors)
    time.sleep(LOOK_S)
    close([_run(session)], wanted)
    assert _is_mapped(successors)
    for rows in (1, 17, 300):
        close([_run(session, rows)], cpu(model, {"x": normal(rows, 128)}))


def test_a_later_session_has_them_at_once(calls: Planned, tmp_path: Path) -> None:
    model = layer(128)
    planned(model, _options(tmp_path))
    _wait_for(_successors(calls, tmp_path))
    session = planned(model, _options(tmp_path))
    assert calls.calls == 1, "the stored plan is whole"
    close([_run(session)], cpu(model, {"x": normal(5, 128)}))
    assert _is_mapped(_successors(calls, tmp_path))


def test_what_is_not_prebuilt_is_compiled_at_once(calls: Planned, tmp_path: Path) -> None:
    model = layer(128, "a = Tanh(second) y = Erf(a)")
    session = planned(model, _options(tmp_path))
    assert calls.reasons(0) == {}
    close([_run(session)], cpu(model, {"x": normal(5, 128)}))


@pytest.mark.parametrize("option", ["deterministic=1", "tune=session"])
def test_what_wants_other_kernels_turns_it_off(option: str) -> None:
    asked = parse_options({"first_run": "prebuilt", **dict([option.split("=")])})
    assert not begins_prebuilt(asked) and begins_prebuilt(parse_options({"first_run": "prebuilt"}))
    assert option in unlike_asked(asked, Context())


def test_a_deterministic_session_exchanges_nothing(calls: Planned, tmp_path: Path) -> None:
    session = planned(layer(128), _options(tmp_path, deterministic="1"))
    assert _successors(calls, tmp_path) == []
    assert "whatever first_run says: deterministic=1" in calls.answers[0].log_line
    first = _run(session)
    time.sleep(LOOK_S)
    assert np.array_equal(_run(session), first)


def test_without_a_library_all_is_compiled(tmp_path: Path) -> None:
    with watched_planner() as calls:
        planned(layer(128), _options(tmp_path))
    assert calls.reasons(0) == {} and _successors(calls, tmp_path) == []
    assert "nothing suitable is prebuilt" in calls.answers[0].log_line


def test_a_damaged_one_is_not_taken(calls: Planned, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xyntra_ep.provider.first_run.compile_beside", lambda *asked: None)
    model = layer(128)
    session = planned(model, _options(tmp_path))
    for file in _successors(calls, tmp_path):
        file.write_bytes(b"\x7fELF and no more")
        file.chmod(0o700)
    time.sleep(LOOK_S)
    close([_run(session)], cpu(model, {"x": normal(5, 128)}))
    monkeypatch.undo()
    session = planned(model, _options(tmp_path))  # which has them made anew
    assert calls.calls == 2
    _wait_for_size(_successors(calls, tmp_path))
    planned(model, _options(tmp_path))
    assert calls.calls == 2


def _wait_for_size(files: Sequence[Path]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not all(file.exists() and file.stat().st_size > 1000 for file in files):
        assert time.monotonic() < end, "the child has not compiled them"
        time.sleep(0.05)


def test_one_that_cannot_be_compiled_is_said(calls: Planned, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """In the log, once, and where the session is explained: the island stays as it is."""
    compiler = tmp_path / "gcc"
    compiler.write_text(
        '#!/bin/sh\nif [ "$1" = --version ]; then exec gcc --version; fi\necho no >&2; exit 3\n', encoding="utf-8"
    )
    compiler.chmod(0o700)
    model = layer(128)
    with knobs.scope(cc=str(compiler)):
        session = planned(model, _options(tmp_path))
    files = _successors(calls, tmp_path)
    [digest] = [graph.digest for graph in explain(session).graphs]
    end = time.monotonic() + PATIENCE_S
    while not background.refusals(digest):
        assert time.monotonic() < end, "the child has said nothing"
        time.sleep(0.05)
    time.sleep(LOOK_S)
    close([_run(session)], cpu(model, {"x": normal(5, 128)}))
    assert not any(file.exists() for file in files)
    [graph] = explain(session).graphs
    assert f"; {len(set(files))} of these cannot be: " in graph.prebuilt and "ended with status 3" in graph.prebuilt
    said = [line for line in capfd.readouterr().err.splitlines() if "cannot be compiled" in line]
    assert len(said) == 1 and f"XyntraEP: {len(set(files))} kernels for the model's sizes" in said[0]


def test_runs_meanwhile_are_right(calls: Planned, tmp_path: Path) -> None:
    model = layer(128)
    session = planned(model, _options(tmp_path), threads=2)
    wanted = {rows: cpu(model, {"x": normal(rows, 128)}) for rows in (3, 40)}
    wrong: list[Any] = []
    stop = threading.Event()

    def work(rows: int) -> None:
        while not stop.is_set():
            time.sleep(0.01)  # which leaves something to the child
            try:
                close([_run(session, rows)], wanted[rows])
            except AssertionError as error:
                wrong.append(error)

    threads = [threading.Thread(target=work, args=(rows,)) for rows in (3, 40, 3, 40)]
    for thread in threads:
        thread.start()
    _wait_for(_successors(calls, tmp_path))
    time.sleep(2 * LOOK_S)
    stop.set()
    for thread in threads:
        thread.join()
    assert not wrong and _is_mapped(_successors(calls, tmp_path))
