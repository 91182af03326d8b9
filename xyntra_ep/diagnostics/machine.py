"""`xyntra doctor`: what this machine can do, what was found, what is missing and the remedy."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from xyntra_ep import knobs, options, options_file
from xyntra_ep.errors import CompileError, XyntraError
from xyntra_ep.provider import native_library, registration
from xyntra_ep.tracea.backends import DeviceTarget
from xyntra_ep.tracea.core_ir.ops import CoreOp
from xyntra_ep.tracea.doctor import ceilings
from xyntra_ep.tracea.doctor.profile import Ceilings, Machine, capabilities
from xyntra_ep.tracea.doctor.variants import AnyVariant, cpu_variants
from xyntra_ep.tracea.interface import trials
from xyntra_ep.tracea.interface.context import Context
from xyntra_ep.tracea.interface.device_costs import ASSUMED
from xyntra_ep.tracea.interface.devices import device_backends, known_target
from xyntra_ep.tracea.interface.plan_kernel import KernelPlan
from xyntra_ep.tracea.optimizer.tuning_cache import TuningCache
from xyntra_ep.tracea.prebuilt.library import prebuilt_for
from xyntra_ep.tracea.runtime.cache_root import CacheRoot, atomic_write, look_at, open_root
from xyntra_ep.tracea.runtime.compilers import REMEDY, Candidate, survey
from xyntra_ep.tracea.runtime.hashing import hash128_of
from xyntra_ep.tracea.runtime.kernel_source import KernelSource
from xyntra_ep.tracea.runtime.maintenance import entries
from xyntra_ep.tracea.runtime.plan_store import forget_plans
from xyntra_ep.wording import counted

_LARGEST = ("gemm", "conv", "flash_attention_2")
_PRECISIONS = ("bf16", "fp32")


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkup:
    """The findings. ``configuration``: what a session without options of its own is told, and where it stands; ``wrong``: with
    these settings; ``missing``: (what, remedy). Both are empty where everything works.
    """

    version: str
    ort: str
    registered: bool
    library: str
    machine: Machine
    ceilings: Ceilings | None
    tuning: TuningCache  # what was measured of kernels
    device_tuning: tuple[str, ...]  # the same of devices, where there is some
    compilers: tuple[Candidate, ...]
    devices: tuple[tuple[str, str], ...]  # by backend: each device, what compiles for it, or why there is none
    trials: tuple[str, ...]  # what our kernels on each GPU have shown
    gpu_kernels: tuple[KernelPlan, ...]  # of the largest operations, on a GPU that is here or was asked about
    cache: str
    cache_made: bool  # False: the first session makes it
    cache_read_only: bool  # sessions use what is in it, and keep nothing
    cache_files: int
    cache_bytes: int
    variants: dict[str, tuple[str, ...]]
    configuration: tuple[str, ...]
    wrong: tuple[str, ...]
    missing: tuple[tuple[str, str], ...]

    @property
    def ok(self) -> bool:
        return not self.missing and not self.wrong

    def __str__(self) -> str:
        m = self.machine
        kept = (
            f"{counted(self.cache_files, 'file')}, {self.cache_bytes / 1e6:.1f} MB"
            if self.cache_made
            else "none yet, a session makes it"
        )
        if self.cache_read_only:
            kept += "; read-only: what is in it is used, all else is compiled by each process"
        lines = [
            f"xyntra-ep {self.version}, onnxruntime {self.ort}, {'registered' if self.registered else 'NOT registered'}",
            f"library    {self.library}",
            f"machine    {m.model}, {m.architecture}, {m.isa}, {m.cores} cores usable,"
            f" L1d {m.l1d_bytes >> 10} KiB, L2 {m.l2_bytes >> 10} KiB, L3 {m.l3_bytes >> 20} MiB",
            f"bfloat16   {_bfloat16_text(m)}",
            f"ceilings   {_ceilings_text(self.ceilings)}",
            f"tuning     {_tuning_text(self.tuning)}",
            *(f"tuning     {line}" for line in self.device_tuning),
            "targets    cpu, and what is listed below: a GPU that pays by itself, any by its name, as backend=NAME",
            f"cache      {self.cache}: {kept}",
        ]
        lines += [
            f"options    {line}" for line in self.configuration or ("defaults: no variable is set, and no fusion.toml is here",)
        ]
        chosen = True
        for c in self.compilers:
            if c.compiler is not None:
                mark = "used" if chosen else "not needed"
                chosen = False
                lines.append(f"compiler   {' '.join(c.command)}: {c.compiler.version} ({mark})")
            else:
                lines.append(f"compiler   {' '.join(c.command)}: no ({c.why_not})")
        lines += [f"{backend:<10} {line}" for backend, line in self.devices]
        lines += [f"trials     {line}" for line in self.trials]
        for plan in self.gpu_kernels:
            lines += [f"occupancy  {plan.title}", *(f"           {launch}" for launch in plan.launches)]
        lines += [f"kernels    {op}: {', '.join(names)}" for op, names in self.variants.items()]
        lines += [f"WRONG      {what}" for what in self.wrong]
        lines += [f"MISSING    {what}. {remedy}" for what, remedy in self.missing]
        return "\n".join(lines + (["nothing is missing"] if self.ok else []))


def doctor(*, measure: bool = False, architecture: str | None = None, cache_dir: Path | None = None) -> Checkup:
    """Look at this machine. ``measure``: also measure its ceilings, try our kernels on its GPUs (some seconds each), and keep
    that for planning. ``architecture``: a GPU of `doctor/known_gpus.py`, here or not, to report its kernels' occupancy. Raises
    ConfigError for one that is not known.
    """
    with knobs.forgiving() as wrong:  # each is a finding, and none keeps the others from being found
        return _checkup([str(error) for error in wrong], measure=measure, architecture=architecture, cache_dir=cache_dir)


def _checkup(wrong: list[str], *, measure: bool, architecture: str | None, cache_dir: Path | None) -> Checkup:
    from xyntra_ep import __version__

    asked = cache_dir if cache_dir is not None else registration.default_cache_dir()
    root = open_root(asked) if measure else look_at(asked)
    context = Context(cache_dir=root.path)
    missing: list[tuple[str, str]] = []
    try:
        registration.register()
    except XyntraError as error:
        missing.append((f"the provider is not registered: {error.where}: {error.what}", error.hint))
    if (here := native_library.source_folder_here()) is not None:
        what = f"the provider, in programs that start in this folder: they import {here}, which has no library"
        missing.append((what, "run them from another folder, or `make native` here"))
    found = tuple(survey(context.root))
    if not any(c.compiler is not None for c in found):
        prebuilt = prebuilt_for(context.machine)
        left = "nothing can be compiled" if prebuilt is None else f"kernels prebuilt for {prebuilt.target} serve where they can"
        missing.append((f"a C compiler; {left}", REMEDY))
    files = entries(root)
    if reason := root.reason or (
        f"{root.path} is not writable, and there is nothing in it" if root.read_only and not files else ""
    ):
        missing.append((f"a cache that lasts: {reason}", "set XYNTRA_CACHE_DIR to a directory of your own"))
    configuration, unusable = options.inspect()
    wrong += [str(error) for error in unusable] + options.unknown()
    if unread := options_file.unread_file():
        wrong.append(f"{unread}. name it by XYNTRA_CONFIG when it is your own, or take it away")
    known = ceilings.load(context.root.path, context.machine)
    if measure:
        try:
            known = measure_ceilings(context)
        except XyntraError as error:
            missing.append((f"measured ceilings: {error.what}", "mend the compiler first"))
    surveys = [(backend, backend.survey()) for backend in device_backends()]
    present = (backend.target(found) for backend, found in surveys if backend.tells_occupancy and not found.missing)
    device = known_target(architecture) if architecture else next(present, None)
    gpu_kernels: tuple[KernelPlan, ...] = ()
    try:
        gpu_kernels = _gpu_kernels(context, device)
    except XyntraError as error:
        missing.append((f"occupancy: {error.what}", "an older NVRTC than the device is the usual reason"))
    return Checkup(
        version=__version__,
        ort=_ort_version(),
        registered=registration.is_registered(),
        library=registration.get_library_path(),
        machine=context.machine,
        ceilings=known,
        tuning=TuningCache.load(root.path, context.machine_class, trials=True),
        device_tuning=tuple(_device_tuning(context, [b.open(device) for b, found in surveys for device in found.working], root)),
        compilers=found,
        devices=tuple((backend.name, line) for backend, found in surveys for line in backend.describe(found)),
        trials=tuple(trial_lines(context, [t for backend, found in surveys for t in backend.targets(found)], measure=measure)),
        gpu_kernels=gpu_kernels,
        cache=str(root.path if root.reason else root.asked),
        cache_made=root.reason != "" or root.path == root.asked,
        cache_read_only=root.read_only,
        cache_files=len(files),
        cache_bytes=sum(e.size_bytes for e in files),
        variants={_name(op): tuple(_usable(rows, context)) for op, rows in cpu_variants().items()},
        configuration=tuple(configuration),
        wrong=tuple(wrong),
        missing=tuple(missing),
    )


def trial_lines(context: Context, targets: Sequence[DeviceTarget], *, measure: bool) -> Iterator[str]:
    """Two for each GPU: what trials of our kernels have shown, and what runs cost there. ``measure``: trials are made now."""
    for target in targets:
        shown = trials.on_record(target, context)
        if measure:
            hash128 = hash128_of(registration.library())
            shown = trials.try_all(target, Context(cache_dir=context.root.path, hash128=hash128))
        yield f"{target.name}: {shown or 'not made yet: the first session on the device makes them, or --measure'}"
        yield f"{target.name}: {(shown.costs if shown is not None else None) or ASSUMED}"


def _gpu_kernels(context: Context, device: DeviceTarget | None) -> tuple[KernelPlan, ...]:
    """The ops that take a model's time, in every precision that makes kernels of their own."""
    if device is None:
        return ()
    on_device = context.on(device)
    return tuple(on_device.plan_kernel(op, precision=precision) for op in _LARGEST for precision in _PRECISIONS)


