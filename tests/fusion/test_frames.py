"""Where results lie in memory: beside what they are made of."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from tests.support.models.alternatives import one_island
from tests.support.models.model_text import check, normal, parse
from xyntra_ep.tracea.core_ir.ops import Conv, Pointwise, Program, RowReduce

WINDOW = "<kernel_shape = [3, 3], pads = [1, 1, 1, 1]>"
CONSTANTS = {
    "w": normal(8, 8, 3, 3),
    "v": normal(8, 16, 3, 3),
    "twice": np.array([1, 1, 2, 2], np.float32),
    "around": np.array([0, 0, 1, 2, 0, 0, 3, 1], np.int64),
    "g": normal(8, seed=1),
    "s": normal(8, seed=2),
}


def model(nodes: str) -> onnx.ModelProto:
    text = f"(float[n,8,h,w] x) => (float[n,8,p,q] y) {{ a = Conv{WINDOW}(x, w) {nodes} }}"
    return parse(text, 18, **CONSTANTS)


def program(nodes: str) -> Program:
    return one_island(model(nodes)).program


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


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
def test_what_is_padded_stays_channels_last(mode: str) -> None:
    """But for zeros: those a convolution adds by itself."""
    nodes = f'b = Relu(a) c = Pad<mode = "{mode}">(b, around) y = Conv{WINDOW}(c, w)'
    found = program(nodes)
    between = moved(found)
    assert [op.domain[-1] for op in between] == ([] if mode == "constant" else [8])
    assert [op.inputs[0].strides[1] for op in found.ops if isinstance(op, Conv)] == [1, 1]
    check(model(nodes), {"x": normal(2, 8, 6, 9)})


NORMALISATIONS = {
    "instance": "b = InstanceNormalization(a, g, s)",
    "spelled out": "m = ReduceMean<keepdims = 1>(a, axes) d = Sub(a, m) q = Mul(d, d) t = ReduceMean<keepdims = 1>(q, axes)"
    " e = Add(t, tiny) r = Sqrt(e) b = Div(d, r)",
    "over channels": "b = Softmax<axis = 1>(a)",
}


@pytest.mark.parametrize("shape", [(1, 8, 1, 1), (2, 8, 7, 9), (1, 8, 33, 17)])
@pytest.mark.parametrize("name", list(NORMALISATIONS))
def test_normalised_images_stay_channels_last(name: str, shape: tuple[int, ...]) -> None:
    nodes = f"{NORMALISATIONS[name]} c = Relu(b) y = Conv{WINDOW}(c, w)"
    given = parse(
        f"(float[n,8,h,w] x) => (float[n,8,p,q] y) {{ a = Conv{WINDOW}(x, w) {nodes} }}",
        18,
        **CONSTANTS,
        axes=np.array([2, 3], np.int64),
        tiny=np.array(1e-3, np.float32),
    )
    found = one_island(given).program
    assert not moved(found)
    [rows] = [op for op in found.ops if isinstance(op, RowReduce)]
    channels = 3 if name == "over channels" else 1  # of the axes of a row: those reduced come last
    assert rows.outputs[0].operand.strides[channels] == 1
    assert [op.inputs[0].strides[1] for op in found.ops if isinstance(op, Conv)] == [1, 1]
    check(given, {"x": normal(*shape)}, 1e-4)


def test_rows_that_a_product_reads_one_after_the_other_lie_like_that() -> None:
    given = parse(
        "(float[n,8,h] x) => (float[n,h,6] y) { a = Softmax<axis = 1>(x) b = Transpose<perm = [0, 2, 1]>(a) y = MatMul(b, w) }",
        18,
        w=normal(8, 6),
    )
    found = one_island(given).program
    assert [type(op).__name__ for op in found.ops] == ["RowReduce", "Gemm"]
    check(given, {"x": normal(3, 8, 21)})
