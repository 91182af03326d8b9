"""The machine and the software a number belongs to. Names no user, no host and no path."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

PACKAGES = ("onnxruntime", "onnx", "numpy", "xyntra-ep", "openvino", "onnxruntime-openvino")
TELLING_FLAGS = ("sse4_2", "f16c", "fma", "avx", "amx", "asimd", "sve", "bf16", "i8mm", "svebf16")


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    cpu: str
    cpu_flags: tuple[str, ...]
    cores_logical: int
    cores_usable: int  # what the affinity mask leaves
    quota_cores: float | None  # what the control group leaves; None is no limit
    memory_bytes: int | None
    governor: str
    load_1m: float | None
    os: str
    kernel: str
    libc: str
    python: str
    packages: Mapping[str, str]
    git_revision: str
    git_dirty: bool


def read_environment() -> Environment:
    info = _cpu_info(_text("/proc/cpuinfo"))
    revision, dirty = _git_revision()
    return Environment(
        cpu=info.get("model name") or info.get("cpu model") or platform.processor() or platform.machine(),
        cpu_flags=telling_flags(info.get("flags") or info.get("features") or ""),
        cores_logical=os.cpu_count() or 1,
        cores_usable=cores_usable(),
        quota_cores=quota_cores(_text("/sys/fs/cgroup/cpu.max")),
        memory_bytes=_memory_bytes(),
        governor=governor(),
        load_1m=load_1m(),
        os=platform.system(),
        kernel=platform.release(),
        libc="-".join(platform.libc_ver()).strip("-"),
        python=platform.python_version(),
        packages={name: version for name in PACKAGES if (version := _version(name))},
        git_revision=revision,
        git_dirty=dirty,
    )


class LoadWatch:
    """How many cores others kept busy since it was made. The load average cannot tell: it counts us too."""

    def __init__(self) -> None:
        self._busy_s, self._own_s, self._wall_s = _machine_busy_s(), _own_busy_s(), time.monotonic()

    def foreign_cores(self) -> float | None:
        busy = _machine_busy_s()
        wall_s = time.monotonic() - self._wall_s
        if self._busy_s is None or busy is None or wall_s <= 0:
            return None
        others_s = (busy - self._busy_s) - (_own_busy_s() - self._own_s)
        return round(max(others_s, 0.0) / wall_s, 2)


def _own_busy_s() -> float:
    own = os.times()
    return own.user + own.system + own.children_user + own.children_system


def _machine_busy_s() -> float | None:
    """Of all processors: user, nice, system, irq, softirq and steal; not idle, not waiting for disks."""
    fields = _text("/proc/stat").partition("\n")[0].split()
    if len(fields) < 9 or fields[0] != "cpu":
        return None
    user, nice, system, _idle, _wait, irq, softirq, steal = (int(field) for field in fields[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def cores_allowed() -> float:
    """What affinity and the control group's quota leave to this process."""
    quota = quota_cores(_text("/sys/fs/cgroup/cpu.max"))
    return cores_usable() if quota is None else min(cores_usable(), quota)


def governor() -> str:
    return _text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").strip() or "unknown"


def cores_usable() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def load_1m() -> float | None:
    try:
        return round(os.getloadavg()[0], 2)
    except (OSError, AttributeError):  # not known on Windows
        return None


def quota_cores(cpu_max: str) -> float | None:
    """
    >>> quota_cores("150000 100000")
    1.5
    >>> quota_cores("max 100000") is None
    True
    """
    quota, _, period = cpu_max.strip().partition(" ")
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


def _version(package: str) -> str:
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


def _text(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""
