"""What a session says while it waits for compilers."""

from __future__ import annotations

import os
from pathlib import Path

import onnxruntime as ort
import pytest

from tests.support.models.model_text import parse
from tests.support.sessions import planned
from xyntra_ep.provider import registration, waiting
from xyntra_ep.tracea.planning.manifest import LogLevel
from xyntra_ep.tracea.runtime import progress

pytestmark = [pytest.mark.native, pytest.mark.compiler("cc")]

MODEL = parse("(float[N] x) => (float[] y) { y = Exp(x) }")
Said = list[tuple[int, str]]


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> Said:
    """At a terminal, by somebody who does not wait at all."""
    lines: Said = []
    monkeypatch.setattr(registration, "say", lambda level, text: lines.append((level, text)))
    monkeypatch.setattr(waiting, "PATIENCE_S", 0.0)
    monkeypatch.setattr(os, "isatty", lambda descriptor: True)
    return lines


def test_it_is_said_once_and_where_kernels_are_kept(said: Said, tmp_path: Path) -> None:
    told = f"XyntraEP: compiling 1 kernel, kept in {tmp_path}; later sessions find them"
    for _ in range(2):
        planned(MODEL, {"cache_dir": str(tmp_path)})
        assert said == [(LogLevel.WARNING, told)], "the second session finds it"


def test_it_is_for_who_listens_where_nobody_sits(said: Said, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "isatty", lambda descriptor: False)
    planned(MODEL, {"cache_dir": str(tmp_path / "a")})
    assert [level for level, _ in said] == [LogLevel.INFO]
    planned(MODEL, {"cache_dir": str(tmp_path / "b"), "log_level": "warning"})
    assert len(said) == 1


def test_nothing_is_said_of_a_short_wait(said: Said, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "PATIENCE_S", 600.0)
    planned(MODEL, {"cache_dir": str(tmp_path)})
    assert said == []


def test_a_cache_that_does_not_last_is_not_promised(said: Said, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    # All of a process share the place that is taken instead: a kernel that no other test has compiled.
    planned(parse("(float[N] x) => (float[] y) { a = Asinh(x) b = Sin(a) y = Mul(b, x) }"), {"cache_dir": str(tmp_path / "file")})
    assert said == [(LogLevel.WARNING, "XyntraEP: compiling 1 kernel")]


def test_who_shows_it_hears_it_instead(said: Said, tmp_path: Path) -> None:
    heard: list[tuple[int, int]] = []
    with progress.heard_by(lambda done, total: heard.append((done, total))):
        planned(MODEL, {"cache_dir": str(tmp_path)})
    assert heard[-1] == (1, 1) and {total for _, total in heard} == {1} and said == []


def test_it_goes_to_the_log_of_onnxruntime(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    registration.register()
    ort.register_execution_provider_library("once_more", registration.get_library_path())
    ort.unregister_execution_provider_library("once_more")  # takes no voice but its own away
    ort.set_default_logger_severity(2)  # whatever tests before have left
    assert registration.say(LogLevel.WARNING, "a word")
    assert "[W:onnxruntime:" in (text := capfd.readouterr().err) and "a word" in text
    ort.set_default_logger_severity(3)
    try:
        registration.say(LogLevel.WARNING, "a word")
        assert capfd.readouterr().err == ""
    finally:
        ort.set_default_logger_severity(2)
