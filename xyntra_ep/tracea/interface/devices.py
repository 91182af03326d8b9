"""Devices that sessions can run on: what each backend finds on this machine, and what makes kernels for it.

A backend is a function here that returns a `DeviceTarget`, an emitter, and a device in native code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from xyntra_ep import knobs
from xyntra_ep.errors import ConfigError
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.doctor.known_gpus import known_gpu_for, known_gpu_named
from xyntra_ep.tracea.doctor.variants import AnyVariant, VariantTable, gpu_variants
from xyntra_ep.tracea.emitters import cuda as cuda_text
from xyntra_ep.tracea.emitters import opencl as opencl_text
from xyntra_ep.tracea.runtime import cuda, nvrtc, opencl
from xyntra_ep.tracea.runtime.cuda import CudaDevice, CudaSurvey
from xyntra_ep.tracea.runtime.kernel_cache import KernelCompiler
from xyntra_ep.tracea.runtime.nvrtc_compiler import NvrtcCompiler
from xyntra_ep.tracea.runtime.opencl import OpenClSurvey
from xyntra_ep.tracea.runtime.opencl_compiler import OpenClCompiler
from xyntra_ep.tracea.semantic_ir.gpu_capabilities import OPENCL, Gpu
from xyntra_ep.tracea.semantic_ir.nodes import Kernel

LIBRARY = Path(__file__).resolve().parents[2] / "libxyntra_ep.so"
_CORES = 128  # for fp32, in each multiprocessor since compute capability 8.6


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceTarget:
    """A device and what makes kernels for it. ``api``: its name for people; ``identity``: as plans name the device; ``flags``:
    for the compiler; ``failed``: why variants are not to be used on it, by name (`trials.py`)."""

    api: str
    identity: str
    name: str
    gpu: Gpu
    emit: Callable[[Kernel], str]
    compiler: KernelCompiler
    flags: tuple[str, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)

    @property
    def backend(self) -> str:
        """As the provider option names it."""
        return self.api.lower()

    @property
    def variants(self) -> VariantTable:
        """What may be chosen for it; what failed on it, or is to be avoided, admits nothing, and says why."""
        not_wanted = {name: f"failed its trial on this device: {why}" for name, why in self.failed.items()}
        not_wanted |= dict.fromkeys(knobs.current().avoid, "XYNTRA_AVOID names it")
        if not not_wanted:
            return gpu_variants()
        known = {variant.name for variants in gpu_variants().values() for variant in variants}
        if unknown := sorted(not_wanted.keys() - known - self.failed.keys()):
            hint = f"there are {', '.join(sorted(known))}"
            raise ConfigError(f"no kernel variant for GPUs is called {unknown[0]!r}", where="XYNTRA_AVOID", hint=hint)

        def judged(variant: AnyVariant) -> AnyVariant:
            why = next((not_wanted[name] for name in (variant.name, *variant.parts) if name in not_wanted), None)
            return variant if why is None else replace(variant, admits=lambda op, context: why)

        return {op: tuple(map(judged, variants)) for op, variants in gpu_variants().items()}


def opencl_target(found: OpenClSurvey | None = None) -> DeviceTarget:
    """The first GPU that works, else the first device. Raises ConfigError, with what to do, where there is none."""
    found = found if found is not None else opencl.survey()
    if found.missing:
        raise ConfigError(f"backend=opencl cannot be had: {found.missing}", where="XyntraEP", hint=found.remedy)
    device = min(found.working, key=lambda d: d.is_cpu)
    # Its sizes, and what is common for the rest.
    gpu = replace(
        OPENCL,
        is_cpu=device.is_cpu,
        max_threads=min(device.max_threads, OPENCL.max_threads),
        shared_bytes=min(device.shared_bytes, OPENCL.shared_bytes),
        units=device.compute_units,
        halves=frozenset({DType.F16} if device.has_half else ()),
    )
    return DeviceTarget(
        api="OpenCL",
        identity=device.identity,
        name=device.name,
        gpu=gpu,
        emit=opencl_text.emit,
        compiler=OpenClCompiler(library=LIBRARY, device=device.identity),
        flags=device.build_options,
    )


def cuda_target(found: CudaSurvey | None = None, ordinal: int | None = None) -> DeviceTarget:
    """The device with this number, else the first that can be used. Raises ConfigError, with what to do, where there is none."""
    found = found if found is not None else cuda.survey(LIBRARY)
    if found.missing:
        raise ConfigError(f"backend=cuda cannot be had: {found.missing}", where="XyntraEP", hint=found.remedy)
    device = found.working[0] if ordinal is None else _numbered(found, ordinal)
    gpu = cuda_gpu(device)
    return DeviceTarget(
        api="CUDA",
        identity=device.identity,
        name=device.name,
        gpu=gpu,
        emit=cuda_text.emit,
        compiler=NvrtcCompiler(version=nvrtc.load().version),
        flags=(gpu.target,),
    )


def _numbered(found: CudaSurvey, ordinal: int) -> CudaDevice:
    for device in found.devices:
        if device.ordinal == ordinal and device.problem:
            raise ConfigError(f"device_id={ordinal} cannot be used: {device.name}: {device.problem}", where="XyntraEP")
        if device.ordinal == ordinal:
            return device
    numbers = ", ".join(str(device.ordinal) for device in found.devices)
    raise ConfigError(f"the CUDA driver has no device {ordinal}", where="XyntraEP", hint=f"device_id can be {numbers}")


def cuda_gpu(device: CudaDevice) -> Gpu:
    """The device as kernels see it. Rates are those of its clocks: two operations for each fused multiply-add, two transfers for
    each beat of the memory's clock; where the driver does not tell them, those of the device's row (`doctor/known_gpus.py`)."""
    known = known_gpu_for(device.architecture, device.name).gpu
    cores = device.multiprocessors * (_CORES // 2 if device.capability == (8, 0) else _CORES)
    gflops = 2 * cores * device.clock_khz / 1e6
    return replace(
        known,
        name=device.architecture,
        max_threads=min(device.max_threads, known.max_threads),
        shared_bytes=min(device.shared_bytes, known.shared_bytes),
        units=device.multiprocessors,
        fma_gflops=gflops or known.fma_gflops,
        memory_gbs=2 * device.memory_clock_khz * device.memory_bus_bits / 8 / 1e6 or known.memory_gbs,
        warpgroups=known.warpgroups and device.capability == (9, 0),
        fragment_gflops=known.fragment_gflops * (gflops / known.fma_gflops if gflops else 1.0),
    )


def known_target(name: str) -> DeviceTarget:
    """A GPU that need not be here, by a name of `doctor/known_gpus.py` (h200) or an architecture (sm_90): kernels are planned and
    compiled for it, and cannot be run. Raises ConfigError for one that is not known, and without NVRTC."""
    known = known_gpu_named(name)
    return DeviceTarget(
        api="CUDA",
        identity=f"{known.name}, which is not here",
        name=f"{known.name}, by data sheet",
        gpu=known.gpu,
        emit=cuda_text.emit,
        compiler=NvrtcCompiler(version=nvrtc.load().version),
        flags=(known.gpu.target,),
    )


TARGETS: Mapping[str, Callable[[], DeviceTarget]] = {"opencl": opencl_target, "cuda": cuda_target}
# Of sessions whose tensors ONNX Runtime keeps in a device's memory: by the device's number.
WITH_TENSORS: Mapping[str, Callable[[int], DeviceTarget]] = dict.fromkeys(("auto", "cuda"), lambda n: cuda_target(ordinal=n))
