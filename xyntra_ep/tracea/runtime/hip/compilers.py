"""What makes code for AMD's GPUs: hipRTC, which comes with ROCm, or a Clang that knows them. Neither needs a GPU or a driver.

Kernels include no headers. A few call functions of AMD's device libraries (pow, sin ...), which hipRTC brings and Clang is given
as files of LLVM's bitcode.
"""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from xyntra_ep.errors import CompileError, ConfigError
from xyntra_ep.tracea.runtime.children import hip_compiler_child
from xyntra_ep.tracea.runtime.hip import code_object
from xyntra_ep.tracea.runtime.program_compiler import ProgramCompiler

REMEDY = "install ROCm, or clang >= 17 with lld and rocm-device-libs"
_LEAST_CLANG = 17
_CLANGS = ("clang", *(f"clang-{version}" for version in range(24, _LEAST_CLANG - 1, -1)), "/opt/rocm/llvm/bin/clang")
_LIBRARIES = ("libhiprtc.so", "libhiprtc.so.7", "libhiprtc.so.6", "/opt/rocm/lib/libhiprtc.so")
_BITCODE = ("opt/rocm/amdgcn/bitcode", "usr/lib/*/amdgcn/bitcode", "usr/lib/clang/*/amdgcn/bitcode", "usr/lib/amdgcn/bitcode")
# Steps of a product whose number is known are unrolled only if they are very few: else what they fetch is not kept in registers.
_UNROLLING = ("-mllvm", "-unroll-full-max-count=3")
_OPTIONS = ("-O3", "-std=c++17", "-ffp-contract=fast", *_UNROLLING)
_CLANG = ("-x", "hip", "--cuda-device-only", "--no-gpu-bundle-output", "-nogpuinc", "-nogpulib", "-mcode-object-version=5")
_CONTROLS = ("unsafe_math_off", "finite_only_off", "daz_opt_off", "correctly_rounded_sqrt_on", "abi_version_500")
_TIMEOUT_S = 20.0


class HipRtc(ProgramCompiler):
    """The library."""

    name, prefix, code = "hipRTC", "hiprtc", "GetCode"


@dataclass(frozen=True, slots=True, kw_only=True)
class HipCompiler:
    """See `compilers.Compiler`. ``clang``: the command, empty for hipRTC; the target is an architecture, as gfx942."""

    version: str
    clang: tuple[str, ...] = ()

    @property
    def suffix(self) -> str:
        return ".hsaco"

    @property
    def name(self) -> str:
        return self.clang[0] if self.clang else HipRtc.name

    @property
    def linker(self) -> None:
        """A program is compiled whole."""
        return None

    def salt(self, target: tuple[str, ...]) -> str:
        return "\0".join(("hip", self.version, *_OPTIONS, *_CLANG, *self.clang, *target))

    def argv(self, source: str, output: str, target: tuple[str, ...]) -> list[str]:
        return [sys.executable, hip_compiler_child.__file__, *target, source, output, *self.clang]

    def refusal(self, data: bytes) -> str:
        return code_object.refusal(data)


@cache
def load() -> HipRtc | None:
    """The library, where there is one that answers."""
    for path in _LIBRARIES:
        try:
            return HipRtc(ctypes.CDLL(path))
        except (OSError, AttributeError, CompileError):
            continue
    return None


@cache
def find() -> HipCompiler:
    """hipRTC, otherwise the first Clang. Raises ConfigError, naming what was met, where there is neither."""
    if (library := load()) is not None:
        return HipCompiler(version=".".join(map(str, library.version)))
    met: list[str] = []
    if (compiler := find_clang(met)) is not None:
        return compiler
    refused = f" ({'; '.join(met)})" if met else ""
    raise ConfigError(f"there is no compiler for AMD's GPUs{refused}", where="hip", hint=REMEDY)


def find_clang(met: list[str] | None = None) -> HipCompiler | None:
    """The first that can be used. ``met`` gets the others, and why not."""
    for command in filter(None, map(shutil.which, _CLANGS)):
        why, version = _asked(command)
        if not why:
            return HipCompiler(version=version, clang=(command,))
        if met is not None:
            met.append(f"{command}: {why}")
    return None


def _asked(command: str) -> tuple[str, str]:
    """(why it cannot be used, its version)."""
    try:
        said, targets = (
            subprocess.run([command, option], capture_output=True, text=True, timeout=_TIMEOUT_S, check=True).stdout
            for option in ("--version", "--print-targets")
        )
    except (OSError, subprocess.SubprocessError) as error:
        return f"it does not answer ({type(error).__name__})", ""
    version = said.partition("\n")[0]
    found = re.search(r"clang version (\d+)", version)
    if found is None or int(found.group(1)) < _LEAST_CLANG:
        return f"{version or 'no version'}: older than {_LEAST_CLANG}", version
    return ("" if re.search(r"\bamdgcn\b", targets) else "it makes no code for AMD's GPUs"), version


def code_of(name: str, text: str, architecture: str, clang: Sequence[str]) -> bytes:
    """The code object of kernels. ``clang``: a command, empty for hipRTC. Raises CompileError with the log."""
    if not clang:
        library = load()
        if library is None:
            raise CompileError("hipRTC is not here any more", where=name)
        return library.compiled(name, text, f"{name}.hip", [f"--offload-arch={architecture}", *_OPTIONS])[0]
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, "code")
        command = [*clang, *clang_options(architecture), "-o", str(made), "-"]
        done = subprocess.run(command, input=text.encode(), capture_output=True, check=False)
        if done.returncode != 0:
            log = done.stderr.decode(errors="replace")
            raise CompileError(f"{clang[0]} fails for {architecture}", where=name, source=text, log=log)
        return made.read_bytes()


def clang_options(architecture: str) -> list[str]:
    libraries = [part for path in bitcode(architecture) for part in ("-Xclang", "-mlink-builtin-bitcode", "-Xclang", str(path))]
    return [*_CLANG, *_OPTIONS, f"--offload-arch={architecture}", *libraries]


def bitcode(architecture: str, root: Path = Path("/")) -> list[Path]:
    """The files that the functions of the device libraries are linked from; none where they are not installed."""
    for folder in _folders(root):
        versions = {_numbered(path.stem.removeprefix("oclc_isa_version_")): path for path in folder.glob("oclc_isa_version_*.bc")}
        number = _numbered(architecture.removeprefix("gfx"))
        if not (folder / "ocml.bc").exists() or not (older := [known for known in versions if known <= number]):
            continue
        # The functions ask for no more of a version than which instructions there are: those of an older one are, too.
        waves = "on" if number < _numbered("1000") else "off"
        controls = [folder / f"oclc_{name}.bc" for name in (*_CONTROLS, f"wavefrontsize64_{waves}")]
        return [folder / "ocml.bc", *(path for path in controls if path.exists()), versions[max(older)]]
    return []


def _folders(root: Path) -> Iterator[Path]:
    for pattern in _BITCODE:
        yield from sorted(root.glob(pattern), reverse=True)


def _numbered(version: str) -> int:
    return int(version, 16)
