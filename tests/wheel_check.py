"""Run by `make test-wheel` where the wheel is installed and the checkout is out of sight: does it work?"""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper

SITE = Path(sysconfig.get_path("purelib")).resolve()


def main() -> None:
    for name in ("xyntra_ep", "xyntra_custom_ops", "xyntra_zoo", "xyntra_bench", "xyntra_reports"):
        file = importlib.import_module(name).__file__
        assert file and Path(file).resolve().is_relative_to(SITE), f"{name} comes from {file}, not from the wheel"

    for name in ("custom_ops", "zoo", "bench", "reports"):
        assert not (SITE / name).exists(), f"{name} is what a package of the user's may be called"

    import xyntra_ep
    from xyntra_ep.system import library_name

    library = Path(xyntra_ep.get_library_path()).resolve()
    assert library.is_relative_to(SITE) and library.name == library_name("xyntra_ep"), library
    assert (library.parent / "py.typed").is_file()
    check_c_package()
    assert importlib.import_module("xyntra_ep.tracea.optimizer.cost_model").learned().trees, "the learned weights"

    check_prebuilt_kernels()
    node = helper.make_node("Add", ["x", "x"], ["y"])
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in "xy"]
    graph = helper.make_graph([node], "twice", values[:1], values[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    settings = ort.SessionOptions()
    settings.add_session_config_entry("session.disable_cpu_ep_fallback", "1")  # an unclaimed node is an error
    session = ort.InferenceSession(model.SerializeToString(), settings, providers=[("XyntraEP", {"claim": "all"})])
    assert session.get_providers()[0] == "XyntraEP", session.get_providers()
    x = np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(session.run(None, {"x": x})[0], x + x)

    for command in ("xyntra", "bench"):
        subprocess.run([Path(sys.executable).parent / command, "--help"], check=True, capture_output=True)
    print(f"the wheel works: {xyntra_ep.__version__} in {SITE}")


def check_prebuilt_kernels() -> None:
    """There are some for this machine, if it has vectors, and they are what their index says."""
    from xyntra_ep.tracea.doctor.profile import this_machine
    from xyntra_ep.tracea.prebuilt.library import best_target, prebuilt_for

    library = prebuilt_for(this_machine())
    assert (library is None) == (best_target(this_machine()) is None)
    assert library is None or (library.file.stat().st_size > 1000 and library.index.kernels)


CMAKE = """cmake_minimum_required(VERSION 3.20)
project(uses_tracea C CXX)
find_package(tracea 0.1 REQUIRED)
add_executable(uses_c main.c)
add_executable(uses_cpp main.cpp)
target_link_libraries(uses_c tracea::tracea)
target_link_libraries(uses_cpp tracea::tracea)
set_target_properties(uses_cpp PROPERTIES CXX_STANDARD 17)
"""
C = '#include <stdio.h>\n#include "tracea/tracea.h"\nint main(void) { return puts(tracea_version()) < 0; }\n'
CPP = """#include <cstdio>
#include "tracea/tracea.hpp"
int main() {
  float x = 3, y = 0;
  tracea::gemm({&x, {1, 1}}, {&x, {1, 1}}, std::nullopt, {&y, {1, 1}});  // a kernel of the wheel's
  return y != 9 || std::puts(tracea::version().c_str()) < 0;
}
"""


def check_c_package() -> None:
    """A program in C and one in C++ are built against the installed package, by CMake and by pkg-config."""
    import xyntra_ep

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, text in (("CMakeLists.txt", CMAKE), ("main.c", C), ("main.cpp", CPP)):
            (folder / file).write_text(text)
        programs = []
        if cmake := shutil.which("cmake"):
            found = [f"-Dtracea_DIR={xyntra_ep.get_cmake_dir()}"]
            subprocess.run([cmake, "-S", folder, "-B", folder / "build", *found], check=True, capture_output=True)
            subprocess.run([cmake, "--build", folder / "build"], check=True, capture_output=True)
            programs += [folder / "build" / "uses_c", folder / "build" / "uses_cpp"]
        if pkg_config := shutil.which("pkg-config"):
            environment = {**os.environ, "PKG_CONFIG_PATH": str(Path(xyntra_ep.get_library_path()).parent / "lib" / "pkgconfig")}
            command = [pkg_config, "--cflags", "--libs", "tracea"]
            flags = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.split()
            subprocess.run(["cc", folder / "main.c", *flags, "-o", folder / "by_pkg_config"], check=True)
            programs.append(folder / "by_pkg_config")
        for program in programs:
            said = subprocess.run([program], check=True, capture_output=True, text=True).stdout.strip()
            assert said == xyntra_ep.__version__, f"{program.name} says {said}"
        names = ", ".join(program.name for program in programs)
        print(f"programs against the installed package: {names or 'none, without cmake and pkg-config'}")


if __name__ == "__main__":
    main()
