from __future__ import annotations

from bench.environment import LoadWatch, quota_cores, telling_flags


def test_quota() -> None:
    assert quota_cores("150000 100000\n") == 1.5
    assert quota_cores("max 100000\n") is None
    assert quota_cores("") is None


def test_only_telling_flags_are_kept() -> None:
    assert telling_flags("fpu sse2 avx2 avx512f amx_tile nx f16c") == ("amx_tile", "avx2", "avx512f", "f16c")


def test_own_work_is_not_foreign() -> None:
    watch = LoadWatch()
    sum(range(2_000_000))
    foreign = watch.foreign_cores()
    assert foreign is None or foreign >= 0
