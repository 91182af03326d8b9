"""Compiled models by the C functions: results, and nonsense, which is a status."""

from __future__ import annotations

import ctypes
import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from tests.capi.library import (
    CPU_ERROR,
    FILE_ERROR,
    INVALID_MODEL,
    INVALID_PARAMS,
    SUCCESS,
    UNSUPPORTED,
    Info,
    Model,
    ModelOptions,
    last_error,
    threads_of_a_caller,
    tracea,
    view,
)
from tests.provider.compiled.support import chain, compiled, divided, expected, input_shape
from xyntra_ep import __version__

pytestmark = [pytest.mark.native, pytest.mark.compiler("cc")]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(chain(), tmp_path_factory.mktemp("model")).path


def rows(n: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(n).normal(size=(n, 64)).astype(np.float32)


def test_the_version_is_the_packages() -> None:
    assert tracea().tracea_version().decode() == __version__
    assert tracea().tracea_abi_version() == 3


@pytest.mark.parametrize("n", [1, 5, 33])
def test_a_run_gives_what_onnx_runtime_gives(path: Path, n: int) -> None:
    x, y = rows(n), np.zeros((n, 5), np.float32)
    with Model(path) as model:
        assert model.counts() == (1, 1)
        assert model.output_shape([view(x)]) == (n, 5)
        assert model.run([view(x)], [view(y)]) == SUCCESS
    np.testing.assert_allclose(y, expected(chain(), {"x": x})[0], rtol=1e-5, atol=1e-6)


def test_it_says_what_it_takes(path: Path) -> None:
    with Model(path) as model:
        given, made = model.info("input", 0), model.info("output", 0)
        assert isinstance(given, Info) and isinstance(made, Info)
        assert (given.name, given.dtype, given.rank) == (b"x", 1, 2)
        assert [given.shape[i] for i in range(2)] == [-1, 64] and given.symbol[0] == b"n" and given.symbol[1] == b""
        assert (made.name, made.rank) == (b"y", 2)
        assert model.info("input", 1) == INVALID_PARAMS
        assert model.info("input", 0, size=4) == INVALID_PARAMS


def test_from_memory(path: Path) -> None:
    x, y = rows(3), np.zeros((3, 5), np.float32)
    with Model(path.read_bytes()) as model:
        assert model.run([view(x)], [view(y)]) == SUCCESS
    np.testing.assert_allclose(y, expected(chain(), {"x": x})[0], rtol=1e-5, atol=1e-6)


def test_several_islands_hand_tensors_on(tmp_path: Path) -> None:
    """`claim=profitable` would make one island; a node between them that is taken away here leaves two."""
    model = onnx.parser.parse_model(
        """<ir_version: 9, opset_import: ["" : 17]> g (float[n, 4] x) => (float[m] y, float[n, 4] z)
        { z = Sigmoid(x) flat = Unique(z) y = Exp(flat) }"""
    )
    found = onnx.load(compiled(model, tmp_path).path)
    first, _, last = found.graph.node
    last.input[0] = first.output[0]
    del found.graph.node[1]
    for value in (*found.graph.value_info, *found.graph.output):
        if value.name == "y":
            value.CopyFrom(onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["m"]))
    onnx.save(found, tmp_path / "two.onnx")
    opened = Model(tmp_path / "two.onnx")
    # Exp of one axis was compiled; it is given two: so it is refused when it is run, and nothing is read beyond an end.
    assert opened.status == SUCCESS, last_error()
    x, y, z = (np.ones((3, 4), np.float32) for _ in range(3))
    assert opened.run([view(x)], [view(y), view(z)]) == INVALID_PARAMS


def test_threads_of_the_callers(path: Path) -> None:
    counts: list[int] = []
    callback = threads_of_a_caller(counts)
    options = ModelOptions(ctypes.sizeof(ModelOptions), 0, ctypes.cast(callback, ctypes.c_void_p), None, None)
    x, y = rows(20000), np.zeros((20000, 5), np.float32)
    with Model(path, options) as model:
        assert model.run([view(x)], [view(y)]) == SUCCESS
    assert counts and max(counts) > 1
    np.testing.assert_allclose(y, expected(chain(), {"x": x})[0], rtol=1e-5, atol=1e-6)


