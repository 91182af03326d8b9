"""Models that are compiled ahead of time give what ONNX Runtime gives, and nothing is planned when they are opened."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest

from tests.provider.compiled.support import (
    CPU,
    attribute,
    branching,
    chain,
    compiled,
    content,
    context_nodes,
    divided,
    expected,
    folded,
    session,
)
from tests.support.sessions import watched_planner
from xyntra_ep import cli
from xyntra_ep.diagnostics.explain import explain
from xyntra_ep.errors import ConfigError, XyntraError
from xyntra_ep.provider import registration
from xyntra_ep.tracea.doctor.profile import profile, this_machine
from xyntra_ep.tracea.planning.compiled_model import read_compiled_model
from xyntra_ep.tracea.planning.manifest import VERSION as PLAN_VERSION
from xyntra_ep.tracea.semantic_ir.capabilities import Isa

pytestmark = [pytest.mark.native, pytest.mark.compiler("cc")]


def feeds(rows: int, model: onnx.ModelProto) -> dict[str, Any]:
    rng = np.random.default_rng(rows)
    found: dict[str, Any] = {}
    for value in model.graph.input:
        dims = value.type.tensor_type.shape.dim
        if value.type.tensor_type.elem_type == onnx.TensorProto.BOOL:
            found[value.name] = np.array(rows % 2 == 0)
        else:
            found[value.name] = rng.normal(size=(rows, dims[1].dim_value)).astype(np.float32)
    return found


@pytest.mark.parametrize("make", [chain, divided, branching, folded])
def test_outputs_are_onnx_runtimes(make: Any, tmp_path: Path) -> None:
    model = make()
    found = compiled(model, tmp_path)
    opened = session(found.path)
    for rows in (1, 4, 7):  # sizes that stay symbolic
        given = feeds(rows, model)
        for ours, theirs in zip(opened.run(None, given), expected(model, given), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def test_every_island_is_a_node(tmp_path: Path) -> None:
    found = compiled(divided(), tmp_path)
    model = onnx.load(found.path)
    assert [node.op_type for node in model.graph.node] == ["EPContext", "Unique", "EPContext"]
    assert [attribute(node, "main_context").i for node in context_nodes(model)] == [1, 0]
    assert (found.islands, found.claimed, found.nodes) == (2, 2, 3)


def test_bodies_stay_as_they_are(tmp_path: Path) -> None:
    """ONNX Runtime has no place for what is compiled of them."""
    model = onnx.load(compiled(branching(), tmp_path).path)
    assert [node.op_type for node in model.graph.node] == ["EPContext", "If"]
    inner = {node.op_type for a in model.graph.node[1].attribute for node in a.g.node}
    assert inner == {"Mul", "Exp", "Add", "Neg"}


def test_nothing_is_planned_and_the_cache_is_not_looked_at(tmp_path: Path) -> None:
    found = compiled(chain(), tmp_path)
    nowhere = tmp_path / "nowhere"
    with watched_planner() as watched:
        opened = session(found.path, {"cache_dir": str(nowhere)})
    assert watched.calls == 0 and not nowhere.exists()
    assert opened.get_providers()[0] == "XyntraEP"


def test_a_model_in_memory(tmp_path: Path) -> None:
    model = chain()
    given = feeds(3, model)
    opened = session(compiled(model, tmp_path).path.read_bytes())
    np.testing.assert_allclose(opened.run(None, given)[0], expected(model, given)[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["compiled.onnx", "a:b\\c.onnx"])
def test_kernels_in_a_file_beside_it(name: str, tmp_path: Path) -> None:
    model = chain()
    found = compiled(model, tmp_path, name=name, embed=False)
    assert [file.suffix for file in found.files] == [".onnx", ".xyntra"]
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    for file in found.files:  # together
        file.rename(moved / file.name)
    given = feeds(2, model)
    opened = session(moved / name)
    np.testing.assert_allclose(opened.run(None, given)[0], expected(model, given)[0], rtol=1e-5, atol=1e-6)


def test_onnx_runtimes_own_way_makes_one_and_runs(tmp_path: Path) -> None:
    model = chain()
    registration.register()
    settings = ort.SessionOptions()
    settings.add_session_config_entry("ep.context_enable", "1")
    settings.add_session_config_entry("ep.context_file_path", str(tmp_path / "made.onnx"))
    settings.add_session_config_entry("ep.context_embed_mode", "1")
    providers = [("XyntraEP", {"claim": "all"}), CPU]
    opened = ort.InferenceSession(model.SerializeToString(), settings, providers=providers, enable_fallback=0)
    given = feeds(3, model)
    for one in (opened, session(tmp_path / "made.onnx")):
        np.testing.assert_allclose(one.run(None, given)[0], expected(model, given)[0], rtol=1e-5, atol=1e-6)


def test_tensors_may_get_other_names(tmp_path: Path) -> None:
    """ONNX Runtime makes one of two equal constants when the model is opened, unless it has done so when it was compiled."""
    model = onnx.parser.parse_model(
        """<ir_version: 9, opset_import: ["" : 17]> g (float[n, 4] x) => (float[n, 4] y, float[m] u)
        <float[4] one = {1, 2, 3, 4}, float[4] two = {1, 2, 3, 4}>
        { a = Add(x, one) b = Mul(a, two) y = Exp(b) u = Unique(y) }"""
    )
    registration.register()
    onnx.save(model, tmp_path / "given.onnx")
    settings = ort.SessionOptions()
    settings.add_provider("XyntraEP", {"claim": "all"})
    compiler = ort.ModelCompiler(settings, str(tmp_path / "given.onnx"), embed_compiled_data_into_model=True)
    compiler.compile_to_file(str(tmp_path / "made.onnx"))
    assert len(onnx.load(tmp_path / "made.onnx").graph.initializer) == 2
    given = feeds(3, model)
    for ours, theirs in zip(session(tmp_path / "made.onnx").run(None, given), expected(model, given), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_the_best_instruction_set_of_the_machine_is_taken(tmp_path: Path) -> None:
    machine = this_machine()
    if machine.isa is not Isa.AVX512:
        pytest.skip("needs AVX-512, to have a lesser one besides")
    model = chain()
    found = compiled(model, tmp_path, ("scalar", "avx2", "native"))
    assert found.isas == ("avx512-native", "avx2", "scalar")
    given = feeds(3, model)
    np.testing.assert_allclose(session(found.path).run(None, given)[0], expected(model, given)[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("isa", ["avx2", "scalar"])
def test_a_lesser_machine_takes_what_it_has(isa: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if isa not in _possible():
        pytest.skip(f"this machine has no {isa}")
    model = chain()
    found = compiled(model, tmp_path, (isa, *(("avx512",) if "avx512" in _possible() else ())))
    monkeypatch.setenv("XYNTRA_ISA", isa)
    given = feeds(3, model)
    np.testing.assert_allclose(session(found.path).run(None, given)[0], expected(model, given)[0], rtol=1e-5, atol=1e-6)


def test_what_no_machine_here_has_is_compiled_and_not_executed(tmp_path: Path) -> None:
    if this_machine().architecture != "x86_64":
        pytest.skip("names x86's instruction sets")
    made = read_compiled_model(content(onnx.load(compiled(chain(), tmp_path, ("amx", "scalar")).path)))
    assert [target.isa for target in made.targets] == ["amx", "scalar"]
    assert "amx_tile" in made.targets[0].features and made.targets[1].features == ()


def test_compatibility_is_declared_and_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from onnxruntime.capi import _pybind_state as C

    isa = "avx2" if "avx2" in _possible() else "scalar"
    found = compiled(chain(), tmp_path, (isa,))
    info = C.get_compatibility_info_from_model(str(found.path), "XyntraEP")
    assert info.startswith("xyntra-compiled 1 ") and f" {isa}:" in info
    devices = [device for device in ort.get_ep_devices() if device.ep_name == "XyntraEP"][:1]
    verdicts = C.OrtCompiledModelCompatibility

    def verdict(text: str) -> Any:
        return C.get_model_compatibility_for_ep_devices(devices, text)

    if isa == "avx2":
        monkeypatch.setenv("XYNTRA_ISA", "avx2")
        assert verdict(info) == verdicts.EP_SUPPORTED_OPTIMAL
        monkeypatch.setenv("XYNTRA_ISA", "scalar")
        assert verdict(info) == verdicts.EP_UNSUPPORTED
        monkeypatch.delenv("XYNTRA_ISA")
    if this_machine().isa is Isa.AVX512:
        assert verdict(info) == verdicts.EP_SUPPORTED_PREFER_RECOMPILATION
    assert verdict(info.replace("xyntra-compiled 1 ", "xyntra-compiled 9 ")) == verdicts.EP_UNSUPPORTED
    assert verdict("somebody else's") == verdicts.EP_NOT_APPLICABLE


@pytest.mark.parametrize("widest", ["", "avx512", "avx2", "scalar"])
def test_native_code_and_the_doctor_see_the_same_processor(widest: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from onnxruntime.capi import _pybind_state as C

    registration.register()
    monkeypatch.setenv("XYNTRA_ISA", widest)
    every, here = profile(), this_machine()
    devices = [device for device in ort.get_ep_devices() if device.ep_name == "XyntraEP"][:1]
    for feature in (*every.features, "avx1024"):
        verdict = C.get_model_compatibility_for_ep_devices(devices, f"xyntra-compiled 1 {PLAN_VERSION} 0.1.0 one:{feature}")
        has = feature in here.features and (here.tiles_granted or not feature.startswith("amx_"))
        assert (verdict != C.OrtCompiledModelCompatibility.EP_UNSUPPORTED) == has, feature


def test_explain_says_that_it_was_compiled(tmp_path: Path) -> None:
    found = explain(compiled(chain(), tmp_path).path)
    assert found.graphs[0].compiled and "(compiled ahead of time)" in str(found)


def test_options_that_say_nothing_are_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    ort.set_default_logger_severity(2)
    path = compiled(chain(), tmp_path).path
    capfd.readouterr()
    session(path, {"precision": "bf16"})
    assert "precision=bf16 says nothing for a model that was compiled ahead of time" in capfd.readouterr().err


def test_a_compiled_model_is_not_compiled_again(tmp_path: Path) -> None:
    first = compiled(chain(), tmp_path).path
    again = tmp_path / "again"
    again.mkdir()
    with pytest.raises(XyntraError):
        compiled(onnx.load(first), again)
    assert not (again / "compiled.onnx").exists()


def test_nothing_to_compile_is_an_error(tmp_path: Path) -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 9, opset_import: ["" : 17]> g (float[n, 4] x) => (float[m] y) { y = Unique(x) }'
    )
    with pytest.raises(XyntraError, match="nothing of the model can be compiled"):
        compiled(model, tmp_path)
    assert not (tmp_path / "compiled.onnx").exists()


def test_a_file_that_is_there_stays(tmp_path: Path) -> None:
    compiled(chain(), tmp_path)
    before = (tmp_path / "compiled.onnx").read_bytes()
    with pytest.raises(ConfigError, match="exists already"):
        compiled(divided(), tmp_path)
    assert (tmp_path / "compiled.onnx").read_bytes() == before
    compiled(divided(), tmp_path, force=True)
    assert (tmp_path / "compiled.onnx").read_bytes() != before


def test_devices_cannot_be_compiled_for(tmp_path: Path) -> None:
    with pytest.raises(XyntraError, match="cannot be compiled ahead of time"):
        compiled(chain(), tmp_path, options={"backend": "cuda"})


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(chain(), tmp_path / "given.onnx")
    words = ["compile", str(tmp_path / "given.onnx"), "-o", str(tmp_path / "made.onnx"), "--isa", "native", "-O", "claim=all"]
    assert cli.main(words) == 0
    assert "3 of 3 nodes in 1 island" in capsys.readouterr().out
    assert cli.main(words) == 2
    assert "exists already" in capsys.readouterr().err
    assert cli.main([*words[:-4], "--isa", "avx9"]) == 2
    assert "'avx9'" in capsys.readouterr().err


def _possible() -> tuple[str, ...]:
    """Instruction sets that can be compiled for and executed here."""
    machine = this_machine()
    if machine.architecture != "x86_64":
        return ()
    return {Isa.AVX512: ("avx512", "avx2", "scalar"), Isa.AVX2: ("avx2", "scalar")}.get(machine.isa, ("scalar",))
