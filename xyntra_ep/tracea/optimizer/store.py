"""Tuning results on disk: one JSON line per measurement, the latest of a variant at a shape counts.

{"machine": "x86_64|AMD EPYC|avx512", "op": "Gemm f32[128,768] f32[768,768] f32[128,768]", "variant": "gemm.packed_b",
 "config": {"rows": 8, "columns": 48}, "time_ns": 1.0}
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from xyntra_ep.tracea.core_ir.ops import CoreOp
from xyntra_ep.trusted_file import read_trusted

Config = Mapping[str, int]

FILE = "tuning.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningResult:
    """One measurement: the median time of a variant at a shape on a machine."""

    machine: str
    op: str  # signature()
    variant: str
    config: Config
    time_ns: float


@dataclass(slots=True)
class TuningStore:
    """The results of one machine, by op signature and variant."""

    rows: dict[str, dict[str, TuningResult]] = field(default_factory=dict)

    @classmethod
    def load(cls, folder: Path, machine: str) -> TuningStore:
        """What <folder>/tuning.jsonl holds for ``machine``. Lines that cannot be read are skipped: a writer
        may have been interrupted, and a lost measurement is only a lost measurement."""
        store = cls()
        try:
            text = read_trusted(folder / FILE).decode()
        except (OSError, UnicodeDecodeError):
            return store
        for line in text.splitlines():
            result = _parse(line)
            if result is not None and result.machine == machine:
                store.rows.setdefault(result.op, {})[result.variant] = result
        return store

    def results(self, op: CoreOp) -> Mapping[str, TuningResult]:
        """Results for ops of this kind and shape, by variant."""
        return self.rows.get(signature(op), {}) if self.rows else {}


def append(folder: Path, result: TuningResult) -> None:
    """Add one line; a single write, so that concurrent tuners do not mix theirs."""
    with open(folder / FILE, "ab", buffering=0, opener=_private) as file:
        file.write(json.dumps(asdict(result), sort_keys=True).encode() + b"\n")


def _private(path: str, flags: int) -> int:
    """Whatever the umask: what others may write to is not read again."""
    return os.open(path, flags, 0o600)


def signature(op: CoreOp) -> str:
    """Kind, types and shapes of an op: what its best configuration depends on.

    Layouts and epilogues are left out on purpose; they decide which variants admit the op, and that is asked
    anew.
    """
    operands = [*op.inputs[: max(2, op.reads_directly)], *op.written]
    shapes = " ".join(f"{o.dtype}[{','.join(map(str, o.shape))}]" for o in operands)
    return " ".join([type(op).__name__, shapes, *map(str, op.tuned_by())])


def _parse(line: str) -> TuningResult | None:
    try:
        row = json.loads(line)
        return TuningResult(
            machine=str(row["machine"]),
            op=str(row["op"]),
            variant=str(row["variant"]),
            config={str(name): int(value) for name, value in row["config"].items()},
            time_ns=float(row["time_ns"]),
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
