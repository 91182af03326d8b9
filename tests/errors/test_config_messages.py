"""What a user reads after a wrong option, variable or file."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from xyntra_ep import options, options_file
from xyntra_ep.errors import ConfigError
from xyntra_ep.options import parse

ALL = (
    "backend, precision, claim, policy, min_island, cache_dir, dump_dir, rules, fp32_strict, tune, deterministic, first_run, "
    "dim_hints, compile_for, compiled_digest, trace, log_level"
)


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("backnd", "cpu", "XyntraEP: no provider option 'backnd'. did you mean 'backend'?"),
        ("Claim", "all", "XyntraEP: no provider option 'Claim'. did you mean 'claim'?"),
        ("zzz", "1", f"XyntraEP: no provider option 'zzz'. there are {ALL}"),
        ("fast_math", "1", f"XyntraEP: option 'fast_math' is not in this release. there are {ALL}"),
        ("tune", "always", "XyntraEP: tune='always' is not valid. allowed: off, cached, session"),
        ("first_run", "built", "XyntraEP: first_run='built' is not valid. did you mean 'prebuilt'? allowed: compile, prebuilt"),
        ("backend", "vulkan", "XyntraEP: backend='vulkan' is not valid. allowed: auto, cpu, cuda, hip, metal, opencl, webgpu"),
        (
            "backend",
            "cpuu",
            "XyntraEP: backend='cpuu' is not valid. did you mean 'cpu'? allowed: auto, cpu, cuda, hip, metal, opencl, webgpu",
        ),
        (
            "precision",
            "bf61",
            "XyntraEP: precision='bf61' is not valid. did you mean 'bf16'? allowed: fp32, tf32, bf16, fp16, int8w",
        ),
        ("claim", "some", "XyntraEP: claim='some' is not valid. allowed: profitable, all"),
        ("claim", "", "XyntraEP: claim='' is not valid. allowed: profitable, all"),
        ("min_island", "0", "XyntraEP: min_island='0' is not valid. it wants an integer of at least 1"),
        ("min_island", "two", "XyntraEP: min_island='two' is not valid. it wants an integer of at least 1"),
        ("cache_dir", "", "XyntraEP: cache_dir is empty. it wants a path"),
        ("fp32_strict", "maybe", "XyntraEP: fp32_strict='maybe' is not valid. it wants 1 or 0"),
        (
            "compile_for",
            "avx3",
            "XyntraEP: compile_for='avx3' is not valid. it knows no 'avx3', but native, amx, avx512_bf16, avx512, avx2, scalar",
        ),
        (
            "log_level",
            "warn",
            "XyntraEP: log_level='warn' is not valid. did you mean 'warning'? allowed: verbose, info, warning, error",
        ),
    ],
)
def test_wrong_option(name: str, text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse({name: text})
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("variable", "text", "message"),
    [
        ("XYNTRA_CLAIM", "some", "XYNTRA_CLAIM: claim='some' is not valid. allowed: profitable, all"),
        (
            "XYNTRA_SANITIZE",
            "memory",
            "XYNTRA_SANITIZE: 'memory' is not valid. it wants 1 (address,undefined), thread or 0",
        ),
        ("XYNTRA_ISA", "sse", "XYNTRA_ISA: 'sse' is not valid. it wants avx512, avx2 or scalar"),
        ("XYNTRA_DEBUG", "6", "XYNTRA_DEBUG: '6' is not valid. it wants an integer from 0 to 5"),
        ("XYNTRA_DEBUG", "much", "XYNTRA_DEBUG: 'much' is not valid. it wants an integer from 0 to 5"),
        ("XYNTRA_REGISTER", "never", "XYNTRA_REGISTER: 'never' is not valid. it wants 1 or 0"),
        ("XYNTRA_JOBS", "0", "XYNTRA_JOBS: '0' is not valid. it wants an integer of at least 1"),
        (
            "XYNTRA_COMPILE_TIMEOUT_S",
            "-1",
            "XYNTRA_COMPILE_TIMEOUT_S: '-1' is not valid. it wants a number of seconds above 0",
        ),
        (
            "XYNTRA_COMPILE_TIMEOUT_S",
            "nan",
            "XYNTRA_COMPILE_TIMEOUT_S: 'nan' is not valid. it wants a number of seconds above 0",
        ),
        ("XYNTRA_CONFIG", "/no/such.toml", "XYNTRA_CONFIG: no file /no/such.toml. create it or unset it"),
    ],
)
def test_wrong_variable(variable: str, text: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, text)
    with pytest.raises(ConfigError) as caught:
        parse({})
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[provider]\nclam = 'all'", "no provider option 'clam'. did you mean 'claim'?"),
        ("[provider]\nclaim = 3", "claim='3' is not valid. allowed: profitable, all"),
        ("claim = 'all'", "'claim' stands outside a table. put it under [provider]"),
        ("provider = 1", "'provider' is not a table. write [provider] and options under it"),
        (
            "[provider]\ncompiled_digest = 'mine'",
            "compiled_digest is not taken from a file. give it as a provider option, or set XYNTRA_COMPILED_DIGEST",
        ),
        (
            "[provider]\ncache_dir = 'kernels'",
            "cache_dir is not taken from a file that was merely found. set XYNTRA_CONFIG to the file, or XYNTRA_CACHE_DIR",
        ),
    ],
)
def test_wrong_file(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "fusion.toml").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        parse({})
    assert str(caught.value) == f"{tmp_path / 'fusion.toml'}: {message}"


def test_what_nobody_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert options.unknown() == []
    (tmp_path / "fusion.toml").write_text("clam = 'all'\n[providr]\nclaim = 'all'\n")
    monkeypatch.setenv("XYNTRA_CASHE_DIR", "/mine")
    assert options.unknown() == [
        "XYNTRA_CASHE_DIR: no such variable, so it does nothing. did you mean 'XYNTRA_CACHE_DIR'?",
        f"{tmp_path / 'fusion.toml'}: nobody reads 'clam'. options stand under [provider]",
        f"{tmp_path / 'fusion.toml'}: nobody reads 'providr'. options stand under [provider]",
    ]
    assert parse({}).claim == "profitable"
    monkeypatch.setenv("XYNTRA_CONFIG", "/no/such.toml")
    assert len(options.unknown()) == 1, "what stops every session is an error, and said by it"


def test_file_that_is_not_toml(tmp_path: Path) -> None:
    (tmp_path / "fusion.toml").write_text("claim = = 1", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"fusion\.toml: cannot be read \(.*\)\. correct it or take it away"):
        parse({})


ODD = "is not a regular file"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (os.mkfifo, ODD),
        (os.mkdir, ODD),
        (lambda path: path.symlink_to("/dev/zero"), ODD),
        (lambda path: path.symlink_to("fusion.toml"), "Too many levels of symbolic links"),
        (lambda path: path.write_text("#" * ((1 << 20) + 1)), "is larger than 1048576 bytes"),
    ],
)
def test_what_is_called_like_the_file_and_is_none(make: Callable[[Path], object], message: str, tmp_path: Path) -> None:
    make(tmp_path / "fusion.toml")
    with pytest.raises(ConfigError) as caught:
        parse({})
    assert str(caught.value) == f"{tmp_path / 'fusion.toml'}: cannot be read ({message}). correct it or take it away"


def test_a_file_that_somebody_else_can_have_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Merely found, it is not read; by name it is asked for."""
    path = tmp_path / "fusion.toml"
    path.write_text("[provider]\nclaim = 'all'")
    assert parse({}).claim == "all" and options_file.unread_file() == ""
    path.chmod(0o666)
    why = f"{path}: others may write to it (mode 666)"
    assert parse({}).claim == "profitable"
    assert options_file.unread_file() == f"fusion.toml is not read, because somebody else can have written it: {why}"
    monkeypatch.setenv("XYNTRA_CONFIG", str(path))
    with pytest.raises(ConfigError) as caught:
        parse({})
    assert str(caught.value) == f"{path}: somebody else can have written it ({why}). make it your own, or unset it"
    assert options_file.unread_file() == ""
