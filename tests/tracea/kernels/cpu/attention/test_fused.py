"""Fused attention against the interpreter: blocks and passes at their edges, every kind of mask, and rows without a softmax."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tests.support.printed import c_text
from tests.support.run_program import check_program
from tests.tracea.kernels.attention_programs import LOWEST, AttentionCase, attention_of, build
from xyntra_ep.tracea.core_ir.dims import symbol
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr, acc, axis, call, const, load
from xyntra_ep.tracea.core_ir.ops import Attention, NoSoftmax, Operand, Program
from xyntra_ep.tracea.kernels.cpu.attention.fused import VARIANTS
from xyntra_ep.tracea.kernels.shared.causal_mask import CausalMask, find_causal, find_causal_sum
from xyntra_ep.tracea.kernels.shared.column_bounds import ROW
from xyntra_ep.tracea.kernels.variant import BuildContext
from xyntra_ep.tracea.semantic_ir.capabilities import AVX2, AVX512, NEON, SCALAR, Capabilities

pytestmark = pytest.mark.compiler("cc")

MACHINES = [pytest.param(caps, id=caps.isa) for caps in (AVX512, AVX2, NEON, SCALAR)]
MAX_ERR = 3e-6
STORED_ERR = {DType.F16: 1e-3, DType.BF16: 8e-3}
INF = float("inf")


def check(case: AttentionCase, caps: Capabilities, max_err: float = MAX_ERR) -> None:
    program, inputs = build(case)
    check_program(program, inputs, [], caps, max_err, variants=VARIANTS)


@pytest.mark.parametrize("caps", MACHINES)
@pytest.mark.parametrize("layout", ["bhsd", "bshd"])
def test_edges_of_blocks_and_panels(caps: Capabilities, layout: str) -> None:
    for s, t in ((1, 1), (1, 40), (2, 31), (11, 32), (16, 33), (17, 64), (25, 7), (40, 100)):
        check(AttentionCase(b=2, s=s, t=t, layout=layout), caps)


@pytest.mark.parametrize("caps", MACHINES)
def test_head_sizes(caps: Capabilities) -> None:
    for d, e in ((1, 1), (15, 17), (64, 64), (40, 80), (128, 33)):
        check(AttentionCase(s=17, t=20, d=d, e=e, layout="bshd", symbolic=""), caps)
        check(AttentionCase(s=1, t=20, d=d, e=e, layout="bshd", symbolic=""), caps)


@pytest.mark.parametrize("caps", MACHINES)
@pytest.mark.parametrize("masks", [(), ("full",), ("causal",)], ids=str)
def test_several_passes(caps: Capabilities, masks: tuple[str, ...]) -> None:
    """512 columns are one pass; beyond, the maximum runs. At 60 rows v is copied."""
    for s, t in ((3, 511), (3, 512), (3, 513), (1, 1500), (17, 513), (60, 700)):
        check(AttentionCase(s=s, t=t, layout="bshd", masks=masks, past=t - s), caps)


MASKS = (("row",), ("full",), ("bool",), ("bias",), ("relative",), ("causal",), ("row", "causal"), ("causal", "row"))


@pytest.mark.parametrize("caps", MACHINES)
@pytest.mark.parametrize("masks", MASKS, ids="+".join)
def test_masks(caps: Capabilities, masks: tuple[str, ...]) -> None:
    for s, t in ((30, 30), (1, 45), (14, 50), (17, 50)):
        check(AttentionCase(b=2, s=s, t=t, masks=masks, past=t - s, symbolic="t"), caps)


@pytest.mark.parametrize("caps", MACHINES)
@pytest.mark.parametrize("masked", [-INF, LOWEST, -1e9, -1e4, -3.0, 2.0])
def test_causal_numbers(caps: Capabilities, masked: float) -> None:
    """-3 and 2 have weight, so nothing may be left out."""
    for past, swapped in ((0, False), (7, True)):
        case = AttentionCase(s=37, t=70, masks=("causal",), masked=masked, swapped=swapped, past=past, symbolic="")
        check(case, caps)


@pytest.mark.parametrize("caps", MACHINES)
@pytest.mark.parametrize("masked", [-INF, LOWEST, -1e4])
def test_causal_numbers_that_are_added(caps: Capabilities, masked: float) -> None:
    """Columns beyond them are left out, too, unless an element of q or k may have made more of a score than that."""
    depth = 32 if masked == LOWEST else 20  # whole vectors, or not
    case = AttentionCase(s=37, t=140, h=1, d=depth, masks=("added",), masked=masked, past=4)
    check(case, caps)
    program, inputs = build(case)
    inputs[2][..., 120:, :] = np.nan  # only the interpreter meets it
    with pytest.raises(AssertionError, match="NaN/Inf are wrong"):
        check_program(program, inputs, [], caps, MAX_ERR, variants=VARIANTS)
    for operand, value in ((1, np.nan), (1, -np.inf), (1, 3e5 if masked == -1e4 else 1e38), (0, 1e30)):
        program, inputs = build(case)
        inputs[operand][..., -1, 3] = value
        check_program(program, inputs, [], caps, MAX_ERR, variants=VARIANTS)
    for other in (replace(case, s=3), replace(case, t=1100)):  # k is not packed; more than a pass is hidden
        program, inputs = build(other)
        inputs[1][..., -1, 3] = np.nan
        check_program(program, inputs, [], caps, MAX_ERR, variants=VARIANTS)


@pytest.mark.parametrize("caps", MACHINES)
def test_finite_causal_mask_over_equally_low_scores(caps: Capabilities) -> None:
    """Rows whose visible columns are all hidden by the other mask: their softmax runs over the masked columns too."""
    case = AttentionCase(s=26, t=80, masks=("row", "causal"), masked=LOWEST)
    program, inputs = build(case)
    inputs[3][..., :30] = LOWEST
    check_program(program, inputs, [], caps, MAX_ERR, variants=VARIANTS)


@pytest.mark.parametrize("caps", MACHINES)
@pytest.mark.parametrize("no_softmax", NoSoftmax)
@pytest.mark.parametrize("past", [-3, -100])
def test_rows_that_see_nothing(caps: Capabilities, no_softmax: NoSoftmax, past: int) -> None:
    for s, t in ((20, 20), (1, 9), (5, 600)):
        check(AttentionCase(s=s, t=t, masks=("causal",), past=past, no_softmax=no_softmax, symbolic=""), caps)
        hidden = AttentionCase(s=s, t=t, masks=("full",), no_softmax=no_softmax, symbolic="")
        program, inputs = build(hidden)
        inputs[3][..., 0, :] = -np.inf
        check_program(program, inputs, [], caps, MAX_ERR, variants=VARIANTS)


@pytest.mark.parametrize("caps", MACHINES)
def test_late_columns_after_an_empty_pass(caps: Capabilities) -> None:
    for s in (3, 17):
        program, inputs = build(AttentionCase(s=s, t=1100, masks=("full",)))
        inputs[3][..., :700] = -np.inf
        check_program(program, inputs, [], caps, MAX_ERR, variants=VARIANTS)


@pytest.mark.parametrize("caps", MACHINES)
def test_a_row_of_lowest_scores_is_uniform(caps: Capabilities) -> None:
    for s, t in ((4, 40), (4, 1100), (18, 40)):
        program, inputs = build(AttentionCase(s=s, t=t, masks=("full",)))
        inputs[3][..., 2, :] = LOWEST
        inputs[0][..., 2, :] = 0
        check_program(program, inputs, [], caps, MAX_ERR, variants=VARIANTS)


@pytest.mark.parametrize("caps", MACHINES)
@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("no_softmax", NoSoftmax)
def test_special_values_stay_in_their_rows(caps: Capabilities, value: float, no_softmax: NoSoftmax) -> None:
    for s, t in ((14, 40), (6, 1100), (19, 40)):
        program, inputs = build(AttentionCase(s=s, t=t, masks=("full",), no_softmax=no_softmax))
        inputs[3][0, 0, 5, 33] = value
        check_program(program, inputs, [], caps, MAX_ERR, variants=VARIANTS)


@pytest.mark.parametrize("caps", MACHINES)
def test_what_is_far_below_the_maximum_has_no_weight_at_all(caps: Capabilities) -> None:
    """Not even 1e-38, whose products would be denormals: exact zeros where only hidden columns have values."""
    for s, t, hidden in ((14, 40, 20), (2, 1500, 700), (18, 40, 20)):
        program, inputs = build(AttentionCase(s=s, t=t, masks=("full",)))
        inputs[3][..., :hidden] = -1e4
        inputs[2][:, :, hidden:] = 0
        [out] = check_program(program, inputs, [], caps, MAX_ERR, variants=VARIANTS)
        assert not out.any()


@pytest.mark.parametrize("caps", MACHINES)
def test_few_rows_share_what_they_read(caps: Capabilities) -> None:
    """Up to 16 rows k and v are taken in place, by tiles of 8 or 4 rows and of what is left."""
    for s, t, d in ((2, 17, 40), (4, 33, 64), (5, 600, 24), (12, 48, 100), (16, 20, 36), (15, 40, 7)):
        for symbolic in ("", "st"):
            check(AttentionCase(s=s, t=t, d=d, e=d, masks=("full", "causal"), past=t - s, symbolic=symbolic), caps)


@pytest.mark.parametrize("caps", MACHINES)
@pytest.mark.parametrize("masks", [(), ("row",), ("ends",), ("causal",)], ids=str)
def test_columns_of_few_rows_are_shared_out(caps: Capabilities, masks: tuple[str, ...]) -> None:
    """Parts of a head at their edges: of sizes that only a run knows, of many heads, and where rows see a few columns only, or
    none."""
    for s, t, more in ((1, 512, {}), (1, 513, {}), (3, 2100, {}), (4, 1025, {"e": 24, "layout": "bshd"}), (2, 9000, {"h": 1})):
        for window in (0, 40) if masks == ("ends",) else (0,):
            case = AttentionCase(b=1, s=s, t=t, masks=masks, past=t - s, lasts=(t - s,), window=window, **more)
            check(case, caps)
            check(replace(case, symbolic=""), caps)
    check(AttentionCase(b=3, h=9, s=2, t=1200, d=8, e=8, masks=masks, past=5, lasts=(40, 1100, 0), symbolic="bst"), caps)


@pytest.mark.parametrize("caps", MACHINES)
def test_empty_axes(caps: Capabilities) -> None:
    for b, s, t in ((1, 0, 5), (1, 5, 0), (1, 1, 0), (0, 3, 3), (1, 0, 0)):
        check(AttentionCase(b=b, s=s, t=t, symbolic="bst"), caps)
        check(AttentionCase(b=b, s=s, t=t, masks=("causal",)), caps)


@pytest.mark.parametrize("caps", MACHINES)
@pytest.mark.parametrize(("k_layout", "v_layout"), [("bhds", ""), ("", "bhds"), ("bdsh", "sbdh")])
def test_transposed_keys_and_values(caps: Capabilities, k_layout: str, v_layout: str) -> None:
    for s in (1, 14):
        check(AttentionCase(s=s, t=40, e=24, k_layout=k_layout, v_layout=v_layout, symbolic=""), caps)


@pytest.mark.parametrize("caps", MACHINES)
def test_one_head_of_k_and_v_for_all(caps: Capabilities) -> None:
    for s, t in ((1, 40), (14, 40), (2, 600), (60, 600)):
        check(AttentionCase(b=2, h=3, s=s, t=t, shared=True, layout="bshd"), caps)


@pytest.mark.parametrize("caps", MACHINES)
@pytest.mark.parametrize("stored", [DType.F16, DType.BF16])
def test_narrow_storage(caps: Capabilities, stored: DType) -> None:
    for s, t in ((1, 40), (3, 1100), (17, 40)):
        for symbolic in ("", "st"):
            check(AttentionCase(s=s, t=t, e=24, dtype=stored, symbolic=symbolic, layout="bshd"), caps, STORED_ERR[stored])


@pytest.mark.parametrize("rows", [6, 8, 12, 16])
@pytest.mark.parametrize("columns", [16, 32])
def test_every_configuration_is_legal(rows: int, columns: int) -> None:
    program, _ = build(AttentionCase(s=30, t=50, symbolic=""))
    context = BuildContext(caps=AVX512, program=program)
    [variant] = VARIANTS
    axes = {a.name: a.values for a in variant.space(attention_of(program), context)}
    assert rows in axes["rows"] and columns in axes["columns"]
    calls = variant.build(attention_of(program), {"rows": rows, "columns": columns}, context)
    assert [call.kernel.name for call in calls] == [
        f"xy_attention_keys_f32_{columns}_avx512",
        f"xy_attention_f32_{rows}x{columns}_avx512",
    ]


def test_what_is_packed() -> None:
    """A few rows take k and v in place; v is copied only where its rows lie apart and are used often."""

    def kernels(case: AttentionCase) -> list[str]:
        program, _ = build(case)
        context = BuildContext(caps=AVX512, program=program)
        [variant], op = VARIANTS, attention_of(program)
        return [c.kernel.name.split("_")[2] for c in variant.build(op, variant.default(op, context), context)]

    assert kernels(AttentionCase(s=1, t=100, symbolic="")) == ["few"]
    assert kernels(AttentionCase(s=1, t=100, symbolic="t", layout="bshd")) == ["few", "combine"]
    assert kernels(AttentionCase(s=16, t=100, h=32, symbolic="t")) == ["few"]
    assert kernels(AttentionCase(s=17, t=100, symbolic="t")) == ["keys", "f32"]
    assert kernels(AttentionCase(s=9, t=100, k_layout="bhds", symbolic="t")) == ["keys", "f32"]
    assert kernels(AttentionCase(s=9, t=100, v_layout="bhds", symbolic="t")) == ["keys", "values", "f32"]
    assert kernels(AttentionCase(s=9, t=100, symbolic="st", layout="bshd")) == ["few", "combine", "keys", "values", "f32"]
    assert kernels(AttentionCase(s=100, t=100, symbolic="", layout="bshd")) == ["keys", "f32"]


def test_reasons_for_refusing() -> None:
    program, _ = build(AttentionCase())
    op = attention_of(program)
    context = BuildContext(caps=AVX512, program=program)

    def with_width(width: object) -> Attention:
        q, k, v = op.inputs
        wide = Operand(value=v.value, dtype=v.dtype, shape=(*v.shape[:3], width), strides=v.strides)  # type: ignore[arg-type]
        return Attention(inputs=(q, k, wide), score=op.score, no_softmax=NoSoftmax.NAN, output=op.output)

    [variant] = VARIANTS
    assert variant.admits(op, context) is None
    assert variant.admits(with_width(symbol("e")), context) == "the head size of v is known only at run time"
    assert variant.admits(with_width(1024), context) == "the head size of v is 1024, not in 1..512"


def reach_of(mask: CausalMask | None) -> object:
    """Where row s sees the columns below s + a size and that is all, the size."""
    if mask is None or mask.bounds.begins or len(mask.bounds.ends) != 1:
        return None
    [end] = mask.bounds.ends
    return end.offset.attr if end.query is ROW and end.offset.kind in ("const", "size") else None


def test_causal_masks_are_recognised() -> None:
    x, hidden = acc(), const(-INF)
    row, column = axis(2), axis(3)
    later = call("add", row, const(4))

    def reach(condition: str, *args: object, seen: bool = True) -> object:
        where = call("where", call(condition, *args), *((x, hidden) if seen else (hidden, x)))  # type: ignore[arg-type]
        return reach_of(find_causal(where))

    assert reach("le", column, row) == 1
    assert reach("lt", column, row) == 0
    assert reach("le", column, later) == 5
    assert reach("lt", row, column, seen=False) == 1
    assert reach("le", row, column, seen=False) == 0
    assert reach("lt", later, column, seen=False) == 5
    assert reach("le", call("sub", column, row), const(2)) == 3
    assert reach("lt", row, column) is None  # what comes after a row: it begins where the row is
    assert reach("le", column, call("mul", row, const(2))) is None
    assert find_causal(call("where", call("le", column, row), x, acc())) is None
    for number in (INF, math.nan):  # hides nothing
        assert find_causal(call("where", call("le", column, row), x, const(number))) is None


def test_causal_masks_beside_other_conditions() -> None:
    x, low, causal = acc(), const(-1e4), call("le", axis(3), axis(2))
    seen = load(3, axis(0), axis(3), dtype=DType.BOOL)
    within = call("where", seen, x, low)
    for score in (
        call("where", call("and", causal, seen), x, low),
        call("where", call("and", seen, call("and", seen, causal)), x, low),
        call("where", seen, call("where", causal, x, low), low),
        call("where", causal, within, low),
    ):
        found = find_causal(score)
        assert found is not None and found.masked == -1e4 and reach_of(found) == 1
        assert found.visible in (within, call("where", seen, within, low))
    hidden = call("where", call("or", call("lt", axis(2), axis(3)), seen), low, x)
    found = find_causal(hidden)
    assert found is not None and found.visible is call("where", seen, low, x)
    assert find_causal(call("where", call("or", causal, seen), x, low)) is None  # seen in spite of it
    assert find_causal(call("where", seen, call("where", causal, x, low), const(-1e5))) is None


def test_causal_masks_that_are_added() -> None:
    x, causal = call("mul", acc(), const(0.125)), call("le", axis(3), axis(2))

    def limit(score: Expr, masked: float, seen: float = 0.0, depth: int = 64) -> float | None:
        found = find_causal_sum(call("add", score, call("where", causal, const(seen), const(masked))), depth)
        assert found is None or (found.masked == masked and reach_of(found) == 1 and find_causal(score) is None)
        return None if found is None else found.limit

    assert limit(x, -1e4) == 16.0  # 64 * 16 * 16 / 8 = 2048, less than a quarter of it
    assert limit(x, -1e4, depth=512) == 4.0
    assert limit(x, LOWEST) == limit(x, -INF) / 1 == 2.0**48  # type: ignore[operator]
    assert limit(call("tanh", x), -1e4) == 2.0**60
    assert limit(x, -30.0) is None and limit(x, 1e4) is None  # near, or no mask
    bias = load(3, axis(3), dtype=DType.F32)
    assert limit(call("add", x, bias), -1e4) is None  # may be anything
    assert limit(call("where", load(3, axis(3), dtype=DType.BOOL), x, const(-1e3)), -1e4) == 16.0
    both = find_causal_sum(call("add", x, call("where", causal, const(2.0), const(-1e4))), 64)
    assert both is not None and both.visible is call("add", x, const(2.0))
    whole = call("where", causal, x, const(-1e4))
    assert find_causal_sum(whole, 64) == find_causal(whole)


def test_text(golden: Callable[[str, str], None]) -> None:
    program, _ = build(AttentionCase(s=18, t=20, d=8, e=16, masks=("causal",), layout="bshd", symbolic=""))
    golden(_text(program, AVX2), ".c")


def test_text_of_a_single_row(golden: Callable[[str, str], None]) -> None:
    program, _ = build(AttentionCase(s=1, d=16, e=16, masks=("row",), layout="bshd", symbolic="t"))
    golden(_text(program, AVX512), ".c")


def _text(program: Program, caps: Capabilities) -> str:
    context = BuildContext(caps=caps, program=program)
    [variant], op = VARIANTS, attention_of(program)
    calls = variant.build(op, variant.default(op, context), context)
    return "\n".join(c_text(call.kernel, caps) for call in calls)
