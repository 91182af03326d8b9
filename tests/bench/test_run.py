"""The child process: its crash, its failure and its hang are results."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from xyntra_bench import run as module
from xyntra_bench.codec import encode
from xyntra_bench.contenders import Contender
from xyntra_bench.errors import BenchError
from xyntra_bench.estimate import ESTIMATE
from xyntra_bench.ort_sessions import check_options
from xyntra_bench.plan import Case, Plan, Scenario
from xyntra_bench.results import Status, lacks_data
from xyntra_bench.run import in_child, kernels_isa, probe, run_case
from xyntra_bench.show import COLUMNS, rows
from xyntra_ep.errors import ConfigError
from xyntra_ep.tracea.backends.cuda import Cuda


def child(text: str) -> tuple[str, str]:
    return "-c", text


def test_a_case_comes_back_from_its_own_process(case: Case, plan: Plan) -> None:
    result = run_case(case, plan)
    assert result.status is Status.OK, result.error
    assert (result.model, result.shape, result.threads) == ("bert-base-tiny", "b1 s16", 1)
    assert result.peak_rss_bytes and result.contenders[0].ratio


def test_a_crash_is_recorded_with_its_signal_and_log(case: Case, plan: Plan) -> None:
    text = "import os, sys; print('last words', file=sys.stderr, flush=True); os.kill(os.getpid(), 11)"
    result = run_case(case, plan, child(text))
    assert result.status is Status.CRASHED and result.model == case.model
    assert result.error.splitlines() == ["killed by SIGSEGV", "last words"]


# A worker in which creating a session with the option `x=NAME` kills the process by that signal, or hangs.
DEADLY = """
import os, signal, sys, time
from pathlib import Path
from xyntra_bench import measure, worker

made = measure.factory_for

def factory_for(path, setup, *rest):
    name = setup.contender.options.get("x", "")
    if name == "hang":
        time.sleep(600)
    if name:
        print("last words of", setup.label, file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.Signals[name])
    return made(path, setup, *rest)

measure.factory_for = factory_for
measure.make_available = lambda provider: None
worker.main(Path(sys.argv[1]), Path(sys.argv[2]))
"""
CPU = Contender(provider="CPUExecutionProvider")


def test_a_crash_is_that_of_its_contender_alone(case: Case, plan: Plan) -> None:
    contenders = (Contender.parse("A:x=SIGSEGV"), CPU, Contender.parse("B:x=SIGABRT"))
    result = run_case(case, dataclasses.replace(plan, contenders=contenders), child(DEADLY))
    first, survivor, last = result.contenders
    assert result.status is Status.OK and result.baseline is not None and result.baseline.latency is not None
    assert (survivor.label, survivor.status) == ("CPUExecutionProvider again", Status.OK) and survivor.ratio is not None
    assert (first.status, first.error.splitlines()) == (Status.CRASHED, ["killed by SIGSEGV", "last words of A:x=SIGSEGV"])
    assert (last.status, last.error.splitlines()[0]) == (Status.CRASHED, "killed by SIGABRT")
    (cells,) = (cells for cells, _ in rows(result) if "A:x=SIGSEGV" in cells)
    assert cells[COLUMNS.index("error")] == "crashed" and cells[COLUMNS.index("verdict")] == "no data"
    assert cells[COLUMNS.index("reason")] == "killed by SIGSEGV"
    assert lacks_data(result), "the exit status says so"


def test_a_folder_of_the_callers_is_not_imported(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "xyntra_bench").mkdir()
    (tmp_path / "xyntra_bench" / "__init__.py").touch()
    monkeypatch.chdir(tmp_path)
    assert probe(CPU) == "" and kernels_isa()
    result = in_child(ESTIMATE, encode(case), tmp_path, 60.0)
    assert result["run_s"] > 0


def test_the_only_contender_that_crashes_leaves_the_baseline(case: Case, plan: Plan) -> None:
    scaling = dataclasses.replace(case, scenario=Scenario.SCALING, threads=2)
    result = run_case(scaling, dataclasses.replace(plan, contenders=(Contender.parse("A:x=SIGSEGV"),)), child(DEADLY))
    states = {m.label: m.status for m in result.measurements}
    cpu = dict.fromkeys(("CPUExecutionProvider t1", "CPUExecutionProvider t2"), Status.OK)
    assert states == {**cpu, "A:x=SIGSEGV t1": Status.CRASHED, "A:x=SIGSEGV t2": Status.CRASHED}


def test_a_hang_is_that_of_its_contender_alone(case: Case, plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is one that the survivors' run does not need."""
    hanging = {"A:x=hang"}
    monkeypatch.setattr(module, "time_limit_s", lambda case, plan: 5.0 if hanging & {c.label for c in plan.contenders} else 300.0)
    result = run_case(case, dataclasses.replace(plan, contenders=(Contender.parse("A:x=hang"),)), child(DEADLY))
    assert result.status is Status.OK and [m.status for m in result.measurements] == [Status.OK, Status.TIMED_OUT]


