"""Kernels of a profiled run held against the machine: equal ones together, each with the roof over it. Pure arithmetic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xyntra_bench.results import CaseResult, Ceilings, DeviceCeilings, Inside, KernelTime, Measurement, Run

NAME_WIDTH = 46
COMPUTE = "compute"
KINDS = {
    "gemm": "matrix product",
    "conv": "convolution",
    "attention": "attention",
    "row_reduce": "rows",
    "column_reduce": "rows",
    "pointwise": "elementwise",
}
OTHER = "other"
KIND_ORDER = (*dict.fromkeys(KINDS.values()), OTHER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Roofs:
    """What nothing on a machine, or on a device of it, is faster than. `peaks`: GFLOP/s by what products are computed in, fp32
    always. `levels`: name, GB/s and bytes of the caches, of all threads together, and of the memory at the end."""

    peaks: Mapping[str, float]
    levels: tuple[tuple[str, float, float], ...]

    def peak(self, precision: str) -> float:
        """At the rate of fp32 where nothing faster is known."""
        return max(self.peaks.get(precision, 0.0), self.peaks["fp32"])

    @property
    def memory_gbs(self) -> float:
        return self.levels[-1][1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Kernels that are the same but for their data, as those of a transformer's layers are; the figures are of all.

    `roof_ns` is the least time that the machine could need for the work: operations at the peak of their precision, or bytes
    at the bandwidth of the smallest memory that holds those of one call, whichever is slower. `bound` says which."""

    kind: str
    variant: str
    precision: str
    nodes: tuple[str, ...]  # of the first kernel
    node_count: int  # of each kernel
    op_types: tuple[str, ...]
    count: int
    calls: int  # in a run: more than there are kernels where they are called for one image after the other
    ns: int
    flops: int
    bytes: int
    roof_ns: float
    bound: str

    @property
    def name(self) -> str:
        """The first node, and how many more the kernel computes; then how many such kernels there are."""
        first = shortened(self.nodes[0]) if self.nodes else self.variant
        more = f" +{self.node_count - 1}" if self.node_count > 1 and self.nodes else ""
        return f"{first}{more}" + (f" (x{self.count})" if self.count > 1 else "")

    @property
    def ops(self) -> str:
        return ", ".join(self.op_types)

    @property
    def gflops(self) -> float:
        return self.flops / max(self.ns, 1)

    @property
    def gbs(self) -> float:
        return self.bytes / max(self.ns, 1)

    @property
    def intensity(self) -> float:
        return self.flops / max(self.bytes, 1)

    @property
    def of_roof(self) -> float | None:
        """1 is as fast as the machine allows; None without ceilings."""
        return self.roof_ns / max(self.ns, 1) if self.bound else None


def groups(inside: Inside, roofs: Roofs | None) -> list[Group]:
    """The hottest first."""
    alike: dict[object, list[KernelTime]] = {}
    for kernel in inside.kernels:
        alike.setdefault(likeness(kernel), []).append(kernel)
    return sorted((_group(kernels, roofs) for kernels in alike.values()), key=lambda group: -group.ns)


def likeness(k: KernelTime) -> tuple[object, ...]:
    """Equal for kernels that are the same but for their data."""
    return k.variant, k.label, k.precision, k.flops, k.bytes, tuple(k.op_types.items())


def kind_of(k: KernelTime) -> str:
    return KINDS.get(k.variant.partition(".")[0], OTHER)


def _group(kernels: Sequence[KernelTime], roofs: Roofs | None) -> Group:
    first = kernels[0]
    roof_ns, bound = roof(first, roofs) if roofs else (0.0, "")
    return Group(
        kind=kind_of(first),
        variant=first.variant,
        precision=first.precision,
        nodes=first.nodes,
        node_count=sum(first.op_types.values()),
        op_types=tuple(name if n == 1 else f"{name} x{n}" for name, n in first.op_types.items()),
        count=len(kernels),
        calls=sum(max(1, k.calls) for k in kernels),
        ns=sum(k.ns for k in kernels),
        flops=sum(k.flops for k in kernels),
        bytes=sum(k.bytes for k in kernels),
        roof_ns=roof_ns * len(kernels),
        bound=bound,
    )


