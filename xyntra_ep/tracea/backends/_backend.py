"""What each backend says of itself, and a device as sessions see it.

The rows are read when the package is imported, for the plans of a machine depend on which GPUs it shows. So a row imports what it
works with when it is asked.
"""

from __future__ import annotations

import ctypes
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from xyntra_ep import knobs
from xyntra_ep.errors import ConfigError
from xyntra_ep.system import library_name

if TYPE_CHECKING:
    from xyntra_ep.tracea.doctor.variants import AnyVariant, VariantTable
    from xyntra_ep.tracea.runtime.kernel_files import KernelCompiler
    from xyntra_ep.tracea.runtime.kernel_source import Definitions
    from xyntra_ep.tracea.runtime.survey import Survey, Surveyed
    from xyntra_ep.tracea.semantic_ir.gpu.capabilities import Gpu
    from xyntra_ep.tracea.semantic_ir.nodes import Kernel

LIBRARY = Path(__file__).resolve().parents[2] / library_name("xyntra_ep")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceTarget:
    """A device and what makes kernels for it.

    ``backend``: the name of its row. ``identity``: as plans name the device, and native code finds it. ``flags``: for the
    compiler. ``clock_gflops``: multiply-adds in fp32 at its highest clock, 0 where that is not known. ``failed``: why variants
    are not to be used on it, by name (`interface/trials.py`).
    """

    backend: str
    identity: str
    name: str
    gpu: Gpu
    emit: Callable[[Kernel], Definitions]
    compiler: KernelCompiler
    flags: tuple[str, ...] = ()
    clock_gflops: float = 0.0
    memory_bytes: int = 0
    cache_bytes: int = 0
    failed: Mapping[str, str] = field(default_factory=dict)

    @property
    def variants(self) -> VariantTable:
        """What may be chosen for it; what failed on it, or is to be avoided, admits nothing, and says why."""
        from xyntra_ep.tracea.doctor import variants

        every = variants.gpu_variants()
        not_wanted = {name: f"failed its trial on this device: {why}" for name, why in self.failed.items()}
        not_wanted |= dict.fromkeys(knobs.current().avoid, "XYNTRA_AVOID names it")
        if not not_wanted:
            return every
        known = {variant.name for rows in every.values() for variant in rows}
        if unknown := sorted(not_wanted.keys() - known - self.failed.keys()):
            hint = f"there are {', '.join(sorted(known))}"
            raise ConfigError(f"no kernel variant for GPUs is called {unknown[0]!r}", where="XYNTRA_AVOID", hint=hint)

        def judged(variant: AnyVariant) -> AnyVariant:
            why = next((not_wanted[name] for name in (variant.name, *variant.parts) if name in not_wanted), None)
            return variant if why is None else replace(variant, admits=lambda op, context: why)

        return {op: tuple(map(judged, rows)) for op, rows in every.items()}


class Backend(ABC):
    """A target of kernels. ``name``: the value of option ``backend``; ``doc``: what the option's table says of it."""

    name: str
    doc: str

    @abstractmethod
    def target(self) -> DeviceTarget | None:
        """What a session runs on that names this backend; None is the processor. Raises ConfigError, with what to do, where
        there is nothing."""


D = TypeVar("D", bound="Surveyed")


class DeviceBackend(Backend, Generic[D]):
    """A target whose kernels run on a device beside the processor; ``D`` describes one.

    ``rank``: when ``auto`` asks it, the least first. ``always_gains``: each of its devices is faster than the processor, so
    ``auto`` compares no rates. ``tells_occupancy``: of compiled kernels, so the doctor shows it. ``nothing``: why ``auto`` did
    not ask it.
    """

    rank: int
    always_gains: bool = False
    tells_occupancy: bool = False
    nothing: str

    @abstractmethod
    def traces(self, library: ctypes.CDLL) -> Sequence[str]:
        """What files show of its devices, drivers and packages: plans are made anew when it changes. No driver is asked, and
        without a device there are none. It is called at import, so it takes no time."""

    @abstractmethod
    def at_hand(self) -> bool:
        """Whether there seems to be a device. No driver is asked."""

    @abstractmethod
    def survey(self, limit_s: float | None = None) -> Survey[D]:
        """All its devices, asked for in a process of its own, once; ``limit_s``: for the answer, else a patient one."""

    @abstractmethod
    def open(self, device: D) -> DeviceTarget:
        """A device that works, as sessions see it."""

    @abstractmethod
    def describe(self, found: Survey[D]) -> Sequence[str]:
        """Lines for the doctor: of devices, and of what compiles for them."""

    def first(self, found: Survey[D]) -> D:
        """The one that is taken where several work."""
        return found.working[0]

    def target(self, found: Survey[D] | None = None) -> DeviceTarget:
        found = found if found is not None else self.survey()
        if found.missing:
            raise ConfigError(f"backend={self.name} cannot be had: {found.missing}", where="XyntraEP", hint=found.remedy)
        return self.open(self.first(found))

    def targets(self, found: Survey[D]) -> list[DeviceTarget]:
        """All that work, but not the processor behind another name."""
        opened = [self.open(device) for device in found.working]
        return [target for target in opened if not target.gpu.is_cpu]

    def numbered(self, ordinal: int) -> DeviceTarget | None:
        """The device whose memory ONNX Runtime knows by this number; None where it knows none of this backend's."""
        return None

    def by_name(self, name: str) -> DeviceTarget | None:
        """A device that need not be here, for which kernels are planned and compiled; None where the backend knows none so.
        Raises ConfigError for a name that it does not know, and without its compiler."""
        return None

    def in_browsers(self) -> DeviceTarget | None:
        """What browsers promise of their devices, if they have any of this backend's: its kernels are written as texts."""
        return None