def test_a_crash_that_no_contender_makes_alone_is_that_of_the_case(case: Case, plan: Plan) -> None:
    """As when two of them do not bear each other."""
    together = DEADLY.replace("def factory_for", "seen = set()\ndef factory_for").replace(
        'name = setup.contender.options.get("x", "")', 'seen.add(setup.label); name = "SIGSEGV" if len(seen) > 2 else ""'
    )
    contenders = (CPU, Contender.parse("CPUExecutionProvider:arena_extend_strategy=kSameAsRequested"))
    result = run_case(case, dataclasses.replace(plan, contenders=contenders), child(together))
    assert result.status is Status.CRASHED and not result.measurements
    assert result.error.splitlines()[0] == "killed by SIGSEGV"
    assert result.error.splitlines()[-1] == "each contender lives when it is alone with the CPU provider"


def test_an_exception_is_recorded_message_first(case: Case, plan: Plan) -> None:
    result = run_case(case, plan, child("raise ValueError('no weights')"))
    assert result.status is Status.FAILED
    assert result.error == "ValueError: no weights", "without the traceback"


def test_a_hang_is_ended(case: Case, plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "time_limit_s", lambda case, plan: 0.2)
    result = run_case(case, plan, child("import time; time.sleep(60)"))
    assert result.status is Status.TIMED_OUT and "no sign of life for" in result.error


def test_a_mistake_of_the_caller_is_shown_without_its_class(case: Case, plan: Plan, tmp_path: Path) -> None:
    absent = dataclasses.replace(case, file=str(tmp_path / "absent.onnx"))
    assert "No such file" in run_case(absent, plan).error.splitlines()[0]


def test_probe() -> None:
    assert probe(Contender(provider="CPUExecutionProvider")) == ""
    reason = probe(Contender(provider="NoSuchEP"))
    assert reason.startswith("NoSuchEP: not in onnxruntime") and "this runtime has" in reason
    assert "\n" not in reason


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ("XyntraEp", "XyntraEp: not in onnxruntime .* did you mean 'XyntraEP'"),
        ("CUDAExecutionProvidr", "did you mean 'CUDAExecutionProvider'"),
        pytest.param("XyntraEP:claim=al", "XyntraEP: claim='al' is not valid. did you mean 'all'", marks=pytest.mark.native),
        pytest.param("XyntraEP:min_island=0", "min_island='0' is not valid. it wants an integer", marks=pytest.mark.native),
    ],
)
def test_a_contender_that_nobody_has_is_told_the_nearest_one(spec: str, reason: str) -> None:
    found = probe(Contender.parse(spec))
    assert re.search(reason, found) and "\n" not in found, found


def test_a_device_that_is_not_there_is_said_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(_: Cuda) -> None:
        raise ConfigError("backend=cuda cannot be had: there is none", where="XyntraEP", hint="buy one")

    monkeypatch.setattr(Cuda, "target", absent)
    check_options(Contender.parse("XyntraEP:backend=auto"))
    with pytest.raises(BenchError, match=r"XyntraEP: backend=cuda cannot be had: there is none. buy one"):
        check_options(Contender.parse("XyntraEP:backend=cuda"))


def test_memory_is_measured_in_processes_of_their_own(case: Case, plan: Plan) -> None:
    result = run_case(dataclasses.replace(case, memory=True), plan)
    for m in result.measurements:
        assert m.memory is not None, m.notes
        assert 0 < m.memory.loaded_bytes <= m.memory.peak_bytes
        assert m.memory.steady_bytes <= m.memory.peak_bytes
    assert all(m.memory is None for m in run_case(case, plan).measurements), "only where the case asks for it"


def test_memory_that_cannot_be_measured_leaves_a_note(case: Case, plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MEMORY", child("import os; os.kill(os.getpid(), 11)"))
    result = run_case(dataclasses.replace(case, memory=True), plan)
    assert result.baseline is not None and result.baseline.memory is None and result.baseline.latency is not None
    assert result.baseline.notes == ("memory: crashed: killed by SIGSEGV",)


def test_a_slow_one_that_gives_signs_of_life_may_take_its_time(case: Case, plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three times the limit, with a sign within each."""
    monkeypatch.setattr(module, "time_limit_s", lambda case, plan: 1.0)
    code = "import pathlib, sys, time\nalive = pathlib.Path(sys.argv[1]).parent / 'alive'\n"
    code += "for _ in range(12):\n    time.sleep(0.25)\n    alive.touch()\nraise ValueError('at its own end')"
    result = run_case(case, plan, child(code))
    assert result.status is Status.FAILED and "at its own end" in result.error
