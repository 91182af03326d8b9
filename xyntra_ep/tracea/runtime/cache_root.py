"""The cache directory. Its files decide what is executed, so only its owner may be able to write there or to replace the folder;
`xyntra_ep/trusted_file.py` has the rule for reading them.

<root>/kernels/<key>.so      compiled kernels (.clbin, .cubin: programs of devices); <key>.c beside one when sources are kept
<root>/plans/<digest>.plan   plans
<root>/tmp/                  being written; renamed into place when complete
<root>/compilers.json        versions of compilers, so that they need not be asked again
<root>/ceilings.json         measured ceilings of machines
<root>/tuning_cache-<class>.json, tuning_trials-<class>.json   what tuning has found and tried, for a class of machines
<root>/trials.json           whether kernels are right on devices, and what runs cost there
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

from xyntra_ep import ending
from xyntra_ep.trusted_file import distrust

KERNELS, PLANS, TMP, TRIALS = "kernels", "plans", "tmp", "trials.json"
# Where a private directory may be, where that for temporary files cannot be trusted either, or must not be executed from.
_TEMPORARY = ("/tmp", "/var/tmp", "/dev/shm")
_private: dict[int, Path] = {}  # by process


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheRoot:
    """A directory that is safe to load code from. ``reason``: why it is not the one asked for ("" = it is)."""

    path: Path
    asked: Path
    reason: str = ""
    read_only: bool = False  # only of one that was looked at: what is in it is used, and nothing is kept

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


def is_absent(asked: Path) -> bool:
    """Whether nothing was ever kept there, and nothing speaks against it yet."""
    path = asked.expanduser().absolute()
    return not os.path.lexists(path) or (path.is_dir() and not (path / KERNELS).exists())


def look_at(asked: Path) -> CacheRoot:
    """As `open_root`, but what is absent stays so: a private directory stands in for it. ``reason`` says only whether it could be
    made. One that cannot be written is looked at all the same, as sessions read what is in it."""
    absolute = asked.expanduser().absolute()
    if not is_absent(asked):
        return CacheRoot(path=absolute, asked=absolute, read_only=True) if _is_read_only(absolute) else open_root(asked)
    private = _private_root()
    problem = _hindrance(absolute)
    return CacheRoot(path=private, asked=absolute, reason=f"{absolute} {problem}; using {private}" if problem else "")


def _is_read_only(path: Path) -> bool:
    """Whether nothing but that speaks against a cache that is there."""
    try:
        there = [folder for folder in (path, path / KERNELS, path / PLANS, path / TMP) if folder.is_dir()]
        return (
            path in there
            and not any(_distrust(folder) or _around(folder) for folder in there)
            and all(os.access(folder, os.R_OK | os.X_OK) for folder in there)
            and not all(os.access(folder, os.W_OK) for folder in there)
        )
    except OSError:
        return False


def _hindrance(path: Path) -> str:
    """Why `_prepare` could not make ``path``, judged by the last folder on the way that there is ("" = it could)."""
    try:
        folder = next(p for p in (path, *path.parents) if p.exists())
        if not folder.is_dir():
            return "cannot be used (Not a directory)"
        if folder == path and (problem := _distrust(path)):
            return problem
        if not os.access(folder, os.W_OK | os.X_OK):
            return "is not writable" if folder == path else "cannot be used (Permission denied)"
        return _around(folder)
    except OSError as error:
        return f"cannot be used ({error.strerror or error})"


def _prepare(path: Path) -> str:
    """Make the directories; why ``path`` cannot be used ("" = it can)."""
    try:
        folders = (path, path / KERNELS, path / PLANS, path / TMP)
        if path.exists() and not path.is_dir():
            return "is not a directory"
        for folder in folders:
            _make(folder)
        for folder in folders:
            if problem := _distrust(folder) or _around(folder):
                return problem if folder is path else f"has {folder.name}/, which {problem}"
            if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
                return "is not writable"
    except OSError as error:
        return f"cannot be used ({error.strerror or error})"
    return ""


def _make(path: Path) -> None:
    """A directory and those that it is in, for us alone whatever the umask: what others may write to would not be used."""
    for folder in (*reversed(path.parents), path):
        if not folder.exists():
            folder.mkdir(mode=0o700, exist_ok=True)


def _around(path: Path) -> str:
    """Why code in a folder of ours must not be loaded because of where it is ("" = it may)."""
    if problem := distrust(path):
        return f"is not safe there: {problem}"
    return "is mounted noexec" if os.statvfs(path).f_flag & getattr(os, "ST_NOEXEC", 0) else ""


def _distrust(folder: Path) -> str:
    """Why code in ``folder`` itself must not be loaded ("" = it may)."""
    status = folder.stat()
    if not stat.S_ISDIR(status.st_mode):
        return "is not a directory"
    if status.st_uid != os.geteuid():
        return f"belongs to user {status.st_uid}"
    if status.st_mode & 0o022:
        return "can be written by others (chmod 700 repairs it)"
    return ""


def _private_root() -> Path:
    """One per process. A child made by fork must not remove its parent's, and must not lose it either: it has its own."""
    owner = os.getpid()
    if owner in _private:
        return _private[owner]
    path = _made_private()
    for name in (KERNELS, PLANS, TMP):
        (path / name).mkdir(mode=0o700)

    def remove() -> None:
        if os.getpid() == owner:
            shutil.rmtree(path, ignore_errors=True)

    ending.at_end(remove)
    return _private.setdefault(owner, path)


def _made_private() -> Path:
    """In the first place that is safe; if none is, in the first that there is: kernels compile, and are not loaded from there."""
    made: list[Path] = []
    problem: OSError | None = None
    for folder in (None, *_TEMPORARY):
        try:
            made.append(Path(tempfile.mkdtemp(prefix="xyntra-", dir=folder)).absolute())
            if not _around(made[-1]):
                made.insert(0, made.pop())
                break
        except OSError as error:
            problem = problem or error
    if not made:
        assert problem is not None
        raise problem
    for other in made[1:]:
        other.rmdir()
    return made[0]


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
