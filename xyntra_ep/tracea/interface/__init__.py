"""Tracea's interface to the rest of the package: the machine as a `Context`, islands in, plans out.

`provider` and `fusion` call it and see nothing behind it but the core IR. It also chooses a device for a session, tries its
kernels there before the first use, and answers questions about single operations (`plan_kernel`). Read first: `context.py`, then
`islands.py`.
"""

from xyntra_ep.tracea.interface.context import Context
from xyntra_ep.tracea.interface.islands import (
    CompileResult,
    Island,
    IslandFailure,
    compile_islands,
    report_of,
    write_plan,
)
from xyntra_ep.tracea.interface.plan_kernel import KernelPlan
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
