"""Maintenance of a cache root, for `xyntra cache`: lists files, finds damaged ones, removes old ones."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from xyntra_ep.tracea.runtime.cache_root import CacheRoot
from xyntra_ep.tracea.runtime.kernel_files import Hash128
from xyntra_ep.trusted_file import intact, read_trusted

_STALE_S = 3600.0  # no compilation takes that long: what is older in tmp/ was left by a process that died


_BUILT = re.compile(r"-w?[0-9a-f]{16}\.onnx$")  # the end of a name that zoo/cache.py gives


class EntryKind(StrEnum):
    KERNEL = "kernel"
    PLAN = "plan"
    SOURCE = "source"
    LEFTOVER = "leftover"
    TUNING = "tuning result"
    MODEL = "model"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A file (or a leftover directory) of the cache. ``size_bytes``: its share, where it is one name of many of a file;
    ``used``: seconds since the epoch, of the last use that is known."""

    kind: EntryKind
    path: Path
    size_bytes: int
    used: float


def entries(root: CacheRoot) -> list[Entry]:
    """Everything in the cache, most recently used first."""
    found = list(_scan(root))
    return sorted(found, key=lambda e: (-e.used, e.path))


def _scan(root: CacheRoot) -> Iterator[Entry]:
    for folder, pattern, kind in (
        (root.kernels, "*.so", EntryKind.KERNEL),
        (root.kernels, "*.clbin", EntryKind.KERNEL),
        (root.kernels, "*.c", EntryKind.SOURCE),
        (root.plans, "*.plan", EntryKind.PLAN),
        (root.path, "tuning_*-*.json", EntryKind.TUNING),
        (root.tmp, "*", EntryKind.LEFTOVER),
    ):
        for path in folder.glob(pattern):
            try:
                status = path.stat()
            except OSError:
                continue  # another process was faster
            size = status.st_size // max(1, status.st_nlink) if path.is_file() else sum(p.stat().st_size for p in path.glob("*"))
            yield Entry(kind=kind, path=path, size_bytes=size, used=max(status.st_atime, status.st_mtime))


def models(folder: Path) -> list[Entry]:
    """What zoo/cache.py has built in ``folder`` and nothing else that may be there, most recently used first."""
    found = []
    for path in folder.glob("*.onnx"):
        if not _BUILT.search(path.name):
            continue
        with suppress(OSError):  # another process was faster
            status = path.stat()
            used = max(status.st_atime, status.st_mtime)
            found.append(Entry(kind=EntryKind.MODEL, path=path, size_bytes=status.st_size, used=used))
    return sorted(found, key=lambda e: (-e.used, e.path))


def damaged(root: CacheRoot, hash128: Hash128 | None = None) -> list[tuple[Entry, str]]:
    """Files that others can have made or whose checksum does not match, with what is wrong. Checksums of plans are checked only
    with the hash function."""
    found: list[tuple[Entry, str]] = []
    for entry in entries(root):
        if entry.kind not in (EntryKind.KERNEL, EntryKind.PLAN):
            continue
        try:
            data = read_trusted(entry.path)
        except OSError as error:
            found.append((entry, f"cannot be read ({error.strerror})"))
            continue
        if entry.kind is EntryKind.KERNEL and not intact(data):
            found.append((entry, "checksum does not match"))
        if entry.kind is EntryKind.PLAN and hash128 is not None and hash128(data[:-16]) != data[-16:]:
            found.append((entry, "checksum does not match"))
    return found


def prune(
    root: CacheRoot, *, max_bytes: int | None = None, max_age_s: float | None = None, now: float | None = None
) -> list[Entry]:
    """Remove what is older than ``max_age_s`` and then the least recently used until ``max_bytes`` are left;
    always what dead processes left behind, never what tuning has found. Returns what was removed.

    A plan whose kernel is gone is made anew when its graph comes again, so nothing breaks.
    """
    now = time.time() if now is None else now
    removed: list[Entry] = []
    kept_bytes = 0
    for entry in entries(root):
        age_s = now - entry.used
        if entry.kind is EntryKind.TUNING:
            drop = False
        elif entry.kind is EntryKind.LEFTOVER:
            drop = age_s > _STALE_S
        else:
            drop = (max_age_s is not None and age_s > max_age_s) or (
                max_bytes is not None and kept_bytes + entry.size_bytes > max_bytes
            )
            kept_bytes += 0 if drop else entry.size_bytes
        if drop and remove(entry):
            removed.append(entry)
    return removed


def remove(entry: Entry) -> bool:
    """Whether the entry is gone."""
    if entry.path.is_dir():
        shutil.rmtree(entry.path, ignore_errors=True)
    else:
        try:
            entry.path.unlink(missing_ok=True)
        except OSError:
            return False
    return not entry.path.exists()
