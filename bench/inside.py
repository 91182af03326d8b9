"""What a session did inside: the time and work of each kernel in a run, and the nodes that were left to others.

XyntraEP alone tells this, by its own profile and cache. As a program it prints the compiler of its kernels
(`python -m xyntra_bench.inside`) or their instruction set (`python -m xyntra_bench.inside isa`).
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from xyntra_bench.environment import IsaClass
from xyntra_bench.results import Choice, Declined, Inside, KernelTime, Resident

PROVIDER = "XyntraEP"
RUNS, LEAST_RUNS = 20, 3
SPAN_NS = 2_000_000_000  # all profiled runs together, unless the least of them take longer
NAMES = 4  # of a kernel's nodes; how many there are is in `op_types`


def repetitions(run_ns: int) -> int:
    """How many runs of so many nanoseconds each are looked at."""
    return max(LEAST_RUNS, min(RUNS, SPAN_NS // max(run_ns, 1)))


def look_inside(session: Any, provider: str, run: Callable[[], object], run_ns: int) -> Inside | None:
    """Some more runs of an ONNX Runtime session that is warm, of `run_ns` each; None where the provider does not tell."""
    if provider != PROVIDER:
        return None
    from xyntra_ep.diagnostics.explain import explain
    from xyntra_ep.diagnostics.kernel_times import kernel_times

    times = kernel_times(session, run, runs=repetitions(run_ns))
    graphs = explain(session).graphs
    declined: dict[tuple[str, str], list[str]] = {}
    for graph in graphs:
        for node in graph.declined:
            declined.setdefault((node.op_type, node.reason), []).append(node.name)
    kernels = [
        KernelTime(
            island=k.island,
            label=k.label,
            variant=k.variant,
            symbols=k.symbols,
            precision=k.precision,
            op_types=dict(Counter(k.op_types)),
            nodes=_some(k.nodes),
            calls=k.calls,
            ns=k.ns,
            flops=k.flops,
            bytes=k.bytes,
            resident=_resident(k.launch),
            choice=_choice(k.choice),
        )
        for k in times.kernels
    ]
    return Inside(
        device=next((graph.device for graph in graphs if graph.device), ""),
        runs=times.runs,
        run_ns=times.run_ns,
        kernels=tuple(kernels),
        declined=tuple(
            Declined(op_type=op_type, reason=reason, count=len(names), nodes=_some(tuple(names)))
            for (op_type, reason), names in declined.items()
        ),
    )


def _resident(launch: Mapping[str, Any] | None) -> Resident | None:
    """What the report of a device's compiler comes to; None where it tells nothing, as it does on the CPU."""
    if launch is None or not (report := launch["report"]) or not (held := launch["occupancy"]):
        return None
    return Resident(
        threads=launch["threads"],
        registers=report["registers"],
        shared_bytes=launch["shared_bytes"],
        blocks=held["blocks"],
        warps=held["warps"],
        of_warps=held["of_warps"],
        limit=held["limit"],
    )


def _choice(made: Any) -> Choice | None:
    if made is None:
        return None
    return Choice(
        predicted_ns=made.predicted_ns,
        config=dict(made.config),
        tuned=made.is_measured,
        runner_up=made.runner_up,
        runner_up_ns=made.runner_up_ns,
    )


def forget_plans(cache_dir: Path) -> bool:
    """So that the next session plans anew, with the kernels that are there. Whether there were any plans."""
    from xyntra_ep.tracea.runtime.cache_root import open_root
    from xyntra_ep.tracea.runtime.maintenance import EntryKind, entries, remove

    plans = [entry for entry in entries(open_root(cache_dir)) if entry.kind is EntryKind.PLAN]
    return all([remove(entry) for entry in plans]) and bool(plans)


def _some(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in names if name)[:NAMES]


def kernel_compiler() -> str:
    """What the provider would build kernels with."""
    from xyntra_ep.tracea.runtime.compilers import find_compiler

    return find_compiler().version


def kernels_isa() -> IsaClass:
    """The class of processors that the provider makes kernels for here."""
    from xyntra_ep.tracea.interface.context import Context
    from xyntra_ep.tracea.semantic_ir.capabilities import Isa

    classes = {Isa.AVX512: IsaClass.AVX512, Isa.AVX2: IsaClass.AVX2, Isa.NEON: IsaClass.NEON, Isa.SCALAR: IsaClass.SCALAR}
    caps = Context().caps
    return IsaClass.AMX if caps.amx_bf16 else classes[caps.isa]


if __name__ == "__main__":
    print(kernels_isa() if sys.argv[1:] == ["isa"] else kernel_compiler())
