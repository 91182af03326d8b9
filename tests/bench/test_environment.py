from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from xyntra_bench import environment
from xyntra_bench.environment import (
    ISA_FLAGS,
    IsaClass,
    container,
    control_groups,
    isa_class,
    memory_limit_bytes,
    quota_cores,
    quota_of,
    telling_flags,
)
from xyntra_bench.machine import CLOCK_CHANGE, Machine, MachineWatch
from xyntra_ep.tracea.doctor.profile import capabilities, profile
from xyntra_ep.tracea.semantic_ir.capabilities import Isa


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
    watch.sample()
    seen = watch.seen()
    if seen.foreign_cores is not None:
        assert seen.stolen_cores is not None and seen.load_high is not None
    assert seen.foreign_cores is None or seen.foreign_cores >= 0
    assert seen.cpu_s > 0 and (seen.throttled_s is None or seen.throttled_s >= 0)


QUIET = Machine(
    wall_s=1.0,
    cpu_s=1.0,
    cores=2,
    foreign_cores=0.03,
    stolen_cores=0.01,
    throttled_s=None,
    clock_before_mhz=None,
    clock_after_mhz=None,
    clock_low_mhz=2900.0,
    clock_high_mhz=3000.0,
    load_before=None,
    load_after=None,
    load_high=None,
)


def test_a_quiet_machine_is_quiet_and_what_is_not_told_is_no_noise() -> None:
    untold = dataclasses.replace(QUIET, foreign_cores=None, stolen_cores=None, clock_low_mhz=None, clock_high_mhz=None)
    for machine in (QUIET, untold):
        assert not machine.loaded and not machine.robbed and machine.clock_changed <= CLOCK_CHANGE


def test_others_work_is_a_load_and_the_hypervisors_is_theft() -> None:
    busy, robbed = (dataclasses.replace(QUIET, foreign_cores=0.2, stolen_cores=stolen) for stolen in (0.01, 0.19))
    assert busy.loaded and not busy.robbed and robbed.robbed and not robbed.loaded
    assert not dataclasses.replace(busy, cores=16).loaded, "a fifth of a core among sixteen"


@pytest.mark.parametrize(("low", "high", "changed"), [(2000.0, 2200.0, 0.1), (2000.0, 2000.0, 0.0), (None, None, 0.0)])
def test_the_clock_is_compared_between_rounds(low: float | None, high: float | None, changed: float) -> None:
    machine = dataclasses.replace(QUIET, clock_low_mhz=low, clock_high_mhz=high, clock_before_mhz=800.0)
    assert machine.clock_changed == pytest.approx(changed), "an idle processor's sleep around a case is none of its business"


@pytest.mark.parametrize("isa", [IsaClass.AMX, IsaClass.AVX512, IsaClass.AVX2, IsaClass.SCALAR], ids=lambda isa: isa.name.lower())
def test_classes_are_the_doctors(isa: IsaClass) -> None:
    """Reports may not load the doctor, so its flags stand in two places."""
    flags = frozenset(ISA_FLAGS.get(isa, {"sse4_2"}))
    machine = dataclasses.replace(profile(), architecture="x86_64", features=flags, tiles_granted=isa is IsaClass.AMX)
    caps = capabilities(machine)
    doctors = (
        IsaClass.AMX if caps.amx_bf16 else {Isa.AVX512: IsaClass.AVX512, Isa.AVX2: IsaClass.AVX2}.get(caps.isa, IsaClass.SCALAR)
    )
    assert isa_class(telling_flags(" ".join(flags))) is isa is doctors
    for needed in ISA_FLAGS.get(isa, ()):
        assert isa_class(flags - {needed}) is not isa
        assert capabilities(dataclasses.replace(machine, features=flags - {needed})) != caps, needed
