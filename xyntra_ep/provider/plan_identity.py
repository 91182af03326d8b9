"""What besides a graph decides about its plan: code, processor, compilers, devices, settings. Another answer makes plans anew.

It runs when the package is imported, so nothing is started, no driver is asked, and only what is needed is imported: `shutil`,
`hashlib` and `platform` would be a quarter of the package's import.
"""

from __future__ import annotations

import ctypes
import os
from dataclasses import fields
from pathlib import Path

from xyntra_ep import knobs
from xyntra_ep.tracea.backends import BACKENDS, DeviceBackend

PACKAGE = Path(__file__).resolve().parent.parent
# Knobs that do not change a plan; all others enter the digest of a graph.
NO_PART_OF_A_PLAN = frozenset(
    {"register", "debug", "compile_timeout_s", "jobs", "cache_dir", "trace", "zoo_dir", "xdg_cache_home"}
)
# Where the runtime looks for one (xyntra_ep/tracea/runtime/compilers.py), besides $XYNTRA_CC.
_COMPILERS = ("clang", *(f"clang-{n}" for n in range(24, 15, -1)), "gcc", *(f"gcc-{n}" for n in range(17, 11, -1)), "cc", "zig")


def identity(opened: ctypes.CDLL, cache_dir: Path) -> tuple[bytes, bytes, bytes]:
    """Of the code, of the processor, and of compilers and devices."""
    machine = "\n".join([_compiler_id(), *devices(opened, cache_dir)])
    return _code_version().encode(), _cpu_features().encode(), machine.encode()


def watched_variables() -> list[str]:
    """The environment variables whose values decide about plans."""
    ours = [knobs.variable_of(field.name) for field in fields(knobs.Knobs) if field.name not in NO_PART_OF_A_PLAN]
    return [*ours, "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"]  # which decide what the first GPU is


def _code_version() -> str:
    """The package's version, and sizes and times of its sources: whoever edits them gets new plans."""
    from xyntra_ep import __version__

    marks = [__version__]
    waiting = [str(PACKAGE)]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                if entry.is_dir():
                    waiting.append(entry.path)
                elif entry.name.endswith((".py", ".json")):  # tables decide about plans, too
                    status = entry.stat()
                    marks.append(f"{entry.name} {status.st_size} {status.st_mtime_ns}")
    return "\n".join(marks)


def _cpu_features() -> str:
    """What the first CPU says about itself, model and feature flags, and what of it the operating system grants."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            first = file.read(8192).split("\n\n")[0]
    except OSError:
        import platform  # only where there is no such file: this runs at import

        return platform.processor()
    wanted = ("vendor_id", "model name", "flags", "CPU implementer", "CPU part", "Features", "isa")
    lines = [line for line in first.splitlines() if line.startswith(wanted)]
    if " amx_tile" in first:
        from xyntra_ep.tracea.doctor import matrix_tiles  # only where it matters: this runs at import

        lines.append(f"matrix tiles: {matrix_tiles.granted()}")
    return "\n".join(lines)


def _compiler_id() -> str:
    """Which compilers there are, without starting one: after an installation or an upgrade, plans are made anew."""
    marks, folders = [], os.get_exec_path()
    for name in _COMPILERS:
        for folder in folders:
            path = os.path.join(folder, name)
            if os.path.isfile(path) and os.access(path, os.X_OK):
                status = os.stat(path)
                marks.append(f"{path} {status.st_size} {status.st_mtime_ns}")
                break
    return "\n".join(marks)


def devices(opened: ctypes.CDLL, cache_dir: Path) -> list[str]:
    """What decides where backend=auto computes, without asking a driver; nothing on a machine without a device."""
    traces = [line for backend in BACKENDS if isinstance(backend, DeviceBackend) for line in backend.traces(opened)]
    return [*traces, _trials(cache_dir)] if traces else []


def _trials(cache_dir: Path) -> str:
    """What is on record about kernels on devices: plans were made by it."""
    import hashlib  # only where it matters: this runs at import

    from xyntra_ep.tracea.runtime.cache_root import TRIALS
    from xyntra_ep.trusted_file import read_trusted

    try:
        content = read_trusted(cache_dir / TRIALS)
    except OSError:
        return ""
    return hashlib.sha256(content).hexdigest()
