"""Runs of single islands, and copies, on a device: done and timed in a process of its own, which they may end
(`runtime/trial_child.py`)."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from xyntra_ep.tracea.core_ir.ops import Program, Value, ValueKind
from xyntra_ep.tracea.interface.devices import LIBRARY
from xyntra_ep.tracea.interface.islands import Island
from xyntra_ep.tracea.planning.manifest import TensorEntry
from xyntra_ep.tracea.runtime import trial_child
from xyntra_ep.tracea.runtime.cache_root import atomic_write
from xyntra_ep.tracea.runtime.process import run_all

LIMIT_S = 60.0  # for what is left to do
_MOST_ENDED = 4  # processes; a device that ends more of them is not worth the wait


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """How an errand ended. ``problem``: empty when it came to its end; ``ns``: medians of what was timed, by the names of
    `trial_child`."""

    problem: str
    ns: Mapping[str, float] = field(default_factory=dict)


class Errands:
    """What is to be done, in a folder that nobody else may write to; numbered as it is added."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._list: list[Mapping[str, Any]] = []

    def run(self, plan: bytes, inputs: Sequence[NDArray[Any]], output_bytes: Sequence[int], *, timed: int = 0) -> None:
        """The first island of a plan without constants; ``timed`` times more for its times."""
        number = len(self._list)
        atomic_write(self._folder / f"{number}.plan", plan, self._folder)  # that nobody else may write
        for i, array in enumerate(inputs):
            (self._folder / f"{number}.in.{i}").write_bytes(array.tobytes())
        self._list.append({"inputs": [array.shape for array in inputs], "outputs": list(output_bytes), "timed": timed})

    def copy(self, device: str, size_bytes: int, *, timed: int) -> None:
        """A tensor to the device (its identity) and back."""
        self._list.append({"device": device, "bytes": size_bytes, "timed": timed})

    def output(self, number: int, i: int) -> bytes:
        """Of a run that came to its end."""
        return (self._folder / f"{number}.out.{i}").read_bytes()

    def carry_out(self) -> list[Answer]:
        """All of them. After one that ends the process the rest has a new one."""
        (self._folder / trial_child.ERRANDS).write_text(json.dumps(self._list), encoding="utf-8")
        found: dict[int, Answer] = {}
        ended = 0
        while (left := [n for n in range(len(self._list)) if n not in found]) and ended < _MOST_ENDED:
            command = [sys.executable, trial_child.__file__, str(LIBRARY), str(self._folder), *map(str, left)]
            [result] = run_all([command], folder=self._folder, parallel=1, timeout_s=LIMIT_S)
            said = result.said(trial_child.MARK)
            found |= {fact["tried"]: _answer(fact) for fact in said if "tried" in fact}
            trying = [fact["trying"] for fact in said if "trying" in fact and fact["trying"] not in found]
            if trying or not said:
                problem = f"the process that tried it {result.problem or 'ended early'}"
                found[trying[-1] if trying else left[0]] = Answer(problem=problem)
            ended += 1
        untried = Answer(problem="was not tried: those before it ended their processes")
        return [found.get(n, untried) for n in range(len(self._list))]


def _answer(fact: Mapping[str, Any]) -> Answer:
    return Answer(problem=fact["problem"], ns={name: float(x) for name, x in fact.items() if name.endswith("_ns")})


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
