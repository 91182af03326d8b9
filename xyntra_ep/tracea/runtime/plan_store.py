"""Stores plans by digest, in the same cache as their kernels."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

from xyntra_ep.tracea.runtime.cache_root import CacheRoot, atomic_write
from xyntra_ep.trusted_file import Distrusted, read_trusted


def plan_path(root: CacheRoot, digest: str) -> Path:
    """Where native code looks for the plan of a graph."""
    assert re.fullmatch(r"[0-9a-f]{32}", digest), f"{digest!r} is no digest"
    return root.plans / f"{digest}.plan"


def distrusted(root: CacheRoot, digest: str) -> str:
    """Why a plan that is there is not used, "" where that has another reason or none."""
    try:
        read_trusted(plan_path(root, digest))
    except Distrusted as error:
        return str(error)
    except OSError:
        pass
    return ""


def store_plan(root: CacheRoot, digest: str, data: bytes) -> str:
    """Keep a plan for the next session. Why that was not possible ("" = it was): the session at hand has its plan."""
    try:
        atomic_write(plan_path(root, digest), data, root.tmp)
    except OSError as error:
        return f"the plan is not kept ({error})"
    return ""


def forget_plans(root: CacheRoot) -> None:
    """What kernels are chosen by has changed: the next session plans anew."""
    for path in root.plans.glob("*.plan"):
        with suppress(OSError):  # another process was faster
            path.unlink()
