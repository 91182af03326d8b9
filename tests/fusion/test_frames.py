"""Where results lie in memory: beside what they are made of."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.alternatives import one_island
from tests.support.model_text import normal, parse
from xyntra_ep.tracea.core_ir.ops import Conv, Pointwise, Program

WINDOW = "<kernel_shape = [3, 3], pads = [1, 1, 1, 1]>"
CONSTANTS = {"w": normal(8, 8, 3, 3), "v": normal(8, 16, 3, 3), "twice": np.array([1, 1, 2, 2], np.float32)}


def program(nodes: str) -> Program:
    text = f"(float[n,8,h,w] x) => (float[n,8,p,q] y) {{ a = Conv{WINDOW}(x, w) {nodes} }}"
    return one_island(parse(text, 18, **CONSTANTS)).program


def moved(found: Program) -> list[Pointwise]:
    """All but the way into channels last, and out of it."""
    return [op for op in found.ops if isinstance(op, Pointwise)][1:-1]


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_what_is_resized_stays_channels_last(mode: str) -> None:
    resize = f'Resize<mode = "{mode}", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor">(a, , twice)'
    found = program(f"b = {resize} y = Conv{WINDOW}(b, w)")
    [resized] = moved(found)
    assert resized.domain[-1] == 8 and resized.inputs[0].strides[1] == 1
    assert [op.inputs[0].strides[1] for op in found.ops if isinstance(op, Conv)] == [1, 1]


def test_parts_that_are_channels_last_are_joined_there() -> None:
    """Each convolution writes its own channels of the whole, and the next one reads it as it is."""
    found = program(f"b = Relu(a) c = Conv{WINDOW}(b, w) d = Concat<axis = 1>(b, c) y = Conv{WINDOW}(d, v)")
    last = [op for op in found.ops if isinstance(op, Conv)][-1]
    assert last.inputs[0].strides[1] == 1 and last.inputs[0].shape[1] == 16
    assert all(op.domain[-1] == 8 for op in moved(found)), "copies of channels, no transposition"


def test_parts_in_several_orders_are_joined_as_they_are_named() -> None:
    found = program("y = Concat<axis = 1>(a, x)")
    *_, of_conv, of_input = (op for op in found.ops if isinstance(op, Pointwise))
    assert [op.domain[1] for op in (of_conv, of_input)] == [8, 8]
    assert of_conv.outputs[0].value == of_input.outputs[0].value, "both write the output of the graph"
