"""Kernels that a child compiles beside a session: where they are in the end, and that the child goes when it should."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from xyntra_ep.errors import CompileError
from xyntra_ep.tracea.runtime import background
from xyntra_ep.tracea.runtime.cache_root import open_root
from xyntra_ep.tracea.runtime.children import background_child
from xyntra_ep.tracea.runtime.compilers import find_compiler
from xyntra_ep.tracea.runtime.kernel_cache import KernelCache
from xyntra_ep.tracea.runtime.kernel_files import CompiledKernel
from xyntra_ep.tracea.runtime.kernel_source import KernelSource

pytestmark = pytest.mark.compiler("cc")

SOURCES = [KernelSource.of_text(f"f{i}", f"int f{i}(void) {{ return {i}; }}\n") for i in range(3)]
# Its compiler says what it is when it is asked, and never ends when it compiles.
PARENT = """
import sys, time
from pathlib import Path
from xyntra_ep.errors import CompileError
from xyntra_ep.tracea.runtime import background
from xyntra_ep.tracea.runtime.cache_root import open_root
from xyntra_ep.tracea.runtime.compilers import find_compiler
from xyntra_ep.tracea.runtime.kernel_cache import KernelCache
from xyntra_ep.tracea.runtime.kernel_source import KernelSource

source = KernelSource.of_text("f", "int f(void) { return 1; }")
assert background.compile_beside(KernelCache(open_root(Path(sys.argv[1])), find_compiler(), ()), [source], "d", print) is not None
print("began", flush=True)
time.sleep(60)
"""
COMPILER = """#!/bin/sh
case "$*" in *--version*) echo "gcc 12.2.0"; exit 0;; esac
echo $$ > {pid}.part; mv {pid}.part {pid}
sleep 1000
"""


def _cache(folder: Path) -> KernelCache:
    return KernelCache(open_root(folder), find_compiler(), ())


def test_they_are_in_the_cache_then(tmp_path: Path) -> None:
    told: list[Sequence[str]] = []
    waiting = background.compile_beside(_cache(tmp_path), SOURCES, "d", told.append)
    assert waiting is not None
    assert background.compile_beside(_cache(tmp_path), SOURCES, "d", told.append) is None, "a child has them"
    waiting.join(120)
    assert all(isinstance(kernel, CompiledKernel) and kernel.cached for kernel in _cache(tmp_path).compile_many(SOURCES))
    assert told == [] and background.refusals("d") == []
    assert background._begun == set() and not list((tmp_path / "tmp").iterdir())


def test_another_cache_gets_them_meanwhile(tmp_path: Path) -> None:
    told: list[Sequence[str]] = []
    caches = [_cache(tmp_path / name) for name in ("one", "other")]
    for waiting in [background.compile_beside(cache, SOURCES, "d", told.append) for cache in caches]:
        assert waiting is not None
        waiting.join(120)
    for cache in caches:
        assert all(isinstance(kernel, CompiledKernel) and kernel.cached for kernel in cache.compile_many(SOURCES))


def test_what_cannot_be_compiled_is_told(tmp_path: Path) -> None:
    """The others are there all the same."""
    bad = KernelSource.of_text("bad", "int bad(void) { return nothing; }\n")
    told: list[Sequence[str]] = []
    waiting = background.compile_beside(_cache(tmp_path), [*SOURCES, bad], "d", told.append)
    assert waiting is not None
    waiting.join(120)
    ((why,),) = told
    assert why.startswith("bad: ") and "nothing" in why and background.refusals("d") == [why]
    assert background.refusals("another") == []
    made = _cache(tmp_path).compile_many(SOURCES)
    assert all(isinstance(kernel, CompiledKernel) and kernel.cached for kernel in made)
    again = background.compile_beside(_cache(tmp_path), SOURCES, "d", told.append)  # without the one that was at fault
    assert again is not None
    again.join(120)
    assert len(told) == 1 and background.refusals("d") == []


def test_a_child_that_ends_early_is_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "child.py"
    broken.write_text("raise SystemExit(3)\n", encoding="utf-8")
    monkeypatch.setattr(background_child, "__file__", str(broken))
    told: list[Sequence[str]] = []
    waiting = background.compile_beside(_cache(tmp_path), SOURCES, "d", told.append)
    assert waiting is not None
    waiting.join(120)
    assert told == [["the process that compiles them has ended with status 3"] * 3]


def test_its_kernels_have_the_checks_that_are_asked_for(tmp_path: Path) -> None:
    """XYNTRA_SANITIZE is the parent's: a compiler brings it along."""
    told: list[Sequence[str]] = []
    checked = KernelCache(open_root(tmp_path), replace(find_compiler(), sanitizers="undefined"), ())
    source = KernelSource.of_text("f", "int f(int n) { return 7 << n; }\n")
    waiting = background.compile_beside(checked, [source], "d", told.append)
    assert waiting is not None
    waiting.join(120)
    outcome = checked.compile_many([source])[0]
    if isinstance(outcome, CompileError) and "ubsan" in outcome.log:
        pytest.skip("the compiler on this machine is without its sanitizers")
    assert told == []
    assert isinstance(outcome, CompiledKernel) and outcome.cached
    assert b"__ubsan_handle_" in Path(outcome.path).read_bytes()


def test_it_is_no_zombie(tmp_path: Path) -> None:
    told: list[Sequence[str]] = []
    before = _children()
    waiting = background.compile_beside(_cache(tmp_path), SOURCES, "d", told.append)
    assert waiting is not None
    waiting.join(120)
    assert _children() <= before


def _children() -> set[str]:
    tasks = Path("/proc/self/task").iterdir()
    return {pid for task in tasks for pid in (task / "children").read_text(encoding="utf-8").split()}


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_it_ends_with_its_parent_and_so_do_its_compilers(tmp_path: Path, number: signal.Signals) -> None:
    pid, compiler = tmp_path / "pid", tmp_path / "gcc"
    compiler.write_text(COMPILER.format(pid=pid), encoding="utf-8")
    compiler.chmod(0o700)
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path / "cache")],
        env={**os.environ, "XYNTRA_CC": str(compiler), "XYNTRA_REGISTER": "0"},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait_until(pid.exists)
        at_work = int(pid.read_text(encoding="utf-8"))
        child = _parent_of(at_work)
        assert _parent_of(child) == parent.pid and os.getpriority(os.PRIO_PROCESS, child) == 10
    finally:
        parent.send_signal(number)
        parent.communicate()
    _wait_until(lambda: not _lives(child) and not _lives(at_work))
    assert not list((tmp_path / "cache" / "tmp").iterdir()), "nor do they leave files behind"


def _parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1])


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _wait_until(is_so: object) -> None:
    assert callable(is_so)
    end = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.02)
