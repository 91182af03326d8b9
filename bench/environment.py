"""The machine and the software a number belongs to. Names no user, no host and no path."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class IsaClass(StrEnum):
    """What tables tell machines apart by: the widest vectors that a processor has, and whether it has matrix tiles."""

    AVX2 = "AVX2"
    AVX512 = "AVX-512"
    AMX = "AMX"
    NEON = "NEON"
    SCALAR = "scalar"


# As the doctor has them (`xyntra_ep/tracea/doctor/profile.py`), widest first; a test holds the two equal.
ISA_FLAGS = {
    IsaClass.AMX: {"amx_tile", "amx_bf16", "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx2", "fma", "f16c"},
    IsaClass.AVX512: {"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx2", "fma", "f16c"},
    IsaClass.AVX2: {"avx2", "fma", "f16c"},
    IsaClass.NEON: {"asimd"},
}
TABLED = (IsaClass.AVX2, IsaClass.AVX512, IsaClass.AMX)  # a document says which of them it has no run of
NO_LIMIT_BYTES = 1 << 60  # and above: the first version of control groups writes such for none
PACKAGES = (
    "onnxruntime",
    "onnxruntime-gpu",
    "onnx",
    "numpy",
    "xyntra-ep",
    "openvino",
    "onnxruntime-openvino",
    "torch",
    "torchvision",
    "transformers",
    "triton",
    "nvidia-cuda-nvrtc-cu12",
    "nvidia-cuda-nvrtc",
)
TELLING_FLAGS = ("sse4_2", "f16c", "fma", "avx", "amx", "asimd", "sve", "bf16", "i8mm", "svebf16")


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuFacts:
    """As its driver describes it. `device` is the name that results use, `driver` the version of its library, `api` that of the
    interface (CUDA 12.8). Clocks are the highest; None stands where nobody tells."""

    device: str
    name: str
    api: str
    driver: str
    architecture: str
    multiprocessors: int
    clock_mhz: float | None
    memory_clock_mhz: float | None
    memory_bytes: int
    cache_bytes: int
    power_limit_w: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    cpu: str
    cpu_flags: tuple[str, ...]
    cores_logical: int
    cores_usable: int  # what the affinity mask leaves
    quota_cores: float | None  # what the control group leaves; None is no limit
    smt: bool | None  # several logical cores share a physical one
    memory_bytes: int | None
    memory_limit_bytes: int | None  # of the control group
    governor: str
    clock_mhz: float | None
    load_1m: float | None
    virtual: bool | None
    container: str  # which kind, empty outside of any that is known
    os: str
    kernel: str
    libc: str
    compiler: str  # that XyntraEP builds its kernels with, empty where there is none
    gpus: tuple[GpuFacts, ...]
    python: str
    packages: Mapping[str, str]
    git_revision: str
    git_dirty: bool

    @property
    def isa(self) -> IsaClass:
        """Of the processor, which ONNX Runtime's CPU provider uses whatever XyntraEP is held to."""
        return isa_class(self.cpu_flags)


def isa_class(flags: Iterable[str]) -> IsaClass:
    """
    >>> isa_class(["avx2", "fma", "f16c", "avx512f"]), isa_class(["asimd"]), isa_class([])
    (<IsaClass.AVX2: 'AVX2'>, <IsaClass.NEON: 'NEON'>, <IsaClass.SCALAR: 'scalar'>)
    """
    there = set(flags)
    return next((isa for isa, needed in ISA_FLAGS.items() if needed <= there), IsaClass.SCALAR)


def read_environment(compiler: str, gpus: tuple[GpuFacts, ...] = ()) -> Environment:
    """`compiler` and `gpus` are told: who asks for them loads XyntraEP, which reports, that read this module, must not."""
    info = _cpu_info(text("/proc/cpuinfo"))
    revision, dirty = _git_revision()
    return Environment(
        cpu=info.get("model name") or info.get("cpu model") or platform.processor() or platform.machine(),
        cpu_flags=telling_flags(info.get("flags") or info.get("features") or ""),
        cores_logical=os.cpu_count() or 1,
        cores_usable=cores_usable(),
        quota_cores=quota_cores(),
        smt={"0": False, "1": True}.get(text("/sys/devices/system/cpu/smt/active").strip()),
        memory_bytes=_memory_bytes(),
        memory_limit_bytes=memory_limit_bytes(control_groups()),
        governor=governor(),
        clock_mhz=clock_mhz(),
        load_1m=load_1m(),
        virtual="hypervisor" in info["flags"].split() if "flags" in info else None,  # told by x86 alone
        container=container(),
        os=platform.system(),
        kernel=platform.release(),
        libc="-".join(platform.libc_ver()).strip("-"),
        compiler=compiler,
        gpus=gpus,
        python=platform.python_version(),
        packages={name: version for name in PACKAGES if (version := version_of(name))},
        git_revision=revision,
        git_dirty=dirty,
    )


