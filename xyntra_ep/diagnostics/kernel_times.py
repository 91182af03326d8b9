"""Where the time of a run goes: each kernel's share, its work, and the nodes that it computes.

times = kernel_times(session, lambda: session.run(None, feeds), runs=20)
ns = device_run_ns(session, lambda: session.run(None, feeds), runs=20)      # of a whole run, on a device

While profiling is on, native code times the steps of islands, or whole runs on a device (`native/profile.h`), and records the
least work of each for the current shapes. The session's report tells which step computes which nodes. The profile is one for the
process, so only one session may run meanwhile.
"""

from __future__ import annotations

import ctypes
import json
import re
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from xyntra_ep.diagnostics.explain import Explanation, Kernel, explain
from xyntra_ep.provider import registration
from xyntra_ep.tracea.doctor.profile import usable_cores


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Why a kernel is computed as it is. ``predicted_ns``: what it was chosen for, at the sizes of a run and on its threads (see
    `predicted_ns`). ``runner_up``: the variant that would have been chosen next, and what it was estimated to take, at the same
    sizes and threads; empty where no other admits the op. ``is_measured``: tuning chose it, not an estimate.
    """

    predicted_ns: int
    config: Mapping[str, int]
    is_measured: bool
    runner_up: str
    runner_up_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelTime:
    """One kernel in one run. ``ns`` is the median over the runs; ``flops`` and ``bytes`` what it must at least do
    (`tracea/core_ir/work.py`), ``precision`` what its products are computed in. ``symbols``: the compiled functions, as
    perf names them.
    """

    island: str
    label: str
    variant: str
    op_types: tuple[str, ...]
    nodes: tuple[str, ...]
    precision: str  # fp32, tf32, bf16 or fp16
    symbols: tuple[str, ...]
    calls: int
    ns: int
    flops: int
    bytes: int
    launch: Mapping[str, Any] | None = None  # the hottest one, as `explain` has it: what a device's compiler reports of it
    choice: Choice | None = None  # None of a stored plan that does not tell


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTimes:
    """``run_ns``: the median of whole runs, in which the kernels are and what ONNX Runtime does besides."""

    runs: int
    run_ns: int
    kernels: tuple[KernelTime, ...]


_OFF, _STEPS, _RUNS = range(3)  # what `xyntra_profile` times
_IN_BLOCKS = "gemm.block_weights"  # multiplies in more than one type
_OF_BYTES = frozenset({"clamped", "quads", "shorts", "tiles_int8"})  # what the last part of their name says
_MATRIX_UNITS = re.compile("fragments|wgmma")  # in the names of their kernels
Row = Mapping[str, Any]
Key = tuple[str, str, int]  # digest, island, position among the island's kernels


def kernel_times(session: Any, run: Callable[[], object], *, runs: int) -> RunTimes:
    """Time ``runs`` calls of ``run``, which runs ``session`` once. Warm up first. On a device each kernel is then launched by
    itself, so that short ones count with the pause before the next: their sum is more than a run takes (`device_run_ns`)."""
    explanation = explain(session)
    walls_ns, profiles = _profiled(_STEPS, run, runs)
    kernels = summed(explanation, profiles, threads=threads_of(session))
    return RunTimes(runs=runs, run_ns=int(statistics.median(walls_ns)), kernels=kernels)


def threads_of(session: Any) -> int:
    """That an operator of ``session`` may use: all cores where its options leave that to ONNX Runtime."""
    return int(session.get_session_options().intra_op_num_threads) or usable_cores()


def device_run_ns(session: Any, run: Callable[[], object], *, runs: int) -> int | None:
    """What a run of ``session`` takes on its device, in nanoseconds by the device's clock, the median of ``runs`` calls of
    ``run``: from the first kernel's begin to the last one's end, started as in any run (on CUDA as one graph), in all islands.
    Inputs and outputs are moved outside of it. None where nothing runs on a device. Warm up first."""
    digests = {graph.digest for graph in explain(session).graphs if graph.device}
    if not digests:
        return None
    _, profiles = _profiled(_RUNS, run, runs)
    return int(statistics.median(sum(row["ns"] for row in rows if row["digest"] in digests) for rows in profiles))


def _profiled(what: int, run: Callable[[], object], runs: int) -> tuple[list[int], list[list[Row]]]:
    """Of each run its time on the host, in nanoseconds, and the rows of its profile."""
    library = registration.library()
    take_rows(library)  # what an earlier user left
    walls_ns, profiles = [], []
    for _ in range(runs):
        library.xyntra_profile(what)
        try:
            begin = time.perf_counter_ns()
            run()
            walls_ns.append(time.perf_counter_ns() - begin)
        finally:
            library.xyntra_profile(_OFF)
        profiles.append(take_rows(library))
    return walls_ns, profiles


def take_rows(library: ctypes.CDLL) -> list[Row]:
    """What the profile has counted, one row per step, or per island; it is forgotten there."""
    size = library.xyntra_take_profile(None, 0)
    buffer = ctypes.create_string_buffer(size + 1)
    library.xyntra_take_profile(buffer, size)
    return [json.loads(line) for line in buffer.value.decode("utf-8", "replace").splitlines()]


def summed(explanation: Explanation, profiles: Sequence[Sequence[Row]], *, threads: int = 1) -> tuple[KernelTime, ...]:
    """Steps joined to kernels, in the order of execution; of the times of a kernel the median over ``profiles``. ``threads``: of
    the session."""
    named = {(g.digest, i.name): (g.nodes, i) for g in explanation.graphs for i in g.islands}
    sums: dict[Key, dict[int, list[Row]]] = {}
    for number, profile in enumerate(profiles):
        for row in profile:
            place = (row["digest"], row["island"])
            if place in named:  # else of a session that died meanwhile
                kernel = named[place][1].steps[row["alternative"]][row["step"]]
                sums.setdefault((*place, kernel), {}).setdefault(number, []).append(row)
    found = []
    for (digest, island, position), by_run in sums.items():
        nodes, report = named[digest, island]
        found.append(_kernel_time(island, report.kernels[position], nodes, list(by_run.values()), threads))
    return tuple(found)


def _kernel_time(
    island: str, kernel: Kernel, nodes: Mapping[int, tuple[str, str]], by_run: Sequence[Sequence[Row]], threads: int
) -> KernelTime:
    last = by_run[-1]
    # What the sizes of a run leave out takes no time.
    symbols = tuple(dict.fromkeys(row["kernel"] for row in last if row["ns"]))
    launches = {launch["symbol"]: launch for launch in kernel.launches}
    members = [nodes[n] for n in kernel.nodes if n in nodes]
    return KernelTime(
        island=island,
        label=kernel.label,
        variant=kernel.variant,
        op_types=tuple(op_type for op_type, _ in members),
        nodes=tuple(name for _, name in members),
        precision=multiplied_in(kernel.variant, symbols),
        symbols=symbols,
        calls=max(row["calls"] for row in last),
        ns=int(statistics.median(sum(row["ns"] for row in rows) for rows in by_run)),
        flops=sum(row["flops"] for row in last),
        bytes=sum(row["bytes"] for row in last),
        launch=launches.get(max(last, key=lambda row: int(row["ns"]))["kernel"]),
        choice=_choice(kernel, last, threads),
    )


def _choice(kernel: Kernel, rows: Sequence[Row], threads: int) -> Choice | None:
    if not kernel.decided_ns or not kernel.steps_ns:
        return None
    return Choice(
        predicted_ns=predicted_ns(kernel.decided_ns, kernel.steps_ns, rows, threads),
        config=kernel.config,
        is_measured=kernel.is_measured,
        runner_up=kernel.runner_up,
        runner_up_ns=predicted_ns(kernel.runner_up_ns, kernel.steps_ns, rows, threads),
    )


def predicted_ns(estimate_ns: int, steps_ns: int, rows: Sequence[Row], threads: int) -> int:
    """An estimate for one call, on one core and at usual sizes, as a time of all calls of a run with ``threads`` threads.

    The plan has costs of a kernel's steps, too, by which native code divides them. They are formulas of the sizes: at the usual
    ones they come to ``steps_ns``, and in ``rows`` they are at those of the run. So much as they differ the estimate does. A step
    is shared by as many threads as there are, at most by one for each of its tasks.

    >>> predicted_ns(1200, 1000, [{"cost_ns": 4000, "tasks": 4}], 1), predicted_ns(1200, 1000, [{"cost_ns": 4000, "tasks": 4}], 2)
    (4800, 2400)
    """
    shared_ns: float = sum(row["cost_ns"] / min(threads, row["tasks"]) for row in rows)
    return round(estimate_ns * shared_ns / steps_ns)


def multiplied_in(variant: str, symbols: Sequence[str]) -> str:
    """Names say it: a CPU's that of the variant; a GPU's matrix units take what their kernel's symbol names, all others f32.

    >>> multiplied_in("gemm.tiles_bf16", ["xy_gemm"]), multiplied_in("gemm.block_tiles", ["xy_gemm_f16_64x64"])
    ('bf16', 'fp32')
    >>> multiplied_in("conv.quads", ["xy_conv_quads_3x3_u8_12x2"])
    'int8'
    >>> multiplied_in("gemm.block_weights", ["xy_gemm_f32_int4x32_bytes_4x48_avx512"])
    'int8'
    >>> multiplied_in("gemm.fragments", ["xy_gemm_f16_fragments_128x128"])
    'fp16'
    >>> multiplied_in("gemm.fragments", ["xy_gemm_f32_fragments_128x128"])
    'tf32'
    """
    if "bf16" in variant or (variant == _IN_BLOCKS and any("_pairs_" in symbol for symbol in symbols)):
        return "bf16"
    if variant.partition(".")[2] in _OF_BYTES or (variant == _IN_BLOCKS and any("_bytes_" in symbol for symbol in symbols)):
        return "int8"
    types = {part for symbol in symbols for part in symbol.split("_") if _MATRIX_UNITS.search(symbol)}
    named = {"bf16": "bf16", "f16": "fp16", "f32": "tf32"}
    return next((precision for name, precision in named.items() if name in types), "fp32")
