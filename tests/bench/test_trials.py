"""Trials are made once for all contenders, and each of them knows of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bench import trials
from bench.arms import Arm
from bench.contenders import Contender
from bench.run import child_environment
from bench.sessions import factory_for
from bench.trials import give_trials, make_trials
from xyntra_ep.tracea.runtime.cache_root import TRIALS
from zoo import model_path, zoo


def test_what_is_on_record_is_given_to_each_contender(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XYNTRA_CACHE_DIR", str(tmp_path / "own"))
    give_trials(tmp_path / "first")
    assert not (tmp_path / "first").exists(), "nothing is on record"
    (tmp_path / "own").mkdir()
    known = tmp_path / "own" / TRIALS
    known.write_text("{}")
    os.utime(known, (1, 1))  # failures that may pass count for a day
    path = model_path(zoo["bert-base-tiny"])
    factory_for(path, Arm(label="a", contender=Contender.parse("XyntraEP"), threads=1), tmp_path / "first")
    given = tmp_path / "first" / TRIALS
    assert given.read_text() == "{}" and given.stat().st_mtime == 1
    own = Contender.parse(f"XyntraEP:cache_dir={tmp_path / 'second'}")
    factory_for(path, Arm(label="b", contender=own, threads=1), tmp_path / "third")
    assert not (tmp_path / "second").exists() and not (tmp_path / "third").exists(), "a cache of the user's own is left alone"


@pytest.mark.native
def test_they_are_made_in_a_process_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    assert make_trials((), {}) == ""
    environment = {**child_environment(), "CUDA_VISIBLE_DEVICES": "", "XYNTRA_CUDA_DEVICES": "0"}
    assert make_trials(("cuda", "cpu"), environment) == "", "where there is no device, its session says so"
    assert make_trials(("vulkan",), environment).startswith("trials on vulkan: cannot be made: xyntra_ep.errors.ConfigError: ")
    monkeypatch.setattr(trials, "LIMIT_S", 0.01)
    assert make_trials(("cuda",), environment) == "trials on cuda: not made within 0 s"
