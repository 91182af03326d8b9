"""Registration: at import, by hand, and when it cannot be."""

from __future__ import annotations

import dataclasses
import os
import shutil
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import onnx
import pytest

import xyntra_ep
from tests.support.models.model_text import parse
from xyntra_ep import knobs
from xyntra_ep.errors import ConfigError
from xyntra_ep.provider import native_library, plan_identity, registration
from xyntra_ep.tracea.backends._files import installed

HASH_OF_NOTHING = "2200c76aa0b16d1678d9f78da7733a76"
HASH_OF_BYTES = "4c5d728fff36dbada6a1b961612497ff"


def python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, env={**os.environ, **environment}
    )


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> registration._State:
    """As in a process that has not registered yet; the library stays open."""
    state = registration._State(library=registration._state.library, callback=registration._state.callback)
    monkeypatch.setattr(registration, "_state", state)
    return state


@pytest.mark.native
class TestWithTheLibrary:
    def test_import_registers(self) -> None:
        code = "import onnxruntime as ort, xyntra_ep; assert 'XyntraEP' in ort.get_available_providers()"
        result = python(code)
        assert (result.returncode, result.stdout, result.stderr) == (0, "", "")

    def test_a_knob_turns_it_off_and_register_turns_it_on(self) -> None:
        code = (
            "import onnxruntime as ort, xyntra_ep\n"
            "assert 'XyntraEP' not in ort.get_available_providers()\n"
            "xyntra_ep.register(); xyntra_ep.register()\n"
            "assert 'XyntraEP' in ort.get_available_providers()\n"
        )
        result = python(code, XYNTRA_REGISTER="0")
        assert (result.returncode, result.stderr) == (0, "")

    def test_a_bad_knob_is_kept_as_the_reason(self) -> None:
        code = (
            "import xyntra_ep\nfrom xyntra_ep.provider import registration\n"
            "print(registration.problem())\nprint(registration.is_registered())"
        )
        result = python(code, XYNTRA_REGISTER="perhaps")
        assert result.returncode == 0
        reason = "XYNTRA_REGISTER: 'perhaps' is not valid. it wants 1 or 0"
        assert result.stdout.splitlines() == [reason, "False"]
        assert result.stderr.splitlines() == [f"XyntraEP is not registered: {reason}"]

    def test_a_number_that_no_gpu_has_is_answered_by_us(self, tmp_path: Path) -> None:
        onnx.save(parse("(float[N] x) => (float[] y) { y = Exp(x) }"), tmp_path / "model.onnx")
        code = (
            "import sys, onnxruntime as ort, xyntra_ep\n"
            "def made(settings, *asked):\n"
            "    return ort.InferenceSession(sys.argv[0], settings, providers=list(asked), enable_fallback=0).get_providers()\n"
            f"sys.argv[0] = {str(tmp_path / 'model.onnx')!r}\n"
            "try: made(None, ('XyntraEP', {'device_id': '0'}))\n"
            "except Exception as error: print(error)\n"
            "for number in ({}, {'device_id': '-1'}): assert made(None, ('XyntraEP', number))[0] == 'XyntraEP'\n"
            "chosen = ort.SessionOptions()\n"
            "chosen.add_provider_for_devices([d for d in ort.get_ep_devices() if d.ep_name == 'XyntraEP'], {})\n"
            "assert made(chosen)[0] == 'XyntraEP', 'of all devices, that which is there'\n"
        )
        result = python(code, XYNTRA_CUDA_DEVICES="0")
        assert result.returncode == 0, result.stderr
        assert "INVALID_ARGUMENT : XyntraEP: backend=cuda cannot be had: " in result.stdout

    def test_what_nobody_reads_is_said_once_in_a_process(self, tmp_path: Path) -> None:
        (tmp_path / "fusion.toml").write_text("[providr]\nclaim = 'all'\n")
        model = parse("(float[N] x) => (float[] y) { y = Exp(x) }")
        onnx.save(model, tmp_path / "model.onnx")
        code = (
            f"import os; os.chdir({str(tmp_path)!r})\n"
            "import onnxruntime as ort, xyntra_ep\n"
            "xyntra_ep.register()\n"
            "for _ in range(2): ort.InferenceSession('model.onnx', providers=['XyntraEP', 'CPUExecutionProvider'])\n"
        )
        result = python(code, XYNTRA_JBOS="2")
        assert (result.returncode, result.stdout) == (0, "")
        said = result.stderr
        assert said.count("XYNTRA_JBOS: no such variable, so it does nothing. did you mean 'XYNTRA_JOBS'?") == 1
        assert said.count("nobody reads 'providr'. options stand under [provider]") == 1
        assert said.count("[W:onnxruntime:") >= 2, "a warning in ONNX Runtime's log"
        assert "no such variable" not in python(code, XYNTRA_JBOS="2", XYNTRA_LOG_LEVEL="error").stderr

    def test_gpus_that_seem_to_be_there_decide_about_plans(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        (tmp_path / "nvidia").mkdir()
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.setattr("xyntra_ep.tracea.backends.opencl.names", lambda folder: [])
        monkeypatch.setenv("XYNTRA_CUDA_DEVICES", "0")
        assert plan_identity.devices(registration.library(), registration.default_cache_dir()) == []
        monkeypatch.setenv("XYNTRA_CUDA_DEVICES", "2")
        marks = plan_identity.devices(registration.library(), registration.default_cache_dir())
        assert marks[0] == "cuda 2" and any(mark.startswith(str(tmp_path / "nvidia")) for mark in marks)
        assert installed("no_such_package") == []

    def test_a_cache_that_an_options_file_names_is_found_again(self, tmp_path: Path) -> None:
        (file := tmp_path / "options.toml").write_text('[provider]\ncache_dir = "cache"', encoding="utf-8")
        model = parse("(float[N] x) => (float[] y) { y = Exp(x) }")
        onnx.save(model, tmp_path / "model.onnx")
        code = "import xyntra_ep; print(xyntra_ep.explain('model.onnx', options={'claim': 'all'}).graphs[0].stored)"
        told = {"XYNTRA_CONFIG": str(file), "XYNTRA_CACHE_DIR": ""}
        assert [python(f"import os; os.chdir({str(tmp_path)!r}); {code}", **told).stdout for _ in range(2)] == [
            "False\n",
            "True\n",
        ]
        assert list((tmp_path / "cache" / "plans").glob("*.plan"))

    def test_a_cache_that_is_named_after_the_import_is_found_again(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("XYNTRA_CACHE_DIR", str(tmp_path / "later"))
        model = parse("(float[N] x) => (float[] y) { y = Exp(x) }")
        reports = [xyntra_ep.explain(model.SerializeToString(), options={"claim": "all"}).graphs[0] for _ in range(2)]
        assert [report.stored for report in reports] == [False, True]

    def test_register_is_idempotent(self) -> None:
        registration.register()
        registration.register()
        assert registration.is_registered() and registration.problem() is None

    def test_somebody_else_registered_the_library(self, fresh: registration._State) -> None:
        registration.register()
        assert fresh.registered

    def test_the_names(self) -> None:
        assert Path(registration.get_library_path()).is_file()
        assert registration.get_ep_names() == [registration.get_ep_name()] == ["XyntraEP"]

    def test_the_hash_is_stable_and_sees_every_bit(self) -> None:
        from tests.native.plans.manifest_builder import hash128

        # Written down, because plans and caches on disk outlive the process.
        assert hash128(b"").hex() == HASH_OF_NOTHING
        assert hash128(bytes(range(256)) * 3).hex() == HASH_OF_BYTES
        data = bytes(200)
        seen = {hash128(data)}
        for bit in range(8 * len(data)):
            changed = bytearray(data)
            changed[bit // 8] ^= 1 << bit % 8
            seen.add(hash128(bytes(changed)))
        assert len(seen) == 8 * len(data) + 1
        assert len({hash128(bytes(n)) for n in range(300)}) == 300

    def test_the_native_version_is_the_package_version(self) -> None:
        from xyntra_ep import __version__

        assert registration.library().xyntra_version().decode() == __version__


@pytest.mark.parametrize("version", ["1.24.4", "1.25.0", "0.9", "2.0.0", ""])
def test_an_unsuitable_onnxruntime(
    fresh: registration._State, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, version: str
) -> None:
    old = types.ModuleType("onnxruntime")
    monkeypatch.setattr(old, "__version__", version, raising=False)
    monkeypatch.setitem(sys.modules, "onnxruntime", old)
    with pytest.raises(ConfigError, match=r"is not supported\. install 1\.25\.1 or newer"):
        registration.register()
    registration.register_on_import()
    assert "is not supported" in str(registration.problem())
    assert "XyntraEP is not registered: XyntraEP: onnxruntime" in caplog.text


def test_no_onnxruntime(fresh: registration._State, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ConfigError, match="pip install onnxruntime"):
        registration.register()


def test_no_library(fresh: registration._State, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fresh.library = None
    monkeypatch.setattr(native_library, "_PACKAGE", tmp_path)
    with pytest.raises(ConfigError, match="the library cannot be opened"):
        registration.register()


def test_a_source_folder_that_hides_the_installed_package(tmp_path: Path) -> None:
    """As after `pip install .` in a clone: started there, python imports the sources, which have no library."""
    clone, site = tmp_path / "clone", tmp_path / "site"
    shutil.copytree(Path(xyntra_ep.__file__).parent, clone / "xyntra_ep", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    (site / "xyntra_ep").mkdir(parents=True)
    (site / "xyntra_ep" / "libxyntra_ep.so").touch()
    words = [sys.executable, "-S", "-c", "import xyntra_ep"]  # without an editable installation, which comes before folders
    packages = Path(onnx.__file__).parent.parent
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(site), str(packages)))}
    ran = subprocess.run(words, capture_output=True, text=True, timeout=120, cwd=clone, env=environment, check=False)
    said = (
        f"XyntraEP is not registered: {clone / 'xyntra_ep'}: this is the source folder, which has no library; the installed"
        f" package is at {site / 'xyntra_ep'}. run from another folder, or `make native` here\n"
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", said)


def test_onnxruntime_refuses(fresh: registration._State, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise RuntimeError("no room")

    ort = types.ModuleType("onnxruntime")
    for name, value in {
        "__version__": "1.31.1",
        "get_available_providers": list,
        "register_execution_provider_library": refuse,
    }.items():
        monkeypatch.setattr(ort, name, value, raising=False)
    monkeypatch.setitem(sys.modules, "onnxruntime", ort)
    monkeypatch.setattr(registration, "library", lambda: None)
    with pytest.raises(ConfigError, match="refused the provider library: no room"):
        registration.register()


def test_knobs_that_decide_about_plans_are_watched() -> None:
    watched = plan_identity.watched_variables()
    assert {"XYNTRA_CC", "XYNTRA_CLAIM", "XYNTRA_PRECISION"} <= set(watched)
    assert not {"XYNTRA_REGISTER", "XYNTRA_DEBUG", "XYNTRA_CACHE_DIR"} & set(watched)
    assert {field.name for field in dataclasses.fields(knobs.Knobs)} >= plan_identity.NO_PART_OF_A_PLAN


def test_importing_asks_no_driver_and_loads_next_to_nothing_for_it() -> None:
    """What finds and compiles for devices is imported when one is asked for: it takes longer than all else of ours."""
    script = "import sys, xyntra_ep; print(*sorted(name for name in sys.modules if name.startswith('xyntra_ep.tracea.runtime.')))"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert set(found) <= {"xyntra_ep.tracea.runtime.webgpu", "xyntra_ep.tracea.runtime.webgpu.library"}
