"""attention.split against the interpreter by simulation and through NVRTC: parts of columns, rows together, heads of any size."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.support.gpu.run import check_simulated, compile_for_cuda, plan_for
from tests.tracea.kernels.attention_programs import LOWEST, AttentionCase, attention_of, build
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Attention, NoSoftmax, Product
from xyntra_ep.tracea.kernels.gpu.attention.split import VARIANTS
from xyntra_ep.tracea.kernels.variant import BuildContext, Variant
from xyntra_ep.tracea.semantic_ir.capabilities import SCALAR
from xyntra_ep.tracea.semantic_ir.gpu.capabilities import ANY_GPU, SM_90, Gpu

[SPLIT] = VARIANTS
MAX_ERR = {DType.F32: 3e-6, DType.F16: 1e-3, DType.BF16: 8e-3}


def with_config(rows: int = 1, parts: int = 8, threads: int = 64) -> Variant[Attention]:
    """The variant with another default."""
    return replace(SPLIT, default=lambda op, context: {"threads": threads, "rows": rows, "parts": parts})


def check(case: AttentionCase, variant: Variant[Attention], units: int = 2) -> None:
    program, inputs = build(case)
    check_simulated(program, inputs, [], MAX_ERR[case.dtype], variants=[variant], gpu=replace(SM_90, units=units))


@pytest.mark.parametrize("layout", ["bhsd", "bshd"])
@pytest.mark.parametrize("parts", [1, 8])
def test_edges_of_parts(layout: str, parts: int) -> None:
    for t in (1, 64, 65, 200):  # a block's step is 64 columns
        check(AttentionCase(h=1, s=1, t=t, layout=layout), with_config(parts=parts))
    check(AttentionCase(b=2, s=1, t=130, layout=layout, symbolic=""), with_config(parts=parts))


def test_no_columns_at_all() -> None:
    check(AttentionCase(s=1, t=0, no_softmax=NoSoftmax.ZERO), with_config())


@pytest.mark.parametrize("rows", [2, 4])
def test_rows_together(rows: int) -> None:
    for s in (1, 5):
        check(AttentionCase(s=s, t=70, masks=("causal",), past=60, symbolic="t"), with_config(rows))
    check(AttentionCase(b=2, h=3, s=2, t=70, shared=True, layout="bshd"), with_config(rows))


def test_head_sizes() -> None:
    for d, e in ((1, 1), (20, 64), (40, 130), (256, 16), (6, 8)):
        check(AttentionCase(h=1, s=1, t=30, d=d, e=e, symbolic="t"), with_config())


@pytest.mark.parametrize("dtype", [DType.F16, DType.BF16])
def test_halves(dtype: DType) -> None:
    for d in (64, 12):
        check(AttentionCase(h=1, s=1, t=130, d=d, e=d, dtype=dtype), with_config())
    check(AttentionCase(s=1, t=20, k_layout="bhds", dtype=dtype), with_config())


@pytest.mark.parametrize("masks", [("row",), ("full",), ("bool",), ("bias",), ("relative",)], ids="+".join)
def test_masks(masks: tuple[str, ...]) -> None:
    check(AttentionCase(b=2, s=2, t=70, masks=masks, symbolic="t"), with_config(2))


@pytest.mark.parametrize("no_softmax", NoSoftmax)
def test_special_scores(no_softmax: NoSoftmax) -> None:
    program, inputs = build(AttentionCase(s=5, t=150, h=1, masks=("full",), no_softmax=no_softmax, symbolic=""))
    mask = inputs[3]
    mask[..., 0, :] = -np.inf  # sees nothing
    mask[..., 1, :140] = -np.inf  # sees only what the last part has
    mask[..., 2, :] = LOWEST
    inputs[0][..., 2, :] = 0
    if no_softmax is NoSoftmax.NAN:
        mask[..., 3, 75], mask[..., 4, 3] = np.nan, np.inf
    for parts in (1, 8):
        check_simulated(program, inputs, [], 3e-6, variants=[with_config(4, parts)], gpu=SM_90)


def test_one_row_keeps_all_units_busy() -> None:
    def blocks(t: int, b: int = 1) -> list[int]:
        program, _ = build(AttentionCase(b=b, h=12, s=1, t=t, d=64, e=64, symbolic=""))
        return [int(str(step.units)) for step in plan_for(program, SM_90).run]

    assert blocks(4096) == [12 * 32, 12]
    assert blocks(64) == [12 * 2, 12]
    assert blocks(4096, b=64) == [12 * 64]


def test_who_takes_what() -> None:
    def chosen(s: int, product: Product = Product.F32) -> str:
        program, _ = build(AttentionCase(h=12, s=s, t=512, d=64, e=64, symbolic="", product=product))
        return plan_for(program, SM_90).decisions[0][1].chosen.name

    assert chosen(1) == chosen(1, Product.BF16) == chosen(4, Product.BF16) == "attention.split"
    assert chosen(128, Product.BF16) == "attention.fragments"
    assert chosen(512) == "attention.block"

    def reason(case: AttentionCase, gpu: Gpu = SM_90) -> str | None:
        program, _ = build(case)
        return SPLIT.admits(attention_of(program), BuildContext(caps=SCALAR, program=program, gpu=gpu))

    assert reason(AttentionCase()) is None
    assert reason(AttentionCase(), ANY_GPU) == "threads do not exchange registers"
    assert reason(AttentionCase(d=513)) == "a head of more than 512 elements"


@pytest.mark.compiler("nvrtc")
def test_cuda() -> None:
    for case in (
        AttentionCase(h=12, s=1, d=64, e=64, masks=("row",)),
        AttentionCase(s=4, d=256, e=256, masks=("causal",), symbolic="t", dtype=DType.BF16),
    ):
        compile_for_cuda(build(case)[0], [SPLIT], SM_90)
