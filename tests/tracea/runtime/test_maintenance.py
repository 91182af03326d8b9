from __future__ import annotations

import os
from pathlib import Path

import pytest

from xyntra_ep.tracea.runtime.cache_root import CacheRoot, open_root
from xyntra_ep.tracea.runtime.maintenance import EntryKind, damaged, entries, prune
from xyntra_ep.tracea.runtime.plan_store import plan_path, store_plan
from xyntra_ep.trusted_file import seal

DIGEST = "0" * 32


def count(data: bytes) -> bytes:
    return len(data).to_bytes(16, "little")


@pytest.fixture
def root(tmp_path: Path) -> CacheRoot:
    """Three kernels of 100, 200 and 300 bytes, used 30, 20 and 10 s after the epoch, and a plan used at 40
    s.
    """
    root = open_root(tmp_path / "root")
    for i, used in ((1, 30), (2, 20), (3, 10)):
        path = root.kernels / f"{i}.so"
        path.write_bytes(seal(b"x" * (i * 100 - len(seal(b"")))))
        os.utime(path, (used, used))
    assert store_plan(root, DIGEST, b"plan" + count(b"plan")) == ""
    os.utime(plan_path(root, DIGEST), (40, 40))
    return root


def test_entries_by_last_use(root: CacheRoot) -> None:
    found = [(e.kind, e.path.name, e.size_bytes) for e in entries(root)]
    assert found == [
        (EntryKind.PLAN, f"{DIGEST}.plan", 20),
        (EntryKind.KERNEL, "1.so", 100),
        (EntryKind.KERNEL, "2.so", 200),
        (EntryKind.KERNEL, "3.so", 300),
    ]


def test_names_of_one_file_share_its_size(root: CacheRoot) -> None:
    (root.kernels / "4.so").hardlink_to(root.kernels / "2.so")
    assert {e.path.name: e.size_bytes for e in entries(root) if e.kind is EntryKind.KERNEL} == {
        "1.so": 100,
        "2.so": 100,
        "3.so": 300,
        "4.so": 100,
    }


def test_damage_is_found(root: CacheRoot) -> None:
    assert damaged(root, count) == []
    (root.kernels / "2.so").write_bytes(b"half")
    plan_path(root, DIGEST).write_bytes(b"x" * 40)
    assert {e.path.name for e, _ in damaged(root, count)} == {f"{DIGEST}.plan", "2.so"}
    assert [e.path.name for e, _ in damaged(root)] == ["2.so"]


def test_prune_by_size_keeps_the_recent(root: CacheRoot) -> None:
    removed = prune(root, max_bytes=130, now=50)
    assert [e.path.name for e in removed] == ["2.so", "3.so"]
    assert {e.path.name for e in entries(root)} == {f"{DIGEST}.plan", "1.so"}


def test_prune_by_age(root: CacheRoot) -> None:
    assert [e.path.name for e in prune(root, max_age_s=25, now=50)] == ["2.so", "3.so"]


def test_leftovers_of_dead_processes_go(root: CacheRoot) -> None:
    old, new = root.tmp / "cc-old", root.tmp / "cc-new"
    for folder, used in ((old, 0), (new, 5000)):
        folder.mkdir()
        (folder / "a.c").write_text("int a;")
        os.utime(folder, (used, used))
    assert [e.path for e in prune(root, now=5001)] == [old]
    assert new.exists()


def test_a_plan_that_cannot_be_kept_says_why(root: CacheRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert "No space left on device" in store_plan(root, DIGEST, b"new")
