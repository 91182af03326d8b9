"""The cache directory. It holds native code that gets loaded, so nobody but its owner may be able to write there.

<root>/kernels/<key>.so      compiled kernels (.clbin, .cubin: programs of devices); <key>.c beside one when sources are kept
<root>/plans/<digest>.plan   plans
<root>/tmp/                  being written; renamed into place when complete
<root>/compilers.json        versions of compilers, so that they need not be asked again
<root>/ceilings.json         measured ceilings of machines
<root>/tuning.jsonl          tuning results
<root>/trials.json           whether kernels are right on devices, and what runs cost there
"""

from __future__ import annotations

import atexit
import os
import shutil
import stat
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

KERNELS, PLANS, TMP, TRIALS = "kernels", "plans", "tmp", "trials.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheRoot:
    """A directory that is safe to load code from. ``reason``: why it is not the one asked for ("" = it is)."""

    path: Path
    asked: Path
    reason: str = ""

    @property
    def kernels(self) -> Path:
        return self.path / KERNELS

    @property
    def plans(self) -> Path:
        return self.path / PLANS

    @property
    def tmp(self) -> Path:
        return self.path / TMP


def open_root(asked: Path) -> CacheRoot:
    """``asked``, created when absent, if code may be kept and executed there; else a private temporary
    directory.

    The temporary directory lives as long as the process, so kernels still compile, only not for the next one.
    """
    absolute = asked.expanduser().absolute()
    reason = _prepare(absolute)
    if not reason:
        return CacheRoot(path=absolute, asked=absolute)
    private = _private_root()
    return CacheRoot(path=private, asked=absolute, reason=f"{absolute} {reason}; using {private}")


def _prepare(path: Path) -> str:
    """Make the directories; why ``path`` cannot be used ("" = it can)."""
    try:
        if not path.exists():
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        for folder in (path, path / KERNELS, path / PLANS, path / TMP):
            if folder is not path:
                folder.mkdir(mode=0o700, exist_ok=True)
            if problem := _distrust(folder):
                return problem if folder is path else f"has {folder.name}/, which {problem}"
            if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
                return "is not writable"
        if os.statvfs(path).f_flag & getattr(os, "ST_NOEXEC", 0):
            return "is mounted noexec"
    except OSError as error:
        return f"cannot be used ({error.strerror or error})"
    return ""


def _distrust(folder: Path) -> str:
    """Why code in ``folder`` must not be loaded ("" = it may)."""
    status = folder.stat()
    if not stat.S_ISDIR(status.st_mode):
        return "is not a directory"
    if status.st_uid != os.geteuid():
        return f"belongs to user {status.st_uid}"
    if status.st_mode & 0o022:
        return "can be written by others (chmod 700 repairs it)"
    return ""


@cache
def _private_root() -> Path:
    """One per process. A child made by fork shares its parent's and must not remove it."""
    path = Path(tempfile.mkdtemp(prefix="xyntra-"))
    for name in (KERNELS, PLANS, TMP):
        (path / name).mkdir(mode=0o700)
    owner = os.getpid()

    def remove() -> None:
        if os.getpid() == owner:
            shutil.rmtree(path, ignore_errors=True)

    atexit.register(remove)
    return path


def atomic_write(path: Path, data: bytes, scratch: Path) -> None:
    """Write ``path`` so that a reader sees all of ``data`` or what was there before; ``scratch``: same file system."""
    handle, name = tempfile.mkstemp(dir=scratch)  # mkstemp: mode 0600
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
