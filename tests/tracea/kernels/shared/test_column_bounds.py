"""Ranges of columns that rows of scores see: found in conditions, and left out where a kernel runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.support.run_program import check_program
from tests.tracea.kernels.attention_programs import LOWEST, AttentionCase, attention_of, build
from tests.tracea.kernels.cpu.attention.test_fused import INF, MACHINES, MAX_ERR, check
from xyntra_ep.tracea.core_ir.dims import symbol
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr, acc, axis, call, const, load, size
from xyntra_ep.tracea.core_ir.ops import NoSoftmax
from xyntra_ep.tracea.kernels.cpu.attention.fused import VARIANTS
from xyntra_ep.tracea.kernels.shared.causal_mask import find_causal
from xyntra_ep.tracea.kernels.shared.column_bounds import Bound, Bounds, bound_of
from xyntra_ep.tracea.semantic_ir.capabilities import Capabilities

ROW, COLUMN, N = axis(2), axis(3), symbol("n")
READ = load(3, axis(0), dtype=DType.I64)


def _add(*terms: Expr) -> Expr:
    total = terms[0]
    for term in terms[1:]:
        total = call("add", total, term)
    return total


def _bound(condition: Expr, seen: bool = True) -> str | None:
    found = bound_of(condition, seen)
    return None if found is None else f"{'from' if found[0] else 'below'} {found[1]}"


def test_bounds_of_conditions() -> None:
    assert _bound(call("le", COLUMN, ROW)) == "below s + 1"
    assert _bound(call("lt", COLUMN, _add(ROW, size(N)))) == "below s + n"
    assert _bound(call("lt", ROW, COLUMN), seen=False) == "below s + 1"
    assert _bound(call("lt", call("sub", ROW, const(5)), COLUMN)) == "from s + -4"
    assert _bound(call("le", COLUMN, call("sub", ROW, const(5))), seen=False) == "from s + -4"
    assert _bound(call("le", call("sub", ROW, COLUMN), const(5))) == "from s + -5"
    assert _bound(call("lt", COLUMN, READ)) == "below in3[i0]"
    query = call("mod", ROW, size(N))
    assert _bound(call("le", COLUMN, _add(query, READ))) == "below s mod n + add(in3[i0], 1)"
    assert _bound(call("le", READ, COLUMN), seen=False) == "below in3[i0]"


@pytest.mark.parametrize(
    "condition",
    [
        call("le", COLUMN, call("mul", ROW, const(2))),
        call("le", ROW, call("mul", COLUMN, const(2))),
        call("le", COLUMN, call("sub", const(9), ROW)),  # later rows see less
        call("le", _add(COLUMN, ROW), READ),
        call("le", COLUMN, call("mod", ROW, READ)),
        call("le", COLUMN, load(3, ROW, dtype=DType.I64)),
        call("le", COLUMN, _add(ROW, call("mod", ROW, const(4)))),
        call("le", ROW, READ),  # not of columns
        call("eq", COLUMN, ROW),
        call("lt", call("to_f", COLUMN), call("to_f", ROW)),
    ],
    ids=str,
)
def test_conditions_without_bounds(condition: Expr) -> None:
    assert bound_of(condition, True) is None and bound_of(condition, False) is None


def test_bounds_of_masks() -> None:
    low = const(-INF)
    causal, window = call("le", COLUMN, _add(ROW, READ)), call("lt", call("sub", ROW, const(3)), COLUMN)
    valid = load(4, axis(0), COLUMN, dtype=DType.BOOL)
    for score in (
        call("where", window, call("where", causal, acc(), low), low),
        call("where", call("and", causal, window), acc(), low),
        call("where", call("or", call("not", causal), call("not", window)), low, acc()),
    ):
        found = find_causal(score)
        assert found is not None and found.visible is acc()
        assert [str(b) for b in found.bounds.ends] == ["s + add(in3[i0], 1)"]
        assert [str(b) for b in found.bounds.begins] == ["s + -2"]
    found = find_causal(call("where", call("and", call("and", valid, window), call("le", COLUMN, ROW)), acc(), low))
    assert found is not None and found.visible is call("where", valid, acc(), low)
    assert [str(b) for b in found.bounds.ends] == ["s + 1"] and [str(b) for b in found.bounds.begins] == ["s + -2"]
    future = find_causal(call("where", call("le", COLUMN, ROW), const(-1e9), const(0.0)))  # the lower number masks
    assert future is not None and future.masked == -1e9 and not future.bounds.ends


def test_ends_behind_all_columns_hide_nothing() -> None:
    behind = Bound(query=None, offset=size(N + 1))
    for_rows = Bound(query=ROW, offset=size(N))
    for bound, idle in ((behind, True), (for_rows, True), (replace(for_rows, offset=const(1)), False)):
        assert (Bounds(ends=(bound,)).without_idle(N) == Bounds()) == idle
    assert Bounds(begins=(behind,)).without_idle(N) == Bounds(begins=(behind,))


@pytest.mark.parametrize("caps", MACHINES)
@pytest.mark.parametrize("masked", [-INF, LOWEST, -1e4])
def test_windows_and_ends_that_are_read(caps: Capabilities, masked: float) -> None:
    """Blocks of rows that see nothing, begin in a panel, span two heads of a group, and reach over passes."""
    for case in (
        AttentionCase(b=2, s=30, t=70, lasts=(9, 40)),
        AttentionCase(b=2, s=30, t=70, lasts=(-12, 66), window=5),
        AttentionCase(b=2, s=42, t=70, lasts=(3, 50), window=20, queries=7),
        AttentionCase(b=1, s=4, t=90, lasts=(60,), window=33, queries=1),
        AttentionCase(b=2, s=26, t=1300, lasts=(1100, 700), window=560, layout="bshd"),
    ):
        check(replace(case, masks=("ends",), masked=masked), caps)


@pytest.mark.parametrize("caps", MACHINES)
@pytest.mark.parametrize("no_softmax", NoSoftmax)
def test_rows_that_see_nothing(caps: Capabilities, no_softmax: NoSoftmax) -> None:
    for lasts in ((-9, 3), (-40, 200)):
        check(AttentionCase(b=2, s=14, t=40, masks=("ends",), lasts=lasts, window=6, no_softmax=no_softmax), caps)


@pytest.mark.parametrize("caps", MACHINES)
def test_numbers_far_beyond_all_columns(caps: Capabilities) -> None:
    """What is read may be anything; no address follows from it."""
    for last in (-(2**60), 2**60):
        check(AttentionCase(b=1, s=14, t=40, masks=("ends",), lasts=(last,), no_softmax=NoSoftmax.ZERO), caps)
    check(AttentionCase(b=1, s=14, t=40, masks=("ends",), lasts=(2**60,), window=9, no_softmax=NoSoftmax.ZERO), caps)


@pytest.mark.parametrize("caps", MACHINES)
@pytest.mark.parametrize("s", [1, 26])
def test_hidden_panels_are_not_looked_at(caps: Capabilities, s: int) -> None:
    """NaN in values before the window and behind the end; only the interpreter meets it."""
    case = AttentionCase(s=s, t=300, masks=("ends",), lasts=(130,), window=40)
    for hidden in (slice(0, 64), slice(200, 300)):
        program, inputs = build(case)
        inputs[2][..., hidden, :] = np.nan
        with pytest.raises(AssertionError, match="NaN/Inf are wrong"):
            check_program(program, inputs, [], caps, MAX_ERR, variants=VARIANTS)
        assert attention_of(program).inputs[2].shape[3] == case.e


@pytest.mark.parametrize("caps", MACHINES)
def test_sums_of_a_block_begin_anew(caps: Capabilities) -> None:
    """The first pass of a window is not at column 0: it must not take up what the last block left, NaN here."""
    program, inputs = build(AttentionCase(s=3, t=1300, masks=("ends",), lasts=(1100,), window=800))
    inputs[2][:, 0, 600] = np.nan
    check_program(program, inputs, [], caps, MAX_ERR, variants=VARIANTS)


@pytest.mark.parametrize("caps", MACHINES)
def test_finite_windows_over_equally_low_scores(caps: Capabilities) -> None:
    """Rows of which another mask leaves nothing in the window weigh what lies before it and behind the end, too."""
    case = AttentionCase(s=26, t=180, masks=("row", "ends"), lasts=(70,), window=30, masked=LOWEST)
    program, inputs = build(case)
    inputs[3][..., 20:150] = LOWEST
    check_program(program, inputs, [], caps, MAX_ERR, variants=VARIANTS)
