"""Transposed convolutions by phases: right in every form, and no multiplication with the zeros between elements."""

from __future__ import annotations

import math

import numpy as np
import onnx
import pytest

from tests.support.models.alternatives import one_island
from tests.support.models.model_text import check, normal, parse
from xyntra_ep.tracea.core_ir.dims import evaluate
from xyntra_ep.tracea.core_ir.dims import product as size_of
from xyntra_ep.tracea.core_ir.ops import Conv

Ints = tuple[int, ...]


def model_of(
    kernel: Ints, strides: Ints, pads: Ints, more: Ints, group: int = 1, dilation: int = 1, sizes: str = ""
) -> onnx.ModelProto:
    rank = len(kernel)
    how = f"strides = {list(strides)}, pads = {list(pads)}, output_padding = {list(more)}, dilations = {[dilation] * rank}"
    spatial = sizes or ", ".join(f"d{i}" for i in range(rank))
    text = f"(float[N,{2 * group},{spatial}] x) => (float[] y) {{ y = ConvTranspose <{how}, group = {group}> (x, w, b) }}"
    return parse(text, w=normal(2 * group, 3, *kernel), b=normal(3 * group, seed=1))


@pytest.mark.parametrize("group", [1, 2])
@pytest.mark.parametrize(
    ("kernel", "strides", "pads", "more"),
    [
        ((2, 2), (2, 2), (0, 0, 0, 0), (0, 0)),
        ((4, 4), (2, 2), (1, 1, 1, 1), (0, 0)),
        ((3, 3), (2, 2), (1, 1, 1, 1), (1, 1)),
        ((3, 5), (2, 3), (1, 0, 0, 2), (0, 2)),
        ((3, 3), (2, 2), (2, 2, 2, 2), (1, 0)),  # the phases of one tap would begin beyond x
        ((1, 2), (3, 4), (0, 1, 0, 0), (2, 1)),  # phases without taps
        ((16,), (8,), (4, 4), (0,)),
        ((7,), (3,), (6, 1), (2,)),
        ((2, 1, 3), (1, 2, 2), (0, 0, 1, 1, 0, 0), (0, 1, 1)),
    ],
)
def test_is_what_onnx_runtime_computes(kernel: Ints, strides: Ints, pads: Ints, more: Ints, group: int) -> None:
    model = model_of(kernel, strides, pads, more, group)
    for n, first in ((1, 5), (2, 9)):
        check(model, {"x": normal(n, 2 * group, *(first + i for i in range(len(kernel))))})


@pytest.mark.parametrize(
    ("kernel", "stride", "parts"), [((2, 2), 2, 1), ((4, 4), 2, 1), ((3, 3), 2, 4), ((16,), 8, 1), ((10,), 4, 2)]
)
def test_each_tap_is_multiplied_once(kernel: Ints, stride: int, parts: int) -> None:
    """As many multiplications as the definition has; those of the last window that x does not fill are beside them."""
    rank = len(kernel)
    sizes = ",".join(["40"] * rank)
    model = model_of(kernel, (stride,) * rank, (0,) * 2 * rank, (0,) * rank, sizes=sizes)
    found = one_island(model).ops(Conv)
    assert len(found) == parts and all(conv.strides == (1,) * rank for conv in found)
    done = sum(evaluate(size_of(conv.domain[1:]) * size_of(conv.inputs[1].shape[1:]), {}) for conv in found)
    needed = 40**rank * 2 * 3 * math.prod(kernel)
    assert needed <= done <= needed * 1.35


@pytest.mark.parametrize(("dilation", "group", "channels"), [(2, 1, 3), (1, 4, 1)])
def test_dilated_and_depthwise_ones_are_one_convolution(dilation: int, group: int, channels: int) -> None:
    how = f"strides = [2], dilations = [{dilation}], group = {group}"
    model = parse(f"(float[N,4,L] x) => (float[] y) {{ y = ConvTranspose <{how}> (x, w) }}", w=normal(4, channels, 3))
    check(model, {"x": normal(2, 4, 9)})
    [conv] = one_island(model).ops(Conv)
    assert conv.domain[1] == group * channels


@pytest.mark.parametrize(("kernel", "stride", "pad"), [(3, 2, 1), (3, 2, 2), (2, 3, 0)])
def test_numbers_that_are_none_stay_where_they_belong(kernel: int, stride: int, pad: int) -> None:
    """No tap that is not there meets them: 0 times infinity would be no number."""
    model = model_of((kernel,) * 2, (stride,) * 2, (pad,) * 4, (1, 1))
    x = normal(1, 2, 6, 6)
    x[0, 0, 2, 3] = np.inf
    check(model, {"x": x})
