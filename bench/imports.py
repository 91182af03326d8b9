"""The time of imports, each in a new process: the runtime, a plugin on top of it, another runtime alone."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from statistics import median

from xyntra_bench.contenders import OPENVINO, PLUGINS, TORCH_BACKENDS, Contender
from xyntra_bench.run import child_environment

REPEATS = 5
RUNTIME = "onnxruntime"

SCRIPT = """
import importlib, sys, time
for name in sys.argv[1:]:
    begin = time.perf_counter_ns()
    importlib.import_module(name)
    print(time.perf_counter_ns() - begin)
"""


def measure_imports(contenders: Sequence[Contender]) -> dict[str, int]:
    """Median nanoseconds by module. What cannot be imported is left out: its contender says why."""
    providers = list(dict.fromkeys(contender.provider for contender in contenders))
    plugins = [PLUGINS[provider] for provider in providers if provider in PLUGINS]
    chains: list[tuple[str, ...]] = [(RUNTIME, plugin) for plugin in plugins] or [(RUNTIME,)]
    if OPENVINO in providers:
        chains.append(("openvino",))
    if any(provider in TORCH_BACKENDS for provider in providers):
        chains.append(("torch",))
    times: dict[str, int] = {}
    for chain in chains:
        times |= _measure(chain)
    return times


def _measure(chain: tuple[str, ...]) -> dict[str, int]:
    runs = []
    for _ in range(1 + REPEATS):  # the first fills the file cache and does not count
        done = subprocess.run(
            [sys.executable, "-P", "-c", SCRIPT, *chain], capture_output=True, text=True, env=child_environment(), check=False
        )
        runs.append([int(line) for line in done.stdout.split()])
    counted = runs[1:]
    known = min(len(run) for run in counted)
    return {module: int(median(run[i] for run in counted)) for i, module in enumerate(chain[:known])}
