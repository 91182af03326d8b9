"""What compiles for AMD's GPUs: which Clang is taken, with which files of the device libraries, and what is said without one."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.gpu import kernels as gpu_kernels
from tests.support.printed import gpu_text
from tests.tracea.emitters.test_gpu import KERNELS, PAIRS
from xyntra_ep.errors import CompileError, ConfigError
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.emitters import hip
from xyntra_ep.tracea.runtime.hip import code_object, compilers
from xyntra_ep.tracea.runtime.hip.devices import ARCHITECTURES
from xyntra_ep.tracea.semantic_ir.gpu.builder import GpuBuilder
from xyntra_ep.tracea.semantic_ir.nodes import LIBM, Unary, binary


@pytest.fixture
def nothing_remembered() -> Iterator[None]:
    for function in (compilers.find, compilers.load):
        function.cache_clear()
    yield
    for function in (compilers.find, compilers.load):
        function.cache_clear()


def stand_in(folder: Path, version: str, targets: str) -> None:
    """A command `clang` that answers so."""
    command = folder / "clang"
    command.write_text(f'#!/bin/sh\ncase "$1" in --version) echo "{version}";; *) echo "{targets}";; esac\n', encoding="utf-8")
    command.chmod(0o755)


def test_which_clang(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, nothing_remembered: None) -> None:
    monkeypatch.setattr(compilers, "_LIBRARIES", ())
    monkeypatch.setattr(compilers, "_CLANGS", ("clang",))
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/usr/bin{os.pathsep}/bin")
    for version, targets, why in (
        ("clang version 16.0.1", "amdgcn - AMD", "older than 17"),
        ("gcc 12", "", "older than 17"),
        ("clang version 19.1", "x86 - 32-bit", "no code for AMD"),
    ):
        stand_in(tmp_path, version, targets)
        with pytest.raises(ConfigError, match=why) as raised:
            compilers.find()
        assert raised.value.hint == compilers.REMEDY
    stand_in(tmp_path, "Ubuntu clang version 19.1.1", "    amdgcn  - AMD GCN GPUs")
    found = compilers.find()
    assert found.clang == (str(tmp_path / "clang"),) and found.version == "Ubuntu clang version 19.1.1"
    assert found.salt(("gfx942",)) != found.salt(("gfx90a",)) != compilers.HipCompiler(version="9.0").salt(("gfx90a",))


def test_files_of_the_device_libraries(tmp_path: Path) -> None:
    """The version of the architecture, or the newest that is older."""
    folder = tmp_path / "usr/lib/x/amdgcn/bitcode"
    folder.mkdir(parents=True)
    assert compilers.bitcode("gfx942", tmp_path) == []
    names = ("ocml", "oclc_isa_version_90a", "oclc_isa_version_940", "oclc_isa_version_1036", "oclc_wavefrontsize64_on")
    for name in (*names, "oclc_wavefrontsize64_off", "oclc_daz_opt_off"):
        (folder / f"{name}.bc").touch()
    for architecture, wanted in (("gfx90a", "90a"), ("gfx942", "940"), ("gfx1100", "1036")):
        found = [path.stem for path in compilers.bitcode(architecture, tmp_path)]
        assert found[0] == "ocml" and found[-1] == f"oclc_isa_version_{wanted}" and "oclc_daz_opt_off" in found
        assert (f"oclc_wavefrontsize64_{'off' if architecture == 'gfx1100' else 'on'}") in found


@pytest.mark.compiler("hip")
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_node_compiles(architecture: str) -> None:
    for kernel in (*(make() for make in KERNELS.values()), gpu_kernels.convert(PAIRS, 4)):
        text = gpu_text(hip.emit, kernel)
        code = compilers.code_of(kernel.name, text, architecture, compilers.find().clang)
        report = code_object.reports(code)[kernel.name]
        assert report.registers > 0 and report.spilled_bytes == 0
        assert (report.shared_bytes > 0) == (kernel.name in ("transpose", "pipeline"))


@pytest.mark.compiler("hip")
def test_functions_of_the_device_libraries() -> None:
    if not compilers.bitcode("gfx90a"):
        pytest.skip("the device libraries are not installed")
    b = GpuBuilder("functions", threads=64)
    x, y = b.buffer("x", DType.F32), b.buffer("y", DType.F32, writable=True)
    value = b.let("v", b.load(x, b.thread))
    for name in (*sorted(LIBM), "sqrt", "floor", "ceil", "rint", "abs"):
        value = b.let("v", value + Unary(name, value))
    b.store(y, b.thread, binary("pow", value, value) + binary("fmod", value, value))
    text = gpu_text(hip.emit, b.finish()[0])
    for architecture in ARCHITECTURES:
        assert code_object.reports(compilers.code_of("functions", text, architecture, compilers.find().clang))


@pytest.mark.compiler("hip")
def test_what_does_not_compile_has_a_log() -> None:
    with pytest.raises(CompileError) as raised:
        compilers.code_of("f", "this is no C", "gfx942", compilers.find().clang)
    assert "error" in raised.value.log or "hipRTC" in raised.value.what


_BY_LIBRARY = """
import ctypes, sys
from xyntra_ep.tracea.runtime.hip import code_object, compilers
code, _ = compilers.HipRtc(ctypes.CDLL(sys.argv[1])).compiled("f", sys.stdin.read(), "f.hip", ["--offload-arch=gfx90a", "-O3"])
print(code_object.reports(code)["transpose"].shared_bytes)
"""


def test_hiprtc_of_rocm_5() -> None:
    """It was a part of the runtime's library then, which distributions have. In a process of its own, which it may end."""
    name = "libamdhip64.so.5"
    try:
        has_it = hasattr(ctypes.CDLL(name), "hiprtcVersion")
    except OSError:
        has_it = False
    if not has_it:
        pytest.skip("no hipRTC of ROCm 5")
    command = [sys.executable, "-c", _BY_LIBRARY, name]
    text = gpu_text(hip.emit, gpu_kernels.transpose())
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == str(32 * 32 * 4), done.stderr
