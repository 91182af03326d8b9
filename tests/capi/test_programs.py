"""The examples in C and C++ as their readers would build them, under AddressSanitizer; and what of the border may not change."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import xyntra_ep
from tests.native.test_host import given
from tests.provider.compiled.support import chain, compiled, expected
from xyntra_ep import knobs
from xyntra_ep.provider import registration

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "native" / "examples"
HEADER = (ROOT / "include" / "tracea" / "tracea.h").read_text()
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
SANITIZED = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g1"]

pytestmark = [pytest.mark.native, pytest.mark.compiler("cc"), pytest.mark.compiler("gcc"), pytest.mark.compiler("g++")]


def build(source: Path, program: Path, *flags: str) -> None:
    compiler = ["g++", "-std=c++17"] if source.suffix == ".cpp" else ["gcc", "-std=c11"]
    command = [*compiler, *STRICT, *flags, f"-I{xyntra_ep.get_include()}", str(source), "-o", str(program)]
    library = registration.get_library_path()
    subprocess.run([*command, library, f"-Wl,-rpath,{Path(library).parent}", "-pthread"], check=True)


@pytest.mark.skipif(bool(knobs.current().sanitize), reason="the library has sanitizers of its own")
@pytest.mark.parametrize("name", ["run_model.c", "run_model.cpp"])
def test_examples_run(name: str, tmp_path: Path) -> None:
    found, program = compiled(chain(), tmp_path), tmp_path / "program"
    build(EXAMPLES / name, program, *SANITIZED)
    # Kernels stay loaded for the process, which LeakSanitizer would call a leak of the loader's.
    environment = {"ASAN_OPTIONS": "detect_leaks=0", "PATH": "/nonexistent", "HOME": "/nonexistent"}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(program), *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, cwd="/", env=environment)

    result = run(str(found.path), "6")
    assert (result.returncode, result.stderr) == (0, "")
    want = expected(chain(), {"x": given(6, 64)})[0]
    np.testing.assert_allclose(np.array(result.stdout.split(), np.float32).reshape(6, 5), want, rtol=1e-5, atol=1e-6)
    missing = run(str(tmp_path / "missing.onnx"), "6")
    assert missing.returncode == 1 and "cannot be opened" in missing.stderr


@pytest.mark.skipif(bool(knobs.current().sanitize), reason="the library has sanitizers of its own")
@pytest.mark.parametrize("name", ["run_operations.c", "run_operations.cpp"])
def test_examples_of_operations_run(name: str, operation_folder: Path, tmp_path: Path) -> None:
    program = tmp_path / "program"
    build(EXAMPLES / name, program, *SANITIZED)

    def run(folder: Path) -> subprocess.CompletedProcess[str]:
        environment = {"ASAN_OPTIONS": "detect_leaks=0", "PATH": "/nonexistent", "HOME": "/nonexistent"}
        environment["XYNTRA_PREBUILT_DIR"] = str(folder)
        return subprocess.run([str(program)], capture_output=True, text=True, timeout=120, cwd="/", env=environment)

    result = run(operation_folder)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.splitlines() == [
        "gemm: 4.5 5.5 8.5 11.5",
        "conv2d: 12 21 16 27 45 33 24 39 28",
        "attention: 1 2 2 3",
        "refused: sizes do not fit: the columns of a, the rows of b",
    ]
    missing = run(tmp_path)
    assert missing.returncode == 1 and "XYNTRA_PREBUILT_DIR" in missing.stderr


def test_headers_stand_alone(tmp_path: Path) -> None:
    for language, header, standard in (("c", "tracea.h", "c11"), ("c++", "tracea.h", "c++17"), ("c++", "tracea.hpp", "c++17")):
        source = tmp_path / "alone.c"
        source.write_text(f'#include "tracea/{header}"\n#include "tracea/{header}"\n')
        flags = ["-x", language, f"-std={standard}", "-fsyntax-only", f"-I{xyntra_ep.get_include()}"]
        subprocess.run(["gcc", *STRICT, *flags, str(source)], check=True)


def test_the_library_exports_what_the_header_declares() -> None:
    nm = shutil.which("nm")
    if nm is None:
        pytest.skip("needs nm")
    listing = subprocess.run(
        [nm, "-D", "--defined-only", registration.get_library_path()], capture_output=True, text=True, check=True
    )
    exported = set(re.findall(r" T (tracea_\w+)$", listing.stdout, re.MULTILINE))
    declared = set(re.findall(r"^TRACEA_API .*?(tracea_\w+)\(", HEADER, re.MULTILINE))
    assert exported == declared and len(declared) == 18


# Of x86-64 and aarch64. A member that is new goes to the end, and TRACEA_ABI_VERSION up.
LAYOUT = {
    "sizeof(TraceaTensorView)": 40,
    "offsetof(TraceaTensorView, rank)": 8,
    "offsetof(TraceaTensorView, shape)": 16,
    "offsetof(TraceaTensorView, stride)": 24,
    "offsetof(TraceaTensorView, dtype)": 32,
    "offsetof(TraceaTensorView, device_id)": 36,
    "sizeof(TraceaTensorInfo)": 40,
    "offsetof(TraceaTensorInfo, name)": 8,
    "offsetof(TraceaTensorInfo, dtype)": 16,
    "offsetof(TraceaTensorInfo, rank)": 20,
    "offsetof(TraceaTensorInfo, shape)": 24,
    "offsetof(TraceaTensorInfo, symbol)": 32,
    "sizeof(TraceaModelOptions)": 40,
    "offsetof(TraceaModelOptions, threads)": 8,
    "offsetof(TraceaModelOptions, parallel_for)": 16,
    "offsetof(TraceaModelOptions, parallel_for_user)": 24,
    "offsetof(TraceaModelOptions, digests)": 32,
    "sizeof(TraceaExecution)": 32,
    "offsetof(TraceaExecution, parallel_for)": 8,
    "offsetof(TraceaExecution, parallel_for_user)": 16,
    "offsetof(TraceaExecution, stream)": 24,
    "sizeof(TraceaGemmParams)": 40,
    "offsetof(TraceaGemmParams, execution)": 8,
    "sizeof(TraceaConv2dParams)": 112,
    "offsetof(TraceaConv2dParams, execution)": 8,
    "offsetof(TraceaConv2dParams, stride)": 40,
    "offsetof(TraceaConv2dParams, padding)": 56,
    "offsetof(TraceaConv2dParams, dilation)": 88,
    "offsetof(TraceaConv2dParams, groups)": 104,
    "sizeof(TraceaAttentionParams)": 48,
    "offsetof(TraceaAttentionParams, execution)": 8,
    "offsetof(TraceaAttentionParams, scale)": 40,
    "offsetof(TraceaAttentionParams, is_causal)": 44,
    "TRACEA_ABI_VERSION": 3,
    "TRACEA_MAX_RANK": 16,
    "TRACEA_CPU": -1,
    "TRACEA_FILE_ERROR": 7,
    "TRACEA_DEVICE_LOST": 8,
    "TRACEA_BFLOAT16": 16,
}


def test_structs_stay_as_programs_know_them(tmp_path: Path) -> None:
    source, program = tmp_path / "layout.c", tmp_path / "layout"
    lines = "".join(f'printf("%d\\n", (int)({what}));' for what in LAYOUT)
    source.write_text(
        f'#include <stddef.h>\n#include <stdio.h>\n#include "tracea/tracea.h"\nint main(void) {{ {lines} return 0; }}'
    )
    subprocess.run(["gcc", "-std=c11", f"-I{xyntra_ep.get_include()}", str(source), "-o", str(program)], check=True)
    found = subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout.split()
    assert dict(zip(LAYOUT, map(int, found), strict=True)) == LAYOUT


def test_python_says_where_the_headers_are() -> None:
    command = [sys.executable, "-c", "import xyntra_ep; print(xyntra_ep.get_include())"]
    folder = Path(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip())
    assert (folder / "tracea" / "tracea.h").is_file() and (folder / "tracea" / "tracea.hpp").is_file()


# What no function of the header does yet, since models are on the CPU: the border knows it all the same.
LOST = """
#include <cstdio>
#include "border.h"
#include "tracea/tracea.hpp"

