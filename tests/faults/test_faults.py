"""What goes wrong around a session, in processes of their own: compilers that fail, disks that are full, caches that are
damaged or foreign, planners that raise. There is always a session, always the right numbers, and one line that says why it
is slower."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

pytestmark = [pytest.mark.native, pytest.mark.compiler("gcc")]

_KEPT = ("XYNTRA_ISA", "XYNTRA_PREBUILT_DIR")  # what the machine is, and that nothing is prebuilt for it
CHILD = """
import json, os, sys
import numpy as np
import onnxruntime as ort
import xyntra_ep
from tests.support.models.model_text import close, cpu, normal, parse
from xyntra_ep.diagnostics.explain import explain

ort.set_default_logger_severity(1)
model = parse('''(float[N,4] x) => (float[] y, float[] z)
    <float c = {2.0}> { a = Exp(x) b = Mul(a, c) y = Tanh(b) n = NonZero(x) z = Cast<to = 1>(n) }''')
settings = ort.SessionOptions()
settings.log_severity_level = 2
PREPARE
options = {"claim": "all", **OPTIONS}
rows = []
for _ in range(SESSIONS):
    made = ort.InferenceSession(
        model.SerializeToString(), settings, providers=[("XyntraEP", options), "CPUExecutionProvider"], enable_fallback=0
    )
    feeds = {"x": normal(3, 4)}
    close(made.run(None, feeds), cpu(model, feeds))
    found = explain(made)
    rows.append({n.op_type: n.reason for g in found.graphs for n in g.declined})
print("REASONS " + json.dumps(rows))
"""


@dataclass(frozen=True)
class Outcome:
    reasons: list[dict[str, str]]  # of each session
    lines: list[str]  # of ours in the log, but that a busy machine's compilers took their time

    @property
    def warnings(self) -> list[str]:
        return [line for line in self.lines if "[W:" in line]


def child(cache: Path, *, prepare: str = "", sessions: int = 1, options: dict[str, str] | None = None, **env: str) -> Outcome:
    text = CHILD.replace("PREPARE", prepare).replace("OPTIONS", repr(options or {})).replace("SESSIONS", str(sessions))
    environment = {k: v for k, v in os.environ.items() if k in _KEPT or not k.startswith("XYNTRA_")}
    environment |= {"XYNTRA_CACHE_DIR": str(cache), **env}
    done = subprocess.run([sys.executable, "-c", text], env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-3000:]
    (found,) = [line for line in done.stdout.splitlines() if line.startswith("REASONS ")]
    ours = [line for line in done.stderr.splitlines() if "XyntraEP" in line and "XyntraEP_" not in line]
    ours = [line for line in ours if "XyntraEP: compiling" not in line]
    return Outcome(json.loads(found.removeprefix("REASONS ")), ours)


def compiler(folder: Path, body: str) -> str:
    """A compiler that knows its version and then does ``body``."""
    path = folder / "gcc"
    path.write_text(f'#!/bin/sh\nif [ "$1" = --version ]; then exec gcc --version; fi\n{body}\n')
    path.chmod(0o700)
    return str(path)


CLAIMED = {"NonZero": "unsupported"}


def test_nothing_wrong(tmp_path: Path) -> None:
    """One line per model: a warning for what was left, once; a stored plan says it at a lower level."""
    first = child(tmp_path / "cache", sessions=3)
    assert first.reasons == [CLAIMED] * 3
    assert len(first.warnings) == 1 and "4 of 5 nodes" in first.warnings[0] and "NonZero(unsupported) 1" in first.warnings[0]
    second = child(tmp_path / "cache")
    assert second.reasons == [CLAIMED] and not second.warnings
    assert len(first.lines) == 3 and len(second.lines) == 1, "one line per session"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("kill -SEGV $$", "signal 11"),
        ("echo no >&2; exit 3", "3"),
        ("exit 0", "wrote nothing"),
        ('while [ "$1" != -o ]; do shift; done; echo text > "$2"', "not a shared object"),
    ],
)
def test_a_compiler_that_fails(tmp_path: Path, body: str, said: str) -> None:
    bad = compiler(tmp_path, body)
    outcome = child(tmp_path / "cache", sessions=2, XYNTRA_CC=bad)
    for reasons in outcome.reasons:
        assert set(reasons) == {"Exp", "Mul", "Tanh", "NonZero", "Cast"}
        assert all(said in r for op, r in reasons.items() if op != "NonZero"), reasons
    assert len(outcome.warnings) == 1
    assert child(tmp_path / "cache").reasons == [CLAIMED], "nothing of that is remembered"


def test_a_plan_of_a_failed_build_is_not_kept(tmp_path: Path) -> None:
    """The same compiler, first out of order: its identity is the same."""
    flag = tmp_path / "broken"
    flag.touch()
    shaky = compiler(tmp_path, f'test -e {flag} && exit 1\nexec gcc "$@"')
    assert set(child(tmp_path / "cache", XYNTRA_CC=shaky).reasons[0]) > {"Exp"}
    flag.unlink()
    assert child(tmp_path / "cache", XYNTRA_CC=shaky).reasons == [CLAIMED]


def test_a_compiler_that_hangs(tmp_path: Path) -> None:
    slow = compiler(tmp_path, "exec sleep 100")
    outcome = child(tmp_path / "cache", XYNTRA_CC=slow, XYNTRA_COMPILE_TIMEOUT_S="0.5")
    assert all("0.5" in r for op, r in outcome.reasons[0].items() if op != "NonZero"), outcome.reasons


def test_no_compiler(tmp_path: Path) -> None:
    outcome = child(tmp_path / "cache", sessions=2, XYNTRA_CC=str(tmp_path / "absent"))
    for reasons in outcome.reasons:
        assert all("no C compiler" in r for op, r in reasons.items() if op != "NonZero")
    assert len(outcome.warnings) == 1 and "set XYNTRA_CC" in outcome.warnings[0]


@pytest.mark.parametrize("when", ["before", "between"])
def test_a_full_disk(tmp_path: Path, when: str) -> None:
    """Files grow no further: for the sources, or for what the compiler makes of them."""
    limit = {"before": 0, "between": 6000}[when]
    prepare = f"""
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
from xyntra_ep.provider import planner
import xyntra_ep.tracea.interface.islands
real = planner.plan_graph
def limited(raw, digest):
    resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, resource.RLIM_INFINITY))
    try:
        return real(raw, digest)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
