"""Pages in a real browser: what they compute is ONNX Runtime's, what they say, and that nothing goes wrong silently.

WebGPU is that of Vulkan in software (SwiftShader), which compiles a large kernel for seconds: these tests are slow.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from numpy.typing import NDArray

from examples.digits.train import train
from tests.support.web.browser import Browser, Page
from tests.support.web.node import fed
from tests.support.web.resnet18 import write_resnet18
from tests.support.web.serve import served
from tests.support.web.strokes import STROKES
from xyntra_ep.errors import UnsupportedError
from xyntra_ep.web.site import make_site
from xyntra_ep.web.wasm import find_wasm_compiler
from xyntra_zoo import model_path, zoo

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
BROWSERS = {"with_gpu": "webgpu", "without_gpu": "wasm"}
PHONE, DESK = (360, 740), (1000, 800)
Feeds = Mapping[str, NDArray[Any]]


@pytest.fixture(autouse=True, scope="module")
def _wasm() -> None:
    try:
        find_wasm_compiler()
    except UnsupportedError as error:
        pytest.skip(str(error))


@pytest.fixture(params=BROWSERS)
def page(request: pytest.FixtureRequest) -> Iterator[Page]:
    """In a browser with WebGPU, and in one without."""
    browser: Browser = request.getfixturevalue(request.param)
    found = browser.page()
    found.size(*DESK)
    found.target = BROWSERS[request.param]
    yield found
    found.close()


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("digits")
    model, score = train()
    assert score > 0.95
    onnx.save(model, folder / "digits.onnx")
    make_site(folder / "digits.onnx", folder / "site", page="digits", sizes={"N": 1})
    return folder / "site"


def ran(page: Page, feeds: Feeds) -> Mapping[str, NDArray[Any]]:
    """What the model of the page's site answers."""
    text = page.evaluate(f"""(async () => {{
        const {{ load }} = await import("./xyntra-web.js");
        globalThis.model ??= await load("plan.json");
        const found = await model.run({json.dumps(fed(feeds))});
        return JSON.stringify(Object.fromEntries(Object.entries(found).map(
            ([name, {{ data, dims }}]) => [name, {{ data: Array.from(data, Number), dims }}])));
    }})()""")
    assert page.evaluate("model.target") == page.target, page.evaluate("model.skipped.join('; ')")
    return {name: np.array(one["data"], np.float64).reshape(one["dims"]) for name, one in json.loads(text).items()}


def agree(page: Page, model: Path, *feeds: Feeds) -> None:
    """With ONNX Runtime, within 1e-4 of the largest value."""
    session = ort.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    for one in feeds:
        found = ran(page, one)
        for name, want in zip(names, session.run(names, dict(one)), strict=True):
            assert found[name].shape == want.shape
            assert np.abs(found[name] - want).max(initial=0) <= 1e-4 * max(1.0, np.abs(want).max(initial=0)), name


def test_a_model_with_any_batch(page: Page, tmp_path: Path) -> None:
    text = """<ir_version: 10, opset_import: ["": 20]> g (float[N,20] x, int64[N] i)
        => (float[N,7] y, int64[N] best, bool[N,7] high) {
        h = Gemm(x, w, b) r = Gather<axis=0>(table, i) s = Add(h, r) y = Softmax<axis=-1>(s)
        best = ArgMax<axis=1, keepdims=0>(s) high = Greater(y, mean) }"""
    rng = np.random.default_rng(1)
    given = {"w": (20, 7), "b": (7,), "table": (5, 7), "mean": (1,)}
    parsed = onnx.parser.parse_model(text)
    arrays = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in given.items()}
    parsed.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in arrays.items())
    model = tmp_path / "model.onnx"
    onnx.save(parsed, model)
    make_site(model, tmp_path / "site")

    def feeds(n: int) -> Feeds:
        return {"x": rng.standard_normal((n, 20)).astype(np.float32), "i": rng.integers(0, 5, n)}

    with served(tmp_path / "site") as address:
        page.open(address)
        agree(page, model, *map(feeds, (3, 1, 50, 3)))
        with pytest.raises(AssertionError, match=r"has 2 axes|needs"):
            ran(page, {"x": np.zeros(20, np.float32), "i": np.zeros(1, np.int64)})
        agree(page, model, feeds(2))
    assert page.errors == []


