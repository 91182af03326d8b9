"""What sizes are taken for in estimates that only a run knows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.support.models.graph_from_model import graph_from_model
from tests.support.models.model_text import normal, parse
from xyntra_ep.fusion.estimates.plausible import AUDIO, BATCH, COLOURS, IMAGE, MAP, SEQUENCE, assumed_text, by_name, of_dim
from xyntra_ep.fusion.graph import Graph
from xyntra_ep.fusion.partition import analyse
from xyntra_ep.fusion.trace import trace
from xyntra_ep.tracea.core_ir.dims import assuming as assuming_sizes
from xyntra_ep.tracea.core_ir.dims import ceildiv, expected, symbol, typical
from xyntra_ep.tracea.core_ir.ops import Range

CONV = "<kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]>"
STRIDES = f"""(float[batch,3,height,width] x) => (float[n,8,h,w] y)
    {{ a = Conv{CONV}(x, v) b = Conv{CONV}(a, w) c = Conv{CONV}(b, w) y = Relu(c) }}"""
KERNELS = {"v": normal(8, 3, 3, 3), "w": normal(8, 8, 3, 3)}


def analysed(text: str, constants: dict[str, Any] | None = None, **hints: int) -> Graph:
    return analyse(replace(graph_from_model(parse(text, 18, **constants or {})), dim_hints=hints))[1]


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("batch_size", BATCH), ("N", BATCH), ("bs", BATCH), ("height", IMAGE), ("W", IMAGE), ("image_width", IMAGE),
        ("past_sequence_length", SEQUENCE), ("tokens", SEQUENCE), ("num_channels", COLOURS), ("audio_length", AUDIO),
        ("unk__3", None), ("nodes", None), ("", None),
    ],
)  # fmt: skip
def test_names_tell(name: str, found: Range | None) -> None:
    assert by_name(name) == found


@pytest.mark.parametrize(
    ("shape", "found"),
    [
        ((None,), (SEQUENCE,)),
        ((None, None), (BATCH, SEQUENCE)),
        ((None, None, 64), (BATCH, SEQUENCE, None)),
        ((None, 3, None, None), (BATCH, None, IMAGE, IMAGE)),
        ((None, None, None, None), (BATCH, COLOURS, IMAGE, IMAGE)),
        ((None, None, None, 3), (BATCH, IMAGE, IMAGE, None)),
        ((-1, 256, -1, -1), (BATCH, None, MAP, MAP)),
        ((1, 12, None, 64), (None, None, SEQUENCE, None)),
        ((None, 3, "time", None), (BATCH, None, SEQUENCE, IMAGE)),
    ],
)
def test_places_tell_where_names_do_not(shape: tuple[Any, ...], found: tuple[Range | None, ...]) -> None:
    for axis, wanted in enumerate(found):
        assert wanted is None or of_dim(shape, axis) == wanted


def test_what_is_inside_follows_from_the_inputs() -> None:
    graph = analysed(STRIDES, KERNELS)
    assert graph.plausible["c"] == ((1, 1, 8), (8, 8, 8), (20, 28, 80), (20, 28, 80))
    assert assumed_text(graph) == "batch=1, height=224, width=224"
    hinted = analysed(STRIDES, KERNELS, height=512, width=1000)
    assert hinted.plausible["y"][2:] == ((64, 64, 64), (125, 125, 125))
    assert assumed_text(hinted) == "batch=1, height=512, width=1000"


def test_a_net_that_leaves_nothing_of_a_sequence_is_meant_for_sound() -> None:
    """Seven convolutions by two, as encoders of waves have them, leave 375 of 48000 samples, and nothing of 128."""
    layers = [f"h{i + 1} = Conv <strides=[2], kernel_shape=[3]> (h{i}, w)" for i in range(7)]
    text = f"(float[1,4,s] h0) => (float[1,4,t] h7) {{ {' '.join(layers)} }}"
    _, graph = analyse(graph_from_model(parse(text, w=normal(4, 4, 3))))
    assert graph.plausible["h0"][2] == AUDIO
    assert graph.plausible["h7"][2].usual == 374
    short = text.replace("strides=[2]", "strides=[1]")
    assert analyse(graph_from_model(parse(short, w=normal(4, 4, 3))))[1].plausible["h0"][2] == SEQUENCE


def test_what_an_operator_makes_that_is_not_ours_has_the_sizes_of_what_it_read() -> None:
    """An island behind it takes the sizes of an inner value from there, and not from its place."""
    graph = analysed("(float[batch,seq,64] x) => (float[batch,seq,64] y) { a = Exp(x) b = Det(a) c = Relu(a) y = Neg(c) }")
    assert graph.plausible["c"] == ((1, 1, 8), (16, 128, 512), (64, 64, 64))
    text = "(float[batch,3,height,width] x) => (float[n,3,h,w] y) { a = Relu(x) b = Shrink(a) y = Neg(b) }"
    graph = analysed(text)
    assert graph.plausible["b"][2] == IMAGE
    program = trace(graph, [graph.nodes[2].id], ["b"], trust=False)
    assert [b.plausible for b in program.bindings] == list(graph.plausible["b"])


def test_inputs_without_names_are_told_by_their_input() -> None:
    graph = graph_from_model(parse("(float[?,4] x, float[N,4] z) => (float[?,4] y) { y = Add(x, z) }"))
    assert assumed_text(graph) == "N=1, x: [1, 4]"
    assert assumed_text(graph_from_model(parse("(float[2,4] x) => (float[2,4] y) { y = Relu(x) }"))) == ""


def test_a_cost_is_expected_over_all_sizes() -> None:
    n = symbol("n")
    with assuming_sizes(({"n": 1}, {"n": 10}, {"n": 1000})):
        assert typical(ceildiv(n, 4)) == 3 and typical(symbol("m"), 7) == 7
        assert expected(lambda: float(typical(n * 10))) == pytest.approx((10 * 100 * 10_000) ** (1 / 3))
        assert typical(n) == 10, "as before"
    assert typical(n) == 128 and expected(lambda: 5.0) == pytest.approx(5.0)
