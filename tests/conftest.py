"""What all tests share: a clean environment, skips that say why, golden files, and floors under the count.

--update-golden    rewrite the golden files; the diff is then reviewed like code
--general          kernels of core-IR programs are those that serve many shapes: `pytest --general tests/tracea/kernels/cpu`
--floors FILE      fail unless so many tests of each kind passed: a run that skipped everything is not green
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.support import floors

ROOT = Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "tests" / "golden"
LIBRARY = ROOT / "xyntra_ep" / "libxyntra_ep.so"

# Before anything of ours is imported: tests answer to no one's settings but what says which machine this is and what its kernels
# are compiled with, write no one's cache, and the processes they start see the same source tree. One cache for all workers, and
# for all runs that name the same in TESTS_CACHE_DIR: no test compiles what another has compiled.
_WORKER = "PYTEST_XDIST_WORKER" in os.environ
_KEPT = ("XYNTRA_CC", "XYNTRA_ISA", "XYNTRA_SANITIZE", "XYNTRA_COMPILE_TIMEOUT_S")
for _variable in [name for name in os.environ if name.startswith("XYNTRA_") and name not in _KEPT]:
    if not (_WORKER and _variable == "XYNTRA_CACHE_DIR"):
        del os.environ[_variable]
os.environ["XYNTRA_PREBUILT_DIR"] = str(ROOT / "tests" / "no prebuilt kernels")  # whatever `make prebuilt` has made here
_lent = os.environ.get("XYNTRA_CACHE_DIR") or os.environ.get("TESTS_CACHE_DIR")
_cache = os.environ["XYNTRA_CACHE_DIR"] = _lent or tempfile.mkdtemp(prefix="xyntra-tests-")
# A busy machine is no failure: nothing here asks how long an example took.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")
# A job that a shell starts in the background ignores Ctrl-C, and so does all that it starts: tests that press it would wait.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite golden files")
    parser.addoption(
        "--as-this-machine",
        action="store_true",
        help="leave out tests that are given the machine they generate code for: these do the same under each XYNTRA_ISA",
    )
    parser.addoption(
        "--general", action="store_true", help="kernels of core-IR programs are those that serve many shapes, as prebuilt ones do"
    )
    floors.add_option(parser)


def pytest_configure(config: pytest.Config) -> None:
    floors.register(config)


@pytest.fixture(autouse=True, scope="session")
def _general(request: pytest.FixtureRequest) -> Iterator[None]:
    if not request.config.getoption("--general"):
        yield
        return
    from tests.support.run_program import general_kernels

    with general_kernels():
        yield


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--as-this-machine"):
        given = [item for item in items if _is_given_a_machine(item)]
        config.hook.pytest_deselected(items=given)
        items[:] = [item for item in items if item not in set(given)]
    for item in items:
        for reason in _lacking(item):
            item.add_marker(pytest.mark.skip(reason=reason))


def _is_given_a_machine(item: pytest.Item) -> bool:
    from xyntra_ep.tracea.semantic_ir.capabilities import Capabilities

    values = item.callspec.params.values() if isinstance(item, pytest.Function) and hasattr(item, "callspec") else ()
    return any(isinstance(value, Capabilities) for value in values)


def _lacking(item: pytest.Item) -> Iterator[str]:
    if item.get_closest_marker("native") and not LIBRARY.exists():
        yield f"{LIBRARY.relative_to(ROOT)} is not built: make native"
    if item.get_closest_marker("torch") and importlib.util.find_spec("torch") is None:
        yield "PyTorch is not installed: pip install '.[torch]'"
    if item.get_closest_marker("triton") and importlib.util.find_spec("triton") is None:
        yield "Triton is not installed: pip install '.[triton]'"
    for mark in item.iter_markers("compiler"):
        if not _has_compiler(*mark.args):
            yield f"no compiler {mark.args[0]!r} on this machine"
    for mark in item.iter_markers("device"):
        if (missing := _missing_device(*mark.args)) is not None:
            yield missing


def _has_compiler(name: str) -> bool:
    if name == "cc":
        return any(map(_has_compiler, ("gcc", "clang", "zig")))
    if name == "zig" and importlib.util.find_spec("ziglang") is not None:
        return True
    if name == "nvrtc":
        return _has_nvrtc()
    if name == "hip":
        return _has_hip()
    return shutil.which(name) is not None


def _has_nvrtc() -> bool:
    from xyntra_ep.errors import ConfigError
    from xyntra_ep.tracea.runtime import nvrtc

    try:
        nvrtc.load()
    except ConfigError:
        return False
    return True


def _has_hip() -> bool:
    from xyntra_ep.errors import ConfigError
    from xyntra_ep.tracea.runtime.hip import compilers

    try:
        compilers.find()
    except ConfigError:
        return False
    return True


def _missing_device(name: str) -> str | None:
    from xyntra_ep.tracea.interface.devices import device_backends

    backend = next((b for b in device_backends() if b.name == name), None)
    if backend is None:
        return f"device {name!r} is not in this release"
    found = backend.survey()
    return f"{found.missing}: {found.remedy}" if found.missing else None


def pytest_sessionfinish() -> None:
    if not _lent:
        shutil.rmtree(_cache, ignore_errors=True)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare generated text with `tests/golden/<path of the test file>/<test><suffix>`.

    def test_relu(golden): golden(source, ".c")
    """
    update = bool(request.config.getoption("--update-golden"))

    def compare(text: str, suffix: str) -> None:
        name = request.node.name.translate(str.maketrans("[]/ ", "__--"))
        path = GOLDEN / request.path.relative_to(ROOT / "tests").with_suffix("") / f"{name}{suffix}"
        if update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        elif not path.exists():
            pytest.fail(f"no golden file {path.relative_to(ROOT)}; look at this text, then --update-golden\n{text}")
        else:
            assert text == path.read_text(encoding="utf-8"), f"differs from {path.relative_to(ROOT)}"

    return compare
