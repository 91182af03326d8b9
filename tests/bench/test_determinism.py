"""What hashes say, and where they come from."""

from __future__ import annotations

import dataclasses
import io
import json
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from jsonschema import Draft202012Validator
from onnx.parser import parse_model
from rich.console import Console
from typer.testing import CliRunner

from tests.reports.conftest import ENVIRONMENT
from xyntra_bench.cli import app
from xyntra_bench.codec import decode
from xyntra_bench.determinism import Bits, Configuration, Determinism, Hashes, over_threads
from xyntra_bench.determinism_run import show_determinism
from xyntra_bench.determinism_worker import digest
from xyntra_bench.errors import BenchError
from xyntra_bench.results import Status
from xyntra_bench.store import SCHEMA_FILE

A, B, C = "a" * 16, "b" * 16, "c" * 16


def configuration(*hashes: tuple[int, int, tuple[str, ...]], threads: int = 1, status: Status = Status.OK) -> Configuration:
    found = tuple(Hashes(process=process, seed=seed, runs=runs) for process, seed, runs in hashes)
    return Configuration(model="m", shape="b1", contender="X", threads=threads, status=status, hashes=found)


EQUAL = configuration((0, 1, (A, A)), (0, 2, (B, B)), (1, 1, (A, A)), (1, 2, (B, B)))
OTHER_PROCESS = configuration((0, 1, (A, A)), (0, 2, (B, B)), (1, 1, (A, C)), (1, 2, (B, B)), threads=2)
DEAD = configuration((0, 1, (A, A)), (0, 2, (A, A)))
CRASHED = configuration(status=Status.CRASHED)


@pytest.mark.parametrize(
    ("found", "bits", "where"),
    [
        (EQUAL, Bits.EQUAL, ""),
        (OTHER_PROCESS, Bits.DIFFER, "seed 1, process 1, run 1"),
        (configuration((0, 1, (A, B))), Bits.DIFFER, "seed 1, process 0, run 1"),
        (DEAD, Bits.SEED_IGNORED, ""),
        (CRASHED, Bits.NO_DATA, ""),
    ],
)
def test_within_a_configuration(found: Configuration, bits: Bits, where: str) -> None:
    assert found.bits is bits and found.first_difference == where


def test_over_threads_is_reported_and_not_demanded() -> None:
    other = dataclasses.replace(configuration((0, 1, (C, C)), (0, 2, (B, B))), threads=2)
    more = dataclasses.replace(EQUAL, threads=4)
    everyone = (other, EQUAL, more)
    assert [over_threads(c, everyone) for c in everyone] == ["differs from 1", "reference", "equal to 1"]
    assert over_threads(EQUAL, (EQUAL,)) == "-"
    result = Determinism(environment=ENVIRONMENT, seeds=(1, 2), runs=2, processes=2, configurations=everyone)
    assert result.good


def test_one_that_differs_or_fails_is_not_good() -> None:
    def good(*found: Configuration) -> bool:
        return Determinism(environment=ENVIRONMENT, seeds=(1,), runs=1, processes=1, configurations=found).good

    assert good(EQUAL) and not good(EQUAL, OTHER_PROCESS) and not good(EQUAL, CRASHED) and not good(DEAD) and not good()


def test_the_table_says_what_to_do() -> None:
    console = Console(file=io.StringIO(), width=200)
    found = (EQUAL, OTHER_PROCESS, DEAD, dataclasses.replace(CRASHED, error="killed by SIGSEGV"))
    show_determinism(console, Determinism(environment=ENVIRONMENT, seeds=(1,), runs=2, processes=2, configurations=found))
    text = console.file.getvalue()  # type: ignore[attr-defined]  # the StringIO above
    first, second = (line.split() for line in text.splitlines()[1:3])
    assert first == ["m", "b1", "X", "1", "equal", "reference", A] and second[:5] == ["m", "b1", "X", "2", "differ"]
    assert "! m b1 t2 X: other bits at seed 1, process 1, run 1" in text and "crashed: killed by SIGSEGV" in text
    assert "do not depend on the inputs" in text


