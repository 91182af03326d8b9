from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from xyntra_ep import knobs
from xyntra_ep.errors import UnsupportedError
from xyntra_ep.tracea.runtime.cache_root import open_root
from xyntra_ep.tracea.runtime.compilers import Compiler, Family, find_compiler, survey, target_flags


def fake(folder: Path, name: str, version: str) -> Path:
    """A compiler that can tell its version and counts how often it is asked."""
    path = folder / name
    path.write_text(f"#!/bin/sh\necho asked >> {folder}/asked\necho '{version}'\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.fixture
def only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with nothing in it but what a test puts there (and the tools that the fakes need)."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("XYNTRA_CC", raising=False)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr("shutil.which", lambda name: str(p) if (p := folder / Path(name).name).is_file() else None)
    return folder


def test_the_order_of_preference(only: Path) -> None:
    fake(only, "cc", "cc (Debian 12.2.0) 12.2.0\nCopyright Free Software Foundation")
    assert find_compiler().version == "gcc as cc (Debian 12.2.0) 12.2.0"
    fake(only, "gcc", "gcc (Debian 12.2.0-14+deb12u1) 12.2.0")
    assert find_compiler().command == (str(only / "gcc"),)
    fake(only, "clang-17", "Debian clang version 17.0.1 (2)")
    found = find_compiler()
    assert (found.family, found.major) == (Family.CLANG, 17)


def test_compilers_that_are_too_old_are_named(only: Path) -> None:
    fake(only, "clang", "Ubuntu clang version 14.0.0-1ubuntu1.1")
    fake(only, "gcc", "gcc (Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0")
    with pytest.raises(UnsupportedError) as caught:
        find_compiler()
    text = str(caught.value)
    assert "Ubuntu clang version 14.0.0-1ubuntu1.1: older than 16" in text
    assert "11.4.0: older than 12" in text
    assert "set XYNTRA_CC" in text


def test_no_compiler(only: Path) -> None:
    with pytest.raises(UnsupportedError, match="no C compiler that can be used"):
        find_compiler()


def test_the_compiler_asked_for_is_the_only_one(only: Path) -> None:
    fake(only, "gcc", "gcc (GCC) 13.1.0")
    old = fake(only, "my-cc", "gcc (GCC) 9.1.0")
    with knobs.scope(cc=str(old)):
        assert find_compiler().command == (str(old),)
    with knobs.scope(cc="not-there"):
        assert [c.why_not for c in survey()] == ["not found"]
        with pytest.raises(UnsupportedError, match="not-there: not found"):
            find_compiler()


def test_a_quotation_mark_without_its_other_half(only: Path) -> None:
    fake(only, "gcc", "gcc (GCC) 13.1.0")
    with knobs.scope(cc='gcc "-O1'), pytest.raises(UnsupportedError, match=r"XYNTRA_CC is no command \(No closing quotation"):
        find_compiler()


def test_words_behind_the_compiler_are_kept(only: Path) -> None:
    path = fake(only, "ccache", "gcc (GCC) 13.1.0")
    with knobs.scope(cc=f"{path} gcc"):
        assert find_compiler().command == (str(path), "gcc")


def test_a_compiler_that_crashes_when_asked_is_passed_over(only: Path) -> None:
    broken = fake(only, "clang", "")
    broken.write_text("#!/bin/sh\nkill -SEGV $$\n")
    fake(only, "gcc", "gcc (GCC) 13.1.0")
    assert find_compiler().family is Family.GCC


def test_a_warm_process_asks_nobody(only: Path, tmp_path: Path) -> None:
    path = fake(only, "gcc", "gcc (GCC) 13.1.0")
    root = open_root(tmp_path / "root")
    first = find_compiler(root)
    assert find_compiler(root) == first
    assert (only / "asked").read_text() == "asked\n"
    (root.path / "compilers.json").write_text("{not json")
    assert find_compiler(root) == first
    os.utime(path, (1, 1))  # replaced by an upgrade
    assert find_compiler(root).identity != first.identity
    assert (only / "asked").read_text() == "asked\n" * 3


def test_flags_are_features_not_names_of_cpus() -> None:
    flags = target_flags("avx512", bf16=True, vnni=True)
    assert {"-mavx512bf16", "-mavx512vnni", "-mfma"} <= set(flags)
    assert target_flags("avx2", bf16=True) == target_flags("avx2")
    compiler = Compiler(command=("cc",), family=Family.GCC, version="13.1", stamp="")
    everything = " ".join(compiler.argv("a.c", "a.so", flags))
    assert "-march" not in everything and "-ffast-math" not in everything


def test_each_family_is_given_the_flags_it_knows() -> None:
    def flags(family: Family) -> list[str]:
        return Compiler(command=("cc",), family=family, version="", stamp="").argv("a.c", "a.so", ())

    assert "--param" in flags(Family.GCC)
    assert "--param" not in flags(Family.CLANG) + flags(Family.ZIG) + flags(Family.OTHER)


def test_sanitizers_are_part_of_a_kernels_key(only: Path) -> None:
    fake(only, "gcc", "gcc (GCC) 13.1.0")
    plain = find_compiler()
    with knobs.scope(sanitize="address,undefined"):
        checked = find_compiler()
    assert checked.salt(()) != plain.salt(())
    for command in (checked.argv("a.c", "a.so", ()), checked.object_argv("a.c", "a.o", ()), checked.link_argv(["a.o"], "a.so")):
        assert "-fsanitize=address,undefined" in command
    assert "-fsanitize" not in " ".join(plain.argv("a.c", "a.so", ()))


def test_clang_takes_the_runtime_of_the_process() -> None:
    for family in (Family.CLANG, Family.GCC):
        compiler = Compiler(command=("cc",), family=family, version="", stamp="", sanitizers="thread")
        assert ("-shared-libsan" in compiler.link_argv(["a.o"], "a.so")) == (family is Family.CLANG)
