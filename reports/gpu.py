"""The table of GPUs: each model on a device, beside PyTorch on the same device."""

from __future__ import annotations

from collections.abc import Iterator

from xyntra_bench.contenders import TORCH, is_on_device
from xyntra_bench.environment import Environment
from xyntra_bench.plan import Scenario
from xyntra_bench.results import CaseResult, Measurement, Run, Status
from xyntra_bench.show import claimed, milliseconds, named
from xyntra_reports._markdown import bounds, cases_of, provenance, speed_up, table
from xyntra_reports.registry import Report

HEADER = (
    "model",
    "shape",
    "provider",
    "p50 ms",
    "p99 ms (n)",
    "device ms",
    "max error",
    "nodes",
    "torch eager p50 / device ms",
    "vs eager [95 %]",
    "torch.compile p50 / device ms",
    "vs torch.compile [95 %]",
)
LEFT = 3
MODES = ("eager", "compile")


def render(run: Run, source: str) -> str:
    cases = cases_of(run, Scenario.SINGLE_STREAM)
    rows = [row for case in cases for row in _rows(case)]
    note = (
        "p50 and p99 are times on the host, with inputs and outputs in host memory; device ms is the time of a run between two "
        "events on the device, with inputs and outputs in device memory. PyTorch runs the same weights in the same precision, "
        "interleaved in the same process (`bench/torch_models`); above 1x PyTorch is slower. Max error is max\\|a-b\\| / "
        "max\\|b\\| against ONNX Runtime's CPU provider. There is no ratio where XyntraEP's or PyTorch's exceeds the bound "
        f"({bounds(cases)})."
    )
    return f"{table(HEADER, rows, left=LEFT)}\n\n{note}\n\n{devices(run.environment)} {provenance(run, source)}\n"


def devices(environment: Environment) -> str:
    """What was measured on, in a line each."""
    lines = []
    for gpu in environment.gpus:
        power = f", at most {gpu.power_limit_w:.0f} W" if gpu.power_limit_w else ""
        clock = f", {gpu.clock_mhz:.0f} MHz" if gpu.clock_mhz else ""
        driver = f", driver {gpu.driver}" if gpu.driver else ""
        memory = f"{gpu.memory_bytes / 2**30:.0f} GiB"
        lines.append(f"{gpu.name}, {gpu.multiprocessors} multiprocessors{clock}, {memory}{power}, {gpu.api}{driver}.")
    return " ".join(lines)


def peer_of(case: CaseResult, m: Measurement, mode: str) -> Measurement | None:
    """PyTorch in that mode and in the precision of `m`."""
    theirs = {(p.options.get("mode", MODES[0]), p.contender.precision): p for p in case.contenders if p.provider == TORCH}
    return theirs.get((mode, m.contender.precision))


def _rows(case: CaseResult) -> Iterator[list[str]]:
    head = [case.model, case.shape]
    if case.status is not Status.OK:
        yield [*head, "-", str(case.status), *["-"] * (len(HEADER) - len(head) - 2)]
        return
    for m in case.contenders:
        if is_on_device(m.backend):
            against = [_peer(m, peer_of(case, m, mode)) for mode in MODES]
            yield [*head, named(m), *_cells(m), *(cell for cells in against for cell in cells)]


def _cells(m: Measurement) -> list[str]:
    if m.status is not Status.OK or m.latency is None:
        return [str(m.status), *["-"] * 4]
    error = "-" if m.check is None else f"{m.check.error:.1e}" if m.check.error is not None else str(m.check.state)
    p99 = f"{milliseconds(m.latency.p99_ns)} ({m.latency.n})"
    return [milliseconds(m.latency.p50_ns), p99, milliseconds(m.device_ns), error, claimed(m) or "-"]


def _peer(m: Measurement, peer: Measurement | None) -> list[str]:
    if peer is None:
        return ["-", "-"]
    if peer.latency is None:
        return [str(peer.status), "-"]
    times = f"{milliseconds(peer.latency.p50_ns)} / {milliseconds(peer.device_ns)}"
    return [times, speed_up(m.peers.get(peer.label)) if m.peers.get(peer.label) else peer.lacking or "-"]


NOTHING = "No model has been measured on a GPU for this table yet.\n"
REPORTS = [Report(name="gpu", title="The zoo on GPUs", render=render, on_device=True, nothing=NOTHING)]
