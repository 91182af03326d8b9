"""`make release-check`: a release without publishing it. The wheel of this machine with its papers, installed from its file into
a fresh environment and used there: the doctor, a session, programs in C and C++, tiny models, the smallest benchmark.

python -m release.check --prebuilt FOLDER [--all]    FOLDER: of the prebuilt kernels that the wheel gets; --all: all platforms
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from release import papers, wheels

ROOT = Path(__file__).resolve().parents[1]
DIST = wheels.BUILD / "dist"
MODELS = ("mobilenetv2-tiny", "bert-base-tiny", "resnet50-qdq-tiny")
# As `make test-bench`: it is the commands and their files that are tested, not the machine.
BENCH = (
    "run",
    "zoo",
    "-m",
    "mobilenetv2-tiny",
    "--threads",
    "1",
    "--quick",
    "--min-time",
    "0.5",
    "--max-time",
    "5",
    "--json",
    "run.json",
)


def step(*command: str | Path, folder: Path = ROOT) -> None:
    shown = " ".join(str(part) for part in command)
    print(f"\n== {shown}", flush=True)
    # A user's environment: nothing of the checkout is in the way.
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    subprocess.run([str(part) for part in command], check=True, cwd=folder, env=environment)


def of_this_machine() -> str:
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine().lower(), platform.machine().lower())
    if sys.platform == "darwin":
        return "macos-arm64" if machine == "aarch64" else "macos-x86_64"
    return f"{'windows' if sys.platform == 'win32' else 'linux'}-{machine}"


def check_papers(dist: Path) -> None:
    for command in (["sbom", str(dist)], ["checksums", str(dist)]):
        papers.main(command)
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    unreleased = papers.notes(changelog, "Unreleased")
    print(f"version {papers.version()}; {len(unreleased.splitlines())} lines of the changelog wait for a release")


def use(wheel: Path, folder: Path) -> None:
    """In ``folder``, as a user."""
    step(sys.executable, "-m", "venv", folder / "venv")
    python, programs = folder / "venv" / "bin" / "python", folder / "venv" / "bin"
    step(python, "-m", "pip", "--disable-pip-version-check", "--quiet", "install", f"{wheel}[bench]")
    step(python, "-m", "pip", "check")
    for script in ("tests/wheel_check.py", "release/zoo_check.py"):
        shutil.copy2(ROOT / script, folder)
    step(programs / "xyntra", "doctor", folder=folder)
    step(python, "wheel_check.py", folder=folder)
    step(python, "zoo_check.py", *MODELS, folder=folder)
    step(programs / "bench", *BENCH, folder=folder)
    step(programs / "bench", "gate", "run.json", folder=folder)


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m release.check", description="a release without publishing it")
    parser.add_argument("--prebuilt", type=Path, required=True)
    parser.add_argument("--all", action="store_true", help="wheels of all platforms, of which this machine's is used")
    asked = parser.parse_args(arguments)
    shutil.rmtree(DIST, ignore_errors=True)
    chosen = [] if asked.all else [of_this_machine()]
    wheels.main([*chosen, "--output", str(DIST), "--prebuilt", str(asked.prebuilt)])
    step(sys.executable, "-m", "twine", "check", "--strict", *sorted(DIST.glob("*.whl")))
    check_papers(DIST)
    (wheel,) = DIST.glob(f"*-{wheels.PLATFORMS[of_this_machine()].tag}.whl")
    with tempfile.TemporaryDirectory(prefix="xyntra-release-") as name:
        use(wheel, Path(name))
    print(f"\nreleasable: {', '.join(sorted(file.name for file in DIST.iterdir()))}")


if __name__ == "__main__":
    main(sys.argv[1:])
