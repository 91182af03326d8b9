"""Hero configurations: what was measured to be best for shapes that matter, a table for each class of machines. Searches on
machines of the same instruction set begin with them.

A table is what `xyntra tune --heroes FILE` writes: a tuning cache without its trials. It is data, made on a quiet machine and
reviewed as data; to add one is to add its file to `heroes`.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from xyntra_ep.tracea.optimizer.tuning_cache import MachineClass, TuningCache, parsed

FOLDER = Path(__file__).parent / "heroes"


def heroes(machine: MachineClass) -> TuningCache:
    """The results of all tables for the instruction set of ``machine``; its own class counts first."""
    found = TuningCache(machine)
    tables = [table for table in _tables() if _isa(table.machine) == _isa(machine)]
    for table in sorted(tables, key=lambda table: table.machine == machine):
        found.results |= table.results
    return found


@cache
def _tables() -> tuple[TuningCache, ...]:
    return tuple(parsed(json.loads(path.read_text(encoding="utf-8"))) for path in sorted(FOLDER.glob("*.json")))


def _isa(machine: MachineClass) -> str:
    """Names are of architecture, model and instruction set; those of devices are all their own."""
    return machine.name.rpartition("|")[2]
