"""How well ONNX Runtime's CPU provider uses a machine, per kind of operator: the table that `claim=profitable` reads.

    python -m xyntra_bench.ort_efficiency [--out FILE]     (some minutes)

It is of the width of the units that multiply on the machine at hand, 256 or 512 bits. Where that has matrix tiles of bytes, the
rows of integers go to a table of their own.

Each row is a time freed of the machine it was measured on, so that it holds for others:

    flops   what one unit of work costs while the data is near, in floating-point operations of a core at its peak
    dram    the part of a core's DRAM bandwidth that is drawn when the data is far (at most 1, also where a large
            L3 holds it); 0 where computing hides the memory

``node_us`` is what a node costs that has nothing to do, ``step_us`` a step of a recurrence.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray
from onnx import TensorProto, helper

from xyntra_bench import ort_integer_cases
from xyntra_bench.environment import Environment, read_environment
from xyntra_bench.ort_cases import KINDS, TINY, Kind, OpCase, recurrent

TABLES = Path(__file__).resolve().parent.parent / "xyntra_ep" / "fusion" / "estimates" / "ort_efficiency"
_CHAINS = (4, 36)
_STEPS = (32, 288)
_SAMPLE_S = 0.005
_SAMPLES = 21
_ROUNDS = 1 << 18  # of the probe: some milliseconds
_FAR_BYTES = 64 << 20
_HIDDEN = 1.25  # a far case slower by less than this is as near


class Ceiling(Protocol):
    """What a core reaches at best (xyntra_ep's doctor has it): a call works and says how much it did."""

    def fma(self, rounds: int) -> float: ...

    def read(self, data: NDArray[np.float32]) -> float: ...


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """A row of the table; see the module's docstring."""

    flops: float
    dram: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """What a core could have done at its ceilings while ORT ran a case."""

    flops: float
    bytes_read: float


def rate(tiny: Timed, near: Timed, far: Timed, cases: tuple[OpCase, OpCase]) -> Rate:
    """What one unit costs near, and what of the memory's rate is drawn far. ``cases``: the near and the far one."""
    unit = max(near.flops - tiny.flops, 0.0) / cases[0].units
    is_hidden = far.flops <= _HIDDEN * unit * cases[1].units
    return Rate(flops=_short(unit), dram=0.0 if is_hidden else _short(min(1.0, cases[1].moved / far.bytes_read)))


def measure(kind: Kind, ceiling: Ceiling, data: NDArray[np.float32]) -> Rate:
    """The row of ``kind``: its tiny, near and far case on one thread."""
    tiny, near, far = (kind.at(n) for n in kind.sizes)
    times = [_timed(case, ceiling, data) for case in (tiny, near, far)]
    return rate(times[0], times[1], times[2], (near, far))


def measure_node_us() -> float:
    """What one more node of nothing to do costs, from two chains of them."""
    short_s, long_s = (_seconds_of(_chain(n), {"t0": np.ones((2, 2), np.float32)}) for n in _CHAINS)
    return _short((long_s - short_s) / (_CHAINS[1] - _CHAINS[0]) * 1e6)


def measure_step_us() -> float:
    """What one more step of an LSTM of few units costs, from a short and a long one."""
    cases = [recurrent("LSTM", gates=4, rows=1, steps=steps)(TINY // 4) for steps in _STEPS]
    short_s, long_s = (_seconds_of(case.model(), case.feeds) for case in cases)
    return _short((long_s - short_s) / (_STEPS[1] - _STEPS[0]) * 1e6)


def _chain(n: int) -> bytes:
    """Softmax after softmax: ORT fuses none of them."""
    nodes = [helper.make_node("Softmax", [f"t{i}"], [f"t{i + 1}"]) for i in range(n)]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 2]) for name in ("t0", f"t{n}")]
    graph = helper.make_graph(nodes, "chain", ends[:1], ends[1:])
    blob: bytes = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9).SerializeToString()
    return blob


