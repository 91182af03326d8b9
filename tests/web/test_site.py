"""`xyntra web`: the files that it writes, and what WebAssembly computes of them, by Node; all answers are ONNX Runtime's."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from numpy.typing import NDArray

from tests.support.web.node import run_site
from tests.support.web.serve import served
from xyntra_ep import cli
from xyntra_ep.errors import ConfigError, UnsupportedError, XyntraError
from xyntra_ep.web import site as web_site
from xyntra_ep.web.site import PAGES, make_site
from xyntra_ep.web.wasm import find_wasm_compiler
from xyntra_zoo import model_path, zoo

RNG = np.random.default_rng(5)
MOST_BYTES = 30_000  # of the runtime


@pytest.fixture
def wasm() -> None:
    try:
        find_wasm_compiler()
    except UnsupportedError as error:
        pytest.skip(str(error))


def saved(folder: Path, text: str, **weights: NDArray[Any]) -> Path:
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 20]> {text}')
    model.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in weights.items())
    onnx.save(model, folder / "model.onnx")
    return folder / "model.onnx"


def floats(*shape: int) -> NDArray[np.float32]:
    return RNG.standard_normal(shape).astype(np.float32)


def agree(model: Path, folder: Path, *feeds: Mapping[str, NDArray[Any]], **asked: Any) -> None:
    """In one page, one run after the other."""
    make_site(model, folder / "site", **asked)
    session = ort.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    with served(folder / "site") as address:
        found = run_site(address, list(feeds))
    for fed, outputs in zip(feeds, found, strict=True):
        assert not isinstance(outputs, str), outputs
        for name, want in zip(names, session.run(names, dict(fed)), strict=True):
            assert outputs[name].shape == want.shape
            np.testing.assert_allclose(outputs[name], np.asarray(want, np.float64), rtol=1e-4, atol=1e-4, err_msg=name)


@pytest.mark.usefixtures("wasm")
def test_a_perceptron_with_any_batch(tmp_path: Path) -> None:
    text = """g (float[N,20] x) => (float[N,7] y, int64[N] best) {
        h = Gemm(x, w, b) r = Relu(h) y = Softmax<axis=-1>(r) best = ArgMax<axis=1, keepdims=0>(r) }"""
    model = saved(tmp_path, text, w=floats(20, 7), b=floats(7))
    agree(model, tmp_path, *({"x": floats(n, 20)} for n in (3, 1, 64, 3, 0)))


@pytest.mark.usefixtures("wasm")
def test_functions_that_javascript_computes(tmp_path: Path) -> None:
    names = ("Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Tanh", "Erf", "Exp", "Round", "Floor", "Ceil", "Abs")
    nodes = " ".join(f"y{i} = {name}(x)" for i, name in enumerate(names))
    more = "q = Abs(x) s = Log(q) p = Pow(q, x) f = Mod<fmod=1>(x, q) root = Sqrt(q)"
    outputs = ", ".join(f"float[N] {name}" for name in (*(f"y{i}" for i in range(len(names))), "s", "p", "f", "root"))
    model = saved(tmp_path, f"g (float[N] x) => ({outputs}) {{ {nodes} {more} }}")
    agree(model, tmp_path, {"x": RNG.uniform(-0.99, 0.99, 37).astype(np.float32)})


@pytest.mark.usefixtures("wasm")
def test_integers_and_bools(tmp_path: Path) -> None:
    text = """g (int64[N,4] i, float[10,6] table, bool[N,1,1] keep) => (float[N,4,6] y, bool[N,4] large, int64[N,4] twice) {
        rows = Gather<axis=0>(table, i) y = Where(keep, rows, zero) large = Greater(i, five) twice = Mul(i, big) }"""
    model = saved(tmp_path, text, zero=np.zeros(1, np.float32), five=np.array([5]), big=np.array([1 << 40]))
    given: dict[str, NDArray[Any]] = {
        "i": RNG.integers(0, 10, (3, 4)),
        "table": floats(10, 6),
        "keep": np.array([[[True]], [[False]], [[True]]]),
    }
    agree(model, tmp_path, given)


@pytest.mark.usefixtures("wasm")
def test_half_floats(tmp_path: Path) -> None:
    text = """g (float[N,33] x) => (float[N,33] y, float[N,5] z) {
        h = Cast<to=10>(x) c = Cast<to=1>(h) y = Identity(c) p = MatMul(h, w) z = Cast<to=1>(p) }"""
    model = saved(tmp_path, text, w=floats(33, 5).astype(np.float16))
    session = ort.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    # Halves between, denormal ones, those beyond the largest, and what is no number.
    edges = [0, -0.0, 1e-8, 2**-24, 2**-25, 3 * 2**-25, 6.1e-5, 65504, 65519, 65520, 1e9, -np.inf, np.nan, 2049, 2051]
    x = np.concatenate([edges, floats(33 * 3 - len(edges)) * np.float32(10) ** RNG.integers(-8, 4, 33 * 3 - len(edges))])
    x = x.reshape(3, 33).astype(np.float32)
    make_site(model, tmp_path / "site")
    with served(tmp_path / "site") as address:
        [found] = run_site(address, [{"x": x}])
    want, _ = session.run(["y", "z"], {"x": x})
    np.testing.assert_array_equal(found["y"].astype(np.float32), want)


@pytest.mark.usefixtures("wasm")
def test_a_recurrence(tmp_path: Path) -> None:
    text = "g (float[T,N,6] x) => (float[T,1,N,8] y) { y = LSTM<hidden_size=8>(x, w, r, b) }"
    model = saved(tmp_path, text, w=floats(1, 32, 6), r=floats(1, 32, 8), b=floats(1, 64))
    agree(model, tmp_path, {"x": floats(5, 2, 6)}, {"x": floats(3, 4, 6)})


@pytest.mark.usefixtures("wasm")
def test_an_index_beyond_the_table_is_an_error(tmp_path: Path) -> None:
    model = saved(tmp_path, "g (int64[N] i, float[4,2] t) => (float[N,2] y) { y = Gather<axis=0>(t, i) }")
    make_site(model, tmp_path / "site")
    with served(tmp_path / "site") as address:
        wrong, right = run_site(address, [{"i": np.array([9]), "t": floats(4, 2)}, {"i": np.array([3]), "t": floats(4, 2)}])
    assert "XyntraError" in wrong and "i [1]" in wrong
    assert right["y"].shape == (1, 2)


@pytest.mark.usefixtures("wasm")
def test_shapes_that_do_not_fit_are_named(tmp_path: Path) -> None:
    model = saved(tmp_path, "g (float[N,3] a, float[M,3] b) => (float[K,3] y) { y = Add(a, b) }")
    make_site(model, tmp_path / "site")
    with served(tmp_path / "site") as address:
        shapes = (((2, 3), (1, 3)), ((2, 3), (4, 3)), ((3,), (1, 3)))
        fits, wrong, rank = run_site(address, [{"a": floats(*a), "b": floats(*b)} for a, b in shapes])
    assert fits["y"].shape == (2, 3)
    assert "a [2,3], b [4,3]" in wrong
    assert "has 2 axes" in rank


@pytest.mark.usefixtures("wasm")
@pytest.mark.parametrize("name", ["mobilenetv2-tiny", "resnet50-tiny", "vit-tiny16-tiny", "bert-base-tiny", "gpt2-prefill-tiny"])
def test_models_of_the_zoo(name: str, tmp_path: Path) -> None:
    model = zoo[name]
    seq = model.seqs[0] if model.seqs else 0
    agree(model_path(model), tmp_path, model.feeds(2, seq, 1), model.feeds(1, seq, 2))


def test_what_cannot_be_taken_is_named(tmp_path: Path) -> None:
    text = "g (float[4] x) => (float[N,1] z) { y = Relu(x) n = NonZero(y) t = Transpose<perm=[1,0]>(n) z = Cast<to=1>(t) }"
    with pytest.raises(XyntraError, match="not all of the model can be taken: NonZero"):
        make_site(saved(tmp_path, text), tmp_path / "site")
    assert not (tmp_path / "site").exists()


def test_without_a_compiler_the_site_has_no_fallback_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XYNTRA_CC", "none")
    site = make_site(saved(tmp_path, "g (float[4] x) => (float[4] y) { y = Relu(x) }"), tmp_path / "site")
    assert site.targets == ("webgpu",)
    assert "WebAssembly: no compiler for WebAssembly" in str(site)
    assert list(json.loads((tmp_path / "site" / "plan.json").read_text())["targets"]) == ["webgpu"]


def test_weights_are_one_file_that_targets_share(tmp_path: Path) -> None:
    weight = floats(64, 48)
    model = saved(tmp_path, "g (float[N,64] x) => (float[N,48] y) { y = MatMul(x, w) }", w=weight)
    make_site(model, tmp_path / "site")
    plan = json.loads((tmp_path / "site" / "plan.json").read_text())
    data = (tmp_path / "site" / "weights.bin").read_bytes()
    assert len(data) == plan["weights"]["bytes"] < 1.1 * weight.nbytes
    parts = [data[at : at + size] for at, size in plan["weights"]["parts"]]
    assert weight.tobytes() in parts
    assert all(at % 64 == 0 for at, _ in plan["weights"]["parts"])


def test_sizes_may_be_fixed(tmp_path: Path) -> None:
    model = saved(tmp_path, "g (float[N,4] x) => (float[N,4] y) { y = Relu(x) }")
    make_site(model, tmp_path / "site", sizes={"N": 3})
    assert json.loads((tmp_path / "site" / "plan.json").read_text())["inputs"][0]["shape"] == [3, 4]


def test_a_page_of_ones_own(tmp_path: Path) -> None:
    model = saved(tmp_path, "g (float[4] x) => (float[4] y) { y = Relu(x) }")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "index.html").write_text("<p>mine</p>")
    make_site(model, tmp_path / "site", page=str(tmp_path / "mine"))
    assert (tmp_path / "site" / "index.html").read_text() == "<p>mine</p>"
    with pytest.raises(ConfigError, match="is no page"):
        make_site(model, tmp_path / "site", page="nothing")


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = saved(tmp_path, "g (float[N,4] x) => (float[N,4] y) { y = Relu(x) }")
    assert cli.main(["web", str(model), "-o", str(tmp_path / "site"), "--dim", "N=2", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["targets"][0] == "webgpu"
    assert told["sizes"]["xyntra-web.js"] == (PAGES / "xyntra-web.js").stat().st_size
    assert cli.main(["web", str(tmp_path / "none.onnx"), "-o", str(tmp_path / "site")]) == 2


def test_the_runtime_is_small() -> None:
    assert (PAGES / "xyntra-web.js").stat().st_size < MOST_BYTES
    assert all((PAGES / name).is_file() for name in web_site.RUNTIME)
