"""Keeps what tuning has found in the cache root, so that sessions find it."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from xyntra_ep.tracea.optimizer.tuning_cache import TuningCache
from xyntra_ep.tracea.runtime.cache_root import CacheRoot, atomic_write
from xyntra_ep.tracea.runtime.plan_store import forget_plans


def keep(tuning: TuningCache, root: CacheRoot) -> None:
    """With what others have written there since: of two answers to one question, and of two verdicts, ``tuning``'s counts. Stored
    plans that were made by other choices go. Raises OSError where nothing can be written."""
    path = root.path / tuning.machine.file
    with _locked(path.with_name(f"{path.name}.lock")):
        there = TuningCache.load(root.path, tuning.machine, trials=True)
        tuning.take_in(there)
        atomic_write(path, tuning.data(), root.tmp)
        atomic_write(path.with_name(tuning.machine.trials_file), tuning.trials_data(), root.tmp)
    if tuning.choices() != there.choices():
        forget_plans(root)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
