"""What somebody else can have made is not executed: it is said once, a session comes anyway, the next one has a sound cache."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.test_faults import CLAIMED, child, files

pytestmark = [pytest.mark.native, pytest.mark.compiler("gcc")]
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
STRANGER = 12345


def open_to_all(path: Path) -> str:
    path.chmod(0o777)
    return "others may write to it (mode 777)"


def given(path: Path) -> str:
    os.chown(path, STRANGER, STRANGER)
    return f"belongs to user {STRANGER}"


@pytest.mark.parametrize(("kind", "spoil"), [("plan", open_to_all), pytest.param("so", given, marks=as_root)])
def test_a_file_is_made_anew(tmp_path: Path, kind: str, spoil: Callable[[Path], str]) -> None:
    cache = tmp_path / "cache"
    child(cache)
    said = {spoil(path) for path in files(cache, kind)}
    for path in files(cache, "plan") if kind == "so" else []:  # native code would not tell why it takes no plan
        path.unlink()
    outcome = child(cache, sessions=2)
    assert outcome.reasons == [CLAIMED] * 2
    assert len(outcome.warnings) == 1 and said.pop() in outcome.warnings[0] and f".{kind}: " in outcome.warnings[0]
    for path in files(cache, kind):
        assert path.stat().st_uid == os.geteuid() and not path.stat().st_mode & 0o022
    assert child(cache).warnings == []


def test_a_kernel_is_not_loaded_by_a_stored_plan(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    child(cache)
    for path in files(cache, "so"):
        path.chmod(0o666)
    outcome = child(cache)
    assert outcome.reasons == [CLAIMED] and "others may write to it (mode 666)" in outcome.warnings[0]


@pytest.mark.parametrize(("folder", "spoil"), [("above", open_to_all), pytest.param("above/cache/kernels", given, marks=as_root)])
def test_a_private_place_is_taken(tmp_path: Path, folder: str, spoil: Callable[[Path], str]) -> None:
    cache = tmp_path / "above" / "cache"
    child(cache)
    before = {path: path.stat().st_mtime_ns for path in (*files(cache, "so"), *files(cache, "plan"))}
    said = spoil(tmp_path / folder)
    outcome = child(cache, sessions=2)
    assert outcome.reasons == [CLAIMED] * 2 and len(outcome.warnings) == 1
    assert f"the cache {cache} " in outcome.warnings[0] and "; using " in outcome.warnings[0]
    assert said in outcome.warnings[0] or "can be written by others" in outcome.warnings[0]
    assert {path: path.stat().st_mtime_ns for path in (*files(cache, "so"), *files(cache, "plan"))} == before
    private = Path(outcome.warnings[0].partition("; using ")[2].split("\x1b")[0].split(";")[0].split()[0])
    assert not private.exists(), "it goes with the process"


def test_no_place_is_safe(tmp_path: Path) -> None:
    """Kernels compile, and none of them is loaded: the model runs on the CPU provider."""
    (tmp_path / "temporary").mkdir()
    (tmp_path / "temporary").chmod(0o777)
    prepare = "from xyntra_ep.tracea.runtime import cache_root; cache_root._TEMPORARY = ()"
    outcome = child(tmp_path / "temporary" / "cache", prepare=prepare, TMPDIR=str(tmp_path / "temporary"))
    assert all("others may write to it (mode 777)" in reason for op, reason in outcome.reasons[0].items() if op != "NonZero")
    assert outcome.warnings


def test_what_was_measured(tmp_path: Path) -> None:
    """Tuning results, ceilings, compilers and trials decide what is executed as plans do."""
    code = """
