"""Convolutions of single pixels in groups: products of matrices where x comes channels first, and convolutions elsewhere."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from tests.support.models.alternatives import one_island
from tests.support.models.model_text import check, normal, parse
from tests.support.sessions import planned
from xyntra_ep.diagnostics.explain import explain
from xyntra_ep.tracea.core_ir.ops import Conv, Gemm, Pointwise


def model_of(groups: int, inputs: int, outputs: int, sizes: str, how: str = "", bias: bool = True) -> onnx.ModelProto:
    rank = sizes.count(",") + 1
    kernel = (1,) * rank
    operands = "x, w, b" if bias else "x, w"
    text = (
        f"(float[N,{groups * inputs},{sizes}] x) => (float[] z) {{ y = Conv <group = {groups}{how}> ({operands})  z = Relu (y) }}"
    )
    weights = {"w": normal(groups * outputs, inputs, *kernel)} | ({"b": normal(groups * outputs, seed=1)} if bias else {})
    return parse(text, **weights)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(
    ("groups", "inputs", "outputs"), [(2, 4, 4), (3, 20, 7), (16, 2, 5), (4, 33, 1), (2, 128, 17)], ids=lambda n: str(n)
)
def test_pixels_are_the_columns_of_a_product(groups: int, inputs: int, outputs: int, bias: bool) -> None:
    """Whatever the number of pixels, known or not: whole vectors, one more, one less."""
    for shape in ((63, 1), (8, 8), (5, 13), (19,), (3, 4, 5)):
        x = normal(2, groups * inputs, *shape)
        for sizes in (", ".join(map(str, shape)), ", ".join(f"d{i}" for i in range(len(shape)))):
            model = model_of(groups, inputs, outputs, sizes, bias=bias)
            check(model, {"x": x})
            if not (inputs >= 64 and sizes[0].isdigit() and np.prod(shape) < 64):
                island = one_island(model)
                assert island.ops(Gemm) and not island.ops(Conv) and not island.ops(Pointwise)


def test_where_x_has_few_pixels_vectors_are_of_channels() -> None:
    for model, x in (
        (model_of(2, 64, 64, "7, 7"), normal(1, 128, 7, 7)),
        (model_of(4, 8, 8, "1, 1"), normal(1, 32, 1, 1)),
        (model_of(4, 8, 8, "3, 5"), normal(1, 32, 3, 5)),
    ):
        check(model, {"x": x})
        assert one_island(model).ops(Conv) and not one_island(model).ops(Gemm)


@pytest.mark.parametrize("how", [", pads = [0, 0, 0, 1]", ", pads = [1, 0, 0, 0]", ", strides = [1, 2]"])
def test_pads_at_either_end_and_strides_are_a_convolution(how: str) -> None:
    model = model_of(2, 4, 6, "9, 11", how)
    check(model, {"x": normal(1, 8, 9, 11)})
    assert one_island(model).ops(Conv)


def test_outputs_that_only_the_bias_counts() -> None:
    """The weights come with the run, their outputs as a symbol; what adds the bias is of its size. And the other way round."""
    model = parse("(float[N,C,H,W] x, float[M,C,3,1] w) => (float[] z) { y = Conv (x, w, b)  z = Relu (y) }", b=normal(5))
    check(model, {"x": normal(2, 3, 7, 6), "w": normal(5, 3, 3, 1)})
    assert one_island(model).ops(Conv)
    model = parse("(float[N,3,H,W] x, float[M] b) => (float[] z) { y = Conv (x, w, b)  z = Relu (y) }", w=normal(5, 3, 3, 1))
    check(model, {"x": normal(2, 3, 7, 6), "b": normal(5)})
    assert one_island(model).ops(Conv)


@pytest.mark.native
def test_a_batch_whose_size_another_convolution_knows() -> None:
    """The channels of that have the name of this batch, and its weights say how many they are."""
    text = "(float[A,3,H,W] x, float[B,A,I,J] z) => (float[] y, float[] v) { y = Conv (x, w, b)  v = Conv (z, k) }"
    model = parse(text, w=normal(16, 3, 1, 3), b=normal(16, seed=1), k=normal(1, 1, 3, 3))
    check(model, {"x": normal(1, 3, 4, 6), "z": normal(2, 1, 5, 7)})
    told = explain(planned(model))
    assert told.claimed == 2 and not told.faults


def test_an_image_that_comes_channels_last_is_not_moved() -> None:
    body = "y = Conv <pads = [1, 1, 1, 1]> (x, v)  z = Conv <group = 4> (y, w)"
    model = parse(f"(float[1,3,12,12] x) => (float[] z) {{ {body} }}", v=normal(32, 3, 3, 3), w=normal(32, 8, 1, 1))
    check(model, {"x": normal(1, 3, 12, 12)})
    assert len(one_island(model).ops(Conv)) == 2


def test_numbers_that_are_none_stay_in_their_pixel_and_group() -> None:
    x = normal(1, 8, 5, 7)
    x[0, 1, 2, 3], x[0, 6, 4, 6] = np.inf, np.nan
    check(model_of(2, 4, 6, "H, W"), {"x": x})
