"""Stored runs: one JSON file each, rewritten atomically after every case, read back strictly."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from xyntra_bench.codec import CodecError, decode, encode
from xyntra_bench.environment import Environment
from xyntra_bench.errors import BenchError
from xyntra_bench.plan import Plan
from xyntra_bench.results import SCHEMA, CaseResult, Ceilings, DeviceCeilings, LeftOut, Run

TABLES = (
    "kernels",
    "declined",
    "ceilings",
    "device_ceilings",
    "gpus",
    "brackets",
    "probes",
    "hashes",
    "left_out",
)  # fields whose items are rows
SCHEMA_FILE = Path(__file__).parent / "schema" / "run.v7.json"


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


class Store:
    """A run being written. What was added is on disk when `add` returns."""

    def __init__(self, path: Path, run: Run) -> None:
        self.path = path
        self.run = run
        self._write()

    @classmethod
    def start(cls, path: Path, plan: Plan, environment: Environment, command: str) -> Store:
        run = Run(
            target=plan.target,
            command=command,
            started=now(),
            quick=plan.quick,
            environment=environment,
            budget=plan.budget,
            planned=len(plan.cases),
            within_s=plan.within_s,
        )
        return cls(path, run)

    def leave_out(self, cases: Sequence[LeftOut]) -> None:
        run = self.run
        self.run = dataclasses.replace(run, planned=run.planned - len(cases), left_out=(*run.left_out, *cases))
        self._write()

    def add(self, case: CaseResult) -> None:
        self.run = dataclasses.replace(self.run, cases=(*self.run.cases, case))
        self._write()

    def keep_imports(self, imports_ns: Mapping[str, int]) -> None:
        self.run = dataclasses.replace(self.run, imports_ns=imports_ns)
        self._write()

    def keep_kernels_isa(self, kernels_isa: str) -> None:
        self.run = dataclasses.replace(self.run, kernels_isa=kernels_isa)
        self._write()

    def keep_ceilings(self, ceilings: tuple[Ceilings, ...]) -> None:
        self.run = dataclasses.replace(self.run, ceilings=ceilings)
        self._write()

    def keep_device_ceilings(self, ceilings: tuple[DeviceCeilings, ...]) -> None:
        self.run = dataclasses.replace(self.run, device_ceilings=ceilings)
        self._write()

    def finish(self) -> None:
        self.run = dataclasses.replace(self.run, finished=now())
        self._write()

    def _write(self) -> None:
        write_atomically(self.path, dump(self.run))


def write_atomically(path: Path, text: str) -> None:
    """A reader finds the old file or the new one, and an interrupted write leaves the old one."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(text)
        os.replace(partial, path)
    except OSError as error:
        raise BenchError(f"{path}: cannot be written ({error.strerror}). name another file with --json") from None


def dump(document: Any) -> str:
    """Indented for reviews, but a list of plain numbers or names stays on one line, and so does each row of a table."""
    return _pretty(encode(document), "") + "\n"


def _pretty(value: Any, indent: str) -> str:
    deeper = indent + " "
    if isinstance(value, dict) and value:
        rows = [f"{deeper}{json.dumps(key)}: {_field(key, item, deeper)}" for key, item in value.items()]
        return "{\n" + ",\n".join(rows) + f"\n{indent}}}"
    if isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        return "[\n" + ",\n".join(deeper + _pretty(item, deeper) for item in value) + f"\n{indent}]"
    return json.dumps(value, allow_nan=False)


def _field(key: str, value: Any, indent: str) -> str:
    if key in TABLES and isinstance(value, list) and value:
        return "[\n" + ",\n".join(f"{indent} {json.dumps(row, allow_nan=False)}" for row in value) + f"\n{indent}]"
    return _pretty(value, indent)


def read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        raise BenchError(f"{path}: no such file") from None
    except OSError as error:
        raise BenchError(f"{path}: cannot be read ({error.strerror}). give a file that `bench run` has written") from None
    except (ValueError, RecursionError) as error:
        raise BenchError(f"{path}: not JSON ({error}). give a file that `bench run` has written") from None


def load(path: Path) -> Run:
    data = read_json(path)
    schema = data.get("schema") if isinstance(data, dict) else None
    if schema != SCHEMA:
        raise BenchError(f"{path}: schema {schema!r}, this version reads {SCHEMA!r}. measure again")
    try:
        return decode(Run, data)
    except CodecError as error:
        raise BenchError(f"{path}: {error}. the file is damaged or was edited") from None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """The runs of a folder, the one that started last at the end, or the only one of a file; each is read once. Dates inside
    the files count, because a checkout changes the others."""

    place: Path
    runs: Mapping[Path, Run]

    @property
    def by_name(self) -> bool:
        """Of one file, which whoever names it wants, whatever it is about."""
        return self.place in self.runs

    @classmethod
    def at(cls, place: Path) -> Stored:
        if not place.exists():
            raise BenchError(f"{place}: no such file or folder. `bench run zoo --json` writes results")
        if not place.is_dir():
            return cls(place=place, runs={place: load(place)})
        runs = {path: load(path) for path in sorted(place.glob("*.json"))}
        by_start = sorted(runs.items(), key=lambda item: item[1].started)
        return cls(place=place, runs=dict(by_start))

    def newest(self, wanted: Callable[[Run], bool] = lambda run: True) -> tuple[Path, Run]:
        """The last of those wanted."""
        found = [(path, run) for path, run in self.runs.items() if self.by_name or wanted(run)]
        if not found:
            raise BenchError(f"{self.place}: no stored results. `bench run zoo --json {self.place / 'zoo.json'}` makes one")
        return found[-1]
