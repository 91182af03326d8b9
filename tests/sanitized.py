"""Native code and generated kernels under the sanitizers of the compiler (docs/soundness.md).

    python -m tests.sanitized address                     build, and run the tests that are for it
    python -m tests.sanitized thread tests/native -k many  build, and run pytest with these arguments
    python -m tests.sanitized address --script file.py    a script of one's own

A copy of the tree has the library with sanitizers in the place of the ordinary one. Python is not built with them, so their
runtime is loaded before it. What they report goes to files, from all processes that are started: one is a failure, whatever
pytest says, because a process that reports may be one of which nobody looks at the status.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COPIED = ("xyntra_ep", "custom_ops", "zoo", "bench", "reports", "tests", "native", "docs", "pyproject.toml", "README.md")
SUPPRESSIONS = "tests/native/{}_suppressions.txt"
STARTUP = '''"""An editable installation finds the tree that has no sanitizers, before any path is asked."""
import sys

sys.meta_path[:] = [finder for finder in sys.meta_path if "_editable_" not in type(finder).__module__]
'''


@dataclass(frozen=True, slots=True, kw_only=True)
class Leg:
    """``tests``: what pytest runs when nothing else is asked for. ``options``: of the runtime, by their variables."""

    sanitizers: str
    runtime: str
    tests: tuple[str, ...]
    options: Mapping[str, str]


LEGS = {
    "address": Leg(
        sanitizers="address,undefined",
        runtime="libasan.so",
        tests=(
            "tests/native",
            "tests/provider/test_sessions.py",
            "tests/fusion/test_random_models.py",
            "tests/conformance/test_onnx_nodes.py::test_each_operator",
        ),
        options={
            # Python and ONNX Runtime leave memory behind; the C++ host looks for leaks (tests/native/test_host.py).
            "ASAN_OPTIONS": "detect_leaks=0:handle_segv=2:allocator_may_return_null=1:log_path={reports}/address",
            "UBSAN_OPTIONS": "print_stacktrace=1",
        },
    ),
    "thread": Leg(
        sanitizers="thread",
        runtime="libtsan.so",
        tests=("tests/native/test_execution.py", "tests/native/test_host.py", "tests/native/test_threads.py"),
        options={"TSAN_OPTIONS": "suppressions={suppressions}:log_path={reports}/thread"},
    ),
}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sanitized")
    parser.add_argument("leg", choices=sorted(LEGS))
    parser.add_argument("--script", action="store_true", help="the rest is a Python file and its arguments")
    known, rest = parser.parse_known_args(arguments)
    leg = LEGS[known.leg]
    # One compiler for the library and the kernels: a process has one runtime.
    cxx = shutil.which("g++")
    if cxx is None or not (runtime := _runtime(cxx, leg.runtime)):
        print(f"nothing was tested: g++ and its {leg.runtime} are not on this machine")
        return 1
    folder = ROOT / "build" / known.leg
    build(folder, cxx, leg.sanitizers)
    tree = _copy(folder / "tree", folder / "libxyntra_ep.so")
    reports = folder / "reports"
    shutil.rmtree(reports, ignore_errors=True)
    reports.mkdir()
    places = {"reports": str(reports), "suppressions": str(tree / SUPPRESSIONS.format(known.leg))}
    environment = {
        **os.environ,
        **{name: text.format_map(places) for name, text in leg.options.items()},
        # The runtime wants to know what throws exceptions when it starts, which Python does not bring.
        "LD_PRELOAD": f"{runtime} {_runtime(cxx, 'libstdc++.so.6')}",
        "PYTHONPATH": str(tree),
        "PYTHONMALLOC": "malloc",
        "XYNTRA_SANITIZE": leg.sanitizers,
        "XYNTRA_CC": "gcc",
        "XYNTRA_COMPILE_TIMEOUT_S": "600",
    }
    meant = [sys.executable, "-c", "import xyntra_ep; print(xyntra_ep.__file__)"]
    imported = subprocess.run(meant, cwd=tree, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    if Path(imported) != tree / "xyntra_ep" / "__init__.py":
        print(f"nothing was tested: Python imports {imported}, whose library has no sanitizers")
        return 1
    if known.script:
        rest[0] = str(Path(rest[0]).absolute())
    command = [sys.executable, *rest] if known.script else [sys.executable, "-m", "pytest", *_pytest(rest, leg)]
    # In the tree: `python -c`, as tests and scripts start it, imports from where it is.
    status = subprocess.run(command, cwd=tree, env=environment).returncode
    found = sorted(reports.iterdir())
    for report in found:
        print(f"\n== {report}\n{report.read_text(errors='replace')}")
    print(f"{len(found)} sanitizer reports, status {status}")
    return status or bool(found)


def _pytest(rest: Sequence[str], leg: Leg) -> list[str]:
    named = any(argument.startswith("tests/") for argument in rest)
    # UndefinedBehaviorSanitizer writes to stderr beside AddressSanitizer, whatever log_path says.
    return ["-p", "no:cacheprovider", "--capture=sys", "-m", "not slow", *rest, *(() if named else leg.tests)]


def _runtime(cxx: str, name: str) -> str:
    found = subprocess.run([cxx, f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout.strip()
    return found if os.path.isabs(found) else ""


def build(folder: Path, cxx: str, sanitizers: str, *more: str, target: str = "all") -> None:
    """The native library, or what else CMakeLists.txt has, in ``folder``."""
    tools = Path(sys.executable).parent
    cmake, ninja = str(tools / "cmake"), tools / "ninja"
    subprocess.run(
        [cmake, "-S", ROOT, "-B", folder, "-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={ninja}", f"-DCMAKE_CXX_COMPILER={cxx}",
         "-DCMAKE_BUILD_TYPE=Release", f"-DXYNTRA_SANITIZE={sanitizers}", *more],
        check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    subprocess.run([cmake, "--build", folder, "--target", target], check=True)


def _copy(tree: Path, library: Path) -> Path:
    """The tree as it is, with another library. Times stay, so that kernels and plans of the last time are found again."""
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir(parents=True)
    unwanted = shutil.ignore_patterns("__pycache__", "*.so", "figures")
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tree / name, ignore=unwanted)
        else:
            shutil.copy2(ROOT / name, tree / name)
    shutil.copy2(library, tree / "xyntra_ep" / library.name)
    (tree / "sitecustomize.py").write_text(STARTUP)
    return tree


if __name__ == "__main__":
    sys.exit(main())
