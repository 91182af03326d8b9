"""Operations on NumPy's arrays against NumPy in float64, what they refuse, and arrays of a library that speaks DLPack."""

from __future__ import annotations

import math
import sys
import threading
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from xyntra_ep.errors import ConfigError, UnsupportedError
from xyntra_ep.tracea import ops

pytestmark = [pytest.mark.native, pytest.mark.compiler("cc")]

MAX_ERROR = 2e-6  # of float32 sums of up to 100 elements
Array = NDArray[Any]


def _floats(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng((seed, *shape)).standard_normal(shape).astype(np.float32)


def _close(ours: Array, wanted: Array, most: float = MAX_ERROR) -> None:
    assert ours.dtype == np.float32 and ours.shape == wanted.shape
    assert np.abs(ours - wanted).max(initial=0) <= most * max(1.0, np.abs(wanted).max(initial=0))


def _softmax(x: Array, axis: int = -1) -> Array:
    e: Array = np.exp(x - x.max(axis, keepdims=True))
    found: Array = e / e.sum(axis, keepdims=True)
    return found


@pytest.mark.parametrize(
    ("a", "b"),
    [((5, 7), (7, 3)), ((2, 3, 5, 7), (3, 7, 4)), ((4, 1, 2, 6), (5, 6, 3)), ((7,), (7, 3)), ((2, 5, 7), (7,)), ((7,), (7,))],
)
def test_matmul(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    x, y = _floats(*a), _floats(*b, seed=1)
    _close(ops.matmul(x, y), np.matmul(x.astype(np.float64), y))


def test_one_kernel_serves_all_sizes() -> None:
    from xyntra_ep.frameworks.ops import compiled

    ops.linear(_floats(2, 24), _floats(16, 24))
    known = len(compiled._cache.found)
    for rows in (3, 1, 33):
        x, w = _floats(rows, 24), _floats(16, 24, seed=rows)
        _close(ops.linear(x, w), x.astype(np.float64) @ w.T)
    assert len(compiled._cache.found) <= known + 1, "a size of 1 is its own, as it may be repeated"


def test_linear_adds_a_bias() -> None:
    x, w, b = _floats(3, 4, 24), _floats(16, 24), _floats(16)
    _close(ops.linear(x, w, b), x.astype(np.float64) @ w.T + b)


@pytest.mark.parametrize(
    "stride, padding, dilation, groups", [(1, 0, 1, 1), (2, 1, 1, 1), (1, "same", 2, 2), ((1, 2), (2, 0), 1, 4)]
)
def test_conv2d(stride: Any, padding: Any, dilation: int, groups: int) -> None:
    x, w, b = _floats(2, 4, 9, 8), _floats(8, 4 // groups, 3, 3), _floats(8)
    ours = ops.conv2d(x, w, b, stride, padding, dilation, groups)
    sy, sx = (stride, stride) if isinstance(stride, int) else stride
    py, px = (dilation, dilation) if padding == "same" else (padding, padding) if isinstance(padding, int) else padding
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (py, py), (px, px)))
    rows, columns = ((n - 2 * dilation - 1) // s + 1 for n, s in zip(padded.shape[2:], (sy, sx), strict=True))
    wanted = np.zeros((2, 8, rows, columns))
    for o in range(8):
        inputs = slice((o // (8 // groups)) * (4 // groups), (o // (8 // groups) + 1) * (4 // groups))
        for i in range(rows):
            for j in range(columns):
                seen = padded[
                    :, inputs, i * sy : i * sy + 2 * dilation + 1 : dilation, j * sx : j * sx + 2 * dilation + 1 : dilation
                ]
                wanted[:, o, i, j] = (seen * w[o]).sum((1, 2, 3)) + b[o]
    _close(ours, wanted)
    _close(ops.conv2d(x[0], w, b, stride, padding, dilation, groups), wanted[0])


def _attention(q: Array, k: Array, v: Array, mask: Array | None = None) -> Array:
    repeat = q.shape[1] // k.shape[1]
    k, v = (np.repeat(t.astype(np.float64), repeat, axis=1) for t in (k, v))
    scores = q.astype(np.float64) @ k.swapaxes(2, 3) / math.sqrt(q.shape[3])
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    return _softmax(scores) @ v


def test_attention() -> None:
    q, k, v = _floats(2, 4, 5, 8), _floats(2, 4, 7, 8, seed=1), _floats(2, 4, 7, 8, seed=2)
    _close(ops.attention(q, k, v), _attention(q, k, v))
    _close(ops.attention(q, k, v, scale=0.0), np.broadcast_to(v.astype(np.float64).mean(2, keepdims=True), q.shape))
    _close(ops.attention(q, q, q, is_causal=True), _attention(q, q, q, np.tri(5, dtype=bool)))
    _close(ops.attention(q, k[:, :2], v[:, :2], enable_gqa=True), _attention(q, k[:, :2], v[:, :2]))
    seen = np.random.default_rng(3).random((5, 7)) > 0.4
    seen[:, 0] = True
    _close(ops.attention(q, k, v, seen), _attention(q, k, v, seen))
    for shape in ((5, 7), (2, 1, 5, 7), (2, 4, 5, 1), (1, 7)):
        mask = _floats(*shape, seed=4)
        _close(ops.attention(q, k, v, mask), _attention(q, k, v, mask))


def test_normalisations() -> None:
    x, w, b = _floats(3, 4, 16), _floats(16, seed=1), _floats(16, seed=2)
    wide = x.astype(np.float64)
    normal = (wide - wide.mean(-1, keepdims=True)) / np.sqrt(wide.var(-1, keepdims=True) + 1e-5)
    _close(ops.layer_norm(x, (16,), w, b), normal * w + b)
    _close(ops.layer_norm(x, (16,)), normal)
    both = (wide - wide.mean((1, 2), keepdims=True)) / np.sqrt(wide.var((1, 2), keepdims=True) + 1e-3)
    _close(ops.layer_norm(x, [4, 16], eps=1e-3), both)
    rms = wide / np.sqrt((wide**2).mean(-1, keepdims=True) + 1e-6)
    _close(ops.rms_norm(x, (16,), w, 1e-6), rms * w)
    _close(ops.softmax(x, 1), _softmax(wide, 1))
    _close(ops.softmax(x, axis=0), _softmax(wide, 0))


def test_gelu() -> None:
    x = _floats(3, 50) * 3
    erf = np.vectorize(math.erf)(x.astype(np.float64) / math.sqrt(2))
    _close(ops.gelu(x), 0.5 * x * (1 + erf))
    _close(
        ops.gelu(x, approximate="tanh"),
        0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x.astype(np.float64) ** 3))),
    )


def test_formulas() -> None:
    x, y = _floats(3, 4, 5), _floats(4, 1, seed=1)
    wide = x.astype(np.float64)
    _close(ops.fused("relu(x) * y + 1", x=x, y=y), np.maximum(wide, 0) * y + 1)
    _close(ops.fused("where(x < y, -x, x**2) / (abs(y) + 2)", x=x, y=y), np.where(x < y, -wide, wide**2) / (np.abs(y) + 2))
    _close(ops.fused("maximum(tanh(x), exp(-x))", x=x), np.maximum(np.tanh(wide), np.exp(-wide)))


@pytest.mark.parametrize(
    ("formula", "operands", "said"),
    [
        ("relu(x", "x", "is no formula"),
        ("relue(x)", "x", "no function 'relue'. did you mean 'relu'?"),
        ("x + yy", "xy", "wants 'yy'. did you mean 'y'?"),
        ("x + 1", "xy", "does not name 'y'"),
        ("x < y", "xy", "is true or false. choose by it: where(condition, a, b)"),
        ("x[0]", "x", "'x[0]' is not part of formulas"),
        ("__import__('os')", "", "no function '__import__'"),
        ("exp(x, x)", "x", "exp takes 1 arguments, not 2"),
        ("1 + 2", "", "names no operand"),
    ],
)
def test_wrong_formulas_are_told(formula: str, operands: str, said: str) -> None:
    with pytest.raises(ConfigError) as raised:
        ops.fused(formula, **{name: _floats(2) for name in operands})
    assert said in str(raised.value)


def test_out_is_written_where_it_lies() -> None:
    x, out = _floats(4, 6), np.full((4, 6), np.nan, np.float32)
    assert ops.softmax(x, out=out) is out
    _close(out, _softmax(x.astype(np.float64)))
    wanted = _softmax(x.astype(np.float64))
    assert ops.softmax(x, out=x) is x  # what is read is what is written
    _close(x, wanted)
    wide = np.full((4, 12), np.nan, np.float32)
    ops.softmax(_floats(4, 6), out=wide[:, ::2])
    _close(np.ascontiguousarray(wide[:, ::2]), wanted)
    assert np.isnan(wide[:, 1::2]).all()


def test_types_follow_numpy() -> None:
    half = _floats(3, 4).astype(np.float16)
    assert ops.gelu(half).dtype == np.float16
    assert ops.matmul(half, _floats(4, 2)).dtype == np.float32
    assert ops.matmul(_floats(6, 4).T, _floats(6, 3)).shape == (4, 3)
    with ops.interpreted():
        assert ops.gelu(_floats(3).astype(np.float64)).dtype == np.float64


_HEADS = _floats(1, 2, 5, 8)
_WRONG: list[tuple[Callable[[], object], type[Exception], str]] = [
    (lambda: ops.matmul(_floats(3, 4), _floats(5, 6)), ValueError, "do not fit: 4 is not 5"),
    (lambda: ops.matmul(_floats(2, 3, 4), _floats(3, 4, 5)), ValueError, "cannot be broadcast"),
    (lambda: ops.linear(_floats(3, 4), _floats(5, 6)), ValueError, "do not fit"),
    (lambda: ops.linear(_floats(3, 4), _floats(5, 4), _floats(4)), ValueError, "bias"),
    (lambda: ops.conv2d(_floats(1, 3, 5, 5), _floats(4, 2, 3, 3)), ValueError, "an input of 3 channels"),
    (lambda: ops.conv2d(_floats(1, 3, 2, 2), _floats(4, 3, 3, 3)), ValueError, "is larger than the padded input"),
    (lambda: ops.conv2d(_floats(1, 3, 5, 5), _floats(4, 3, 3, 3), stride=2, padding="same"), ValueError, "strided"),
    (lambda: ops.attention(_floats(1, 4, 5, 8), _HEADS, _HEADS), ValueError, "without enable_gqa"),
    (lambda: ops.attention(_HEADS, _HEADS, _HEADS, dropout_p=0.1), ValueError, "no random numbers"),
    (lambda: ops.attention(_HEADS, _HEADS, _HEADS, attn_mask=_floats(4, 5)), ValueError, "cannot be broadcast"),
    (lambda: ops.layer_norm(_floats(3, 4), (3,)), ValueError, "does not fit an input of (3, 4)"),
    (lambda: ops.softmax(_floats(3, 4), 2), IndexError, "dimension 2 of an array of 2"),
    (lambda: ops.gelu(_floats(3), approximate="tan"), ValueError, "approximate must be"),
    (lambda: ops.gelu(_floats(3), out=np.empty(4, np.float32)), ValueError, "out has shape (4,)"),
    (lambda: ops.gelu(_floats(3), out=np.empty(3, np.float16)), ValueError, "out is of float16"),
    (lambda: ops.gelu(np.arange(3)), TypeError, "gelu of int64"),
    (lambda: ops.gelu(np.zeros(3)), TypeError, "gelu of float64"),
    (lambda: ops.gelu([1.0]), TypeError, "list is no array"),
]


@pytest.mark.parametrize(("call", "kind", "said"), _WRONG, ids=[said for _, _, said in _WRONG])
def test_what_does_not_fit_is_told(call: Callable[[], object], kind: type[Exception], said: str) -> None:
    with pytest.raises(kind) as raised:
        call()
    assert said in str(raised.value)


def test_many_threads_may_call() -> None:
    x = _floats(64, 300)
    wanted = ops.softmax(x)
    wrong: list[int] = []

    def calls(number: int) -> None:
        for _ in range(50):
            if not np.array_equal(ops.softmax(x), wanted):
                wrong.append(number)

    threads = [threading.Thread(target=calls, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


class _Foreign:
    """An array of another library, in NumPy's memory: what CuPy's are on the processor's side of DLPack."""

    device = 1

    def __init__(self, held: Array) -> None:
        self.held = held

    def __dlpack__(self, **more: Any) -> Any:
        return self.held.__dlpack__(**more)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device, 0


def test_libraries_that_speak_dlpack(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("foreign_arrays")
    module.from_dlpack = lambda array: _Foreign(np.from_dlpack(array))  # type: ignore[attr-defined]  # made here
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(_Foreign, "__module__", module.__name__)
    x = _Foreign(_floats(3, 8))
    result = ops.softmax(x)
    assert type(result) is _Foreign
    _close(result.held, _softmax(x.held.astype(np.float64)))
    with pytest.raises(TypeError, match="arrays of foreign_arrays and numpy in one call"):
        ops.matmul(x, _floats(8, 2))
    monkeypatch.setattr(_Foreign, "device", 2)
    with pytest.raises(UnsupportedError, match="in this release ops run on the processor"):
        ops.softmax(x)
