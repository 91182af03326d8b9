"""XYNTRA_ISA: a larger machine behaves as a smaller one, to the last instruction of a session's kernels."""

from __future__ import annotations

import platform
import shutil
from pathlib import Path

import pytest

from tests.support.instructions import disassembly, instructions_beyond
from tests.support.models.model_text import close, cpu, normal, parse
from tests.support.sessions import planned
from xyntra_ep.tracea.doctor.profile import this_machine

pytestmark = [
    pytest.mark.native,
    pytest.mark.compiler("cc"),
    pytest.mark.skipif(platform.machine() != "x86_64", reason="XYNTRA_ISA is about x86"),
    pytest.mark.skipif(shutil.which("objdump") is None, reason="no objdump here"),
]

MODEL = """(float[N,64] x, float[N,32,9,9] image) => (float[N,48] y, float[N,40,9,9] pixels) {
      product = MatMul(x, w) shared = Softmax<axis = 1>(product) y = Gelu(shared)
      turned = Conv<pads = [1,1,1,1]>(image, k) pixels = Sigmoid(turned) }"""


@pytest.mark.parametrize("isa", ["avx2", "scalar"])
def test_sessions_execute_no_more_than_the_machine_has(isa: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XYNTRA_ISA", isa)
    machine, model = this_machine(), parse(MODEL, 20, w=normal(64, 48), k=normal(40, 32, 3, 3))
    feeds = {"x": normal(5, 64), "image": normal(5, 32, 9, 9)}
    session = planned(model, {"cache_dir": str(tmp_path / "cache")})
    close(session.run(None, feeds), cpu(model, feeds))
    made = sorted((tmp_path / "cache" / "kernels").glob("*.so"))
    assert len(made) >= 3 and all("ret" in disassembly(path) for path in made)
    assert [beyond for path in made if (beyond := instructions_beyond(path, machine))] == []