# Not BERT: SwiftShader takes longer than its process lives to compile attention in tiles (xy_attention_f32_32x32).
@pytest.mark.parametrize("name", ["vit-tiny16-tiny", "mobilenetv2-tiny"])
def test_models_of_the_zoo(name: str, page: Page, tmp_path: Path) -> None:
    model = zoo[name]
    seq = model.seqs[0] if model.seqs else 0
    make_site(model_path(model), tmp_path / "site")
    with served(tmp_path / "site") as address:
        page.open(address)
        agree(page, model_path(model), model.feeds(2, seq, 1), model.feeds(1, seq, 2))
    assert page.errors == []


def test_the_page_of_any_model(page: Page, digits: Path, screenshots: Path, tmp_path: Path) -> None:
    make_site(digits.parent / "digits.onnx", tmp_path / "site")
    with served(tmp_path / "site") as address:
        page.open(address)
        page.until("!document.getElementById('run').disabled")
        page.evaluate("document.getElementById('values-pixels').value = Array(64).fill(3).join(' ')")
        page.evaluate("document.getElementById('run').click()")
        page.until("document.querySelector('#answer table')")
        page.until("document.querySelector('#times table')")
        for size in (DESK, PHONE):
            page.size(*size)
            assert page.evaluate("document.documentElement.scrollWidth") <= size[0], "nothing is wider than the window"
            page.screenshot(screenshots / f"model-{page.target}-{size[0]}.png")
        page.evaluate("document.getElementById('values-pixels').value = 'three'; document.getElementById('run').click()")
        page.until("!document.getElementById('failed').hidden")
        assert page.errors == []


def drawn(page: Page, digit: int) -> str:
    """The page's answer to a digit that the mouse draws."""
    page.evaluate("document.getElementById('clear').click()")
    box = "document.getElementById('board').getBoundingClientRect()"
    left, top, width, height = page.evaluate(f"(({{ left, top, width, height }}) => [left, top, width, height])({box})")
    for line in STROKES[digit]:
        page.drag([(left + x * width, top + y * height) for x, y in line])
    page.evaluate("document.getElementById('predict').click()")
    page.until("document.getElementById('answer').textContent !== '–'")
    page.evaluate("new Promise((done) => setTimeout(done, 200))")
    return str(page.evaluate("document.getElementById('answer').textContent"))


def test_digits_drawn_by_mouse(page: Page, digits: Path, screenshots: Path) -> None:
    with served(digits) as address:
        page.open(address)
        page.until("!document.getElementById('predict').disabled")
        assert [drawn(page, digit) for digit in range(10)] == [str(digit) for digit in range(10)]
        page.screenshot(screenshots / f"digits-{page.target}.png")
        page.size(*PHONE)
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
        page.screenshot(screenshots / f"digits-{page.target}-{PHONE[0]}.png")
    assert page.errors == []


def test_digits_by_keyboard(without_gpu: Browser, digits: Path) -> None:
    page = without_gpu.page()
    with served(digits) as address:
        page.open(address)
        page.until("!document.getElementById('predict').disabled")
        page.evaluate("document.getElementById('board').focus()")
        page.press(" ")
        for _ in range(20):
            page.press("ArrowDown")
        page.press("Enter")
        page.until("document.getElementById('answer').textContent === '1'")
        page.press("Escape")
        page.until("document.getElementById('answer').textContent === '–'")
        # All can be reached by the tabulator, and is named.
        names = page.evaluate("""[...document.querySelectorAll('button, canvas, input, textarea, [tabindex]')].map((one) =>
            one.getAttribute('aria-label') || one.textContent.trim() || one.labels?.[0]?.textContent)""")
        assert all(names), names
    assert page.errors == []


def test_a_browser_without_both_says_so(without_gpu: Browser, digits: Path, screenshots: Path) -> None:
    page = without_gpu.page()
    page.begin_with("delete globalThis.WebAssembly")
    with served(digits) as address:
        page.open(address)
        page.until("!document.getElementById('failed').hidden")
        said = page.evaluate("document.getElementById('failed').textContent")
        page.screenshot(screenshots / "neither.png")
    assert "WebGPU" in said and "no WebAssembly" in said and "a current Chrome" in said


