"""Attention in bfloat16 against the interpreter, on matrix tiles and by pairs: ragged sizes, masks, rows without a softmax."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.machine import BF16_PAIRS, BF16_TILES
from tests.support.run_program import check_program
from tests.tracea.kernels.attention_programs import LOWEST, AttentionCase, attention_of, build
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import NoSoftmax, Product
from xyntra_ep.tracea.doctor.variants import cpu_variants
from xyntra_ep.tracea.kernels.cpu.attention.bf16 import VARIANTS
from xyntra_ep.tracea.kernels.variant import BuildContext
from xyntra_ep.tracea.semantic_ir.capabilities import AVX512, Capabilities

pytestmark = pytest.mark.compiler("cc")

MACHINES = [pytest.param(caps, id=name) for caps, name in ((BF16_TILES, "tiles"), (BF16_PAIRS, "pairs"))]
# A weight near the middle of two bfloat16 may be rounded the other way, which moves it by 2^-8.
MAX_ERR = {DType.F32: 4e-3, DType.BF16: 8e-3}
INF = float("inf")


def case(**fields: object) -> AttentionCase:
    defaults = {"layout": "bshd", "symbolic": "", "product": Product.BF16, "dtype": DType.BF16, "out": DType.F32}
    return AttentionCase(**{**defaults, **fields})  # type: ignore[arg-type]  # fields of a case


def check(c: AttentionCase, caps: Capabilities) -> None:
    program, inputs = build(c)
    check_program(program, inputs, [], caps, MAX_ERR[c.out or c.dtype], variants=VARIANTS)


@pytest.mark.parametrize("caps", MACHINES)
def test_edges_of_blocks_and_panels(caps: Capabilities) -> None:
    for s, t in ((13, 1), (16, 16), (17, 31), (32, 32), (33, 33), (48, 64), (50, 100)):
        check(case(b=2, s=s, t=t), caps)


@pytest.mark.parametrize("caps", MACHINES)
@pytest.mark.parametrize("dtype", [DType.BF16, DType.F32], ids=str)
def test_head_sizes(caps: Capabilities, dtype: DType) -> None:
    for d, e in ((1, 1), (15, 17), (64, 64), (40, 80), (128, 33), (34, 16)):
        check(case(s=20, t=40, d=d, e=e, dtype=dtype), caps)


@pytest.mark.parametrize("caps", MACHINES)
def test_results_in_bfloat16(caps: Capabilities) -> None:
    check(case(s=40, t=40, e=24, out=DType.BF16), caps)


MASKS = (("row",), ("full",), ("bool",), ("bias",), ("causal",), ("row", "causal"), ("causal", "row"))


@pytest.mark.parametrize("caps", MACHINES)
@pytest.mark.parametrize("masks", MASKS, ids="+".join)
def test_masks(caps: Capabilities, masks: tuple[str, ...]) -> None:
    for s, t in ((30, 30), (34, 70)):
        check(case(b=2, s=s, t=t, masks=masks, past=t - s, symbolic="t"), caps)


@pytest.mark.parametrize("caps", MACHINES)
@pytest.mark.parametrize("masks", [(), ("full",), ("causal",)], ids=str)
def test_several_passes(caps: Capabilities, masks: tuple[str, ...]) -> None:
    for s, t in ((13, 512), (40, 513), (14, 1500)):
        check(case(s=s, t=t, masks=masks, past=t - s, symbolic="st"), caps)


@pytest.mark.parametrize("caps", MACHINES)
@pytest.mark.parametrize("masked", [-INF, LOWEST, -1e4, -3.0, 2.0])
def test_causal_numbers(caps: Capabilities, masked: float) -> None:
    """-3 and 2 have weight, so nothing may be left out."""
    check(case(s=37, t=70, masks=("causal",), masked=masked, past=7), caps)


@pytest.mark.parametrize("caps", MACHINES)
@pytest.mark.parametrize("no_softmax", NoSoftmax)
def test_rows_without_a_softmax(caps: Capabilities, no_softmax: NoSoftmax) -> None:
    for past in (-3, -100):
        check(case(s=20, t=40, masks=("causal",), past=past, no_softmax=no_softmax), caps)
    for value in (-np.inf, np.nan, np.inf):
        program, inputs = build(case(s=20, t=600, masks=("full",), no_softmax=no_softmax))
        inputs[3][0, 0, 5, 33:] = value
        inputs[3][0, 0, 7, :] = value
        check_program(program, inputs, [], caps, MAX_ERR[DType.F32], variants=VARIANTS)


@pytest.mark.parametrize("caps", MACHINES)
def test_a_row_of_lowest_scores_is_uniform(caps: Capabilities) -> None:
    program, inputs = build(case(s=14, t=40, masks=("full",)))
    inputs[3][..., 2, :] = LOWEST
    inputs[0][:, 2] = 0
    check_program(program, inputs, [], caps, MAX_ERR[DType.F32], variants=VARIANTS)


@pytest.mark.parametrize("caps", MACHINES)
def test_empty_axes(caps: Capabilities) -> None:
    for b, s, t in ((1, 0, 5), (1, 14, 0), (0, 14, 3)):
        check(case(b=b, s=s, t=t, symbolic="bst"), caps)


@pytest.mark.parametrize("caps", MACHINES)
def test_one_head_of_k_and_v_for_all(caps: Capabilities) -> None:
    for t in (40, 600):
        check(case(b=2, h=3, s=14, t=t, shared=True), caps)


@pytest.mark.parametrize("caps", MACHINES)
@pytest.mark.parametrize("dtype", [DType.BF16, DType.F32], ids=str)
def test_few_rows_at_run_time(caps: Capabilities, dtype: DType) -> None:
    """One plan: up to a dozen rows k and v are taken in place and not rounded; more go over packed pairs."""
    for s, t in ((1, 50), (4, 600), (12, 40), (13, 40)):
        c = case(s=s, t=t, d=40, e=24, masks=("causal",), past=t - s, symbolic="st", dtype=dtype)
        program, inputs = build(c)
        unrounded = dtype is DType.F32 and s <= 12
        check_program(program, inputs, [], caps, 2e-2 if unrounded else MAX_ERR[DType.F32], variants=VARIANTS)


def test_reasons_for_refusing() -> None:
    tiles, pairs = VARIANTS

    def refusal(c: AttentionCase, caps: Capabilities = BF16_TILES) -> str | None:
        program, _ = build(c)
        variant = tiles if caps is not BF16_PAIRS else pairs
        return variant.admits(attention_of(program), BuildContext(caps=caps, program=program))

    assert refusal(case(s=20)) is None
    assert refusal(case(s=20), BF16_PAIRS) is None
    assert refusal(case(s=20), AVX512) == "no matrix tiles of bfloat16"
    assert refusal(case(s=20, product=Product.F32)) == "the product is f32, not bf16"
    assert refusal(case(s=20, dtype=DType.F16)) == "q is f16, not f32 or bf16"
    assert refusal(case(s=20, d=600)) == "the head size of q is 600, not in 1..512"
    assert refusal(case(s=20, k_layout="bhds")) == "rows of k are not contiguous"
    assert refusal(case(s=4)) == "4 rows of q do not pay for copies of k and v"


def test_is_chosen_where_the_machine_has_it() -> None:
    names = [v.name for v in cpu_variants()[type(attention_of(build(case())[0]))]]
    assert {"attention.bf16_tiles", "attention.bf16_pairs"} <= set(names)
