"""Elementwise results that readers see repeated to sizes which only a run tells; sizes that turn out to be equal."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.models.alternatives import OneIsland, alternatives
from tests.support.models.model_text import check, normal, parse
from xyntra_ep.tracea.core_ir.dims import Dim
from xyntra_ep.tracea.core_ir.ops import Attention, Gemm, Pointwise
from xyntra_ep.tracea.planning.op_key import op_key

LAYER = "s{i} = MatMul(x{i}, t{i}) w{i} = Add(s{i}, bias) p{i} = Softmax<axis = -1>(w{i}) x{j} = MatMul(p{i}, x{i})"


def both(text: str, feeds: dict[str, tuple[int, ...]]) -> list[OneIsland]:
    """The alternative that believes what is declared and the one that assumes nothing, after they were checked at these sizes."""
    model = parse(text, low=np.float32(-2))
    check(model, {name: normal(*shape) for name, shape in feeds.items()})
    return alternatives(model)


def plain(text: str, feeds: dict[str, tuple[int, ...]]) -> OneIsland:
    return both(text, feeds)[-1]


def layers(batch: int, of_mask: int, columns: int) -> list[OneIsland]:
    """Two attentions under one mask."""
    two = " ".join(f"t{i} = Transpose<perm = [0,1,3,2]>(x{i}) {LAYER.format(i=i, j=i + 1)}" for i in (0, 1))
    text = f"(float[B,3,S,8] x0, float[M,1,1,T] m) => (float[] x2) {{ n = Neg(m) bias = Mul(n, low) {two} }}"
    return both(text, {"x0": (batch, 3, 4, 8), "m": (of_mask, 1, 1, columns)})


@pytest.mark.parametrize(("batch", "of_mask", "columns"), [(2, 2, 4), (2, 1, 1), (1, 2, 4)])
def test_a_mask_is_stored_at_the_size_of_the_scores(batch: int, of_mask: int, columns: int) -> None:
    island = layers(batch, of_mask, columns)[-1]
    first, second = island.ops(Attention)
    (mask,) = (op for op in island.ops(Pointwise) if op.label == "pointwise")
    assert all(op.inputs[3].value == mask.outputs[0].value and op.inputs[3].strides[3] == 1 for op in (first, second))
    assert any(isinstance(s, Dim) for s in mask.inputs[0].strides[3:])  # only here it matters what a run finds


def test_sizes_that_turn_out_to_be_equal_have_one_name() -> None:
    """That the mask's columns are x's rows is known when the scores meet the values."""
    first, second = layers(2, 2, 4)[-1].ops(Attention)
    batch, _, rows, _ = first.inputs[0].shape
    assert first.inputs[0].shape == first.inputs[1].shape == second.inputs[0].shape
    assert first.inputs[3].shape == second.inputs[3].shape == (batch, 1, 1, rows)


def test_the_alternatives_share_a_layer() -> None:
    """From the second on: what the first reads may be repeated itself."""
    keys = [op_key(island.ops(Attention)[1], island.program, frozenset()).key for island in layers(2, 2, 4)]
    assert len(keys) == 2 and keys[0] == keys[1]


class TestWhatStays:
    """Results that are computed at the size that they have."""

    def sizes(self, text: str, feeds: dict[str, tuple[int, ...]]) -> list[int]:
        """How many axes each stored result has whose size a choice of the run gives."""
        return [sum(str(s).startswith("t") for s in op.outputs[0].shape) for op in plain(text, feeds).ops(Pointwise)]

    def test_read_as_it_is_too(self) -> None:
        text = "(float[A,4] a, float[B,4] b) => (float[] y, float[] z) { n = Neg(a) y = Mul(n, b) z = ReduceSum(n) }"
        assert self.sizes(text, {"a": (1, 4), "b": (3, 4)}) == [0, 1]

    def test_an_output(self) -> None:
        text = "(float[A,4] a, float[B,4] b) => (float[] y, float[] n) { n = Neg(a) y = Mul(n, b) }"
        assert self.sizes(text, {"a": (1, 4), "b": (3, 4)}) == [0, 1]

    def test_read_at_two_sizes(self) -> None:
        text = "(float[A,4] a, float[B,4] b, float[C,4] c) => (float[] y, float[] z) { n = Neg(a) y = Mul(n, b) z = Mul(n, c) }"
        assert sorted(self.sizes(text, {"a": (1, 4), "b": (3, 4), "c": (2, 4)})) == [0, 1, 1]

    def test_dear(self) -> None:
        text = "(float[A,4] a, float[B,4] b) => (float[] y) { e = Exp(a) f = Erf(e) g = Tanh(f) h = Sin(g) y = Mul(h, b) }"
        assert self.sizes(text, {"a": (1, 4), "b": (3, 4)}) == [0, 1]

    def test_what_finishes_a_product(self) -> None:
        text = "(float[A,4,4] a, float[B,4,4] b) => (float[] y) { p = MatMul(a, a) n = Neg(p) y = Mul(n, b) }"
        (product,) = plain(text, {"a": (1, 4, 4), "b": (3, 4, 4)}).ops(Gemm)
        assert str(product.epilogue) == "neg(acc0)"

    def test_its_own_position(self) -> None:
        """A triangle of one row, its row then repeated, is not the triangle of repeated rows."""
        text = "(float[A,4] a, float[B,4] b) => (float[] y) { n = Trilu(a) y = Mul(n, b) }"
        assert self.sizes(text, {"a": (1, 4), "b": (3, 4)}) == [0, 1]
