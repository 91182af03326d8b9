"""What goes with a release's wheels: python -m release.papers {version | notes | check-tag TAG | sbom DIST | checksums DIST}.

version     the one that there is, of xyntra_ep/__init__.py
notes       its section of CHANGELOG.md, the text of the release
check-tag   fails where a tag, the version and the changelog do not agree
sbom        DIST/xyntra-ep-VERSION.cdx.json: what is in the wheels, as CycloneDX 1.6
checksums   DIST/SHA256SUMS, of everything else there
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import re
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SUMS = "SHA256SUMS"


def version(root: Path = ROOT) -> str:
    found = re.search(r'^__version__ = "(.+)"$', (root / "xyntra_ep" / "__init__.py").read_text(encoding="utf-8"), re.MULTILINE)
    assert found is not None
    return found[1]


def notes(text: str, wanted: str) -> str:
    """A version's section of a changelog; empty where it has none.

    >>> notes("## [Unreleased]\\n\\n## [0.2.0] - 2026-01-31\\n\\n### Fixed\\n\\n- A\\n\\n## [0.1.0]\\n- B\\n", "0.2.0")
    '### Fixed\\n\\n- A\\n'
    """
    parts = re.split(r"^## \[(.+?)\].*$", text, flags=re.MULTILINE)
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    section = sections.get(wanted, "").strip()
    return f"{section}\n" if section else ""


def why_not_tag(tag: str, current: str, changelog: str) -> str:
    """Why a tag does not name what would be released under it; empty where it does."""
    if tag != f"v{current}":
        return f"the tag is {tag}, the version {current}: xyntra_ep/__init__.py says it"
    return "" if notes(changelog, current) else f"CHANGELOG.md has no section [{current}] with text in it"


def digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def sbom(dist: Path, root: Path = ROOT) -> dict[str, Any]:
    """Wheels with their hashes, what they need, and what is linked into their libraries."""
    current = version(root)
    with (root / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    wheels = sorted(dist.glob("*.whl"))
    needed = [re.split(r"[<>=!~]", line)[0] for line in project["dependencies"]]
    zig = importlib.metadata.version("ziglang")
    linked = [
        {"type": "library", "bom-ref": name, "name": name, "description": f"of LLVM, as Zig {zig} builds it; linked statically"}
        for name in ("libc++", "libc++abi", "libunwind", "compiler-rt")
    ]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "bom-ref": "xyntra-ep",
                "name": project["name"],
                "version": current,
                "purl": f"pkg:pypi/{project['name']}@{current}",
                "licenses": [{"expression": project["license"]}],
            }
        },
        "components": [
            *(
                {
                    "type": "file",
                    "bom-ref": wheel.name,
                    "name": wheel.name,
                    "hashes": [{"alg": "SHA-256", "content": digest(wheel)}],
                }
                for wheel in wheels
            ),
            *({"type": "library", "bom-ref": name, "name": name, "purl": f"pkg:pypi/{name}"} for name in needed),
            *linked,
        ],
        "dependencies": [{"ref": "xyntra-ep", "dependsOn": [*needed, *(str(part["bom-ref"]) for part in linked)]}],
    }


def checksums(dist: Path) -> str:
    """As `sha256sum --check` reads them."""
    files = sorted(file for file in dist.iterdir() if file.is_file() and file.name != SUMS)
    return "".join(f"{digest(file)}  {file.name}\n" for file in files)


def main(arguments: Sequence[str]) -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    match list(arguments):
        case ["version"]:
            print(version())
        case ["notes"]:
            print(notes(changelog, version()), end="")
        case ["check-tag", tag]:
            if problem := why_not_tag(tag, version(), changelog):
                raise SystemExit(f"release.papers: {problem}")
        case ["sbom", dist]:
            file = Path(dist) / f"xyntra-ep-{version()}.cdx.json"
            file.write_text(json.dumps(sbom(Path(dist)), indent=1) + "\n", encoding="utf-8")
        case ["checksums", dist]:
            (Path(dist) / SUMS).write_text(checksums(Path(dist)), encoding="utf-8")
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
