"""What is known of a kernel variant on a target, and where it comes from."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

RECORD = Path(__file__).resolve().parent / "record.json"


class State(StrEnum):
    """The order is that of worth."""

    RUN = "run"  # on a device, or the processor, that the target is for
    SIMULATED = "simulated"  # its text or its IR carried out on something else
    COMPILED = "compiled"  # to code of an architecture that is not here
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Evidence:
    """``op``: a kind of core-IR op; ``where``: the device, or what compiled or simulated it; ``why``: what failed."""

    target: str
    op: str
    variant: str
    state: State
    where: str
    why: str = ""


def read(path: Path = RECORD) -> list[Evidence]:
    rows = json.loads(path.read_text(encoding="utf-8"))
    return [Evidence(**{**row, "state": State(row["state"])}) for row in rows]


def write(found: Iterable[Evidence], path: Path = RECORD) -> None:
    """A line each, in order."""
    lines = [json.dumps({name: value for name, value in asdict(e).items() if value}) for e in sorted(set(found))]
    path.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


def updated(old: Sequence[Evidence], new: Sequence[Evidence]) -> list[Evidence]:
    """With what was found now in place of what was known of the same target, state and place."""
    again = {(e.target, e.state, e.where) for e in new}
    return [*(e for e in old if (e.target, e.state, e.where) not in again), *new]
