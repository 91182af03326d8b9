"""The wheels of all systems, from one: python -m release.wheels [--output dist] [PLATFORM]...

What is Python is the same in all of them and is taken from one wheel without a library. The library of each is built by Zig's
Clang (zig.cmake), warnings are errors, and put into it with the platform's tag. Prebuilt kernels are for Linux, and go into its
wheels, those of the architecture alone. auditwheel looks at the Linux ones: what they link must be in every Linux of the tag.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "release"
PREBUILT = ROOT / "xyntra_ep" / "tracea" / "prebuilt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Platform:
    """``tag``: of wheels (PyPA, "Platform compatibility tags"). ``target``: as Zig calls it. ``machine``: whose prebuilt kernels
    it has; empty: none."""

    tag: str
    target: str
    machine: str = ""

    @property
    def is_linux(self) -> bool:
        return "linux" in self.target


PLATFORMS = {
    "linux-x86_64": Platform(tag="manylinux_2_28_x86_64", target="x86_64-linux-gnu.2.28", machine="x86_64"),
    "linux-aarch64": Platform(tag="manylinux_2_28_aarch64", target="aarch64-linux-gnu.2.28", machine="aarch64"),
    "macos-arm64": Platform(tag="macosx_13_0_arm64", target="aarch64-macos.13.0"),
    "macos-x86_64": Platform(tag="macosx_13_0_x86_64", target="x86_64-macos.13.0"),
    "windows-x86_64": Platform(tag="win_amd64", target="x86_64-windows-gnu"),
}


def run(*command: str | Path, **environment: str) -> None:
    subprocess.run([str(part) for part in command], check=True, cwd=ROOT, env={**os.environ, **environment})


def zig() -> Path:
    found = importlib.util.find_spec("ziglang")
    if found is None or found.origin is None:
        raise SystemExit("release.wheels: Zig is not here; pip install ziglang")
    return Path(found.origin).parent / ("zig.exe" if sys.platform == "win32" else "zig")


def built(platform: Platform, kernels: Path) -> Path:
    """The folder in which CMake has built the library. ``kernels``: where prebuilt ones are."""
    tools, folder = Path(sys.executable).parent, BUILD / platform.target
    settings = {
        "CMAKE_MAKE_PROGRAM": tools / "ninja",
        "CMAKE_TOOLCHAIN_FILE": ROOT / "release" / "zig.cmake",
        "ZIG": zig(),
        "ZIG_TARGET": platform.target,
        "XYNTRA_WERROR": "ON",
        "XYNTRA_PREBUILT": prebuilt(platform, kernels),
    }
    run(tools / "cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", *(f"-D{name}={value}" for name, value in settings.items()))
    run(tools / "cmake", "--build", folder, "--target", "xyntra_ep")
    return folder


def prebuilt(platform: Platform, kernels: Path) -> Path:
    """A folder of the prebuilt kernels that this platform can load: `make prebuilt` has made them, or there are none."""
    folder = BUILD / "prebuilt" / platform.target
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if not platform.machine:
        return folder
    for index in kernels.glob("*.json"):
        is_arm = index.stem.startswith("neon")
        if is_arm is (platform.machine == "aarch64"):
            for file in kernels.glob(f"{index.stem}.*"):
                shutil.copy2(file, folder)
    if platform.machine == "x86_64":  # of the C functions, which hold kernels of x86-64 alone
        for model in kernels.glob("*.onnx"):
            shutil.copy2(model, folder)
    return folder


def pure(folder: Path) -> Path:
    """The wheel of what is Python, unpacked."""
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, "-C", "wheel.cmake=false", ".")
    (wheel,) = folder.glob("*.whl")
    run(sys.executable, "-m", "wheel", "unpack", "--dest", folder, wheel)
    (unpacked,) = (path for path in folder.iterdir() if path.is_dir())
    return unpacked


def tagged(text: str, tag: str) -> str:
    """A wheel's own file WHEEL, for one platform.

    >>> tagged("Root-Is-Purelib: true\\nTag: py3-none-any\\n", "win_amd64")
    'Root-Is-Purelib: false\\nTag: py3-none-win_amd64\\n'
    """
    kept = [line for line in text.splitlines() if line and not line.startswith(("Tag:", "Root-Is-Purelib:"))]
    return "\n".join([*kept, "Root-Is-Purelib: false", f"Tag: py3-none-{tag}"]) + "\n"


def make(platform: Platform, python: Path, output: Path, folder: Path, kernels: Path = PREBUILT) -> Path:
    """The wheel of a platform, in ``output``."""
    staged = folder / platform.tag / python.name
    shutil.copytree(python, staged)
    run(Path(sys.executable).parent / "cmake", "--install", built(platform, kernels), "--prefix", staged, "--component", "plugin")
    about = next(staged.glob("*.dist-info")) / "WHEEL"
    about.write_text(tagged(about.read_text(encoding="utf-8"), platform.tag), encoding="utf-8")
    made = folder / "made" / platform.tag
    made.mkdir(parents=True)
    run(sys.executable, "-m", "wheel", "pack", "--dest-dir", made, staged)
    (wheel,) = made.iterdir()
    if platform.is_linux:
        audit(wheel, platform)
    return Path(shutil.copy2(wheel, output))


def audit(wheel: Path, platform: Platform) -> None:
    command = [sys.executable, "-m", "auditwheel", "show", str(wheel)]
    said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    print(said)
    allowed = f'"{platform.tag}"'
    older = [f'"manylinux_2_{minor}_{platform.machine}"' for minor in range(5, 28)]
    if not any(tag in said for tag in (allowed, *older)):
        raise SystemExit(f"release.wheels: {wheel.name} is not consistent with {platform.tag}")


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m release.wheels", description="make wheels for all systems")
    parser.add_argument("platforms", nargs="*", choices=[[], *PLATFORMS], metavar="PLATFORM", help=", ".join(PLATFORMS))
    parser.add_argument("--output", type=Path, default=ROOT / "dist")
    parser.add_argument("--prebuilt", type=Path, default=PREBUILT, help="the folder of prebuilt kernels")
    asked = parser.parse_args(arguments)
    asked.output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="xyntra-wheels-") as name:
        python = pure(Path(name))
        made = [
            make(PLATFORMS[key], python, asked.output, Path(name), asked.prebuilt.resolve())
            for key in asked.platforms or PLATFORMS
        ]
    for wheel in made:
        print(f"{wheel.stat().st_size / 1e6:6.1f} MB  {wheel.name}")


if __name__ == "__main__":
    main(sys.argv[1:])
