"""The ways a process can end, or be told to, while something is under way: with the status that it wanted, a quiet stderr, and no
compiler that goes on. (With sessions that do nothing: tests/native/test_processes.py.)"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

pytestmark = [pytest.mark.native, pytest.mark.compiler("gcc")]
PATIENCE_S = 60  # ours with a child; nothing here takes as long

PRELUDE = """
import atexit, faulthandler, gc, os, signal, sys, threading, time
from pathlib import Path
FOLDER = Path(sys.argv[1])
def mark(name): (FOLDER / name).touch()
def wait_for(name):
    while not (FOLDER / name).exists(): time.sleep(0.005)
BEFORE
import numpy as np, onnxruntime as ort
import xyntra_ep
from tests.support.models.model_text import parse
from xyntra_ep import ending
ort.set_default_logger_severity(4)
text = "(float[N,64] x) => (float[] y) { a = Exp(x) b = Tanh(a) y = Mul(b, x) }"
model = parse(text).SerializeToString()
def make(threads=1):
    settings = ort.SessionOptions()
    settings.intra_op_num_threads = threads
    settings.log_severity_level = 4
    return ort.InferenceSession(model, settings, providers=[("XyntraEP", {"claim": "all"}), "CPUExecutionProvider"])
def ours(session):
    return bool(xyntra_ep.explain(session).graphs[0].islands)
x = np.linspace(-1, 1, 64 * 64, dtype=np.float32).reshape(64, 64)
def right(session):
    return np.allclose(session.run(None, {"x": x})[0], np.tanh(np.exp(x)) * x, atol=1e-5)
def daemon(work):
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread
"""

# A compiler that hangs (or takes its time) after it said who it is.
HANGS = "echo $$ >> {folder}/pids; touch {folder}/compiling; exec sleep 100"
SLOW = 'echo $$ >> {folder}/pids; touch {folder}/compiling; sleep 0.5; exec gcc "$@"'


def compiler(folder: Path, body: str) -> str:
    path = folder / "gcc"
    script = f'#!/bin/sh\nif [ "$1" = --version ]; then exec gcc --version; fi\n{body.format(folder=folder)}\n'
    path.write_text(script)
    path.chmod(0o700)
    return str(path)


def started(folder: Path, body: str, *, compile_by: str = "", before: str = "") -> subprocess.Popen[str]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("XYNTRA_")}
    environment |= {"XYNTRA_CACHE_DIR": str(folder / "cache"), "XYNTRA_JOBS": "2"}
    if compile_by:
        environment["XYNTRA_CC"] = compiler(folder, compile_by)
    code = PRELUDE.replace("BEFORE", textwrap.dedent(before)) + textwrap.dedent(body)
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", code, str(folder)], stdout=pipe, stderr=pipe, text=True, env=environment)


def ended(child: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Exit status, stdout and stderr."""
    try:
        said, complained = child.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        child.kill()
        pytest.fail(f"does not end: {child.communicate()[1][-2000:]}")
    return child.returncode, said, complained


def run(folder: Path, body: str, *, compile_by: str = "", before: str = "") -> tuple[int, str, str]:
    return ended(started(folder, body, compile_by=compile_by, before=before))


