"""Buffers that are bound as input and output at once, wholly or in part: as if every input were read before anything is written.

ONNX Runtime's CPU provider is right where its kernels read before they write. Here every island must be, whatever its steps are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from numpy.typing import NDArray

from tests.support.models.model_text import cpu, normal, parse
from tests.support.sessions import planned

pytestmark = [pytest.mark.native, pytest.mark.compiler("cc")]
SHARED = r"the outputs '(first' and 'second|second' and 'first)' are bound to the same memory"

Array = NDArray[Any]
N = 96
MATRIX = "(float[M,96] x) => (float[M,96] y)"
IMAGE = "(float[B,8,12,12] x) => (float[B,8,12,12] y)"
W, GAMMA = normal(N, N) / 8, 1 + normal(N, seed=1) / 4
FILTERS = normal(8, 8, 3, 3) / 8
KINDS = {
    "relu": (parse(MATRIX + "{ y = Relu(x) }"), (N, N)),
    "transposed": (parse("(float[M,M] x) => (float[M,M] y) { t = Transpose<perm=[1,0]>(x) y = Add(t, x) }"), (N, N)),
    "rolled": (
        parse(
            MATRIX + "{ p = Slice(x, one, end, zero) q = Slice(x, zero, one, zero) y = Concat<axis=0>(p, q) }",
            zero=np.array([0]),
            one=np.array([1]),
            end=np.array([1 << 40]),
        ),
        (N, N),
    ),
    "product": (parse(MATRIX + "{ y = MatMul(x, w) }", w=W), (N, N)),
    "product and sum": (parse(MATRIX + "{ p = MatMul(x, w) s = Softmax(p) y = Add(s, x) }", w=W), (N, N)),
    "of itself": (parse("(float[M,M] x) => (float[M,M] y) { y = MatMul(x, x) }"), (N, N)),
    "layer norm": (parse(MATRIX + "{ a = Add(x, w) y = LayerNormalization(a, g, g) }", w=W, g=GAMMA), (N, N)),
    "softmax": (parse(MATRIX + "{ y = Softmax<axis=-1>(x) }"), (N, N)),
    "softmax of columns": (parse(MATRIX + "{ y = Softmax<axis=0>(x) }"), (N, N)),
    "gathered": (
        parse(MATRIX + "{ y = Gather<axis=0>(x, turned) }", turned=np.arange(N)[::-1].copy()),
        (N, N),
    ),
    "summed up": (parse(MATRIX + "{ c = CumSum(x, zero) y = Add(c, x) }", zero=np.array(0)), (N, N)),
    "convolution": (parse(IMAGE + "{ y = Conv<pads=[1,1,1,1]>(x, w) }", w=FILTERS), (2, 8, 12, 12)),
    "block": (
        parse(IMAGE + "{ c = Conv<pads=[1,1,1,1]>(x, w) a = Add(c, x) y = Relu(a) }", w=FILTERS),
        (2, 8, 12, 12),
    ),
    "pooled": (
        parse(IMAGE + "{ y = MaxPool<kernel_shape=[3,3], pads=[1,1,1,1], strides=[1,1]>(x) }"),
        (2, 8, 12, 12),
    ),
    "attention": (
        parse(
            """(float[B,S,96] x) => (float[B,S,96] y)
            { q = MatMul(x, w) k = MatMul(x, w) kt = Transpose<perm=[0,2,1]>(k) s = MatMul(q, kt) p = Softmax<axis=-1>(s)
              o = MatMul(p, x) y = Add(o, x) }""",
            w=W / 4,
        ),
        (2, 48, N),
    ),
}


def bound(session: ort.InferenceSession, tensors: Sequence[tuple[str, Array]], outputs: Sequence[tuple[str, Array]]) -> None:
    """A run on the memory of these arrays, whatever they share."""
    binding = session.io_binding()
    for name, array in tensors:
        binding.bind_input(name, "cpu", 0, array.dtype.type, array.shape, array.ctypes.data)
    for name, array in outputs:
        binding.bind_output(name, "cpu", 0, array.dtype.type, array.shape, array.ctypes.data)
    session.run_with_iobinding(binding)


def at(memory: Array, first: int, shape: Sequence[int]) -> Array:
    return memory[first : first + int(np.prod(shape))].reshape(shape)


@pytest.mark.parametrize("shift", [0, 1, -1, 40, -40, 1100], ids="{:+}".format)
@pytest.mark.parametrize("kind", KINDS)
def test_an_output_over_an_input(kind: str, shift: int) -> None:
    """``shift``: elements between the first of the input and the first of the output."""
    model, shape = KINDS[kind]
    x = normal(*shape)
    (want,) = cpu(model, {"x": x})
    for threads in (1, 2):
        session = planned(model, threads=threads)
        memory = np.full(3 * x.size, 1e30, np.float32)
        source, target = at(memory, x.size, shape), at(memory, x.size + shift, shape)
        for _ in range(2):
            source[...] = x
            bound(session, [("x", source)], [("y", target)])
            np.testing.assert_allclose(target, want, rtol=0, atol=2e-5 * np.abs(want).max())
        around = np.delete(memory, np.s_[x.size + shift : 2 * x.size + shift])
        untouched = np.full(3 * x.size, 1e30, np.float32)
        at(untouched, x.size, shape)[...] = x
        np.testing.assert_array_equal(around, np.delete(untouched, np.s_[x.size + shift : 2 * x.size + shift]))
        fresh = session.run(None, {"x": x})[0]  # the workspace has forgotten what it bound
        np.testing.assert_array_equal(fresh, target)


CACHE = parse("""(float[2,P,8] past, float[2,1,8] new, float[2,1,8] q) => (float[2,T,8] present, float[2,1,8] y)
    { present = Concat<axis=1>(past, new) kt = Transpose<perm=[0,2,1]>(present) s = MatMul(q, kt) p = Softmax<axis=-1>(s)
      y = MatMul(p, present) }""")


def test_a_cache_that_grows_in_place() -> None:
    """Rows of the second head move behind those of the first that are added."""
    session = planned(CACHE)
    memory = np.zeros(2 * 40 * 8, np.float32)
    past = normal(2, 1, 8)
    for step in range(1, 30):
        new, q = normal(2, 1, 8, seed=step), normal(2, 1, 8, seed=-step % 1000)
        at(memory, 0, past.shape)[...] = past
        want, answer = cpu(CACHE, {"past": past, "new": new, "q": q})
        present, y = at(memory, 0, want.shape), np.empty_like(answer)
        bound(session, [("past", at(memory, 0, past.shape)), ("new", new), ("q", q)], [("present", present), ("y", y)])
        np.testing.assert_array_equal(present, want)
        np.testing.assert_allclose(y, answer, rtol=0, atol=1e-5)
        past = want


def test_inputs_may_share_memory() -> None:
    model = parse("(float[M,96] a, float[M,96] b) => (float[M,96] y) { t = Mul(a, b) y = Add(t, b) }")
    session, x = planned(model), normal(4, N)
    y = np.empty_like(x)
    bound(session, [("a", x), ("b", x)], [("y", y)])
    np.testing.assert_allclose(y, x * x + x, rtol=0, atol=1e-6)


TWO = parse("(float[M,96] x) => (float[M,96] first, float[M,96] second) { first = Relu(x) second = Neg(x) }")


@pytest.mark.parametrize("shift", [0, 1, 95])
def test_two_outputs_in_one_place_are_refused(shift: int) -> None:
    session, x = planned(TWO), normal(1, N)
    memory = np.full(2 * N, 7, np.float32)
    places = [("first", at(memory, 0, (1, N))), ("second", at(memory, shift, (1, N)))]
    with pytest.raises(RuntimeError, match=SHARED):
        bound(session, [("x", x)], places)
    assert (memory == 7).all(), "nothing is written by a run that is refused"
    bound(session, [("x", x)], [("first", at(memory, 0, (1, N))), ("second", at(memory, N, (1, N)))])
    np.testing.assert_array_equal(memory, np.concatenate([np.maximum(x, 0), -x], axis=None))


def test_outputs_without_elements_share_nothing() -> None:
    session, place = planned(TWO), np.zeros(8, np.float32)
    bound(session, [("x", at(place, 0, (0, N)))], [("first", at(place, 0, (0, N))), ("second", at(place, 0, (0, N)))])


def test_an_output_over_the_memory_of_a_weight() -> None:
    """Weights are packed when the session is made: what the user does to their memory later is his."""
    model: onnx.ModelProto = parse(MATRIX + "{ y = MatMul(x, w) }", w=W)
    given = W.copy()
    settings = ort.SessionOptions()
    settings.add_initializer("w", weight := ort.OrtValue.ortvalue_from_numpy(given))
    providers = [("XyntraEP", {"claim": "all"}), "CPUExecutionProvider"]
    session = ort.InferenceSession(model.SerializeToString(), settings, providers=providers)
    x = normal(N, N)
    (want,) = cpu(model, {"x": x})
    for _ in range(2):
        binding = session.io_binding()
        binding.bind_cpu_input("x", x)
        binding.bind_ortvalue_output("y", weight)
        session.run_with_iobinding(binding)
        np.testing.assert_allclose(weight.numpy(), want, rtol=0, atol=1e-4)


@pytest.mark.device("opencl")
@pytest.mark.parametrize("kind", ["transposed", "rolled", "product and sum", "attention"])
def test_on_a_device(kind: str) -> None:
    model, shape = KINDS[kind]
    x = normal(*shape)
    (want,) = cpu(model, {"x": x})
    session = planned(model, {"backend": "opencl"})
    memory = np.zeros(3 * x.size, np.float32)
    for shift in (0, 1):
        source, target = at(memory, x.size, shape), at(memory, x.size + shift, shape)
        source[...] = x
        bound(session, [("x", source)], [("y", target)])
        np.testing.assert_allclose(target, want, rtol=0, atol=1e-4 * np.abs(want).max())


@pytest.mark.device("opencl")
def test_two_outputs_in_one_place_are_refused_on_a_device() -> None:
    session, x, y = planned(TWO, {"backend": "opencl"}), normal(1, N), np.zeros((1, N), np.float32)
    with pytest.raises(RuntimeError, match=SHARED):
        bound(session, [("x", x)], [("first", y), ("second", y)])
