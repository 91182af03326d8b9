"""What a compiler reports about its kernels, stored in their file after the code, where loaders ignore it.

code  MARK {"xy_gemm_...": {"registers": 90, ...}}  [the cache's trailer]
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from xyntra_ep.trusted_file import read_trusted

MARK = b"XYNTRA-REPORT:"


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelReport:
    """Registers of a thread, shared memory that a block declares, and bytes that a thread keeps in memory because registers do
    not suffice. Where the hardware has several kinds of registers: how many are ``accumulators`` of matrix units, how many
    ``scalars`` all threads of a warp have in common, and how many of a thread's were spilled."""

    registers: int
    shared_bytes: int
    spilled_bytes: int
    accumulators: int = 0
    scalars: int = 0
    spilled_registers: int = 0


def attached(code: bytes, reports: Mapping[str, KernelReport]) -> bytes:
    """``code`` with the reports of its kernels, by symbol."""
    rows = {symbol: dataclasses.asdict(report) for symbol, report in reports.items()}
    return code + MARK + json.dumps(rows).encode()


def read_report(path: Path, symbol: str) -> KernelReport | None:
    """Of a kernel in the cache; None where its compiler says nothing of the kind, or the file is gone."""
    try:
        _, found, rest = read_trusted(path).rpartition(MARK)
    except OSError:
        return None
    if not found:
        return None
    # What follows is the trailer: bytes of any kind, which the decoder does not look at.
    rows, _ = json.JSONDecoder().raw_decode(rest.decode("latin-1"))
    return KernelReport(**rows[symbol]) if symbol in rows else None