def roof(kernel: KernelTime, roofs: Roofs) -> tuple[float, str]:
    """The least nanoseconds for one kernel, and what bounds it. What a cache can hold may have stayed there since it was
    written or last read, so the smallest one counts: a kernel may be further from this roof than it need be, never above it
    by way of a cache.
    """
    level, gbs = next((name, rate) for name, rate, size in roofs.levels if kernel.bytes <= size * max(1, kernel.calls))
    computing = kernel.flops / roofs.peak(kernel.precision)
    moving = kernel.bytes / gbs
    return (computing, COMPUTE) if computing >= moving else (moving, level)


def of_roof(found: Sequence[Group]) -> float:
    """Of all kernels together: the least time they could need over the time they took."""
    return sum(g.roof_ns for g in found) / max(sum(g.ns for g in found), 1)


def cpu_roofs(ceilings: Ceilings) -> Roofs:
    """L3 is shared by the threads; each has its own part of the other caches."""
    return Roofs(
        peaks={"fp32": ceilings.fp32_gflops, "bf16": ceilings.bf16_gflops, "int8": ceilings.int8_gops or 0.0},
        levels=(
            ("L1", ceilings.l1_gbs, ceilings.l1_bytes * ceilings.threads),
            ("L2", ceilings.l2_gbs, ceilings.l2_bytes * ceilings.threads),
            ("L3", ceilings.l3_gbs, ceilings.l3_bytes),
            ("DRAM", ceilings.dram_gbs, float("inf")),
        ),
    )


def device_roofs(ceilings: DeviceCeilings) -> Roofs:
    """Of our kernels and the library's the faster ones: what one of them reaches can be reached."""
    cache = [("L2", ceilings.cache_gbs, ceilings.cache_bytes)] if ceilings.cache_gbs else []
    return Roofs(
        peaks={
            "fp32": max(ceilings.fp32_gflops, ceilings.library_fp32_gflops),
            "fp16": max(ceilings.fp16_gflops, ceilings.library_fp16_gflops),
            "bf16": max(ceilings.bf16_gflops, ceilings.library_bf16_gflops),
            "tf32": max(ceilings.tf32_gflops, ceilings.library_tf32_gflops),
        },
        levels=(*cache, ("memory", max(ceilings.copy_gbs, ceilings.library_copy_gbs), float("inf"))),
    )


def roofs_for(run: Run, threads: int, device: str = "") -> Roofs | None:
    """Of the device, if there is one, else of so many threads; None where they were not measured. The CPU's are no device's."""
    if device:
        return next((device_roofs(found) for found in run.device_ceilings if found.device == device), None)
    return next((cpu_roofs(found) for found in run.ceilings if found.threads == threads), None)


def profiled(case: CaseResult) -> list[tuple[Measurement, Inside]]:
    """The contenders of a case that told where their time went."""
    return [(m, m.inside) for m in case.measurements if m.inside is not None and m.inside.kernels]


def microseconds(ns: int) -> str:
    """
    >>> microseconds(8_070_400), microseconds(576)
    ('8070', '0.576')
    """
    return f"{ns / 1e3:.0f}" if ns >= 100_000 else f"{ns / 1e3:#.3g}"


def shortened(text: str, width: int = NAME_WIDTH) -> str:
    """The end says more than the middle.

    >>> shortened("/encoder/layer.11/attention/output/dense/MatMul", 30)
    '/encoder/...output/dense/MatMul'
    """
    if len(text) <= width:
        return text
    head = width // 3 - 1
    return f"{text[:head]}...{text[len(text) - (width - head - 2) :]}"
