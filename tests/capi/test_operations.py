"""Single operations by the C functions, against NumPy in float64; and nonsense, which is a status."""

from __future__ import annotations

import ctypes
import shutil
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.capi.library import (
    FILE_ERROR,
    INVALID_MODEL,
    INVALID_PARAMS,
    SUCCESS,
    UNSUPPORTED,
    last_error,
    threads_of_a_caller,
    tracea,
    view,
)
from tests.capi.operations import Array, Execution, attended, call, convolved, strided

pytestmark = [pytest.mark.native, pytest.mark.compiler("cc"), pytest.mark.usefixtures("operations")]


def random(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


def fresh(*shape: int) -> Array:
    return np.full(shape, np.nan, np.float32)


def close(found: Array, want: Array) -> None:
    """Sums of up to some thousand products of numbers around 1."""
    np.testing.assert_allclose(found, want, rtol=2e-5, atol=2e-4)


def product(a: Array, b: Array, bias: Array | None = None) -> Array:
    result = a.astype(np.float64) @ b.astype(np.float64)
    return result if bias is None else result + bias


@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 5, 3), (7, 1, 9), (33, 65, 17), (64, 64, 64), (129, 200, 131)])
def test_gemm(shape: tuple[int, int, int], has_bias: bool) -> None:
    m, k, n = shape
    a, b, bias, y = random(m, k), random(k, n), random(n) if has_bias else None, fresh(m, n)
    assert call("gemm", a, b, bias, y) == SUCCESS, last_error()
    close(y, product(a, b, bias))
    transposed = np.ascontiguousarray(b.T).T
    assert call("gemm", a, transposed, bias, y) == SUCCESS, last_error()
    close(y, product(a, b, bias))


def test_gemm_of_many() -> None:
    a, b, y = random(3, 10, 20), random(3, 20, 30), fresh(3, 10, 30)
    assert call("gemm", a, b, None, y) == SUCCESS, last_error()
    close(y, product(a, b))
    assert call("gemm", a, b[1], random(30), y) == SUCCESS, last_error()
    close(y, product(a, b[1], random(30)))
    assert call("gemm", a, np.ascontiguousarray(b.swapaxes(1, 2)).swapaxes(1, 2), None, y) == SUCCESS, last_error()
    close(y, product(a, b))


def test_gemm_of_strided_tensors() -> None:
    wide, tall, spread = random(2, 24, 40), random(2, 80, 15), random(30)
    room = np.zeros((2, 24, 30), np.float32)
    a, b, bias, y = wide[:, ::2, :20], tall[:, ::4], spread[::2], room[:, ::2, ::2]
    assert call("gemm", a, b, bias, y) == SUCCESS, last_error()
    close(y, product(a, b, bias))
    assert not room[:, 1::2].any() and not room[:, :, 1::2].any()
    y = np.zeros((2, 15, 12), np.float32).swapaxes(1, 2)
    assert call("gemm", a.swapaxes(1, 2).copy().swapaxes(1, 2), b, None, y) == SUCCESS, last_error()
    close(y, product(a, b))
    repeated = np.broadcast_to(b[:1], b.shape)
    assert call("gemm", a, repeated, None, y) == SUCCESS, last_error()
    close(y, product(a, repeated))


def test_gemm_of_nothing() -> None:
    assert call("gemm", fresh(0, 3), random(3, 4), None, fresh(0, 4)) == SUCCESS, last_error()
    y = fresh(2, 4)
    assert call("gemm", fresh(2, 0), fresh(0, 4), random(4), y) == SUCCESS, last_error()
    close(y, np.broadcast_to(random(4), (2, 4)))
    assert call("gemm", fresh(2, 0), fresh(0, 4), None, y) == SUCCESS, last_error()
    assert not y.any()