import os, sys
from pathlib import Path
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.doctor import ceilings
from xyntra_ep.tracea.doctor.profile import Ceilings
from xyntra_ep.tracea.interface import trials
from xyntra_ep.tracea.interface.context import Context
from xyntra_ep.tracea.interface.tuning.keep import keep
from xyntra_ep.tracea.optimizer.tuning_cache import Choice, Question, TuningCache, TuningResult
from xyntra_ep.tracea.runtime import compilers
context = Context(cache_dir=Path(sys.argv[1]))
folder, machine = context.root.path, context.machine
asked = Question(op="op", compiler="c", release="r")
context.tuning.add(TuningResult(question=asked, default=Choice(variant="v", config={})))
keep(context.tuning, context.root)
tuning = context.machine_class.file
measured = Ceilings(fma_gflops=1.0, l2_gbs=1.0, l3_gbs=1.0, dram_gbs=1.0)
(folder / ceilings.FILE).write_bytes(ceilings.stored_with(folder, machine, measured))
compilers.find_compiler(context.root)
(folder / "trials.json").write_text('{"a": 1}')
def known():
    return (len(TuningCache.load(folder, context.machine_class).results), ceilings.load(folder, machine) is not None,
            len(compilers._Memory(context.root)._known) > 0, len(trials._rows(context)))
for mode in (0o644, 0o666, 0o600):
    for name in (tuning, ceilings.FILE, "compilers.json", "trials.json"):
        (folder / name).chmod(mode)
    print(*map(int, known()))
"""
    environment = {**os.environ, "XYNTRA_REGISTER": "0"}
    ran = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "cache")], env=environment, capture_output=True, text=True, timeout=120
    )
    assert (ran.stdout.splitlines(), ran.stderr) == (["1 1 1 1", "0 0 0 0", "1 1 1 1"], "")


def test_whatever_the_umask(tmp_path: Path) -> None:
    """What we write ourselves is found again by a process that gives everything to everybody."""
    prepare = "os.umask(0)"
    for expected in (1, 0):
        outcome = child(tmp_path / "a" / "b" / "cache", prepare=prepare)
        assert outcome.reasons == [CLAIMED] and len(outcome.warnings) == expected
    for path in (tmp_path / "a").rglob("*"):
        assert not stat.S_IMODE(path.stat().st_mode) & 0o022, path


OPTIONS = '[provider]\nclaim = "profitable"\nmin_island = 50\n'


def test_options_that_somebody_else_can_have_written(tmp_path: Path) -> None:
    """Not read, said once a process by a warning, and in the stored plan's line and by explain ever after."""
    here = f"os.chdir({str(tmp_path)!r})"
    (tmp_path / "fusion.toml").write_text(OPTIONS)
    own = child(tmp_path / "cache", prepare=here)
    assert all("below min_island" in reason for op, reason in own.reasons[0].items() if op != "NonZero")
    (tmp_path / "fusion.toml").chmod(0o666)
    told = here + "\nprepared = None\nsettings.log_severity_level = 1"
    first, second = (child(tmp_path / "cache", prepare=told) for _ in range(2))
    for outcome in (first, second):
        assert outcome.reasons == [CLAIMED]
        assert "fusion.toml is not read, because somebody else can have written it: " in outcome.lines[0]
        assert "others may write to it (mode 666)" in outcome.lines[0]
    assert (len(first.warnings), len(second.warnings)) == (1, 0)
    (tmp_path / "fusion.toml").chmod(0o600)
    assert child(tmp_path / "cache", prepare=here).reasons == own.reasons


def test_code_is_loaded_from_the_descriptor_that_was_checked(tmp_path: Path) -> None:
    """The loader's own account: what has the kernel's name by then is nothing to it."""
    child(tmp_path / "cache")
    for _ in range(2):  # planned, and from a stored plan
        child(tmp_path / "cache", LD_DEBUG="files", LD_DEBUG_OUTPUT=str(tmp_path / "loaded"))
        [*logs] = [path.read_text() for path in tmp_path.glob("loaded.*")]
        text = "\n".join(logs)
        assert "/proc/self" in text and "/fd/" in text
        assert f"{tmp_path / 'cache' / 'kernels'}" not in text
        for path in files(tmp_path / "cache", "plan"):
            path.unlink()
