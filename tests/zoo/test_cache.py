from __future__ import annotations

import dataclasses
from pathlib import Path

import onnx
import pytest

from xyntra_zoo import model_path, zoo
from xyntra_zoo.cache import cache_dir, prune
from xyntra_zoo.params import Params

MODEL = zoo["vit-tiny16-tiny"]


@pytest.fixture(autouse=True)
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XYNTRA_ZOO_DIR", str(tmp_path))


def test_a_model_is_built_once() -> None:
    first = model_path(MODEL)
    stamp = first.stat().st_mtime_ns
    assert model_path(MODEL) == first
    assert first.stat().st_mtime_ns == stamp


def test_the_seed_is_part_of_the_key() -> None:
    assert model_path(MODEL) != model_path(dataclasses.replace(MODEL, seed=1))


def test_a_failed_build_leaves_nothing_behind(tmp_path: Path) -> None:
    def broken(params: Params) -> onnx.ModelProto:
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        model_path(dataclasses.replace(MODEL, build=broken))
    assert list(tmp_path.iterdir()) == []


def test_prune_deletes_only_what_no_model_is_read_from(tmp_path: Path) -> None:
    kept = model_path(MODEL)
    old = tmp_path / "vit-tiny16-0123456789abcdef.onnx"
    old.touch()
    assert prune() == [old]
    assert kept.exists()


def test_the_directory_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XYNTRA_ZOO_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert cache_dir() == Path("/somewhere/xyntra-zoo")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_dir() == Path.home() / ".cache" / "xyntra-zoo"