CONVOLUTIONS: list[dict[str, Any]] = [
    {},
    {"kernel": (1, 1), "has_bias": True},
    {"kernel": (1, 1)},
    {"padding": (1, 1, 1, 1), "has_bias": True},
    {"padding": (0, 3, 2, 1), "stride": (2, 3)},
    {"dilation": (2, 3), "padding": (2, 4, 1, 0)},
    {"groups": 3, "has_bias": True, "stride": (3, 1)},
    {"groups": 6, "maps": 6, "padding": (1, 1, 1, 1)},
    {"kernel": (5, 2), "padding": (9, 9, 9, 9), "dilation": (1, 2)},
    {"kernel": (1, 1), "padding": (0, 1, 0, 0), "stride": (2, 2)},
    {"image": (1, 1), "kernel": (1, 1), "maps": 1 * 12},
    {"image": (3, 3), "has_bias": True},
    {"image": (90, 91), "channels": 120, "maps": 7, "batch": 1, "padding": (1, 1, 1, 1)},
]


@pytest.mark.parametrize("case", CONVOLUTIONS, ids=str)
@pytest.mark.parametrize("is_strided", [False, True])
def test_conv2d(case: dict[str, Any], is_strided: bool) -> None:
    channels, maps, groups, batch = case.get("channels", 6), case.get("maps", 12), case.get("groups", 1), case.get("batch", 2)
    kernel, image = case.get("kernel", (3, 3)), case.get("image", (13, 11))
    x, w = random(batch, channels, *image), random(maps, channels // groups, *kernel)
    bias = random(maps) if case.get("has_bias") else None
    settings = {key: case.get(key, usual) for key, usual in (("stride", (1, 1)), ("padding", (0,) * 4), ("dilation", (1, 1)))}
    want = convolved(x, w, bias, **settings, groups=groups)
    y = fresh(*want.shape)
    if is_strided:  # channels last
        x, w = (np.ascontiguousarray(t.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2) for t in (x, w))
        y = fresh(*(want.shape[i] for i in (0, 2, 3, 1))).transpose(0, 3, 1, 2)
    assert call("conv2d", x, w, bias, y, groups=groups, **settings) == SUCCESS, last_error()
    np.testing.assert_allclose(y, want, rtol=1e-4, atol=1e-3)  # as many as 1080 products


def test_conv2d_without_params() -> None:
    x, w, y = random(1, 2, 6, 6), random(3, 2, 3, 3), fresh(1, 3, 4, 4)
    views = [strided(t) for t in (x, w, y)]
    status = tracea().tracea_conv2d(ctypes.byref(views[0]), ctypes.byref(views[1]), None, ctypes.byref(views[2]), None)
    assert status == SUCCESS, last_error()
    close(y, convolved(x, w, None, (1, 1), (0, 0, 0, 0), (1, 1), 1))
    assert call("conv2d", x, w, None, y) == SUCCESS  # zeros in params are what is usual
    assert call("conv2d", x[:0], w, None, y[:0]) == SUCCESS


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize(
    "shape", [(1, 1, 1, 1, 1, 1), (2, 3, 5, 7, 16, 24), (1, 2, 33, 65, 64, 64), (2, 2, 17, 9, 128, 128), (1, 4, 40, 40, 80, 80)]
)
def test_attention(shape: tuple[int, ...], is_causal: bool) -> None:
    batch, heads, queries, keys, depth, width = shape
    q, k, v = random(batch, heads, queries, depth), random(batch, heads, keys, depth), random(batch, heads, keys, width)
    y = fresh(batch, heads, queries, width)
    assert call("attention", q, k, v, y, is_causal=int(is_causal)) == SUCCESS, last_error()
    close(y, attended(q, k, v, is_causal=is_causal))
    assert call("attention", q, k, v, y, is_causal=int(is_causal), scale=0.3) == SUCCESS, last_error()
    close(y, attended(q, k, v, 0.3, is_causal))


@pytest.mark.parametrize("depth", [20, 64])
def test_attention_of_shared_heads_and_strides(depth: int) -> None:
    """As models have them: positions before heads."""
    q, k, v = (random(2, 9, heads, depth).transpose(0, 2, 1, 3) for heads in (6, 2, 2))
    y = fresh(2, 9, 6, depth).transpose(0, 2, 1, 3)
    assert call("attention", q, k, v, y) == SUCCESS, last_error()
    close(y, attended(q, k, v))


@np.errstate(invalid="ignore")
def test_special_values() -> None:
    a, b, y = random(4, 6), random(6, 5), fresh(4, 5)
    a[0, 0], a[1, 1], a[2, 2] = np.nan, np.inf, -np.inf
    assert call("gemm", a, b, None, y) == SUCCESS
    np.testing.assert_allclose(y, a @ b, rtol=1e-5, atol=1e-6)
    x, w, z = random(1, 1, 5, 5), random(1, 1, 3, 3), fresh(1, 1, 5, 5)
    x[0, 0, 0, 0], x[0, 0, 4, 4] = np.nan, np.inf
    padding = (1, 1, 1, 1)
    assert call("conv2d", x, w, None, z, padding=padding) == SUCCESS
    np.testing.assert_allclose(z, convolved(x, w, None, (1, 1), padding, (1, 1), 1), rtol=1e-5, atol=1e-6)
    q, k, v, o = random(1, 1, 4, 64), random(1, 1, 4, 64), random(1, 1, 4, 64), fresh(1, 1, 4, 64)
    k[0, 0, 3] = np.nan  # only the last query sees it
    assert call("attention", q, k, v, o, is_causal=1) == SUCCESS
    close(o[:, :, :3], attended(q, k, v, is_causal=True)[:, :, :3])
    assert np.isnan(o[0, 0, 3]).all()


def test_threads_of_the_callers_change_nothing() -> None:
    counts: list[int] = []
    callback = threads_of_a_caller(counts)
    x, w = random(1, 4, 40, 40), random(8, 4, 3, 3)
    results = []
    for execution in (Execution(threads=1), Execution(threads=2), Execution(0, ctypes.cast(callback, ctypes.c_void_p).value)):
        results.append(fresh(1, 8, 38, 38))
        assert call("conv2d", x, w, None, results[-1], execution=execution) == SUCCESS, last_error()
    assert counts and max(counts) > 1
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])