def test_a_contender_with_the_cpus_bits_is_suspected_of_having_taken_nothing() -> None:
    console = Console(file=io.StringIO(), width=200)
    cpu = dataclasses.replace(EQUAL, contender="CPUExecutionProvider")
    found = (cpu, EQUAL, dataclasses.replace(EQUAL, contender="Y", hashes=DEAD.hashes[:1]))
    show_determinism(console, Determinism(environment=ENVIRONMENT, seeds=(1,), runs=2, processes=2, configurations=found))
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]  # the StringIO above
    assert [line for line in lines if "may have taken no node" in line] == [
        "! m b1 t1 X: the CPU provider's bits, so it may have taken no node: ask `xyntra explain` why"
    ]


def test_a_digest_knows_bits_shapes_types_and_names() -> None:
    zero = np.zeros((2, 3), np.float32)
    others = [-zero, zero.reshape(3, 2), zero.astype(np.int32)]
    digests = {digest(["y"], [zero]), digest(["z"], [zero]), *(digest(["y"], [other]) for other in others)}
    assert len(digests) == 5 and digest(["y"], [zero]) == digest(["y"], [zero.copy()])
    assert digest(["y"], [zero.T]) == digest(["y"], [np.zeros((3, 2), np.float32)]), "by elements, not by layout"


def test_a_digest_of_strings_is_of_their_text() -> None:
    """Not of where they lie in memory."""
    words = [np.array(["".join(("a", "b")), other], dtype=object) for other in ("c", "c", "d")]
    first, again, changed = (digest(["y"], [array]) for array in words)
    assert first == digest(["y"], [np.array(["ab", "c"], dtype=object)]) == again != changed


def test_the_command_hashes_in_processes_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "d.json"
    asked = ["determinism", "-m", "resnet50-tiny", "-e", "CPUExecutionProvider", "--threads", "1", "--runs", "2"]
    monkeypatch.setattr(sys, "argv", ["bench", *asked])
    done = CliRunner().invoke(app, [*asked, "--json", str(file)])
    assert done.exit_code == 0, done.output
    data = json.loads(file.read_text())
    Draft202012Validator(json.loads(SCHEMA_FILE.with_name("determinism.v3.json").read_text())).validate(data)
    result = decode(Determinism, data)
    [cpu] = result.configurations
    assert cpu.bits is Bits.EQUAL and [(h.process, h.seed, len(h.runs)) for h in cpu.hashes] == [
        (0, 1, 2),
        (0, 2, 2),
        (1, 1, 2),
        (1, 2, 2),
    ]
    assert result.finished


def test_inputs_of_ones_own_leave_seeds_to_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = parse_model('<ir_version: 9, opset_import: ["" : 17]> g (float[2] a, float[2] b) => (float[2] y) { y = Add(a, b) }')
    onnx.save(model, tmp_path / "add.onnx")
    for name in "ab":
        np.save(tmp_path / f"{name}.npy", np.ones(2, np.float32))
    asked = ["determinism", "-e", "CPUExecutionProvider", "--threads", "1", "--runs", "1", "--processes", "1"]
    monkeypatch.setattr(sys, "argv", ["bench", *asked])
    given = [f"--feed={name}={tmp_path / name}.npy" for name in "ab"]
    for feeds, seeds in ((given, [1]), (given[:1], [1, 2])):
        file = tmp_path / f"{len(feeds)}.json"
        done = CliRunner().invoke(app, [*asked, "--file", str(tmp_path / "add.onnx"), *feeds, "--json", str(file)])
        assert done.exit_code == 0, done.output
        [cpu] = decode(Determinism, json.loads(file.read_text())).configurations
        assert cpu.bits is Bits.EQUAL and [h.seed for h in cpu.hashes] == seeds
    refused = CliRunner().invoke(app, [*asked, *given])
    assert isinstance(refused.exception, BenchError) and "name it with --file" in str(refused.exception)
