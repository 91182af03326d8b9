"""Provider options: values, precedence, documentation."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest

from xyntra_ep import knobs, options, options_table
from xyntra_ep.errors import ConfigError
from xyntra_ep.options import AUTO, Claim, FirstRun, Goal, LogLevel, Options, Precision, Tune, parse

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No fusion.toml and no XYNTRA_* but what the test makes."""
    monkeypatch.chdir(tmp_path)
    for row in options.rows():
        monkeypatch.delenv(row.variable, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_defaults(tmp_path: Path) -> None:
    assert parse({}) == Options(
        backend=AUTO,
        precision=Precision.FP32,
        claim=Claim.PROFITABLE,
        min_island=1,
        cache_dir=tmp_path / "cache" / "xyntra",
        dump_dir=None,
        rules=None,
        fp32_strict=False,
        log_level=LogLevel.INFO,
    )


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("backend", "cpu", "cpu"),
        ("backend", "AUTO", AUTO),
        ("precision", "fp32", Precision.FP32),
        ("precision", "BF16", Precision.BF16),
        ("precision", "tf32", Precision.TF32),
        ("precision", "int8w", Precision.INT8W),
        ("claim", "all", Claim.ALL),
        ("claim", " profitable ", Claim.PROFITABLE),
        ("min_island", "3", 3),
        ("cache_dir", "/somewhere/kernels", Path("/somewhere/kernels")),
        ("dump_dir", "out", Path("out")),
        ("dump_dir", "", None),
        ("rules", "mine.toml", Path("mine.toml")),
        ("rules", "", None),
        ("fp32_strict", "1", True),
        ("fp32_strict", "True", True),
        ("fp32_strict", "on", True),
        ("fp32_strict", "0", False),
        ("fp32_strict", "False", False),
        ("tune", "Session", Tune.SESSION),
        ("policy", "Throughput", Goal.THROUGHPUT),
        ("deterministic", "on", True),
        ("first_run", "Prebuilt", FirstRun.PREBUILT),
        ("dim_hints", " height=640, width = 480,", (("height", 640), ("width", 480))),
        ("dim_hints", "", ()),
        ("compile_for", "AVX2, amx,avx2", ("avx2", "amx")),
        ("compiled_digest", "digests", Path("digests")),
        ("trace", " Live", "live"),
        ("trace", "OFF", "off"),
        ("trace", "", "off"),
        ("trace", "Run %p.json", "Run %p.json"),
        ("log_level", "error", LogLevel.ERROR),
        ("log_level", "verbose", LogLevel.VERBOSE),
    ],
)
def test_values(name: str, text: str, value: object) -> None:
    assert getattr(parse({name: text}), name) == value


def test_every_option_is_tried_above() -> None:
    [mark] = test_values.pytestmark  # type: ignore[attr-defined]  # set by the decorator
    assert {name for name, _, _ in mark.args[1]} == {row.name for row in options.rows()}


def test_a_leading_tilde_is_the_home_directory() -> None:
    assert parse({"cache_dir": "~/kernels"}).cache_dir == Path.home() / "kernels"


def test_what_ort_reads_itself_passes() -> None:
    assert parse({"device_id": "0"}) == parse({})


def test_precedence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert parse({}).min_island == 1
    (tmp_path / "fusion.toml").write_text("[provider]\nmin_island = 2\nfp32_strict = true\n", encoding="utf-8")
    assert parse({}).min_island == 2
    monkeypatch.setenv("XYNTRA_MIN_ISLAND", "3")
    assert parse({}).min_island == 3
    assert parse({"min_island": "4"}).min_island == 4
    assert parse({}).fp32_strict, "what nobody else sets stays as the file says"


def test_named_file_takes_the_place_of_the_found_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "fusion.toml").write_text('[provider]\nclaim = "all"\n', encoding="utf-8")
    named = tmp_path / "deep" / "mine.toml"
    named.parent.mkdir()
    named.write_text('[provider]\ncache_dir = "kernels"\n[other]\nkey = 1\n', encoding="utf-8")
    monkeypatch.setenv("XYNTRA_CONFIG", str(named))
    assert parse({}).claim is Claim.PROFITABLE
    assert parse({}).cache_dir == tmp_path / "deep" / "kernels", "relative to the file"


CHANGED = {
    "backend": "cpu",
    "precision": "bf16",
    "claim": "all",
    "min_island": "2",
    "cache_dir": "/elsewhere",
    "dump_dir": "/dump",
    "rules": "/rules.toml",
    "trace": "live",
    "fp32_strict": "1",
    "tune": "off",
    "policy": "memory",
    "deterministic": "1",
    "first_run": "prebuilt",
    "dim_hints": "n=2",
    "compile_for": "avx2",
    "compiled_digest": "/digests",
    "log_level": "error",
}


def test_every_field_is_read() -> None:
    base = parse({})
    assert all(parse({name: text}) != base for name, text in CHANGED.items())
    assert CHANGED.keys() == {field.name for field in dataclasses.fields(Options)}


def test_every_option_has_its_knob() -> None:
    fields = {field.name for field in dataclasses.fields(knobs.Knobs)}
    assert {row.name for row in options.rows()} <= fields


def test_every_option_is_documented() -> None:
    assert [row.name for row in options.rows() if not row.doc or "\n" in row.doc or "|" in row.doc] == []


def test_the_page_shows_the_options_as_they_are() -> None:
    text = (ROOT / "docs" / "options.md").read_text(encoding="utf-8")
    assert text == options_table.refresh(text), "run: python -m xyntra_ep.options_table --write docs/options.md"


def test_the_page_has_every_variable() -> None:
    text = (ROOT / "docs" / "options.md").read_text(encoding="utf-8")
    variables = [knobs.variable_of(field.name) for field in dataclasses.fields(knobs.Knobs)]
    assert [variable for variable in variables if f"| `{variable}` |" not in text] == []


def test_write_refreshes_a_document(tmp_path: Path) -> None:
    document = tmp_path / "page.md"
    document.write_text("a\n<!-- options -->\nold\n<!-- /options -->\nz\n", encoding="utf-8")
    run = subprocess.run(
        [sys.executable, "-m", "xyntra_ep.options_table", "--write", str(document)],
        check=True,
        capture_output=True,
        text=True,
    )
    assert document.read_text(encoding="utf-8") == f"a\n<!-- options -->\n{options_table.table()}\n<!-- /options -->\nz\n"
    assert run.stdout == ""


def test_a_document_without_marks_is_refused() -> None:
    with pytest.raises(ConfigError, match="put the marks"):
        options_table.refresh("nothing here")