def test_many_threads_call() -> None:
    wrong: list[str] = []

    def work(n: int) -> None:
        a, b, y = random(n, 40), random(40, n), fresh(n, n)
        for _ in range(20):
            if call("gemm", a, b, None, y) != SUCCESS:
                wrong.append(last_error())
        if not np.allclose(y, product(a, b), atol=1e-4):
            wrong.append(f"{n} is wrong")

    threads = [threading.Thread(target=work, args=(n,)) for n in range(10, 18)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


A, B, Y = random(4, 6), random(6, 5), fresh(4, 5)
X, W, Z = random(1, 4, 8, 8), random(6, 2, 3, 3), fresh(1, 6, 6, 6)
Q, K, V, RESULT = random(2, 4, 5, 8), random(2, 2, 7, 8), random(2, 2, 7, 3), fresh(2, 4, 5, 3)
BOTH = random(64)
GROUPED = {"groups": 2}
NONSENSE: list[tuple[str, str, tuple[Any, ...], dict[str, Any], int]] = [
    ("no a", "gemm", (None, B, None, Y), {}, INVALID_PARAMS),
    ("no out", "gemm", (A, B, None, None), {}, INVALID_PARAMS),
    ("a is NULL", "gemm", (view(A, ptr=None), B, None, Y), {}, INVALID_PARAMS),
    ("no shape", "gemm", (A, view(B, shape=None), None, Y), {}, INVALID_PARAMS),
    ("negative size", "gemm", (A, B, None, view(Y, shape=(ctypes.c_int64 * 2)(4, -5))), {}, INVALID_PARAMS),
    ("negative stride", "gemm", (view(A, (-6, 1)), B, None, Y), {}, INVALID_PARAMS),
    ("last address", "gemm", (view(A, (1 << 62, 1)), B, None, Y), {}, INVALID_PARAMS),
    ("out has elements that overlap", "gemm", (A, B, None, view(Y, (4, 1))), {}, INVALID_PARAMS),
    ("out has elements that overlap", "gemm", (A, B, None, view(Y, (0, 1))), {}, INVALID_PARAMS),
    ("out overlaps a", "gemm", (BOTH[:24].reshape(4, 6), B, None, BOTH[23:43].reshape(4, 5)), {}, INVALID_PARAMS),
    ("out overlaps b", "gemm", (A, BOTH[10:40].reshape(6, 5), None, BOTH[:20].reshape(4, 5)), {}, INVALID_PARAMS),
    ("out overlaps bias", "gemm", (A, B, BOTH[19:24], BOTH[:20].reshape(4, 5)), {}, INVALID_PARAMS),
    ("a has 1 axes", "gemm", (A[0], B, None, Y), {}, INVALID_PARAMS),
    ("out has 4 axes", "gemm", (A, B, None, Y[None, None]), {}, INVALID_PARAMS),
    ("bias has 2 axes", "gemm", (A, B, random(1, 5), Y), {}, INVALID_PARAMS),
    ("a, b and out have other axes", "gemm", (A, B[None], None, Y), {}, INVALID_PARAMS),
    ("the columns of a, the rows of b", "gemm", (A, B[:5], None, Y), {}, INVALID_PARAMS),
    ("those of out", "gemm", (A, B, None, Y[:3]), {}, INVALID_PARAMS),
    ("those of out", "gemm", (A, B, None, Y[:, :3]), {}, INVALID_PARAMS),
    ("the first axes", "gemm", (A[None], random(2, 6, 5), None, Y[None]), {}, INVALID_PARAMS),
    ("the bias", "gemm", (A, B, random(4), Y), {}, INVALID_PARAMS),
    ("a is not of float32", "gemm", (A.astype(np.float64), B, None, Y), {}, UNSUPPORTED),
    ("out is not of float32", "gemm", (A, B, None, np.zeros((4, 5), np.int32)), {}, UNSUPPORTED),
    ("no elements of type 99", "gemm", (view(A, dtype=99), B, None, Y), {}, INVALID_PARAMS),
    ("CUDA device", "gemm", (view(A, device_id=0), B, None, Y), {}, UNSUPPORTED),
    ("a device that there is not", "gemm", (view(A, device_id=-2), B, None, Y), {}, INVALID_PARAMS),
    ("not aligned", "gemm", (view(A, ptr=A.ctypes.data + 2), B, None, Y), {}, INVALID_PARAMS),
    ("a stream is of CUDA", "gemm", (A, B, None, Y), {"execution": Execution(stream=1)}, UNSUPPORTED),
    ("more than 1024 threads", "gemm", (A, B, None, Y), {"execution": Execution(threads=2000)}, INVALID_PARAMS),
    ("struct_size", "gemm", (A, B, None, Y), {"struct_size": 0}, INVALID_PARAMS),
    ("no w", "conv2d", (X, None, None, Z), GROUPED, INVALID_PARAMS),
    ("x has 3 axes", "conv2d", (X[0], W, None, Z), GROUPED, INVALID_PARAMS),
    ("do not fit 1 groups", "conv2d", (X, W, None, Z), {}, INVALID_PARAMS),
    ("do not fit 4 groups", "conv2d", (X, random(6, 1, 3, 3), None, Z), {"groups": 4}, INVALID_PARAMS),
    ("groups is negative", "conv2d", (X, W, None, Z), {"groups": -2}, INVALID_PARAMS),
    ("do not fit 9223372036854775807", "conv2d", (X, W, None, Z), {"groups": (1 << 63) - 1}, INVALID_PARAMS),
    ("the result [1,6,6,6]", "conv2d", (X, W, None, fresh(1, 6, 6, 5)), GROUPED, INVALID_PARAMS),
    ("the result [1,6,3,6]", "conv2d", (X, W, None, Z), {**GROUPED, "stride": (2, 1)}, INVALID_PARAMS),
    ("stride of the convolution", "conv2d", (X, W, None, Z), {**GROUPED, "stride": (1, -1)}, INVALID_PARAMS),
    ("padding is negative", "conv2d", (X, W, None, Z), {**GROUPED, "padding": (0, 0, 0, -1)}, INVALID_PARAMS),
    ("dilation is negative", "conv2d", (X, W, None, Z), {**GROUPED, "dilation": (-1, 1)}, INVALID_PARAMS),
    ("too large", "conv2d", (X, W, None, Z), {**GROUPED, "dilation": (1 << 40, 1)}, INVALID_PARAMS),
    ("beyond the padded x", "conv2d", (X, W, None, Z), {**GROUPED, "dilation": (4, 1)}, INVALID_PARAMS),
    ("w has no taps", "conv2d", (X, W[:, :, :0], None, Z), GROUPED, INVALID_PARAMS),
    ("bias is [5]", "conv2d", (X, W, random(5), Z), GROUPED, INVALID_PARAMS),
    ("out overlaps x", "conv2d", (X, random(4, 4, 1, 1), None, X), {}, INVALID_PARAMS),
    ("no v", "attention", (Q, K, None, RESULT), {}, INVALID_PARAMS),
    ("q has 3 axes", "attention", (Q[0], K, V, RESULT), {}, INVALID_PARAMS),
    ("the batch", "attention", (Q[:1], K, V, RESULT), {}, INVALID_PARAMS),
    ("the heads", "attention", (Q[:, :3], K, V, RESULT[:, :3]), {}, INVALID_PARAMS),
    ("the heads", "attention", (Q, K[:, :0], V[:, :0], RESULT), {}, INVALID_PARAMS),
    ("the depth", "attention", (Q, K[..., :7], V, RESULT), {}, INVALID_PARAMS),
    ("the keys", "attention", (Q, K, V[:, :, :6], RESULT), {}, INVALID_PARAMS),
    ("q, v and out", "attention", (Q, K, V, RESULT[..., :2]), {}, INVALID_PARAMS),
    ("there is no key", "attention", (Q, K[:, :, :0], V[:, :, :0], RESULT), {}, INVALID_PARAMS),
    ("scale", "attention", (Q, K, V, RESULT), {"scale": float("nan")}, INVALID_PARAMS),
    ("out overlaps v", "attention", (Q, K, RESULT[:, :2], RESULT), {}, INVALID_PARAMS),
]


@pytest.mark.parametrize("case", NONSENSE, ids=lambda case: f"{case[1]}: {case[0]}")
def test_nonsense_is_a_status(case: tuple[str, str, tuple[Any, ...], dict[str, Any], int]) -> None:
    why, name, tensors, params, status = case
    for array in (Y, Z, RESULT):
        array[...] = 7
    assert call(name, *tensors, **params) == status, last_error()
    assert why in last_error()
    assert all((array == 7).all() for array in (Y, Z, RESULT)), "nothing is written"


def test_files_that_cannot_be_used(operations: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XYNTRA_PREBUILT_DIR", str(tmp_path))
    assert call("gemm", A, B, None, Y) == FILE_ERROR
    assert "XYNTRA_PREBUILT_DIR" in last_error() and str(tmp_path) in last_error()
    damaged = tmp_path / "gemm.onnx"
    damaged.write_bytes((operations / "gemm.onnx").read_bytes()[:5000])
    damaged.chmod(0o644)
    assert call("gemm", A, B, None, Y) == INVALID_MODEL and str(damaged) in last_error()
    shutil.copy(operations / "gemm.onnx", damaged)
    damaged.chmod(0o666)
    assert call("gemm", A, B, None, Y) == FILE_ERROR and "gemm.onnx" in last_error()
    damaged.chmod(0o644)
    assert call("gemm", A, B, None, Y) == SUCCESS, last_error()


def test_on_other_machines(operations: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was opened stays as it is, so each pretended machine has files of its own."""
    for isa, status in (("avx2", SUCCESS), ("scalar", INVALID_MODEL)):
        shutil.copytree(operations, tmp_path / isa)
        monkeypatch.setenv("XYNTRA_PREBUILT_DIR", str(tmp_path / isa))
        monkeypatch.setenv("XYNTRA_ISA", isa)
        y, z, result = fresh(4, 5), fresh(1, 6, 6, 6), fresh(2, 4, 5, 3)
        assert call("gemm", A, B, None, y) == status
        assert call("conv2d", X, W, None, z, groups=2) == status
        assert call("attention", Q, K, V, result) == status
        if status == SUCCESS:
            close(y, product(A, B))
            close(z, convolved(X, W, None, (1, 1), (0, 0, 0, 0), (1, 1), 2))
            close(result, attended(Q, K, V))
    assert "what this machine does not have" in last_error()