planner.plan_graph = limited
"""
    outcome = child(tmp_path / "cache", prepare=prepare)
    assert set(outcome.reasons[0]) >= {"Exp", "Mul", "Tanh"}, outcome
    assert len(outcome.warnings) == 1
    assert child(tmp_path / "cache").reasons == [CLAIMED]


def files(cache: Path, kind: str) -> list[Path]:
    return sorted(cache.rglob(f"*.{kind}"))


@pytest.mark.parametrize("damage", ["truncate", "flip", "remove"])
@pytest.mark.parametrize("kind", ["so", "plan"])
def test_a_damaged_cache_is_made_anew(tmp_path: Path, kind: str, damage: str) -> None:
    cache = tmp_path / "cache"
    child(cache)
    assert files(cache, kind)
    for path in files(cache, kind):
        data = bytearray(path.read_bytes())
        if damage == "remove":
            path.unlink()
            continue
        if damage == "flip":
            data[len(data) // 2] ^= 0x55
        path.write_bytes(data[: len(data) // 2] if damage == "truncate" else data)
    assert child(cache, sessions=2).reasons == [CLAIMED] * 2
    assert files(cache, "so") and files(cache, "plan")


def test_a_cache_that_others_can_write(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    cache.chmod(0o777)
    outcome = child(cache, sessions=2)
    assert outcome.reasons == [CLAIMED] * 2 and len(outcome.warnings) == 1
    assert not files(cache, "so") and not files(cache, "plan")
    assert stat.S_IMODE(cache.stat().st_mode) == 0o777, "it is not ours to change"


def test_a_cache_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("")
    assert child(tmp_path / "cache").reasons == [CLAIMED]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_cache(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir(mode=0o500)
    assert child(cache).reasons == [CLAIMED]


def test_a_planner_that_raises(tmp_path: Path) -> None:
    prepare = """
from xyntra_ep.provider import planner
def broken(*args):
    raise RuntimeError("the planner is out of order")
planner.partition = broken
"""
    outcome = child(tmp_path / "cache", prepare=prepare, sessions=1)
    assert len(outcome.warnings) == 1 and "out of order" in outcome.warnings[0]
    assert child(tmp_path / "cache").reasons == [CLAIMED]


def test_an_operator_that_raises(tmp_path: Path) -> None:
    """Our bug in one operator costs that node, not the session."""
    prepare = """
from xyntra_ep.fusion import trace
from xyntra_ep.fusion.trace import OpSpec
real = trace.find_op
def odd(node):
    def lower(*args):
        raise KeyError("tanh")
    return OpSpec(name="Tanh", lower=lower) if node.op_type == "Tanh" else real(node)
trace.find_op = odd
"""
    outcome = child(tmp_path / "cache", prepare=prepare)
    assert outcome.reasons[0] == {**CLAIMED, "Tanh": "internal: KeyError: 'tanh'"}


def test_dumps_are_written_every_time(tmp_path: Path) -> None:
    """A stored plan would dump nothing."""
    for k in range(2):
        dump = tmp_path / "dump"
        outcome = child(tmp_path / "cache", options={"dump_dir": str(dump)}, sessions=2)
        assert outcome.reasons == [CLAIMED] * 2 and len(outcome.warnings) == 1
        assert list(dump.glob("*.c")), k
        for path in dump.iterdir():
            path.unlink()
