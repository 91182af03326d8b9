"""What XyntraEP should reach on a GPU, and whether it does: a page from stored runs of `bench device` and `bench run zoo`. Pure.

Bars are relative to what was measured in the same run: the same product or model by PyTorch, the rate of its products, a copy. A
bar that a wrong result would hold is not held.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from xyntra_bench.contenders import FP32, TORCH, is_on_device
from xyntra_bench.device_results import DeviceRun, PointResult
from xyntra_bench.plan import Scenario
from xyntra_bench.results import CaseResult, DeviceCeilings, Measurement, Run
from xyntra_reports._markdown import table
from xyntra_reports.gpu import devices, peer_of

HEADER = ("what", "measured", "bar", "error", "")
OF_LIBRARY = 0.95  # of the library's speed at the same product, by the instructions that its own kernels use
OF_FRAGMENTS = 0.80  # of the rate of the older ones, which is 0.84 of the library's on an H100
OF_MATRIX_RATE = 0.60  # attention, of the rate of the library's products in the same type
OF_COPY = 0.85  # what memory bounds, of a copy's bandwidth
MAX_ERR = {FP32: 1e-4, "bf16": 2e-2, "fp16": 2e-2}  # max|a-b| / max|b|
COMPILE = "compile"  # the mode of PyTorch that models have to be ahead of
NO_PEER = f"no time of {TORCH}.{COMPILE} beside"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """`held` is None where something is not measured, and `measured` then says what."""

    what: str
    measured: str
    bar: str
    error: str = "-"
    held: bool | None

    @property
    def verdict(self) -> str:
        return "no data" if self.held is None else "holds" if self.held else "FAILS"


def bars(runs: Mapping[str, Run | DeviceRun], points: Sequence[str]) -> tuple[Bar, ...]:
    """Of all `runs`, by the names of their files. `points` are those of `bench device` that there should be; where two runs have
    one, the later one counts."""
    measured: dict[str, tuple[PointResult, DeviceCeilings | None]] = {}
    cases: dict[str, CaseResult] = {}
    for run in runs.values():
        if isinstance(run, DeviceRun):
            measured |= {point.name: (point, next(iter(run.device_ceilings), None)) for point in run.points}
        else:
            cases |= {case.label: case for case in run.cases if case.scenario is Scenario.SINGLE_STREAM}
    wanted = [*points, *(name for name in measured if name not in points)]
    found = [_of_point(*measured[name]) if name in measured else _nothing(name) for name in wanted]
    of_cases = [bar for case in cases.values() for bar in _of_case(case)]
    return (*found, *(of_cases or [_nothing("models of the zoo beside torch.compile")]))


def bars_page(runs: Mapping[str, Run | DeviceRun], found: Sequence[Bar]) -> str:
    """Markdown; what fails once more, at its end."""
    sources = [f"- `{name}`: {devices(run.environment) or 'no GPU'} {_software(run)}" for name, run in runs.items()]
    rows = [[bar.what, bar.measured, bar.bar, bar.error, bar.verdict] for bar in found]
    failing = [f"FAILS: {bar.what}: {bar.measured}, bar {bar.bar}, error {bar.error}" for bar in found if bar.held is False]
    held = sum(bar.held is True for bar in found)
    last = f"{held} of {len(found)} bars hold, {len(failing)} fail, {len(found) - held - len(failing)} have no data"
    return "\n\n".join(["\n".join(sources), table(HEADER, rows), *failing, last]) + "\n"


def _nothing(what: str) -> Bar:
    return Bar(what=what, measured="not measured", bar="-", held=None)


def _of_point(point: PointResult, ceilings: DeviceCeilings | None) -> Bar:
    if point.failure:
        return Bar(what=point.name, measured=point.failure, bar="-", held=False)
    kind, least = _wanted(point)
    share = _share(point, kind, ceilings)
    right = point.error is not None and point.error <= MAX_ERR[point.precision]
    error = "-" if point.error is None else f"{point.error:.1e}"
    if least is None or not right:
        return Bar(what=point.name, measured=kind, bar="-", error=error, held=right)
    if share is None:
        return Bar(what=point.name, measured=f"{kind}: nothing to hold it against", bar=f"{least:.0%}", error=error, held=None)
    return Bar(what=point.name, measured=f"{share:.0%} {kind}", bar=f"{least:.0%}", error=error, held=share >= least)


OF_PRODUCTS, OF_OLDER = "of the library's speed, by wgmma", "of mma.sync's rate"
OF_RATE, OF_BANDWIDTH = "of the library's matrix rate", "of a copy's bandwidth"


def _wanted(point: PointResult) -> tuple[str, float | None]:
    """What it is held against, and which part of that it should reach; None where only the result counts."""
    if not point.flops:
        return OF_BANDWIDTH, OF_COPY
    if point.name.startswith("attention"):
        return OF_RATE, OF_MATRIX_RATE
    if point.precision == FP32:
        return "the result alone", None
    if any("wgmma" in variant for variant in point.variants):
        return OF_PRODUCTS, OF_LIBRARY
    return OF_OLDER, OF_FRAGMENTS


def _share(point: PointResult, kind: str, ceilings: DeviceCeilings | None) -> float | None:
    if kind == OF_PRODUCTS:
        return point.library_ns / max(point.ns, 1) if point.library_ns else None
    if ceilings is None:
        return None
    if kind in (OF_RATE, OF_OLDER):
        whose = "library_" if kind == OF_RATE else ""
        rate = getattr(ceilings, f"{whose}{point.precision}_gflops")
        return point.gflops / rate if rate else None
    return point.bytes / max(point.ns, 1) / max(ceilings.copy_gbs, ceilings.library_copy_gbs, 1e-9)


def _of_case(case: CaseResult) -> Iterator[Bar]:
    where = f"{case.model} {case.shape}"
    if case.failure:
        yield Bar(what=where, measured=case.failure, bar="-", held=False)
    for m in case.contenders:
        if is_on_device(m.backend):
            yield from _of_contender(f"{where} {m.contender.precision}", m, peer_of(case, m, COMPILE))


def _of_contender(what: str, m: Measurement, peer: Measurement | None) -> Iterator[Bar]:
    if m.failure or m.latency is None:
        yield Bar(what=what, measured=m.failure or "no latency", bar="-", held=False)
        return
    off = m.check.error if m.check else None
    right = m.check is not None and off is not None and off <= MAX_ERR.get(m.contender.precision, m.check.max_err)
    error = f"{off:.1e}" if off is not None else str(m.check.state) if m.check else "-"
    if m.contender.precision == FP32 or not right:
        yield Bar(what=what, measured="the result alone", bar="-", error=error, held=right)
        return
    theirs = peer.latency.p50_ns if peer and peer.latency else None
    for measure, ours_ns, theirs_ns in (
        ("on the device", m.device_ns, peer.device_ns if peer else None),
        ("for the caller", m.latency.p50_ns, theirs),
    ):
        told = f"{theirs_ns / ours_ns:.2f}x {TORCH}.{COMPILE}{_doubt(peer)}" if ours_ns and theirs_ns else NO_PEER
        held = theirs_ns > ours_ns if ours_ns and theirs_ns else None
        yield Bar(what=f"{what} {measure}", measured=told, bar="1.00x", error=error, held=held)


def _doubt(peer: Measurement | None) -> str:
    """A peer that is beyond its bound is not compared with elsewhere. Here its speed counts, and its error is said."""
    if peer is None or not peer.lacking or peer.check is None or peer.check.error is None:
        return ""
    return f", whose error is {peer.check.error:.1e}"


def _software(run: Run | DeviceRun) -> str:
    e = run.environment
    versions = ", ".join(f"{name} {version}" for name, version in e.packages.items())
    revision = f" at {e.git_revision}" if e.git_revision else ""
    unfinished = "" if run.finished else " Interrupted."
    return f"Python {e.python}, {versions}{revision}. `{run.command}`, {run.started[:10]}.{unfinished}"