def _timed(case: OpCase, ceiling: Ceiling, data: NDArray[np.float32]) -> Timed:
    """In alternation with the ceilings: a neighbour that slows the core down slows both."""
    run = _runner(case.model(), case.feeds)
    samples = []
    for _ in range(_SAMPLES):
        (flops, fma_s), (size, read_s) = _timing(lambda: ceiling.fma(_ROUNDS)), _timing(lambda: ceiling.read(data))
        _, took_s = _timing(run)
        samples.append((took_s / fma_s * flops, took_s / read_s * size))
    repeats = run()
    flops, read = (statistics.median(column) / repeats for column in zip(*samples, strict=True))
    return Timed(flops=flops, bytes_read=read)


def _seconds_of(model: bytes, feeds: Any) -> float:
    run = _runner(model, feeds)
    return min(_timing(run)[1] for _ in range(_SAMPLES)) / run()


def _timing(work: Callable[[], float]) -> tuple[float, float]:
    """What ``work`` returns, and the processor time it takes: with one thread, others' time does not count."""
    begin = time.thread_time()
    done = work()
    return done, time.thread_time() - begin


def _runner(model: bytes, feeds: Any) -> Callable[[], float]:
    """Runs the model for about a sample's time, and says how often."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    once_s = min(_timing(lambda: len(session.run(None, feeds)))[1] for _ in range(3))
    repeats = max(1, min(1000, int(_SAMPLE_S / max(once_s, 1e-6))))

    def run() -> float:
        for _ in range(repeats):
            session.run(None, feeds)
        return float(repeats)

    return run


def table(environment: Environment, ceiling: Ceiling) -> dict[str, Any]:
    """The whole file."""
    data = np.ones(_FAR_BYTES // 4, np.float32)
    rows = {kind.name: dataclasses.asdict(measure(kind, ceiling, data)) for kind in (*KINDS, *ort_integer_cases.KINDS)}
    return {
        "environment": {
            "cpu": environment.cpu,
            "cpu_flags": list(environment.cpu_flags),
            "threads": 1,
            "packages": {name: environment.packages[name] for name in ("onnxruntime", "numpy")},
            "measured": time.strftime("%Y-%m-%d", time.gmtime()),
        },
        "node_us": measure_node_us(),
        "step_us": measure_step_us(),
        "rows": rows,
    }


def text(content: dict[str, Any]) -> str:
    """JSON with one row a line, so that a difference can be read."""
    rows = ",\n".join(f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in content["rows"].items())
    head = json.dumps({name: value for name, value in content.items() if name != "rows"}, indent=1)
    return f'{head[:-2]},\n "rows": {{\n{rows}\n }}\n}}\n'


def parted(content: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The file without its rows of integers, and one of these."""
    of_bytes = {name: row for name, row in content["rows"].items() if name.startswith(ort_integer_cases.PREFIX)}
    rest = {name: row for name, row in content["rows"].items() if name not in of_bytes}
    return {**content, "rows": rest}, {"environment": content["environment"], "rows": of_bytes}


def _short(value: float) -> float:
    return float(f"{value:.3g}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, help="Default: the committed one of this width of units.")
    asked = parser.parse_args().out
    from xyntra_ep.diagnostics.machine import compile_with
    from xyntra_ep.fusion.estimates.ort_cost import WITH_TILES
    from xyntra_ep.tracea.doctor.ceilings import Probe
    from xyntra_ep.tracea.interface.context import Context

    context = Context()
    probe = Probe(context.caps, compile_with(context))
    out = asked or TABLES / f"units{context.caps.unit_bits}.json"
    content = table(read_environment(compiler=""), probe)
    if context.caps.amx_int8:
        content, of_bytes = parted(content)
        out.with_name(f"{WITH_TILES}.json").write_text(text(of_bytes), encoding="utf-8")
    out.write_text(text(content), encoding="utf-8")


if __name__ == "__main__":
    main()