def cores_allowed() -> float:
    """What affinity and the control group's quota leave to this process."""
    quota = quota_cores()
    return cores_usable() if quota is None else min(cores_usable(), quota)


def governor() -> str:
    return text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").strip() or "unknown"


def cores_usable() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def load_1m() -> float | None:
    try:
        return round(os.getloadavg()[0], 2)
    except (OSError, AttributeError):  # not known on Windows
        return None


def clock_mhz() -> float | None:
    """The mean over all processors at this moment."""
    clocks = clocks_mhz()
    return round(sum(clocks) / len(clocks), 1) if clocks else None


def fastest_clock_mhz() -> float | None:
    """Of the processor that is fastest at this moment, which is one that has just computed: idle ones may sleep."""
    clocks = clocks_mhz()
    return round(max(clocks), 1) if clocks else None


def clocks_mhz() -> list[float]:
    return [float(line.partition(":")[2]) for line in text("/proc/cpuinfo").splitlines() if line.startswith("cpu MHz")]


def quota_cores() -> float | None:
    """The tightest of this process's control group and those around it, in either version's files."""
    limits = [quota_of(text(folder / "cpu.max")) for folder in control_groups()]
    first_version = Path("/sys/fs/cgroup/cpu")
    limits.append(quota_of(f"{text(first_version / 'cpu.cfs_quota_us')} {text(first_version / 'cpu.cfs_period_us')}"))
    return min((limit for limit in limits if limit is not None), default=None)


def control_groups(of_process: str = "/proc/self/cgroup", root: Path = Path("/sys/fs/cgroup")) -> list[Path]:
    """Folders of the second version's hierarchy, from the process's own up to the root."""
    lines = text(of_process).splitlines()
    own = next((line.removeprefix("0::").strip("/") for line in lines if line.startswith("0::")), "")
    parts = [part for part in own.split("/") if part and part != ".."]
    return [root.joinpath(*parts[:depth]) for depth in range(len(parts), -1, -1)]


def memory_limit_bytes(groups: Sequence[Path]) -> int | None:
    """The tightest, in either version's files."""
    first_version = Path("/sys/fs/cgroup/memory/memory.limit_in_bytes")
    limits = [text(file).strip() for file in (*(folder / "memory.max" for folder in groups), first_version)]
    return min((int(limit) for limit in limits if limit.isdecimal() and int(limit) < NO_LIMIT_BYTES), default=None)


def container(root: Path = Path("/")) -> str:
    """The mark that each kind leaves for those inside."""
    if named := text(root / "run/systemd/container").strip():
        return named
    marks = {"docker": ".dockerenv", "podman": "run/.containerenv"}
    return next((kind for kind, file in marks.items() if (root / file).exists()), "")


def quota_of(cpu_max: str) -> float | None:
    """
    >>> quota_of("150000 100000")
    1.5
    >>> quota_of("max 100000") is None and quota_of("-1 100000") is None
    True
    """
    quota, _, period = " ".join(cpu_max.split()).partition(" ")
    if not quota.isdecimal() or not period.isdecimal():
        return None
    return int(quota) / int(period)


def telling_flags(flags: str) -> tuple[str, ...]:
    """The flags that decide which kernels run, without the hundred others."""
    return tuple(sorted(flag for flag in flags.split() if flag.startswith(TELLING_FLAGS)))


def _cpu_info(text: str) -> dict[str, str]:
    first = text.split("\n\n")[0]
    pairs = (line.partition(":") for line in first.splitlines())
    return {key.strip().lower(): value.strip() for key, _, value in pairs}


def _memory_bytes() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return None


def version_of(package: str) -> str:
    """Of what is installed; "" where it is not."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _git_revision() -> tuple[str, bool]:
    """Of the checkout this file lies in; an installed copy has none."""
    here = Path(__file__).parent
    if not (here.parent / ".git").exists():
        return "", False
    try:
        revision = _git(here, "rev-parse", "--short=12", "HEAD")
        return revision, bool(_git(here, "status", "--porcelain", "--untracked-files=no"))
    except (OSError, subprocess.SubprocessError):
        return "", False


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=True, timeout=10)
    return done.stdout.strip()


def text(path: str | Path) -> str:
    """Empty where there is no such file."""
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""
