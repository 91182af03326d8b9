"""The architectures that `bench run torch` measures as modules of PyTorch: those of full size, and by name all others."""

from __future__ import annotations

from xyntra_bench.architectures._architecture import Architecture, architectures
from xyntra_bench.contenders import did_you_mean
from xyntra_bench.errors import BenchError
from xyntra_zoo.registry import Registry

OUTPUT = "output"  # each has one, which is called so in its export

full_size: Registry[Architecture] = Registry("xyntra_bench.architectures._full", "ARCHITECTURES")


def module_row(name: str) -> Architecture:
    """Raises BenchError with the nearest name where there is none."""
    for rows in (full_size, architectures):
        if name in rows:
            return rows[name]
    known = [*full_size.names(), *architectures.names()]
    hint = did_you_mean(name, known) or f"of full size there are {', '.join(full_size.names())}"
    raise BenchError(f"-m {name}: no module of that name. {hint}")
