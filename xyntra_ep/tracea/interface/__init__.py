"""What others may call: a Context for the machine, islands in, plan files out, and questions about single ops."""

from xyntra_ep.tracea.interface.context import Context
from xyntra_ep.tracea.interface.islands import (
    CompileResult,
    Island,
    IslandFailure,
    compile_islands,
    report_of,
    write_plan,
)
from xyntra_ep.tracea.interface.teaching import KernelPlan
from xyntra_ep.tracea.planning.manifest import IslandEntry, LogLevel, TensorEntry

__all__ = [
    "CompileResult",
    "Context",
    "Island",
    "IslandEntry",
    "IslandFailure",
    "KernelPlan",
    "LogLevel",
    "TensorEntry",
    "compile_islands",
    "report_of",
    "write_plan",
]
