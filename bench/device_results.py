"""What `bench device` stores, and shows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from xyntra_bench.codec import CodecError, decode
from xyntra_bench.environment import Environment
from xyntra_bench.errors import BenchError
from xyntra_bench.results import DeviceCeilings
from xyntra_bench.store import read_json

SCHEMA = "xyntra-device/2"  # 1 had the sum over kernels that were launched one by one
COLUMNS = ("point", "µs", "TFLOP/s", "GB/s", "of roof", "of library", "error", "variants")


@dataclass(frozen=True, slots=True, kw_only=True)
class PointResult:
    """`ns` is the median of a run as a whole by the device's clock; `library_ns` the library's, None without one. `error` is
    max|a-b| / max|b| of a sample against float64. `failure` says in a line why there are no figures."""

    name: str
    precision: str
    flops: int
    bytes: int
    ns: int
    runs: int
    variants: tuple[str, ...]
    error: float | None
    max_err: float
    library: str
    library_ns: float | None
    failure: str

    @property
    def good(self) -> bool:
        return not self.failure and self.error is not None and self.error <= self.max_err

    @property
    def of_library(self) -> float | None:
        """1 is as fast as the library."""
        return self.library_ns / max(self.ns, 1) if self.library_ns and self.good else None

    @property
    def gflops(self) -> float:
        return self.flops / max(self.ns, 1)

    def of_roof(self, ceilings: DeviceCeilings) -> float:
        """What bounds it at best: products by their rate, the rest by a copy's; of ours and the library's the faster one."""
        peak = {
            "fp32": max(ceilings.fp32_gflops, ceilings.library_fp32_gflops),
            "fp16": max(ceilings.fp16_gflops, ceilings.library_fp16_gflops),
            "bf16": max(ceilings.bf16_gflops, ceilings.library_bf16_gflops),
        }[self.precision]
        copy = max(ceilings.copy_gbs, ceilings.library_copy_gbs)
        return max(self.flops / max(peak, 1e-9) if self.flops else 0.0, self.bytes / max(copy, 1e-9)) / max(self.ns, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRun:
    """One stored file; `finished` stays empty when it was interrupted."""

    schema: str = SCHEMA
    command: str
    started: str
    finished: str = ""
    environment: Environment
    device_ceilings: tuple[DeviceCeilings, ...] = ()
    points: tuple[PointResult, ...] = ()


def is_device_run(path: Path) -> bool:
    """Whether a file is of `bench device`, by what it calls itself."""
    return _schema(read_json(path)).startswith(SCHEMA.partition("/")[0])


def load_device_run(path: Path) -> DeviceRun:
    data = read_json(path)
    if _schema(data) != SCHEMA:
        raise BenchError(f"{path}: schema {_schema(data)!r}, this version reads {SCHEMA!r}. measure again")
    try:
        return decode(DeviceRun, data)
    except CodecError as error:
        raise BenchError(f"{path}: {error}. the file is damaged or was edited") from None


def _schema(data: Any) -> str:
    return str(data.get("schema")) if isinstance(data, dict) else ""


def cells(point: PointResult, ceilings: DeviceCeilings | None) -> list[str]:
    """A row of what is shown; a failure is one that says so."""
    if point.failure:
        return [point.name, *["-"] * (len(COLUMNS) - 2), point.failure]
    return [
        point.name,
        f"{point.ns / 1e3:.1f}",
        f"{point.gflops / 1e3:.1f}" if point.flops else "-",
        f"{point.bytes / max(point.ns, 1):.0f}",
        f"{point.of_roof(ceilings):.0%}" if ceilings else "-",
        f"{point.of_library:.0%}" if point.of_library else "-",
        f"{point.error:.1e}" + ("" if point.good else " WRONG"),
        " ".join(dict.fromkeys(point.variants)),
    ]
