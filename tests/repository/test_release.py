"""What a release is made of: one version, papers that say what is there, native code that knows its system in one place."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import pytest
import yaml

import xyntra_ep
from release import papers
from release.wheels import PLATFORMS

ROOT = Path(__file__).resolve().parents[2]
CHANGELOG = "# Changelog\n\n## [Unreleased]\n\n- C\n\n## [0.2.0] - 2027-01-31\n\n- B\n\n## [0.1.0]\n"
# Headers that not every system has, and what only some compilers define.
OF_SYSTEMS = re.compile(
    r"#include <(?:sys/|dlfcn|fcntl|unistd|pthread|dirent|windows|io\.h|cxxabi|malloc|poll|sched|signal|time\.h)"
    r"|__linux__|__APPLE__|__GLIBC__"
)


def test_there_is_one_version() -> None:
    assert papers.version() == xyntra_ep.__version__
    for file in ("native/package/tracea-config-version.cmake", "native/package/tracea.pc", "native/version.h"):
        assert re.findall(r"\d+\.\d+\.\d+", (ROOT / file).read_text(encoding="utf-8")) == [xyntra_ep.__version__], file


@pytest.mark.parametrize(
    ("tag", "why"),
    [
        ("v0.2.0", ""),
        ("0.2.0", "the tag is 0.2.0, the version 0.2.0"),
        ("v0.3.0", "the tag is v0.3.0, the version 0.2.0"),
    ],
)
def test_a_tag_names_the_version(tag: str, why: str) -> None:
    found = papers.why_not_tag(tag, "0.2.0", CHANGELOG)
    assert found.startswith(why) and bool(found) is bool(why)


def test_a_version_without_text_is_not_released() -> None:
    assert papers.why_not_tag("v0.1.0", "0.1.0", CHANGELOG) == "CHANGELOG.md has no section [0.1.0] with text in it"


def test_checksums_are_of_everything_else(tmp_path: Path) -> None:
    (tmp_path / "b.whl").write_bytes(b"wheel")
    (tmp_path / "a.json").write_bytes(b"")
    papers.main(["checksums", str(tmp_path)])
    papers.main(["checksums", str(tmp_path)])  # a second time they are not of themselves
    lines = (tmp_path / papers.SUMS).read_text(encoding="utf-8").splitlines()
    assert lines == [f"{hashlib.sha256(b'').hexdigest()}  a.json", f"{hashlib.sha256(b'wheel').hexdigest()}  b.whl"]


def test_what_is_in_the_wheels_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.version", lambda name: {"ziglang": "0.15.2"}[name])
    (tmp_path / "a.whl").write_bytes(b"wheel")
    papers.main(["sbom", str(tmp_path)])
    bom = json.loads((tmp_path / f"xyntra-ep-{xyntra_ep.__version__}.cdx.json").read_text(encoding="utf-8"))
    parts = {part["bom-ref"]: part for part in bom["components"]}
    assert parts["a.whl"]["hashes"] == [{"alg": "SHA-256", "content": hashlib.sha256(b"wheel").hexdigest()}]
    assert "Zig 0.15.2" in parts["libc++"]["description"]
    assert set(bom["dependencies"][0]["dependsOn"]) == set(parts) - {"a.whl"} and "numpy" in parts


def test_published_wheels_are_tried() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8"))
    systems = workflow["jobs"]["installed"]["strategy"]["matrix"]["system"]
    published = {platform for platform in PLATFORMS if not platform.startswith("windows")}
    assert len(systems) == len(published)
    assert sum(name.startswith("macos") for name in systems) == sum(name.startswith("macos") for name in published)


def test_native_code_asks_in_one_place_which_system_it_is_on() -> None:
    apart = {ROOT / "native" / "trusted_file.cc"}  # one of the two forms of its rule
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in sorted((ROOT / "native").rglob("*"))
        if path.suffix in (".cc", ".h") and path.parent.name != "system" and path not in apart
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if OF_SYSTEMS.search(line)
    ]
    assert found == []
