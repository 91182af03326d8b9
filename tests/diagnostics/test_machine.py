from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.machine import BF16_PAIRS, BF16_TILES
from xyntra_ep import knobs
from xyntra_ep.diagnostics.machine import doctor
from xyntra_ep.errors import ConfigError
from xyntra_ep.provider import registration
from xyntra_ep.tracea.doctor.variants import cpu_variants
from xyntra_ep.tracea.interface.context import Context
from xyntra_ep.tracea.runtime.cache_root import open_root
from xyntra_ep.tracea.semantic_ir.capabilities import AVX512


@pytest.mark.native
@pytest.mark.compiler("cc")
def test_a_machine_where_all_is_well(tmp_path: Path) -> None:
    found = doctor(cache_dir=tmp_path / "cache")
    assert found.ok and found.registered
    text = str(found)
    assert "nothing is missing" in text and "not measured (xyntra doctor --measure)" in text
    assert "(used)" in text and "Gemm" in found.variants
    assert f"library    {registration.get_library_path()}\n" in text


def test_looking_makes_no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = tmp_path / "deep" / "cache"
    found = doctor(cache_dir=asked)
    assert not asked.parent.exists() and not found.cache_made
    assert f"cache      {asked}: none yet, a session makes it\n" in str(found)
    (tmp_path / "deep").touch()
    assert any("a cache that lasts: " in what for what, _ in doctor(cache_dir=asked).missing)


def test_a_cache_that_is_read_only_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = open_root(tmp_path / "cache")
    real = os.access
    # as superuser the real call says yes to everything
    monkeypatch.setattr(os, "access", lambda path, mode: real(path, mode) and not mode & os.W_OK)
    what = f"a cache that lasts: {root.path} is not writable, and there is nothing in it"
    assert what in [what for what, _ in doctor(cache_dir=root.path).missing]
    (root.plans / "a.plan").write_bytes(b"x" * 10)
    found = doctor(cache_dir=root.path)
    assert found.cache_read_only and not any("cache" in what for what, _ in found.missing)
    assert f"cache      {root.path}: 1 file, 0.0 MB; read-only: what is in it is used, all else is " in str(found)