def test_weights_come_from_the_cache_the_second_time(without_gpu: Browser, digits: Path) -> None:
    page = without_gpu.page()
    with served(digits) as address:
        page.open(address)
        page.until("!document.getElementById('predict').disabled")
        keys = "caches.open('xyntra-web').then((cache) => cache.keys()).then((found) => found.map(({ url }) => url))"
        assert len([url for url in page.evaluate(keys) if url.startswith(address)]) == 1
        (digits / "weights.bin").rename(digits / "moved.bin")
        try:
            page.open(f"{address}?again")
            page.until("!document.getElementById('predict').disabled")
        finally:
            (digits / "moved.bin").rename(digits / "weights.bin")
    assert page.errors == []


def test_one_tensor_bound_twice(page: Page, tmp_path: Path) -> None:
    """No dispatch may have the same memory as two writable bindings."""
    text = """<ir_version: 10, opset_import: ["": 20]> g (float[N,40] x) => (float[N,N] y) {
        r = Relu(x) t = Transpose<perm=[1,0]>(r) y = MatMul(r, t) }"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "model.onnx")
    make_site(tmp_path / "model.onnx", tmp_path / "site")
    with served(tmp_path / "site") as address:
        page.open(address)
        rng = np.random.default_rng(4)
        agree(page, tmp_path / "model.onnx", *({"x": rng.standard_normal((n, 40)).astype(np.float32)} for n in (3, 70)))
    assert page.errors == []


def test_what_webgpu_refuses_is_an_error_or_the_fallback(with_gpu: Browser, digits: Path, tmp_path: Path) -> None:
    shutil.copytree(digits, tmp_path / "site")
    kernel = next((tmp_path / "site" / "kernels").iterdir())
    kernel.write_text(kernel.read_text().replace("fn ", "fnn ", 1))
    page = with_gpu.page()
    with served(tmp_path / "site") as address:
        page.open(f"{address}style.css")
        asked = (
            'import("./xyntra-web.js").then(({ load }) => load("plan.json"%s)).then((m) => m.target + ": " + m.skipped.join())'
        )
        fallback = page.evaluate(asked % "")
        assert fallback.startswith("wasm: ") and "fnn" in fallback
        with pytest.raises(AssertionError, match=r"(?s)The model cannot run here: .*fnn"):
            page.evaluate(asked % ', { target: "webgpu" }')
    page.close()


def test_a_lost_device_is_an_error_of_each_run(with_gpu: Browser, digits: Path) -> None:
    page = with_gpu.page()
    with served(digits) as address:
        page.open(f"{address}style.css")
        begun = """import("./xyntra-web.js").then(({ load }) => load("plan.json", { target: "webgpu" })).then((m) => {
            globalThis.model = m;
            globalThis.feeds = { pixels: new Float32Array(64) };
            return m.run(feeds).then(() => "ran"); })"""
        assert page.evaluate(begun) == "ran"
        page.evaluate("model.runner.gpu.destroy(), model.runner.gpu.lost.then(() => 1)")
        for _ in range(2):
            with pytest.raises(AssertionError, match="the GPU was lost"):
                page.evaluate("model.run(feeds)")
    page.close()


def test_resnet18(page: Page, tmp_path: Path, screenshots: Path) -> None:
    model = tmp_path / "resnet18.onnx"
    write_resnet18(model)
    make_site(model, tmp_path / "site", sizes={"batch": 1})
    pixels = np.random.default_rng(2).standard_normal((1, 3, 224, 224)).astype(np.float32)
    with served(tmp_path / "site") as address:
        page.open(f"{address}style.css")
        agree(page, model, {"pixel_values": pixels})
        if page.target == "wasm":  # to compile all kernels in software once more tells nothing new
            page.open(address)
            page.until("!document.getElementById('run').disabled")
            page.evaluate("document.getElementById('run').click()")
            page.until("document.querySelector('#times table')")
            page.screenshot(screenshots / f"resnet18-{page.target}.png")
    assert page.errors == []