def measure_ceilings(context: Context) -> Ceilings:
    """Measure, and keep the result in the cache root; plans there were made with other figures and go. Raises XyntraError without
    a compiler."""
    measured = ceilings.measure(context.caps, compile_with(context))
    root = context.root
    atomic_write(root.path / ceilings.FILE, ceilings.stored_with(root.path, context.machine, measured), root.tmp)
    forget_plans(root)
    return measured


def compile_with(context: Context) -> ceilings.Compile:
    """The compiler and kernel cache of ``context``."""

    def compile_c(symbol: str, text: str) -> Path:
        [kernel] = context.kernels.compile_many([KernelSource.of_text(symbol, text)])
        if isinstance(kernel, CompileError):
            raise kernel
        return kernel.path

    return compile_c


def _usable(rows: Sequence[AnyVariant], context: Context) -> Iterator[str]:
    """Names of the variants that are for machines like this one."""
    return (v.name for v in rows if not v.needs or getattr(context.caps, v.needs))


def _name(op: type[CoreOp]) -> str:
    return op.__name__


def _ort_version() -> str:
    try:
        import onnxruntime
    except ImportError:
        return "absent"
    return str(getattr(onnxruntime, "__version__", "unknown"))


def _bfloat16_text(machine: Machine) -> str:
    caps = capabilities(machine)
    if caps.amx_bf16:
        return "by matrix tiles (AMX)"
    if caps.avx512_bf16:
        return "by pairs (AVX512_BF16)"
    refused = "amx_bf16" in machine.features and not machine.tiles_granted
    return "not faster than fp32 here" + (": the operating system does not grant matrix tiles" if refused else "")


