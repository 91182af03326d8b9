"""MatMulNBits against ONNX Runtime's kernel, and what of it is declined."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, numpy_helper

from tests.support.models.alternatives import one_island
from tests.support.models.graph_from_model import trace_model
from tests.support.models.onnx_text import Array, assert_same, model_of
from xyntra_ep.errors import UnsupportedError

RNG = np.random.default_rng(0)
N, K = 19, 77


def _weights(bits: int, block: int, zeros: str = "", dtype: type = np.float32, n: int = N, k: int = K) -> dict[str, Array]:
    """``zeros``: none, packed or floats."""
    blocks = -(-k // block)
    found = {
        "q": RNG.integers(0, 256, (n, blocks, block * bits // 8)).astype(np.uint8),
        "s": RNG.uniform(0.01, 0.1, (n, blocks)).astype(dtype),
    }
    if zeros == "packed":
        found["z"] = RNG.integers(0, 256, (n, -(-blocks * bits // 8))).astype(np.uint8)
    elif zeros:
        found["z"] = RNG.uniform(0, 1 << bits, (n, blocks)).astype(dtype)
    return found


def _model(
    weights: dict[str, Array], bits: int, block: int, more: str = "", *, attributes: str = "", a: str = f"float[B, S, {K}]"
) -> ModelProto:
    names = ", ".join(weights) + more
    settings = f"K = {K}, N = {N}, bits = {bits}, block_size = {block}{attributes}"
    out = a.replace(str(K), str(N)).replace("B, S", "C, T")
    return model_of(
        f"g ({a} a) => ({out} y) {{ y = com.microsoft.MatMulNBits <{settings}> (a, {names}) }}", weights, contrib=True
    )


def _feeds(*shape: int, dtype: type = np.float32) -> dict[str, Array]:
    return {"a": RNG.standard_normal((*shape, K)).astype(dtype)}


FORMS = [(4, ""), (4, "packed"), (4, "floats"), (8, ""), (8, "packed")]  # the provider takes no floats beside 8 bits


@pytest.mark.parametrize(("bits", "zeros"), FORMS)
@pytest.mark.parametrize("block", [16, 32, 128])
def test_forms(bits: int, zeros: str, block: int) -> None:
    model = _model(_weights(bits, block, zeros), bits, block)
    assert_same(model, _feeds(1, 1))
    assert_same(model, _feeds(2, 3))


def test_shapes_of_constants() -> None:
    """Scales and zero points were vectors once."""
    weights = _weights(4, 32, "packed")
    flat = {name: array if name == "q" else array.reshape(-1) for name, array in weights.items()}
    assert_same(_model(flat, 4, 32), _feeds(2, 3))
    two_axes = _model(weights, 4, 32, a=f"float[B, {K}]")
    assert_same(two_axes, {"a": _feeds(5)["a"]})


def test_half_precision() -> None:
    model = _model(_weights(4, 32, dtype=np.float16), 4, 32, a=f"float16[B, S, {K}]")
    assert_same(model, _feeds(2, 3, dtype=np.float16))


def test_bias_and_the_usual_order() -> None:
    biased = _model(_weights(4, 32), 4, 32, ", , , bias")
    biased.graph.initializer.append(numpy_helper.from_array(RNG.standard_normal(N).astype(np.float32), "bias"))
    assert_same(biased, _feeds(2, 3))
    ordered = _model(_weights(4, 32), 4, 32, ", , g")
    ordered.graph.initializer.append(numpy_helper.from_array((np.arange(K) // 32).astype(np.int32), "g"))
    assert_same(ordered, _feeds(2, 3))


def _meant(weights: dict[str, Array], bits: int, groups: Array) -> Array:
    """The matrix [N, K] that ``weights`` stand for, in float64: the block of each k is in ``groups``."""

    def unpacked(packed: Array) -> Array:
        flat = packed.reshape(len(packed), -1)
        return flat if bits == 8 else np.stack([flat & 15, flat >> 4], axis=-1).reshape(len(packed), -1)

    zeros = weights.get("z", np.full_like(weights["s"], 1 << (bits - 1)))
    zeros = unpacked(zeros) if zeros.dtype == np.uint8 else zeros
    levels = unpacked(weights["q"])[:, : groups.size].astype(np.float64) - zeros[:, groups]
    return np.asarray(levels * weights["s"][:, groups])


def _grouped(weights: dict[str, Array], bits: int, groups: Array, block: int = 16) -> ModelProto:
    model = _model(weights, bits, block, ", g" if "z" in weights else ", , g")
    model.graph.initializer.append(numpy_helper.from_array(groups.astype(np.int32), "g"))
    return model


@pytest.mark.parametrize("padded", [True, False])
@pytest.mark.parametrize(("bits", "zeros"), FORMS)
def test_blocks_by_g_idx(bits: int, zeros: str, padded: bool) -> None:
    """Against the definition: the provider has it for 4 bits alone, and takes 8 for packed zero points."""
    weights, groups = _weights(bits, 16, zeros), RNG.permutation(K) // 16
    model = _grouped(weights, bits, np.pad(groups, (0, 3 if padded else 0), constant_values=4))
    feeds = _feeds(2, 3)
    want = feeds["a"].astype(np.float64) @ _meant(weights, bits, groups).T
    for trust in (True, False):
        [got] = one_island(model, trust).run(feeds)
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-5 * np.abs(want).max())
    if bits == 4 and zeros != "packed" and not padded:
        assert_same(model, feeds)


DECLINED = [
    ({"bits": 2}, "", "bits = 2"),
    ({"block": 512}, "", "block_size = 512"),
    ({}, ", weight_prepacked = 1", "weight_prepacked = 1"),
]


@pytest.mark.parametrize(("changes", "attributes", "reason"), DECLINED)
def test_attributes_that_are_declined(changes: dict[str, int], attributes: str, reason: str) -> None:
    settings = {"bits": 4, "block": 32, **changes}
    with pytest.raises(UnsupportedError, match=reason):
        trace_model(_model(_weights(4, 32), settings["bits"], settings["block"], attributes=attributes))


def test_weights_that_are_declined() -> None:
    weights = _weights(4, 32)

    def declined(reason: str, changed: dict[str, Array], more: str = "", extra: dict[str, Array] | None = None) -> None:
        model = _model({**weights, **changed}, 4, 32, more)
        model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in (extra or {}).items())
        with pytest.raises(UnsupportedError, match=reason):
            trace_model(model)

    declined(r"B has shape \(19, 0, 16\), not \(19, 48\)", {"q": weights["q"][:, :0]})
    declined(r"scales has shape \(19, 2\), not \(19, 3\)", {"s": weights["s"][:, :2]})
    declined(r"scales in f16 beside f32", {"s": weights["s"].astype(np.float16)})
    declined(r"zero_points has shape \(19, 1\)", {"z": np.zeros((N, 1), np.uint8)})
    declined(r"zero points in f16 beside f32", {"z": np.zeros((N, 3), np.float16)})
    declined(r"a bias of shape \(18,\), not \(19,\)", {}, ", , , bias", {"bias": np.zeros(18, np.float32)})
    declined("blocks do not have block_size elements", {}, ", , g", {"g": (np.arange(1, K + 1) // 32).astype(np.int32)})
    declined("g_idx of 76 elements, not 77", {}, ", , g", {"g": (np.arange(K - 1) // 32).astype(np.int32)})


def test_an_order_of_a_run_is_declined() -> None:
    weights = _weights(4, 32)
    body = f"""g (float[B, {K}] a, int32[{K}] g) => (float[B, {N}] y)
               {{ y = com.microsoft.MatMulNBits <K = {K}, N = {N}, bits = 4, block_size = 32> (a, q, s, , g) }}"""
    with pytest.raises(UnsupportedError, match="g_idx that is not constant"):
        trace_model(model_of(body, weights, contrib=True))


def test_weights_of_a_run_are_declined() -> None:
    weights = _weights(4, 32)
    body = f"""g (float[B, {K}] a, uint8[{N}, 3, 16] q) => (float[B, {N}] y)
               {{ y = com.microsoft.MatMulNBits <K = {K}, N = {N}, bits = 4, block_size = 32> (a, q, s) }}"""
    with pytest.raises(UnsupportedError, match="B is not constant"):
        trace_model(model_of(body, {"s": weights["s"]}, contrib=True))
