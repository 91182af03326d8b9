"""What is known of the machine reaches each contender, so that it is measured as sessions here are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from xyntra_bench.contenders import Contender
from xyntra_bench.known import give_known
from xyntra_bench.ort_sessions import MEASURED
from xyntra_bench.sessions import factory_for
from xyntra_bench.setups import Setup
from xyntra_ep.tracea.doctor import ceilings
from xyntra_ep.tracea.doctor.profile import Ceilings, this_machine
from xyntra_ep.tracea.runtime.cache_root import TRIALS
from xyntra_zoo import model_path, zoo


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The user's cache."""
    monkeypatch.setenv("XYNTRA_CACHE_DIR", str(tmp_path / "own"))
    (tmp_path / "own").mkdir(mode=0o700)
    return tmp_path / "own"


@pytest.mark.parametrize("name", [ceilings.FILE, "tuning_cache-0123456789ab.json", TRIALS])
def test_what_is_on_record_is_given_to_each_contender(own: Path, tmp_path: Path, name: str) -> None:
    give_known(tmp_path / "first")
    assert not (tmp_path / "first").exists(), "nothing is on record"
    known = own / name
    known.write_text("{}")
    known.chmod(0o600)
    os.utime(known, (1, 1))  # failures that may pass count for a day
    path = model_path(zoo["bert-base-tiny"])
    factory_for(path, Setup(label="a", contender=Contender.parse("XyntraEP"), threads=1), tmp_path / "first")
    given = tmp_path / "first" / name
    assert given.read_text() == "{}" and given.stat().st_mtime == 1
    kept = Contender.parse(f"XyntraEP:cache_dir={tmp_path / 'second'}")
    factory_for(path, Setup(label="b", contender=kept, threads=1), tmp_path / "third")
    assert not (tmp_path / "second").exists() and not (tmp_path / "third").exists(), "a cache of the user's own is left alone"


def test_what_a_session_would_not_read_is_not_given(own: Path, tmp_path: Path) -> None:
    (own / TRIALS).write_text("{}")
    (own / TRIALS).chmod(0o666)
    give_known(tmp_path / "first")
    assert not (tmp_path / "first").exists()


@pytest.mark.native
@pytest.mark.compiler("cc")
def test_a_contender_plans_by_the_ceilings_of_the_machine(own: Path, tmp_path: Path) -> None:
    setup = Setup(label="a", contender=Contender.parse("XyntraEP"), threads=1)
    path = model_path(zoo["mobilenetv2-tiny"])
    assumed = factory_for(path, setup, tmp_path / "assumed")
    assumed.create(watched=True)
    found = Ceilings(fma_gflops=50.0, bf16_gflops=0.0, l1_gbs=200.0, l2_gbs=80.0, l3_gbs=30.0, dram_gbs=10.0)
    (own / ceilings.FILE).write_bytes(ceilings.stored_with(own, this_machine(), found))
    (own / ceilings.FILE).chmod(0o600)
    measured = factory_for(path, setup, tmp_path / "measured")
    measured.create(watched=True)
    assert MEASURED not in assumed.notes and MEASURED in measured.notes
