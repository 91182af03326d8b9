from __future__ import annotations

import os

import pytest

from xyntra_bench.stderr import stderr_captured


def test_what_native_code_prints_is_seen_and_passed_on(capfd: pytest.CaptureFixture[str]) -> None:
    with stderr_captured() as captured:
        os.write(2, b"one\ntwo\n")
    assert captured.lines == ["one", "two"]
    os.write(2, b"three\n")
    assert capfd.readouterr().err == "one\ntwo\nthree\n"


def test_lines_survive_an_exception(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError), stderr_captured() as captured:
        os.write(2, b"last words\n")
        raise ValueError
    assert captured.lines == ["last words"] and capfd.readouterr().err == "last words\n"


def test_not_active_is_not_there(capfd: pytest.CaptureFixture[str]) -> None:
    with stderr_captured(active=False) as captured:
        os.write(2, b"straight\n")
    assert captured.lines == [] and capfd.readouterr().err == "straight\n"
