"""Corners of operators in which ONNX Runtime is not what one would guess."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tests.support.models.alternatives import one_island
from tests.support.models.graph_from_model import interpret_model, trace_model
from tests.support.models.model_text import check, close, cpu, normal, parse
from tests.support.ort_version import newer_ort
from xyntra_ep.errors import UnsupportedError


def test_rows_without_variance() -> None:
    """No epsilon: 0 / 0."""
    model = parse("(float[N,M] x) => (float[N,M] y) { y = MeanVarianceNormalization <axes = [1]> (x) }")
    for x in ([[1, 2, 3], [4, 4, 4]], [[5]]):
        with np.errstate(all="ignore"):
            check(model, {"x": np.array(x, np.float32)})


def _attention(unidirectional: int) -> onnx.ModelProto:
    """MultiHeadAttention with two heads of four."""
    node = helper.make_node(
        "MultiHeadAttention", ["q", "k", "v"], ["y"], domain="com.microsoft", num_heads=2, unidirectional=unidirectional
    )
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["B", s, 8]) for n, s in (("q", "S"), ("k", "T"), ("v", "T"))]
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["B", "S", 8])
    graph = helper.make_graph([node], "g", values, [result])
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)], ir_version=10
    )


@pytest.mark.parametrize("queries", [1, 2, 3, 4, 5])
def test_the_last_query_sees_all_keys(queries: int) -> None:
    check(_attention(1), {"q": normal(2, queries, 8), "k": normal(2, 4, 8, seed=1), "v": normal(2, 4, 8, seed=2)})


def test_einsum_repeats_ones() -> None:
    model = parse('(float[I,J] x) => (float[] y) { y = Einsum <equation = "ab,bc->ac"> (x, w) }', w=normal(4, 3))
    for rows, columns in ((2, 4), (2, 1)):
        check(model, {"x": normal(rows, columns)})
    model = parse('(float[I,J] x, float[J,K] z) => (float[] y) { y = Einsum <equation = "ab,ab->b"> (x, z) }')
    for shapes in (((2, 4), (2, 4)), ((1, 4), (2, 4)), ((2, 4), (2, 1)), ((1, 1), (3, 4))):
        check(model, {"x": normal(*shapes[0]), "z": normal(*shapes[1], seed=1)})


@pytest.mark.parametrize("equation", ["ab->ac", "ab->aa"])
def test_einsum_with_an_unknown_result(equation: str) -> None:
    with pytest.raises(UnsupportedError, match="Einsum with an unknown result"):
        trace_model(parse(f'(float[2,3] x) => (float[] y) {{ y = Einsum <equation = "{equation}"> (x) }}'))


@newer_ort
@pytest.mark.parametrize("pad", ["SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"])
@pytest.mark.parametrize(("kernel", "stride"), [(2, 3), (3, 2), (1, 4), (4, 4), (5, 2)])
def test_transposed_convolution_of_the_same_size(pad: str, kernel: int, stride: int) -> None:
    """Where the stride leaves gaps behind the last element there is nothing to be the same size with."""
    call = f'ConvTranspose <auto_pad = "{pad}", strides = [{stride}]> (x, w)'
    check(parse(f"(float[N,1,L] x) => (float[] y) {{ y = {call} }}", 22, w=normal(1, 1, kernel)), {"x": normal(1, 1, 8)})


def test_a_part_without_elements_may_be_of_any_shape() -> None:
    for names in ("x, e", "e, x", "x, e, x"):
        model = parse(f"(float[N,M] x) => (float[] y) {{ y = Concat <axis = 0> ({names}) }}", e=np.zeros((0, 3), np.float32))
        for columns in (3, 4):
            check(model, {"x": normal(2, columns)})


def test_parts_none_of_which_has_elements() -> None:
    """The first one says how long the other axes are."""
    for names in ("x, e", "e, x"):
        model = parse(f"(float[N,M] x) => (float[] y) {{ y = Concat <axis = 0> ({names}) }}", e=np.zeros((0, 0), np.float32))
        for rows in (0, 2):
            check(model, {"x": normal(rows, 3)})


@newer_ort
@pytest.mark.parametrize(("queries", "keys", "past"), [(1, 3, 2), (1, 3, 0), (2, 3, 2), (3, 1, 2), (1, 1, 4)])
def test_causal_attention_behind_a_past(queries: int, keys: int, past: int) -> None:
    """A single query sees all keys, as in ONNX Runtime, however many of them are new."""
    model = parse(
        """(float[1,2,S,4] q, float[1,2,T,4] k, float[1,2,T,4] v, float[1,2,P,4] pk, float[1,2,P,4] pv) => (float[] y)
           { y, ko, vo = Attention <is_causal = 1> (q, k, v, , pk, pv) }""",
        23,
    )
    sizes = {"q": queries, "k": keys, "v": keys, "pk": past, "pv": past}
    check(model, {name: normal(1, 2, n, 4, seed=i) for i, (name, n) in enumerate(sizes.items())})


class TestBiasOfGemm:
    def _model(self, bias: str, rows: str = "M") -> onnx.ModelProto:
        return parse(f"(float[{rows},4] x, float{bias} c) => (float[] y) {{ y = Gemm(x, w, c) }}", w=normal(4, 3))

    @pytest.mark.parametrize(
        ("bias", "shape"), [("[N]", (3,)), ("[N]", (1,)), ("[K,N]", (5, 1)), ("[K,N]", (1, 3)), ("[K,N]", (5, 3))]
    )
    def test_fits(self, bias: str, shape: tuple[int, ...]) -> None:
        check(self._model(bias), {"x": normal(5, 4), "c": normal(*shape, seed=1)})

    @pytest.mark.parametrize("shape", [(5, 3), (2, 1)])
    def test_is_larger_than_the_product(self, shape: tuple[int, ...]) -> None:
        feeds = {"x": normal(1, 4), "c": normal(*shape)}
        with pytest.raises(Exception, match="bias"):
            cpu(self._model("[K,N]"), feeds)
        with pytest.raises(AssertionError, match="the bias does not broadcast to the product"):
            interpret_model(self._model("[K,N]"), feeds)

    @pytest.mark.parametrize(("bias", "reason"), [("[5,3]", "does not broadcast"), ("[1,1,3]", "rank 3")])
    def test_is_declined(self, bias: str, reason: str) -> None:
        with pytest.raises(UnsupportedError, match=reason):
            trace_model(self._model(bias, rows="1"))


def test_depth_in_two_orders() -> None:
    """Opset 28 gave SpaceToDepth a mode, that of its inverse."""
    x = normal(1, 2, 4, 6)
    for mode in ("DCR", "CRD"):
        model = parse(f'(float[1,2,4,6] x) => (float[] y) {{ y = SpaceToDepth <blocksize = 2, mode = "{mode}"> (x) }}', 28)
        [moved] = one_island(model).run({"x": x})
        back = parse(f'(float[1,8,2,3] x) => (float[] y) {{ y = DepthToSpace <blocksize = 2, mode = "{mode}"> (x) }}')
        close(cpu(back, {"x": moved}), [x])


def test_a_kernel_shape_that_is_not_that_of_the_weights() -> None:
    text = "(float[1,1,8] x) => (float[] y) { y = Conv <kernel_shape = [3]> (x, w) }"
    with pytest.raises(UnsupportedError, match="kernel_shape is not that of the weights"):
        trace_model(parse(text, w=normal(1, 1, 2)))
    check(parse(text, w=normal(1, 1, 3)), {"x": normal(1, 1, 8)})


@pytest.mark.parametrize(("x", "limits"), [([-np.inf, 1], ", high"), ([np.inf, 1], "low"), ([np.inf, np.nan], "")])
def test_a_bound_that_is_left_out_is_no_infinity(x: list[float], limits: str) -> None:
    model = parse(
        f"(float[N] x) => (float[] y) {{ y = Clip(x, {limits}) }}".replace(", )", ")"), low=np.float32(0), high=np.float32(2)
    )
    [got], [want] = one_island(model).run({"x": np.array(x, np.float32)}), cpu(model, {"x": np.array(x, np.float32)})
    np.testing.assert_array_equal(got, want)