def test_many_threads_run_one_model(path: Path) -> None:
    feeds = [rows(n) for n in range(1, 9)]
    results: list[Any] = [None] * len(feeds)
    with Model(path) as model:

        def work(i: int) -> None:
            for _ in range(20):
                y = np.zeros((len(feeds[i]), 5), np.float32)
                if model.run([view(feeds[i])], [view(y)]) != SUCCESS:
                    return
                results[i] = y

        threads = [threading.Thread(target=work, args=(i,)) for i in range(len(feeds))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for x, y in zip(feeds, results, strict=True):
        np.testing.assert_allclose(y, expected(chain(), {"x": x})[0], rtol=1e-5, atol=1e-6)


def test_a_profile(path: Path) -> None:
    x, y = rows(3), np.zeros((3, 5), np.float32)
    library, needed = tracea(), ctypes.c_size_t()
    with Model(path) as model:
        assert library.tracea_profile(1) == SUCCESS
        assert model.run([view(x)], [view(y)]) == SUCCESS
        assert library.tracea_profile(0) == SUCCESS
    assert library.tracea_take_profile(None, ctypes.c_size_t(0), ctypes.byref(needed)) == SUCCESS
    text = ctypes.create_string_buffer(needed.value)
    assert library.tracea_take_profile(text, needed, ctypes.byref(needed)) == SUCCESS
    steps = [json.loads(line) for line in text.raw.decode().splitlines()]
    assert steps and all(step["calls"] == 1 for step in steps)
    assert library.tracea_take_profile(None, ctypes.c_size_t(0), None) == INVALID_PARAMS


def test_nonsense_is_a_status(path: Path) -> None:
    x, y = rows(4), np.zeros((4, 5), np.float32)
    both = np.zeros(4 * 64 + 4 * 5, np.float32)
    wide = np.zeros((4, 128), np.float32)
    cases: list[tuple[str, list[Any], list[Any], int]] = [
        ("0 are given", [], [view(y)], INVALID_PARAMS),
        ("2 are given", [view(x), view(x)], [view(y)], INVALID_PARAMS),
        ("outputs, 0 are given", [view(x)], [], INVALID_PARAMS),
        ("input 0 is NULL", [view(x, ptr=None)], [view(y)], INVALID_PARAMS),
        ("output 0 is NULL", [view(x)], [view(y, ptr=None)], INVALID_PARAMS),
        ("no shape", [view(x, shape=None)], [view(y)], INVALID_PARAMS),
        ("more than 16 axes", [view(x, rank=1000)], [view(y)], INVALID_PARAMS),
        ("negative size", [view(x, shape=(ctypes.c_int64 * 2)(-4, 64))], [view(y)], INVALID_PARAMS),
        ("too large", [view(x, shape=(ctypes.c_int64 * 2)(1 << 60, 64))], [view(y)], INVALID_PARAMS),
        ("negative stride", [view(x, stride=(-64, 1))], [view(y)], INVALID_PARAMS),
        ("has gaps", [view(wide[:, :64], stride=(128, 1))], [view(y)], UNSUPPORTED),
        ("not aligned", [view(x, ptr=x.ctypes.data + 1)], [view(y)], INVALID_PARAMS),
        ("elements of type 11", [view(x.astype(np.float64))], [view(y)], INVALID_PARAMS),
        ("no elements of type 99", [view(x, dtype=99)], [view(y)], INVALID_PARAMS),
        ("the model wants [-1,64]", [view(x[:, :63].copy())], [view(y)], INVALID_PARAMS),
        ("the model wants [-1,64]", [view(x[0])], [view(y)], INVALID_PARAMS),
        ("output 'y' is [4,5]", [view(x)], [view(np.zeros((4, 6), np.float32))], INVALID_PARAMS),
        ("output 'y' is [4,5]", [view(x)], [view(np.zeros((5, 4), np.float32))], INVALID_PARAMS),
        ("elements of another type", [view(x)], [view(np.zeros((4, 5), np.int32))], INVALID_PARAMS),
        ("CUDA device", [view(x, device_id=0)], [view(y)], UNSUPPORTED),
        ("a device that there is not", [view(x, device_id=-2)], [view(y)], INVALID_PARAMS),
        ("overlaps an input", [view(both[:256].reshape(4, 64))], [view(both[250:270].reshape(4, 5))], INVALID_PARAMS),
    ]
    with Model(path) as model:
        for why, inputs, outputs, status in cases:
            assert model.run(inputs, outputs) == status, why
            assert why in last_error()
        tracea().tracea_clear_error()
        assert last_error() == ""
        assert model.run([view(x)], [view(y)]) == SUCCESS and last_error() == ""
    np.testing.assert_allclose(y, expected(chain(), {"x": x})[0], rtol=1e-5, atol=1e-6)


def test_null_everywhere(path: Path) -> None:
    library = tracea()
    null, size = ctypes.c_void_p(None), ctypes.c_size_t(1)
    model = ctypes.c_void_p()
    assert library.tracea_model_open(None, None, ctypes.byref(model)) == INVALID_PARAMS
    assert library.tracea_model_open(str(path).encode(), None, None) == INVALID_PARAMS
    assert library.tracea_model_open_bytes(None, size, None, ctypes.byref(model)) == INVALID_PARAMS
    assert library.tracea_model_counts(null, None, None) == INVALID_PARAMS
    assert library.tracea_model_input(null, size, None) == INVALID_PARAMS
    assert library.tracea_model_run(null, None, size, None, size) == INVALID_PARAMS
    assert library.tracea_model_output_shape(null, None, size, size, None, None) == INVALID_PARAMS
    library.tracea_model_close(null)
    with Model(path) as opened:
        assert library.tracea_model_run(opened._model, None, size, None, size) == INVALID_PARAMS
        assert library.tracea_model_input(opened._model, ctypes.c_size_t(0), None) == INVALID_PARAMS
    assert library.tracea_get_last_error(None, ctypes.c_size_t(0)) > 0


def test_an_error_is_of_its_thread(path: Path) -> None:
    Model(path.with_name("missing.onnx"))
    assert "cannot be opened" in last_error()
    elsewhere: list[str] = []
    thread = threading.Thread(target=lambda: elsewhere.append(last_error()))
    thread.start()
    thread.join()
    assert elsewhere == [""]


def test_an_error_is_cut_to_its_buffer(path: Path) -> None:
    Model(path.with_name("missing.onnx"))
    small = ctypes.create_string_buffer(b"x" * 8)
    assert tracea().tracea_get_last_error(small, 4) == len(last_error())
    assert small.raw[:5] == last_error()[:3].encode() + b"\0x"


def test_what_cannot_be_opened(path: Path, tmp_path: Path) -> None:
    def refused(source: Path | bytes, status: int, why: str, options: ModelOptions | None = None) -> None:
        model = Model(source, options)
        assert model.status == status and model.is_null and why in last_error(), last_error()

    data = path.read_bytes()
    refused(tmp_path, FILE_ERROR, "cannot be")
    refused(b"", INVALID_MODEL, "no ONNX model")
    refused(b"nonsense", INVALID_MODEL, "")
    refused(data[: len(data) // 2], INVALID_MODEL, "ends too early")
    refused(chain().SerializeToString(), UNSUPPORTED, "was not compiled")
    refused(compiled(divided(), tmp_path).path, UNSUPPORTED, "(Unique) was not compiled")
    refused(path, INVALID_PARAMS, "struct_size", ModelOptions())
    refused(path, INVALID_PARAMS, "threads", ModelOptions(ctypes.sizeof(ModelOptions), 1 << 20))
    twice = onnx.load(path)
    twice.graph.output.append(twice.graph.output[0])
    refused(twice.SerializeToString(), INVALID_MODEL, "two outputs are named 'y'")
    wrong = onnx.load(path)
    input_shape(wrong, ["n", 63])
    refused(wrong.SerializeToString(), INVALID_MODEL, "'x' has another shape")
    (tmp_path / "digests").write_text("0" * 64)
    (tmp_path / "digests").chmod(0o600)
    options = ModelOptions(struct_size=ctypes.sizeof(ModelOptions), digests=str(tmp_path / "digests").encode())
    refused(path, INVALID_MODEL, "does not list", options)


def test_not_for_this_machine(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XYNTRA_ISA", "scalar")
    model = Model(path)
    assert model.status == INVALID_MODEL and "compiled for what this machine does not have" in last_error()
    assert CPU_ERROR == 4  # as the header has it


@pytest.mark.parametrize("kind", ["raw", "numbers", "external"])
def test_constants_in_each_form(kind: str, tmp_path: Path) -> None:
    given = chain()
    model = onnx.load(compiled(given, tmp_path).path)
    for tensor in model.graph.initializer:
        value = onnx.numpy_helper.to_array(tensor)
        if kind == "numbers":
            numbers = onnx.helper.make_tensor(tensor.name, tensor.data_type, value.shape, value.flatten().tolist())
            tensor.CopyFrom(numbers)
    where = tmp_path / "forms.onnx"
    onnx.save(model, where, save_as_external_data=kind == "external", location="forms.data", size_threshold=0)
    x, y = rows(2), np.zeros((2, 5), np.float32)
    with Model(where) as opened:
        assert opened.run([view(x)], [view(y)]) == SUCCESS
    np.testing.assert_allclose(y, expected(given, {"x": x})[0], rtol=1e-5, atol=1e-6)
    if kind == "external":
        (tmp_path / "forms.data").write_bytes(b"short")
        assert Model(where).status == INVALID_MODEL and "too short" in last_error()
        assert Model(where.read_bytes()).status == INVALID_MODEL and "given from memory" in last_error()
