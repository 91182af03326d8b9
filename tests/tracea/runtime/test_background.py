"""Kernels that a child compiles beside a session: where they are in the end, and that the child goes when it should."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from xyntra_ep.tracea.runtime import background
from xyntra_ep.tracea.runtime.cache_root import open_root
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
from xyntra_ep.tracea.runtime import background
from xyntra_ep.tracea.runtime.cache_root import open_root
from xyntra_ep.tracea.runtime.compilers import find_compiler
from xyntra_ep.tracea.runtime.kernel_cache import KernelCache
from xyntra_ep.tracea.runtime.kernel_source import KernelSource

source = KernelSource.of_text("f", "int f(void) { return 1; }")
assert background.compile_beside(KernelCache(open_root(Path(sys.argv[1])), find_compiler(), ()), [source]) is not None
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
    waiting = background.compile_beside(_cache(tmp_path), SOURCES)
    assert waiting is not None
    assert background.compile_beside(_cache(tmp_path), SOURCES) is None, "a child has them"
    waiting.join(120)
    assert all(isinstance(kernel, CompiledKernel) and kernel.cached for kernel in _cache(tmp_path).compile_many(SOURCES))
    assert background._begun == set() and not list((tmp_path / "tmp").iterdir())


def test_it_is_no_zombie(tmp_path: Path) -> None:
    before = _children()
    waiting = background.compile_beside(_cache(tmp_path), SOURCES)
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