def test_a_source_folder_in_the_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`python` in that folder imports it, the `xyntra` command does not: what the command says holds for both."""
    (tmp_path / "xyntra_ep").mkdir()
    (tmp_path / "xyntra_ep" / "__init__.py").touch()
    monkeypatch.chdir(tmp_path)
    found = doctor(cache_dir=tmp_path / "cache")
    what = f"the provider, in programs that start in this folder: they import {tmp_path / 'xyntra_ep'}, which has no library"
    assert (what, "run them from another folder, or `make native` here") in found.missing and not found.ok
    (tmp_path / "xyntra_ep" / "libxyntra_ep.so").touch()
    assert all(what != text for text, _ in doctor(cache_dir=tmp_path / "cache").missing)


def test_kernels_are_those_of_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for caps, others in ((AVX512, {"pairs", "tiles"}), (BF16_PAIRS, {"tiles"}), (BF16_TILES, {"pairs"})):
        monkeypatch.setattr(Context, "caps", caps)
        listed = {name for names in doctor(cache_dir=tmp_path / "cache").variants.values() for name in names}
        bf16 = {v.name for rows in cpu_variants().values() for v in rows if "bf16" in v.name}
        assert bf16 - listed == {name for name in bf16 if any(other in name for other in others)}


@pytest.mark.compiler("cc")
def test_measured_ceilings_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xyntra_ep.tracea.doctor.ceilings._ROUND_S", 0.001)
    doctor(cache_dir=tmp_path / "cache")
    plan, kernel = tmp_path / "cache" / "plans" / "0.plan", tmp_path / "cache" / "kernels" / "k.so"
    for path in (plan, kernel):
        path.parent.mkdir(exist_ok=True, parents=True)
        path.touch()
    measured = doctor(measure=True, cache_dir=tmp_path / "cache").ceilings
    assert kernel.exists() and not plan.exists()  # it was made with other figures
    assert measured is not None and measured.fma_gflops > 0
    again = doctor(cache_dir=tmp_path / "cache")
    assert again.ceilings == measured and "GFLOP/s fp32" in str(again)


def test_what_is_missing_comes_with_its_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unregistered() -> None:
        raise ConfigError("onnxruntime cannot be imported", where="XyntraEP", hint="pip install onnxruntime")

    monkeypatch.setattr(registration, "register", unregistered)
    (tmp_path / "file").write_text("")
    with knobs.scope(cc="/nonexistent/cc"):
        found = doctor(measure=True, cache_dir=tmp_path / "file")
    assert not found.ok
    text = str(found)
    assert "MISSING    the provider is not registered: XyntraEP: onnxruntime cannot be imported. pip install onnxruntime" in text
    assert "MISSING    a C compiler; nothing can be compiled. install gcc >= 12" in text
    assert "set XYNTRA_CACHE_DIR to a directory of your own" in text
    assert "MISSING    measured ceilings" in text
    assert "compiler   /nonexistent/cc: no (not found)" in text


@pytest.mark.compiler("nvrtc")
def test_what_kernels_reach_on_a_gpu_that_is_not_here(tmp_path: Path) -> None:
    found = doctor(architecture="rtx 4090", cache_dir=tmp_path / "cache")
    assert [(plan.op, plan.precision) for plan in found.gpu_kernels] == [
        (op, precision) for op in ("gemm", "conv", "flash_attention_2") for precision in ("bf16", "fp32")
    ]
    for plan in found.gpu_kernels:
        for launch in plan.launches:
            held = launch.kernel.occupancy
            assert held is not None and held.blocks >= 1 and held.of_warps == 48, plan
    text = str(found)
    assert "occupancy  gemm m=4096 n=4096 k=4096: gemm." in text and " on cuda (RTX 4090, by data sheet), bf16\n" in text
    with pytest.raises(ConfigError, match="no GPU 'rtx 4900' is known"):
        doctor(architecture="rtx 4900", cache_dir=tmp_path / "cache")


def test_options_that_are_not_read_are_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fusion.toml").write_text("")
    (tmp_path / "fusion.toml").chmod(0o666)
    said = doctor(cache_dir=tmp_path / "cache").wrong
    assert any("fusion.toml is not read, because somebody else can have written it: " in what for what in said)
    (tmp_path / "fusion.toml").unlink()
    os.mkfifo(tmp_path / "fusion.toml")
    said = doctor(cache_dir=tmp_path / "cache").wrong
    assert any(f"{tmp_path / 'fusion.toml'}: cannot be read (is not a regular file)" in what for what in said)


def test_the_configuration_and_all_that_is_wrong_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in [n for n in os.environ if n.startswith("XYNTRA_")]:  # of the tests themselves, some as long as a worker lives
        monkeypatch.delenv(name)
    well = doctor(cache_dir=tmp_path / "cache")
    assert well.configuration == () and well.wrong == ()
    assert "options    defaults: no variable is set, and no fusion.toml is here" in str(well)
    (file := tmp_path / "fusion.toml").write_text("[provider]\nclaim = 'all'\nmin_island = 0\n[tuning]\n")
    for name, text in {"JOBS": "0", "DEBUG": "much", "JBOS": "2", "CLAIM": "some", "FP32_STRICT": "1"}.items():
        monkeypatch.setenv(f"XYNTRA_{name}", text)
    found = doctor(cache_dir=tmp_path / "cache")
    assert found.configuration == (f"{file} is read", "fp32_strict=1 (XYNTRA_FP32_STRICT)", "XYNTRA_DEBUG=much", "XYNTRA_JOBS=0")
    assert [line.split(": ")[0] for line in found.wrong] == [
        "XYNTRA_DEBUG",
        "XYNTRA_JOBS",
        "XYNTRA_CLAIM",
        str(file),
        "XYNTRA_JBOS",
        str(file),
    ]
    assert not found.ok and "WRONG      XYNTRA_JOBS: '0' is not valid. it wants an integer of at least 1" in str(found)
    assert "nothing is missing" not in str(found)