def _device_tuning(context: Context, targets: Sequence[DeviceTarget], root: CacheRoot) -> Iterator[str]:
    for target in targets:
        tuning = TuningCache.load(root.path, context.on(target).machine_class, trials=True)
        if tuning.results or tuning.problem:
            yield f"{target.name}: {_tuning_text(tuning)}"


def _tuning_text(tuning: TuningCache) -> str:
    if not tuning.results:
        return tuning.problem or "no kernel was tuned here (xyntra tune MODEL); estimates choose"
    trials = sum(len(result.trials) for result in tuning.results.values())
    faster = sum(result.best is not None for result in tuning.results.values())
    text = f"{counted(len(tuning.results), 'kernel')} by {counted(trials, 'trial')}, {faster} faster than what estimates choose"
    others = {result.question.compiler for result in tuning.results.values()}
    return f"{text}, of {counted(len(others), 'compiler')}" if len(others) > 1 else text


def _ceilings_text(found: Ceilings | None) -> str:
    if found is None:
        return "not measured (xyntra doctor --measure); planning uses defaults of the instruction set"
    rows = dataclasses.asdict(found)
    bf16 = f", {found.bf16_gflops:.0f} bf16" if found.bf16_gflops else ""
    int8 = f", {found.int8_gops:.0f} GOP/s int8" if found.int8_gops else ""
    l1 = f"L1 {found.l1_gbs:.0f}, " if found.l1_gbs else ""
    return (
        f"one core: {rows['fma_gflops']:.0f} GFLOP/s fp32{bf16}{int8}, read {l1}L2 {rows['l2_gbs']:.0f}, L3 {rows['l3_gbs']:.0f},"
        f" DRAM {rows['dram_gbs']:.0f} GB/s"
    )
