"""Runs of single islands, and copies, on a device or on the processor: done and timed in a process of their own, which they may
end (`runtime/children/trial_child.py`)."""

from __future__ import annotations

import json
import signal
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from xyntra_ep.tracea.backends import LIBRARY
from xyntra_ep.tracea.core_ir.ops import Program, Value, ValueKind
from xyntra_ep.tracea.interface.islands import Island
from xyntra_ep.tracea.planning.manifest import TensorEntry
from xyntra_ep.tracea.runtime.cache_root import atomic_write
from xyntra_ep.tracea.runtime.children import trial_child
from xyntra_ep.tracea.runtime.process import Outcome, run_all

LIMIT_S = 10.0  # for a job: they are small
_OPENING_S = 60.0  # for a driver that wakes a machine's devices
_BUDGET_S = 60.0  # for a round, after which a process begins no other job
# For the alarm of a process, which ends it before; else it is stuck where no signal reaches it, and is left.
_GRACE_S = 10.0
_MOST_IN_VAIN = 4  # processes in a row that did nothing right; a device that fails more of them is not worth the wait


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """How a job ended. ``problem``: empty when it came to its end; ``ns``: medians of what was timed, by the names of
    `trial_child`; ``rounds``: of what these are the medians, one of each round."""

    problem: str
    ns: Mapping[str, float] = field(default_factory=dict)
    rounds: Mapping[str, tuple[float, ...]] = field(default_factory=dict)


