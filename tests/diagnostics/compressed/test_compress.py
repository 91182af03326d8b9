"""`xyntra compress`: standard ONNX that computes nearly the same, by fewer operations, and a report that says how nearly."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from numpy.typing import NDArray
from onnx import numpy_helper

from tests.support.models.model_text import normal, parse
from xyntra_ep.cli import main
from xyntra_ep.diagnostics.compressed.compress import compress
from xyntra_ep.diagnostics.compressed.factors import Spectrum
from xyntra_ep.errors import ConfigError

K, N, RANK = 256, 320, 12
MODEL = f"(float[M, {K}] x) => (float[M, {K}] y) {{ h = MatMul(x, w1) a = Add(h, b1) t = Tanh(a) y = Gemm<transB=1>(t, w2, b2) }}"


def low(k: int, n: int, seed: int, noise: float = 1e-4) -> NDArray[np.float32]:
    found = normal(k, RANK, seed=seed) @ normal(RANK, n, seed=seed + 1) / np.sqrt(RANK * k)
    return np.asarray(found + noise / np.sqrt(k) * normal(k, n, seed=seed + 2), np.float32)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    constants = {
        "w1": low(K, N, 1),
        "b1": normal(N, seed=4),
        "w2": np.ascontiguousarray(low(N, K, 5).T),
        "b2": normal(K, seed=8),
    }
    path = tmp_path / "model.onnx"
    onnx.save(parse(MODEL, **constants), path)
    return path


def run(path: Path, x: NDArray[np.float32]) -> NDArray[np.float32]:
    session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {"x": x})[0])


def test_singular_values_keep_what_they_say() -> None:
    matrix = low(30, 20, 1, noise=1e-2)
    spectrum = Spectrum.of(matrix)
    for error in (0.5, 1e-1, 2e-3, 1e-9):
        rank = spectrum.least_rank(error)
        a, b = spectrum.factors(rank)
        lost = float(np.linalg.norm(a @ b - matrix) / np.linalg.norm(matrix))
        assert lost <= error + 1e-7 and lost == pytest.approx(spectrum.error(rank), abs=1e-7)
        if rank > 1:
            assert spectrum.error(rank - 1) > error
    assert spectrum.energy(20) == 1.0 and Spectrum.of(np.zeros((3, 4))).least_rank(0.1) == 1


@pytest.mark.compiler("cc")
def test_both_kinds_of_products_are_factored(model: Path, tmp_path: Path) -> None:
    target = tmp_path / "small.onnx"
    found = compress(model, target, sizes={"M": 64}, seed=1)
    assert [layer.rank for layer in found.factored] == [RANK, RANK] and found.path == target
    assert all(layer.m == 64 and 0 < layer.weight_error < 1e-3 > layer.result_error for layer in found.layers)
    assert all(layer.after_ns < layer.before_ns and layer.energy > 0.999 for layer in found.layers)
    x = normal(64, K, seed=9)
    want, got = run(model, x), run(target, x)
    assert np.abs(got - want).max() / np.abs(want).max() < 2e-3
    [output] = found.outputs
    assert 0 < output.relative < 2e-3 and output.alive
    onnx.checker.check_model(onnx.load(target), full_check=True)
    written = onnx.load(target)
    assert [node.op_type for node in written.graph.node] == ["MatMul", "MatMul", "Add", "Tanh", "Gemm", "Gemm"]
    assert {t.name for t in written.graph.initializer} == {"w1_left", "w1_right", "b1", "w2_left", "w2_right", "b2"}
    assert found.after_bytes == target.stat().st_size < found.before_bytes == model.stat().st_size
    assert found.times is not None and found.times.rounds > 10
    for told in ("12 ", "energy", "MB before", "in turn: ", "sizes: M=64"):
        assert told in str(found)


@pytest.mark.compiler("cc")
def test_what_would_lose_too_much_or_gain_nothing_stays(tmp_path: Path) -> None:
    path = tmp_path / "full.onnx"
    onnx.save(parse(f"(float[M, {K}] x) => (float[M, {N}] y) {{ y = MatMul(x, w) }}", w=normal(K, N, seed=3)), path)
    target = tmp_path / "small.onnx"
    found = compress(path, target, sizes={"M": 64})
    assert found.path is None and not target.exists() and not found.factored
    assert "which would not be faster" in found.layers[0].why and "nothing was written" in str(found)
    found = compress(path, target, rank=8, error=0.1, sizes={"M": 64})
    assert found.layers[0].why.startswith("at rank 8 it would lose 0.9")
    found = compress(path, target, rank=8, sizes={"M": 64})
    assert found.path == target and found.layers[0].weight_error > 0.9, "a rank alone is taken at its word"


def test_matrices_of_others_stay(model: Path, tmp_path: Path) -> None:
    constants = {t.name: numpy_helper.to_array(t) for t in onnx.load(model).graph.initializer}
    text = f"(float[M, {K}] x) => (float[M, {N}] y) {{ h = MatMul(x, w1) s = ReduceSum<keepdims=0>(w1) y = Add(h, s) }}"
    path = tmp_path / "shared.onnx"
    onnx.save(parse(text, w1=constants["w1"]), path)
    found = compress(path, tmp_path / "small.onnx")
    assert (found.layers, found.skipped, found.path) == ((), 1, None)
    assert "1 layer more: as it is" in str(found)


def test_a_matrix_without_a_number_stays(tmp_path: Path) -> None:
    w = low(K, N, 1)
    w[3, 4] = np.nan
    path = tmp_path / "nan.onnx"
    onnx.save(parse(f"(float[M, {K}] x) => (float[M, {N}] y) {{ y = MatMul(x, w) }}", w=w), path)
    assert compress(path, tmp_path / "small.onnx").layers[0].why == "it has NaN or infinities"


@pytest.mark.compiler("cc")
def test_the_command(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "small.onnx"
    words = ["compress", str(model), "-o", str(target), "--dim", "M=32"]
    assert main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [layer["rank"] for layer in found["layers"]] == [RANK, RANK] and found["outputs"][0]["name"] == "y"
    assert main(words) == 2 and f"{target}: is there already. give another name, or --force" in capsys.readouterr().err
    assert main([*words, "--force", "--rank", "4", "--error", "1e-3"]) == 1
    assert "as it is: at rank 4 it would lose" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"rank": 0}, "compress: rank=0 is none. it wants an integer of at least 1, or auto"),
        ({"error": 2.0}, "compress: error=2.0 is none. it wants a part of the whole, as in 1e-2"),
    ],
)
def test_wrong_questions(model: Path, tmp_path: Path, asked: dict[str, float], message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        compress(model, tmp_path / "small.onnx", **asked)  # type: ignore[arg-type]  # one of both
    assert str(refused.value) == message


def test_wrong_places(model: Path, tmp_path: Path) -> None:
    for target, message in (
        (model, "would overwrite the model it is made from"),
        (tmp_path, "is a folder"),
        (tmp_path / "no" / "small.onnx", "no such folder"),
    ):
        with pytest.raises(ConfigError, match=message):
            compress(model, target, force=True)
