from __future__ import annotations

from pathlib import Path

import pytest

from bench import environment
from bench.environment import container, control_groups, memory_limit_bytes, quota_cores, quota_of, telling_flags
from bench.machine import Machine, MachineWatch


def test_quota() -> None:
    assert quota_of("150000 100000\n") == 1.5
    assert quota_of("max 100000\n") is None and quota_of("-1\n 100000\n") is None
    assert quota_of("") is None


def test_the_tightest_quota_of_the_groups_around_the_process_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cgroup").write_text("12:cpu:/elsewhere\n0::/slice/service\n")
    service = tmp_path / "root" / "slice" / "service"
    service.mkdir(parents=True)
    (service / "cpu.max").write_text("80000 100000\n")
    (service.parent / "cpu.max").write_text("50000 100000\n")
    groups = control_groups(str(tmp_path / "cgroup"), tmp_path / "root")
    assert groups == [service, service.parent, service.parent.parent]
    monkeypatch.setattr(environment, "control_groups", lambda: groups)
    assert quota_cores() == 0.5


def test_the_tightest_memory_limit_counts_and_none_is_none(tmp_path: Path) -> None:
    inner, outer = tmp_path / "a", tmp_path / "b"
    for folder, limit in ((inner, "max\n"), (outer, "4096\n")):
        folder.mkdir()
        (folder / "memory.max").write_text(limit)
    assert memory_limit_bytes([inner, outer]) == 4096
    (outer / "memory.max").write_text("9223372036854771712\n")
    assert memory_limit_bytes([outer]) == memory_limit_bytes([inner]) == memory_limit_bytes([])


def test_a_container_is_known_by_its_mark(tmp_path: Path) -> None:
    assert container(tmp_path) == ""
    (tmp_path / ".dockerenv").touch()
    assert container(tmp_path) == "docker"
    (tmp_path / "run" / "systemd").mkdir(parents=True)
    (tmp_path / "run" / "systemd" / "container").write_text("systemd-nspawn\n")
    assert container(tmp_path) == "systemd-nspawn"


def test_only_telling_flags_are_kept() -> None:
    assert telling_flags("fpu sse2 avx2 avx512f amx_tile nx f16c") == ("amx_tile", "avx2", "avx512f", "f16c")


def test_own_work_is_not_foreign() -> None:
    watch = MachineWatch()
    sum(range(2_000_000))
    seen = watch.seen()
    assert seen.foreign_cores is None or seen.foreign_cores >= 0
    assert seen.cpu_s > 0 and (seen.throttled_s is None or seen.throttled_s >= 0)


@pytest.mark.parametrize(("before", "after", "changed"), [(2000.0, 1800.0, 0.1), (2000.0, 2100.0, 0.05), (None, 2000.0, 0.0)])
def test_the_clock_is_compared_with_what_it_was(before: float | None, after: float, changed: float) -> None:
    machine = Machine(
        wall_s=1.0,
        cpu_s=1.0,
        foreign_cores=None,
        throttled_s=None,
        clock_before_mhz=before,
        clock_after_mhz=after,
        load_before=None,
        load_after=None,
    )
    assert machine.clock_changed == pytest.approx(changed)