class TrialJobs:
    """What is to be done on a device (its identity; "": the processor), in a folder that nobody else may write to; numbered as it
    is added. ``about``, of each: what a problem is one of, then what else may have it. What has failed is not tried again. All
    jobs are done in turn, in so many ``rounds``."""

    def __init__(self, folder: Path, device: str, *, rounds: int = 1) -> None:
        self._folder, self._device, self._rounds = folder, device, rounds
        self._list: list[Mapping[str, Any]] = []
        self._about: list[Sequence[str]] = []

    def run(
        self,
        plan: bytes,
        data: Sequence[NDArray[Any]] | int,
        output_bytes: Sequence[int],
        *,
        constants: Sequence[NDArray[Any]] = (),
        order: Sequence[int] = (),
        about: Sequence[str],
        timed: int = 0,
        threads: int = 1,
        between_bytes: int = 0,
    ) -> int:
        """The first island of a plan with ``data`` as its inputs, or with inputs and constants of the job of that number;
        ``order``: which of these constants the plan wants, in its order; ``timed`` times more for its times, on so many
        ``threads``, with so many bytes of memory read between two runs (native/island_trial.h). The number of the job."""
        number = len(self._list)
        atomic_write(self._folder / f"{number}.plan", plan, self._folder)  # that nobody else may write
        if isinstance(data, int):
            job = {**self._list[data]}
        else:
            for kind, arrays in (("in", data), ("const", constants)):
                for i, array in enumerate(arrays):
                    (self._folder / f"{number}.{kind}.{i}").write_bytes(array.tobytes())
            job = {"data": number, "inputs": [array.shape for array in data]}
        job |= {
            "constants": list(order),
            "outputs": list(output_bytes),
            "timed": timed,
            "threads": threads,
            "between_bytes": between_bytes,
        }
        self._list.append(job)
        self._about.append(about)
        return number

    def copy(self, size_bytes: int, *, about: Sequence[str], timed: int) -> None:
        """A tensor to the device and back."""
        self._list.append({"bytes": size_bytes, "timed": timed})
        self._about.append(about)

    def output(self, number: int, i: int) -> bytes:
        """Of a run that came to its end."""
        return (self._folder / f"{number}.out.{i}").read_bytes()

    def carry_out(self) -> list[Answer]:
        """All of them. After a problem the rest has a new process: what a kernel has done to one, others must not pay for."""
        limits = {"limit_s": LIMIT_S, "opening_s": _OPENING_S, "budget_s": self._budget_s}
        given = {"device": self._device, "rounds": self._rounds, "jobs": self._list, **limits}
        (self._folder / trial_child.JOBS).write_text(json.dumps(given), encoding="utf-8")
        found: dict[int, Answer] = {}
        failed: set[str] = set()
        in_vain = 0
        why = f"the device did none of {_MOST_IN_VAIN} that were before it"
        while (left := self._left(found, failed)) and in_vain < _MOST_IN_VAIN:
            problem, answers = self._tried(left)
            if problem:
                why = f"the device cannot be opened: {problem}"
                break
            found |= answers
            failed |= {self._about[n][0] for n, answer in answers.items() if answer.problem}
            in_vain = 0 if any(not answer.problem for answer in answers.values()) else in_vain + 1
        reasons = [next((f"{name} has failed" for name in about if name in failed), why) for about in self._about]
        return [found.get(n) or Answer(problem=f"was not tried: {reasons[n]}") for n in self._all]

    @property
    def _budget_s(self) -> float:
        return _BUDGET_S * self._rounds

    @property
    def _all(self) -> range:
        return range(len(self._list))

    def _left(self, found: Mapping[int, Answer], failed: set[str]) -> list[int]:
        return [n for n in self._all if n not in found and failed.isdisjoint(self._about[n])]

    def _tried(self, left: Sequence[int]) -> tuple[str, dict[int, Answer]]:
        """By one process, as far as it came: why it could not even begin, or how jobs ended, one at least."""
        command = [sys.executable, trial_child.__file__, str(LIBRARY), str(self._folder), *map(str, left)]
        limit_s = _OPENING_S + self._budget_s + LIMIT_S + _GRACE_S
        [result] = run_all([command], folder=self._folder, parallel=1, timeout_s=limit_s)
        said = result.said(trial_child.MARK)
        opened = next((fact["problem"] for fact in said if "opened" in fact), None)
        if opened is None:
            return f"the process that tried it {_ended(result, _OPENING_S)}", {}
        facts: dict[int, list[Mapping[str, Any]]] = {}
        for fact in said:
            if "tried" in fact:
                facts.setdefault(fact["tried"], []).append(fact)
        found = {n: _answer(of) for n, of in facts.items() if of[-1]["problem"] or len(of) == self._rounds}
        trying = [fact["trying"] for fact in said if "trying" in fact]
        begun, ended = len(trying), sum("tried" in fact for fact in said)
        if begun > ended or not found:
            found[trying[-1] if begun > ended else left[0]] = Answer(
                problem=f"the process that tried it {_ended(result, LIMIT_S)}"
            )
        return opened, found


def _ended(result: Outcome, limit_s: float) -> str:
    if result.problem == f"was ended by signal {signal.SIGALRM:d}":  # its own alarm (`trial_child`)
        return f"did not end within {limit_s:g} s"
    return result.problem or "ended early"


def _answer(facts: Sequence[Mapping[str, Any]]) -> Answer:
    """Of the rounds of a job."""
    names = [name for name in facts[-1] if name.endswith("_ns")]
    rounds = {name: tuple(float(fact[name]) for fact in facts) for name in names}
    ns = {name: statistics.median(times) for name, times in rounds.items()}
    return Answer(problem=facts[-1]["problem"], ns=ns, rounds=rounds)


def island_of(program: Program, name: str) -> Island:
    """A program by itself."""
    inputs, outputs = (
        tuple(
            TensorEntry(name=f"{kind.value}{value.index}", elem_type=value.dtype.ort, rank=len(value.shape))
            for value in values_of(program, kind)
        )
        for kind in (ValueKind.INPUT, ValueKind.OUTPUT)
    )
    return Island(name=name, nodes=(0,), inputs=inputs, outputs=outputs, alternatives=(program,))


def values_of(program: Program, kind: ValueKind) -> list[Value]:
    """In the order of the island's tensors."""
    return sorted((v for v in program.values if v.kind is kind), key=lambda v: v.index)
