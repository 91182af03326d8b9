"""Masks that are tables: tiles that they hide are listed and left out, and computed all the same where they may have weight."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.support.run_program import check_program
from tests.tracea.kernels.attention_programs import LOWEST, AttentionCase, attention_of, build
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import acc, axis, call, const, load
from xyntra_ep.tracea.core_ir.ops import NoSoftmax
from xyntra_ep.tracea.kernels.cpu.attention.fused import VARIANTS
from xyntra_ep.tracea.kernels.shared.mask_table import find_table
from xyntra_ep.tracea.semantic_ir.capabilities import AVX2, AVX512, SCALAR, Capabilities

pytestmark = pytest.mark.compiler("cc")

MACHINES = [pytest.param(caps, id=caps.isa) for caps in (AVX512, AVX2, SCALAR)]
MAX_ERR = 3e-6
INF = float("inf")
TALL = AttentionCase(h=2, s=70, t=700, d=8, e=8, window=64)


def check(case: AttentionCase, caps: Capabilities, max_err: float = MAX_ERR) -> None:
    program, inputs = build(case)
    assert find_table(attention_of(program).score, case.d) is not None
    check_program(program, inputs, [], caps, max_err, variants=VARIANTS)


BLOCKS = (
    {"masks": ("blocks",), "masked": -INF, "window": 64},
    {"masks": ("blocks",), "masked": LOWEST, "window": 33, "symbolic": "bst", "b": 2},
    {"masks": ("blocks",), "masked": -1e4, "window": 40, "d": 5, "e": 9},
    {"masks": ("added blocks",), "masked": -INF, "window": 33, "symbolic": "bst", "b": 2},
    {"masks": ("added blocks",), "masked": LOWEST, "window": 64, "layout": "bshd"},
    {"masks": ("added blocks",), "masked": -1e4, "window": 32, "symbolic": ""},
)


@pytest.mark.parametrize("caps", MACHINES)
@pytest.mark.parametrize("more", BLOCKS, ids=lambda more: f"{more['masks'][0]} {more['masked']:g}")
def test_blocks(caps: Capabilities, more: dict[str, Any]) -> None:
    check(replace(TALL, **more), caps)


@pytest.mark.parametrize("caps", MACHINES)
def test_rows_that_see_nothing(caps: Capabilities) -> None:
    """Below the squares of the diagonal, in fewer columns than a pass has, at sizes of a run."""
    for masked, max_err in ((-INF, MAX_ERR), (-1e4, 2e-4)):  # what is left of a score beside 1e4
        check(replace(TALL, s=600, t=70, masks=("added blocks",), masked=masked), caps, max_err)


@pytest.mark.parametrize("caps", MACHINES)
@pytest.mark.parametrize("masked", [-INF, LOWEST, -1e4])
def test_padding(caps: Capabilities, masked: float) -> None:
    """One list for each batch, whatever the row; a batch that sees nothing has no softmax."""
    case = replace(TALL, b=4, masks=("padding",), masked=masked, symbolic="bst", no_softmax=NoSoftmax.UNSEEN_ZERO)
    check(replace(case, lasts=(700, 1, 350, 0)), caps)
    check(replace(case, lasts=(32, 33, 31, 64), masks=("causal", "padding"), past=630), caps)


@pytest.mark.parametrize("caps", MACHINES)
@pytest.mark.parametrize("mask", ["blocks", "added blocks"])
def test_tiles_that_nobody_sees_are_left_out(caps: Capabilities, mask: str) -> None:
    """Only the interpreter meets the NaN in them, with weights of 0."""
    program, inputs = build(replace(TALL, masks=(mask,), masked=LOWEST))
    seen = inputs[3] if mask == "blocks" else inputs[3] == 0
    hidden = ~seen.any(axis=(0, 1, 2))
    assert hidden.any(), "the case has a column of squares that no row sees"
    inputs[2][:, :, hidden] = np.nan
    with pytest.raises(AssertionError, match="NaN/Inf are wrong"):
        check_program(program, inputs, [], caps, MAX_ERR, variants=VARIANTS)


@pytest.mark.parametrize("caps", MACHINES)
def test_hidden_tiles_that_have_weight_after_all(caps: Capabilities) -> None:
    """Where all that a row sees is as low as the mask, and where elements of q or k are larger than any mask."""
    case = replace(TALL, masks=("blocks",), masked=-1e4)
    program, inputs = build(case)
    inputs[0][:, :, 5] *= 1e5
    check_program(program, inputs, [], caps, 1e-4, variants=VARIANTS)
    for operand, value in ((0, np.nan), (1, np.nan), (0, 1e30), (1, INF)):
        program, inputs = build(replace(TALL, masks=("added blocks",), masked=-1e4))
        inputs[operand][:, 1, 7, 3] = value
        check_program(program, inputs, [], caps, MAX_ERR, variants=VARIANTS)


@pytest.mark.parametrize("caps", MACHINES)
def test_nan_in_a_mask_is_seen(caps: Capabilities) -> None:
    program, inputs = build(replace(TALL, masks=("added blocks",), masked=-INF))
    row, column = np.argwhere(np.isinf(inputs[3][0, 0]))[-1]
    inputs[3][0, 0, row, column] = np.nan
    [out] = check_program(program, inputs, [], caps, MAX_ERR, variants=VARIANTS)
    assert np.isnan(out[0, :, row]).all() and np.isnan(out).sum() == out[0, :, row].size


def test_what_is_a_table() -> None:
    seen, mask = load(3, axis(3), dtype=DType.BOOL), load(3, axis(0), const(0), axis(2), axis(3), dtype=DType.F32)
    x, low = call("mul", acc(), const(0.125)), const(-INF)
    causal = call("le", axis(3), axis(2))
    found = find_table(call("where", call("and", causal, seen), x, low), 64)
    assert found is not None and found.axes == {2, 3} and found.limit is None and found.masked == -INF
    found = find_table(call("add", x, mask), 64)
    assert found is not None and found.axes == {0, 2, 3} and found.limit == 16 and found.masked == -6750
    assert find_table(call("add", x, mask), None) is None, "nobody looks for large elements"
    assert find_table(call("where", causal, x, low), 64) is None, "a formula needs no list"
    assert find_table(call("add", x, load(3, axis(1), dtype=DType.F32)), 64) is None, "a bias of heads hides nothing"
    assert find_table(call("add", call("where", seen, x, const(-1e4)), mask), 64) is None, "who knows how much -1e4 + mask is"
    assert find_table(call("where", call("lt", acc(), const(3.0)), x, low), 64) is None, "a condition of the product"
