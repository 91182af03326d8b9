"""The option `trace`: a file when Python ends, nothing otherwise, and no word of it in a plan."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.diagnostics.trace.chrome import check, spans

pytestmark = [pytest.mark.native, pytest.mark.compiler("cc")]

PROGRAM = """
import json, sys
import numpy as np, onnxruntime as ort, xyntra_ep
options = json.loads(sys.argv[2])
settings = ort.SessionOptions()
settings.log_severity_level = 3
session = ort.InferenceSession(sys.argv[1], settings, providers=[("XyntraEP", options), "CPUExecutionProvider"])
session.run(None, {"x": np.ones((4, 64), np.float32)})
print(xyntra_ep.explain(session).graphs[0].stored)
"""


def run(model: Path, cwd: Path, options: dict[str, str], **variables: str) -> subprocess.CompletedProcess[str]:
    given = json.dumps({"claim": "all", "log_level": "error", **options})
    environment = {**{k: v for k, v in os.environ.items() if k != "XYNTRA_TRACE"}, **variables}
    command = [sys.executable, "-c", PROGRAM, str(model), given]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the tests that do not ask who finds a plan."""
    return tmp_path_factory.mktemp("cache")


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if path.name != "cache"}


@pytest.mark.parametrize("options", [{}, {"trace": "off"}, {"trace": " Live "}])
def test_without_a_file_nothing_is_left(mlp: Path, tmp_path: Path, options: dict[str, str], cache: Path) -> None:
    done = run(mlp, tmp_path, {**options, "cache_dir": str(cache)})
    assert done.returncode == 0 and not done.stderr, done.stderr
    assert files(tmp_path) == set()


def test_a_trace_is_no_part_of_a_plan(mlp: Path, tmp_path: Path) -> None:
    """The first session plans; all others find that plan, whatever they trace."""
    said = [
        run(mlp, tmp_path, {**options, "cache_dir": str(tmp_path / "cache")}, **variables).stdout.strip()
        for options, variables in (
            ({}, {}),
            ({"trace": "run.json"}, {}),
            ({"trace": "live"}, {}),
            ({}, {"XYNTRA_TRACE": "other.json"}),
            ({"trace": "off"}, {"XYNTRA_TRACE": "live"}),
        )
    ]
    assert said == ["False", "True", "True", "True", "True"]
    for name, stages in (("run.json", {"capability"}), ("other.json", {"capability"})):
        document = json.loads((tmp_path / name).read_text())
        check(document)
        assert len(spans(document, "run")) == 1 and spans(document, "step")
        assert {e["name"].split()[0] for e in spans(document, "planning")} == stages | {"packing"}
        assert (tmp_path / name).stat().st_mode & 0o77 == 0


def test_a_session_decides_before_the_environment_and_that_before_the_file(mlp: Path, tmp_path: Path, cache: Path) -> None:
    (tmp_path / "mine.toml").write_text('[provider]\ntrace = "of-file.json"\n')
    for variables, expected in (
        ({}, "of-file.json"),
        ({"XYNTRA_TRACE": "of-variable.json"}, "of-variable.json"),
        ({"XYNTRA_TRACE": "off"}, ""),
    ):
        done = run(mlp, tmp_path, {"cache_dir": str(cache)}, XYNTRA_CONFIG=str(tmp_path / "mine.toml"), **variables)
        assert done.returncode == 0, done.stderr
        assert files(tmp_path) - {"mine.toml"} == ({expected} - {""})
        if expected:
            (tmp_path / expected).unlink()


def test_the_number_of_the_process_may_be_in_its_name(mlp: Path, tmp_path: Path, cache: Path) -> None:
    assert run(mlp, tmp_path, {"trace": "run-%p.json", "cache_dir": str(cache)}).returncode == 0
    [name] = files(tmp_path)
    assert name.removeprefix("run-").removesuffix(".json").isdigit()
    assert json.loads((tmp_path / name).read_text())["traceEvents"][0]["pid"] == int(name[4:-5])


def test_a_file_that_cannot_be_is_refused(mlp: Path, tmp_path: Path) -> None:
    done = run(mlp, tmp_path, {"trace": "nowhere/run.json"})
    assert done.returncode != 0
    wanted = f"XyntraEP: trace='{tmp_path}/nowhere/run.json' cannot be written: {tmp_path}/nowhere: No such file or directory"
    assert wanted in done.stderr and "give off, live or a file in a folder that is there" in done.stderr


def test_a_folder_that_is_gone_when_python_ends_costs_a_line_of_the_log(mlp: Path, tmp_path: Path, cache: Path) -> None:
    (tmp_path / "there").mkdir()
    program = PROGRAM + "import os; os.rmdir('there')\n"
    given = json.dumps({"claim": "all", "cache_dir": str(cache), "trace": "there/run.json"})
    command = [sys.executable, "-c", program, str(mlp), given]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and "the trace cannot be written: No such file or directory" in done.stderr