def wait_for(path: Path, child: subprocess.Popen[str]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not path.exists():
        assert child.poll() is None and time.monotonic() < end, (child.returncode, child.communicate()[1][-2000:])
        time.sleep(0.01)


def nothing_is_left(folder: Path) -> None:
    """No compiler runs, and no file of one is there."""
    for pid in (folder / "pids").read_text().split():
        for _ in range(200):
            if not Path(f"/proc/{pid}").exists() or Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z":
                break
            time.sleep(0.01)
        else:
            pytest.fail(f"the compiler {pid} goes on")
    assert not list((folder / "cache" / "tmp").iterdir())


class TestADaemonThreadPlans:
    def test_while_kernels_are_compiled(self, tmp_path: Path) -> None:
        body = "daemon(make); wait_for('compiling'); sys.exit(7)"
        assert run(tmp_path, body, compile_by=HANGS) == (7, "", "")
        nothing_is_left(tmp_path)

    def test_while_several_threads_compile(self, tmp_path: Path) -> None:
        body = "for _ in range(4): daemon(make)\nwait_for('compiling'); time.sleep(0.3); sys.exit(7)"
        assert run(tmp_path, body, compile_by=HANGS) == (7, "", "")
        nothing_is_left(tmp_path)

    def test_while_it_computes(self, tmp_path: Path) -> None:
        body = """
        from xyntra_ep.provider import planner
        def busy(*args):
            mark("busy")
            while True: pass
        planner.partition = busy
        daemon(make); wait_for("busy"); sys.exit(7)
        """
        assert run(tmp_path, body) == (7, "", "")

    def test_and_does_not_listen_at_first(self, tmp_path: Path) -> None:
        body = """
        from xyntra_ep.provider import planner
        ending._AGAIN_S = 0.2
        def deaf(*args):
            try:
                mark("busy")
                while True: pass
            except BaseException:
                print("once", flush=True)
            while True: pass
        planner.partition = deaf
        daemon(make); wait_for("busy"); sys.exit(7)
        """
        assert run(tmp_path, body) == (7, "once\n", "")

    def test_and_cannot_listen(self, tmp_path: Path) -> None:
        """It sleeps in somebody else's C code, and wakes when Python is going: then Python ends it amid ONNX Runtime's frames."""
        body = """
        from xyntra_ep.provider import planner
        ending._PATIENCE_S = 0.2
        def asleep(*args):
            mark("busy")
            time.sleep(1)
            print("it went on")
        planner.partition = asleep
        class Slow:
            def __del__(self, sleep=time.sleep):
                sleep(2)
        sys.slow = Slow()
        daemon(make); wait_for("busy"); sys.exit(7)
        """
        assert run(tmp_path, body) == (7, "", "")

    def test_and_somebody_waits_for_it_at_the_very_end(self, tmp_path: Path) -> None:
        before = "atexit.register(lambda: (thread.join(30), print('waited', not thread.is_alive(), flush=True)))"
        body = "thread = daemon(make); wait_for('compiling'); sys.exit(7)"
        assert run(tmp_path, body, compile_by=HANGS, before=before) == (7, "waited True\n", "")
        nothing_is_left(tmp_path)

    def test_in_a_private_cache(self, tmp_path: Path) -> None:
        (tmp_path / "cache").write_text("")
        (tmp_path / "temporary").mkdir()
        before = "import tempfile; tempfile.tempdir = str(FOLDER / 'temporary')"
        body = "daemon(make); wait_for('compiling'); sys.exit(7)"
        assert run(tmp_path, body, compile_by=HANGS, before=before) == (7, "", "")
        assert not list((tmp_path / "temporary").iterdir())

    def test_outside_of_a_session(self, tmp_path: Path) -> None:
        body = """
        from xyntra_ep.tracea.interface.context import Context
        from xyntra_ep.tracea.runtime.kernel_source import KernelSource
        daemon(lambda: Context().kernels.compile_many([KernelSource.of_text("f", "int f;")]))
        wait_for("compiling"); sys.exit(7)
        """
        assert run(tmp_path, body, compile_by=HANGS) == (7, "", "")
        nothing_is_left(tmp_path)

    def test_at_any_moment(self, tmp_path: Path) -> None:
        """Also amid what is ONNX Runtime's own: there its end is not ours to decide, so only what we do is awaited."""
        body = """
        from xyntra_ep.provider import callback
        real = callback._plan_graph
        def late(raw, digest):
            mark("in")
            return real(raw, digest)
        callback._plan_graph = late
        daemon(make); wait_for("in"); time.sleep(float({wait})); sys.exit(7)
        """
        for n, wait in enumerate((0, 0.01, 0.05, 0.1)):
            (folder := tmp_path / str(n)).mkdir()
            assert run(folder, body.format(wait=wait), compile_by=SLOW) == (7, "", "")


class TestADaemonThreadRuns:
    def test_kernels(self, tmp_path: Path) -> None:
        """ONNX Runtime by itself aborts when Python ends its daemon threads; ours stay where they are. A thread that is amid what
        is ONNX Runtime's own in that moment is not ours to hold: so three times at most."""
        body = """
        session = make()
        x = np.ones((200_000, 64), np.float32)
        def work():
            while True:
                session.run(None, {"x": x})
                mark("ran")
        assert ours(session)
        daemon(work); wait_for("ran"); sys.exit(7)
        """
        ends = []
        for n in range(3):
            (folder := tmp_path / str(n)).mkdir()
            ends.append(run(folder, body))
            if ends[-1] == (7, "", ""):
                return
        raise AssertionError(ends)


class TestSignals:
    INTERRUPTED = """
    caught = 0
    try:
        make()
        time.sleep(1)
    except KeyboardInterrupt:
        caught += 1
    try:
        time.sleep(0.5)
    except KeyboardInterrupt:
        caught += 1
    print("caught", caught)
    print(right(make()))
    """

    def test_ctrl_c_while_kernels_are_compiled(self, tmp_path: Path) -> None:
        once = HANGS.replace("echo", 'test -e {folder}/compiling && exec gcc "$@"; echo')
        child = started(tmp_path, self.INTERRUPTED, compile_by=once)
        wait_for(tmp_path / "compiling", child)
        child.send_signal(signal.SIGINT)
        assert ended(child) == (0, "caught 1\nTrue\n", "")
        nothing_is_left(tmp_path)

    def test_ctrl_c_while_planning(self, tmp_path: Path) -> None:
        body = """
        from xyntra_ep.provider import planner
        real = planner.partition
        def busy(*args):
            planner.partition = real
            mark("busy")
            while True: pass
        planner.partition = busy
        """
        child = started(tmp_path, textwrap.dedent(body) + textwrap.dedent(self.INTERRUPTED))
        wait_for(tmp_path / "busy", child)
        child.send_signal(signal.SIGINT)
        assert ended(child) == (0, "caught 1\nTrue\n", "")

    def test_ctrl_c_that_nobody_catches(self, tmp_path: Path) -> None:
        child = started(tmp_path, "make(); time.sleep(30)", compile_by=HANGS)
        wait_for(tmp_path / "compiling", child)
        child.send_signal(signal.SIGINT)
        status, _, complained = ended(child)
        assert status == -signal.SIGINT and complained.count("KeyboardInterrupt") == 1
        nothing_is_left(tmp_path)

    def test_a_handler_that_exits(self, tmp_path: Path) -> None:
        """What the handler raises while a plan is made is meant for the program."""
        body = """
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))
        try:
            make()
            while True: time.sleep(0.01)
        finally:
            print("an orderly end", flush=True)
        """
        child = started(tmp_path, body, compile_by=HANGS)
        wait_for(tmp_path / "compiling", child)
        child.send_signal(signal.SIGTERM)
        assert ended(child) == (5, "an orderly end\n", "")
        nothing_is_left(tmp_path)

    @pytest.mark.parametrize(
        "end", ["os._exit(7)", "os.kill(os.getpid(), signal.SIGKILL)", "os.kill(os.getpid(), signal.SIGTERM)"]
    )
    def test_an_end_that_nothing_is_told_of(self, tmp_path: Path, end: str) -> None:
        """Compilers end by themselves, and what they leave does no harm to the next session."""
        status, _, complained = run(tmp_path, f"daemon(make); wait_for('compiling'); {end}", compile_by=SLOW)
        assert status in (7, -signal.SIGKILL, -signal.SIGTERM) and complained == ""
        assert run(tmp_path, "s = make(); print(right(s), ours(s))") == (0, "True True\n", "")


class TestForks:
    CHILD = """
    import multiprocessing as mp, warnings
    warnings.simplefilter("ignore")
    def work(threads):
        session = make(threads)
        sys.exit(0 if right(session) and ours(session) else 3)
    """

    @pytest.mark.parametrize("threads", [1, 2])
    def test_a_child_has_sessions_of_its_own(self, tmp_path: Path, threads: int) -> None:
        body = f"""
        keep = make({threads})
        assert right(keep) and ours(keep)
        children = [mp.get_context("fork").Process(target=work, args=(n,)) for n in (1, 2, {threads})]
        for child in children: child.start()
        for child in children: child.join()
        assert [child.exitcode for child in children] == [0, 0, 0], children
        assert right(keep) and right(make({threads}))
        """
        assert run(tmp_path, textwrap.dedent(self.CHILD) + textwrap.dedent(body)) == (0, "", "")

    def test_a_child_compiles_itself(self, tmp_path: Path) -> None:
        """The parent's private cache goes with the parent; so the child has one of its own."""
        (tmp_path / "cache").write_text("")
        body = """
        keep = make()
        child = os.fork()
        if child == 0:
            gc.collect()
            from xyntra_ep.tracea.runtime.cache_root import open_root
            parents = open_root(FOLDER / "cache").path
            session = make()
            os._exit(0 if right(session) and ours(session) and right(keep) else 3)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert right(keep) and right(make())
        """
        assert run(tmp_path, textwrap.dedent(self.CHILD) + textwrap.dedent(body)) == (0, "", "")

    def test_while_another_thread_compiles(self, tmp_path: Path) -> None:
        """The child has none of its parent's threads: its end waits for nobody, and the parent's goes on."""
        body = """
        thread = threading.Thread(target=make)
        thread.start()
        wait_for("compiling")
        child = os.fork()
        if child == 0:
            nobody = not ending._state.threads and not ending.is_closing()
            begin = time.monotonic()
            ending._close()
            os._exit(4 if nobody and time.monotonic() - begin < ending._PATIENCE_S else 5)  # as multiprocessing ends its children
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 4
        thread.join()
        session = make()
        print(right(session), ours(session))
        """
        assert run(tmp_path, textwrap.dedent(self.CHILD) + textwrap.dedent(body), compile_by=SLOW) == (0, "True True\n", "")


class TestAtTheEnd:
    def test_sessions_in_every_place(self, tmp_path: Path) -> None:
        body = """
        import types
        keep = make(2)
        module = types.ModuleType("somewhere"); module.session = make(); sys.modules["somewhere"] = module
        local = threading.local(); local.session = make()
        class Node: pass
        ring = Node(); ring.self, ring.session = ring, make()
        def generator():
            session = make()
            while True: yield right(session)
        going = generator(); assert next(going)
        del ring
        builtins = __import__("builtins"); builtins.session = make()
        assert right(keep)
        """
        assert run(tmp_path, body) == (0, "", "")

    def test_sessions_made_while_the_process_ends(self, tmp_path: Path) -> None:
        """Before we have said that it ends they are ours, afterwards ONNX Runtime's alone; both are right."""
        before = "atexit.register(lambda: (s := make()) and print('late', right(s), ours(s), flush=True))"
        body = "ours(make()); atexit.register(lambda: (s := make()) and print('early', right(s), ours(s), flush=True))"
        assert run(tmp_path, body, before=before) == (0, "early True True\nlate True False\n", "")

    def test_an_exception_of_the_program(self, tmp_path: Path) -> None:
        status, _, complained = run(tmp_path, "keep = make(2); assert right(keep); raise ValueError('mine')")
        assert status == 1 and complained.splitlines()[-1] == "ValueError: mine" and complained.count("Error") == 1

    def test_unregistered_while_a_session_lives(self, tmp_path: Path) -> None:
        body = """
        keep = make()
        assert right(keep)
        try:
            ort.unregister_execution_provider_library("XyntraEP")
        except Exception as error:
            print("refused", flush=True)
        assert right(keep)
        """
        status, _, complained = run(tmp_path, body)
        assert (status, complained) == (0, "")
