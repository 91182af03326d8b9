from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from xyntra_ep.tracea.runtime.process import ProcessPool, run_all


def test_outcomes_come_in_the_order_of_commands(tmp_path: Path) -> None:
    outcomes = run_all(
        [["sh", "-c", f"sleep 0.{9 - i}; echo {i}; exit {i}"] for i in range(5)],
        folder=tmp_path,
        parallel=5,
        timeout_s=20,
    )
    assert [o.log for o in outcomes] == [f"{i}\n" for i in range(5)]
    assert [o.problem for o in outcomes] == ["", *(f"ended with status {i}" for i in range(1, 5))]


def test_no_more_than_parallel_at_a_time(tmp_path: Path) -> None:
    script = "mkdir lock || exit 9; sleep 0.05; rmdir lock"
    outcomes = run_all([["sh", "-c", script]] * 4, folder=tmp_path, parallel=1, timeout_s=20)
    assert [o.problem for o in outcomes] == [""] * 4


def test_a_hang_is_ended_with_all_its_children(tmp_path: Path) -> None:
    script = "sleep 60 & echo $! > child; trap '' TERM; wait; wait"
    begin = time.monotonic()
    [outcome] = run_all([["sh", "-c", script]], folder=tmp_path, parallel=1, timeout_s=0.3)
    assert outcome.problem == "did not end within 0.3 s"
    assert time.monotonic() - begin < 10
    child = int((tmp_path / "child").read_text())
    for _ in range(100):  # killed children of a dead parent are reaped by init, in its own time
        if not os.path.exists(f"/proc/{child}") or "Z" in Path(f"/proc/{child}/stat").read_text().split()[2]:
            break
        time.sleep(0.02)
    else:
        raise AssertionError("the child outlived its group")


def test_a_signal_is_named(tmp_path: Path) -> None:
    [outcome] = run_all([["sh", "-c", "kill -SEGV $$"]], folder=tmp_path, parallel=1, timeout_s=20)
    assert outcome.problem == "was ended by signal 11"


def test_what_cannot_start_is_an_outcome(tmp_path: Path) -> None:
    outcomes = run_all([["/nonexistent/cc"], ["true"]], folder=tmp_path, parallel=2, timeout_s=20)
    assert "could not be started" in outcomes[0].problem
    assert outcomes[1].problem == ""


def test_a_long_log_does_not_block(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", "print('x' * 10_000_000)"]
    [outcome] = run_all([argv], folder=tmp_path, parallel=1, timeout_s=60)
    assert outcome.problem == "" and 0 < len(outcome.log) < 100_000


def test_what_a_process_has_said_is_what_it_printed_whole_behind_a_mark(tmp_path: Path) -> None:
    script = """printf 'a driver prints\\nmark {"a": 1}\\nmark [2]\\n other mark 3\\nmark {"cut of'; kill -9 $$"""
    [outcome] = run_all([["sh", "-c", script]], folder=tmp_path, parallel=1, timeout_s=20)
    assert outcome.said("mark ") == [{"a": 1}, [2]] and outcome.problem == "was ended by signal 9"
    assert outcome.said("nobody ") == []


def test_scratch_files_go_to_the_folder(tmp_path: Path) -> None:
    [outcome] = run_all([["sh", "-c", "echo $TMPDIR; pwd"]], folder=tmp_path, parallel=1, timeout_s=20)
    assert set(outcome.log.split()) == {str(tmp_path)}


def test_a_child_that_nobody_has_noted_is_ended(tmp_path: Path) -> None:
    """As when Ctrl-C comes between the start of a compiler and the note of it."""
    with ProcessPool(folder=tmp_path, timeout_s=20):
        lost = subprocess.Popen(["sleep", "60"], cwd=tmp_path, process_group=0)
        other = subprocess.Popen(["sleep", "60"], process_group=0)
    assert not Path(f"/proc/{lost.pid}").exists()
    assert lost.poll() is not None and other.poll() is None
    other.kill()
    other.wait()


def test_the_end_of_a_pool_ends_all_at_once(tmp_path: Path) -> None:
    """Each has the same time to end politely, not one after the other."""
    with ProcessPool(folder=tmp_path, timeout_s=20) as pool:
        for n in range(3):
            pool.add(["sh", "-c", f"trap 'touch told{n}; exit' TERM; touch ready{n}; while true; do sleep 0.01; done"])
        pool.advance(3)
        while not all((tmp_path / f"ready{n}").exists() for n in range(3)):
            time.sleep(0.01)
    assert all((tmp_path / f"told{n}").exists() for n in range(3))