int main() {
  using namespace xyntra;
  const auto status_of = [](auto error) { return capi::guarded(TRACEA_INVALID_MODEL, [&] { throw error; }); };
  const Error busy(kRuntimeException, "busy");
  const TraceaStatus all[] = {status_of(DeviceLost("gone")), status_of(NoMemory(8, "a tensor")), status_of(busy)};
  for (const TraceaStatus status : all)
    std::printf("%d %d\\n", status, int(tracea::Error(status, capi::last_error()).is_fatal()));
  return 0;
}
"""


def test_a_lost_device_is_a_status_of_its_own(tmp_path: Path) -> None:
    source, program, native = tmp_path / "lost.cc", tmp_path / "lost", ROOT / "native"
    source.write_text(LOST)
    library = Path(registration.get_library_path())
    folders = [native, *(path for path in native.iterdir() if path.is_dir()), ROOT / "include"]
    command = ["g++", "-std=c++17", *(f"-I{folder}" for folder in folders), str(source)]
    command += [
        str(native / "capi" / "border.cc"),
        str(native / "shared_threads.cc"),
        *map(str, (native / "system").glob("*.cc")),
        str(library),
        f"-Wl,-rpath,{library.parent}",
    ]
    subprocess.run([*command, "-pthread", "-o", str(program)], check=True)
    found = subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout.splitlines()
    assert found == ["8 1", "5 0", "4 0"]


def test_one_status_is_fatal() -> None:
    assert [status for status in range(10) if registration.library().tracea_is_fatal(status)] == [8]
