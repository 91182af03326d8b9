"""attention.wgmma against the interpreter by simulation, and through NVRTC: layouts, ragged sizes, masks, tiles."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.support.gpu.assembled import assembled
from tests.support.gpu.run import check_simulated, plan_for
from tests.tracea.kernels.attention_programs import LOWEST, AttentionCase, attention_of, build
from xyntra_ep.tracea.core_ir.dims import evaluate
from xyntra_ep.tracea.core_ir.dtypes import DType, from_float64
from xyntra_ep.tracea.core_ir.ops import Attention, NoSoftmax, Product
from xyntra_ep.tracea.kernels.gpu.attention.warpgroups import VARIANTS
from xyntra_ep.tracea.kernels.variant import BuildContext, Config, Variant
from xyntra_ep.tracea.semantic_ir.capabilities import SCALAR
from xyntra_ep.tracea.semantic_ir.gpu.capabilities import SM_80, SM_90A, Gpu

[WGMMA] = VARIANTS
# The result and the weights are rounded: half a unit in the last place of each.
MAX_ERR = {DType.F16: 1e-3, DType.BF16: 8e-3}
FEW = replace(SM_90A, units=2)  # blocks have several turns each
CONFIGS = [{"groups": g, "columns": c, "turns": t} for g in (2, 3) for c in (64, 128) for t in (0, 1)]


def with_tile(groups: int = 2, columns: int = 64, turns: int = 0) -> Variant[Attention]:
    """The variant with another default."""
    config = {"groups": groups, "columns": columns, "turns": turns}
    return replace(WGMMA, default=lambda op, context: config)


def name_of(config: Config) -> str:
    return "x".join(str(value) for value in config.values())


def case(dtype: DType = DType.F16, **wanted: object) -> AttentionCase:
    return replace(AttentionCase(dtype=dtype), **wanted)  # type: ignore[arg-type]  # fields of the case


def check(what: AttentionCase, variant: Variant[Attention] | None = None, gpu: Gpu = FEW) -> None:
    variant = with_tile() if variant is None else variant
    program, inputs = build(what)
    [source] = plan_for(program, gpu, [variant]).kernels
    assert "wgmma" in source.symbol
    check_simulated(program, inputs, [], MAX_ERR[what.dtype], variants=[variant], gpu=gpu)


@pytest.mark.parametrize("dtype", [DType.F16, DType.BF16])
@pytest.mark.parametrize("layout", ["bhsd", "bshd"])
def test_edges_of_tiles(layout: str, dtype: DType) -> None:
    for s, t in ((1, 1), (129, 63), (130, 65)):
        check(case(dtype, b=2, s=s, t=t, layout=layout))
    check(case(dtype, s=128, t=128, layout=layout, symbolic=""))


@pytest.mark.parametrize("config", CONFIGS, ids=name_of)
def test_every_configuration(config: Config) -> None:
    """Several blocks of rows one after the other, more tiles of columns than slots."""
    check(case(DType.BF16, b=2, h=3, s=200, t=600, d=64, e=64, layout="bshd"), with_tile(**config))


@pytest.mark.parametrize("config", CONFIGS[:4], ids=name_of)
def test_causal_masks_leave_tiles_out(config: Config) -> None:
    for past in (0, 70, -150):
        check(case(s=260, t=330, d=32, e=32, masks=("row", "causal"), past=past), with_tile(**config))


def test_head_sizes() -> None:
    """One panel of 64 elements or several, whole or not; k and v may differ."""
    for d, e in ((8, 8), (40, 72), (128, 96), (64, 192), (192, 64)):
        check(case(s=70, t=130, d=d, e=e, h=1), with_tile(2, 64))
    check(case(s=70, t=130, d=128, e=128, h=1), with_tile(2, 128, 1))


@pytest.mark.parametrize("masks", [("full",), ("bool",), ("bias",), ("relative",), ("row", "causal")], ids="+".join)
def test_masks(masks: tuple[str, ...]) -> None:
    check(case(b=2, s=34, t=70, masks=masks, past=36, symbolic="t"))


@pytest.mark.parametrize("masked", [LOWEST, -2.0])
def test_causal_masks_that_put_a_number(masked: float) -> None:
    for past in (0, -3):
        check(case(s=40, t=100, h=1, masks=("causal",), past=past, masked=masked, symbolic="t"))


def test_causal_masks_that_are_added() -> None:
    added = case(s=40, t=100, h=1, masks=("added",), past=-3, masked=LOWEST, symbolic="t")
    check(added)
    program, inputs = build(added)
    inputs[1][..., 98, 2] = np.inf  # hidden from all rows
    check_simulated(program, inputs, [], MAX_ERR[added.dtype], variants=[with_tile()], gpu=FEW)


@pytest.mark.parametrize("no_softmax", NoSoftmax)
@pytest.mark.parametrize("dtype", [DType.F16, DType.BF16])
def test_special_scores(dtype: DType, no_softmax: NoSoftmax) -> None:
    program, inputs = build(case(dtype, s=6, t=140, h=1, masks=("full",), no_softmax=no_softmax, symbolic=""))
    mask = inputs[3]
    mask[..., 0, :] = -np.inf  # sees nothing
    mask[..., 1, :130] = -np.inf  # sees its last tile
    mask[..., 2, :] = LOWEST
    inputs[0][..., 2, :] = 0
    if no_softmax is NoSoftmax.NAN:
        mask[..., 3, 75], mask[..., 4, 3] = np.nan, np.inf
    check_simulated(program, inputs, [], MAX_ERR[dtype], variants=[with_tile()], gpu=FEW)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 3e4])
def test_scores_that_are_a_multiple_of_their_product(scale: float) -> None:
    """The factor is in the exponential alone; scores may be far from zero, and not finite."""
    program, inputs = build(case(DType.BF16, s=6, t=80, h=1, scale=scale, symbolic=""))
    q, k, _ = inputs
    q[..., 0, :], k[..., 5, :] = from_float64(np.full(16, 3e18), DType.BF16), from_float64(np.full(16, 4e18), DType.BF16)
    check_simulated(program, inputs, [], MAX_ERR[DType.BF16], variants=[with_tile()], gpu=FEW)
    q[..., 1, 3], q[..., 2, 3] = from_float64(np.array([np.inf, np.nan]), DType.BF16)
    check_simulated(program, inputs, [], MAX_ERR[DType.BF16], variants=[with_tile()], gpu=FEW)


def test_scores_that_are_far_from_zero() -> None:
    """Weights are those of differences, whatever is added to all of them."""
    for offset in (3e3, -3e3, 3e10, -3e10, *(sign * size for sign in (1, -1) for size in (2.0**125, 2.0**127, 3e38))):
        program, inputs = build(case(DType.BF16, s=6, t=80, h=1, masks=("full",), symbolic=""))
        inputs[3][...] = np.float32(offset)
        if abs(offset) == 3e10:  # no power of two, so that its product is rounded; floats have no room for the rest
            inputs[0][...] = 0
        inputs[3][..., 70:] = -np.inf
        check_simulated(program, inputs, [], MAX_ERR[DType.BF16], variants=[with_tile()], gpu=FEW)


def test_shared_heads() -> None:
    check(case(b=2, h=3, s=70, t=90, shared=True, layout="bshd"))
    check(case(DType.BF16, s=4, t=40, v_layout="bshd"))


def test_blocks_are_as_many_as_multiprocessors_or_tiles_of_rows() -> None:
    """Where a causal mask makes blocks differently long, each has one."""
    for masks, launched in (((), [1, 2, 7]), (("causal",), [1, 2, 80])):
        program, _ = build(case(h=2, s=128, t=128, masks=masks, symbolic="bs"))
        [step] = plan_for(program, replace(SM_90A, units=7), [with_tile()]).run
        units = [evaluate(step.units, {"b": b, "s": s}) for b, s in ((1, 1), (1, 60), (4, 1200))]
        assert units == [2, 2, launched[2]]


def test_tiles_follow_the_head() -> None:
    """As was measured on an H200: as many warpgroups as registers allow, in turns."""

    def chosen(d: int) -> tuple[str, tuple[int, ...]]:
        program, _ = build(case(DType.BF16, h=2048 // d, s=4096, t=4096, d=d, e=d, symbolic=""))
        decision = plan_for(program, SM_90A).decisions[0][1]
        return decision.chosen.name, tuple(decision.config.values())

    assert chosen(64) == ("attention.wgmma", (3, 128, 1))
    assert chosen(128) == ("attention.wgmma", (2, 128, 1))


def test_what_is_not_for_warpgroups() -> None:
    def reason(what: AttentionCase, gpu: Gpu = SM_90A) -> str | None:
        program, _ = build(what)
        return WGMMA.admits(attention_of(program), BuildContext(caps=SCALAR, program=program, gpu=gpu))

    assert reason(case()) is None and reason(case(product=Product.F16)) is None
    assert reason(case(), SM_80) == "no products by warpgroups, which are compute capability 9.0's"
    assert reason(case(DType.F32)) == reason(case(product=Product.BF16)) == "q, k and v are not 16-bit floats of one type"
    assert reason(case(out=DType.F32)) == "no products of f16 for f32"
    assert "no tensor to the driver" in str(reason(case(d=20, e=20)))
    assert "no tensor to the driver" in str(reason(case(k_layout="bhds")))
    assert reason(case(d=200)) == "a head of more than 192 elements"
    assert reason(case(d=16, e=192)) is None


@pytest.mark.compiler("nvrtc")
def test_no_configuration_spills() -> None:
    """All values in registers, products one after the other without the compiler's own waits, registers as roles share them."""
    for d in (64, 128, 192):
        for masks in ((), ("row", "causal")):
            program, _ = build(
                case(DType.BF16, s=200, t=1000, d=d, e=d, layout="bshd", masks=masks, symbolic="t" if masks else "")
            )
            context = BuildContext(caps=SCALAR, program=program, gpu=SM_90A)
            groups, columns, turns = (axis.values for axis in WGMMA.space(attention_of(program), context))
            assert len(groups) * len(columns) > 0
            for config in ((g, c, t) for g in groups for c in columns for t in turns):
                [source] = plan_for(program, SM_90A, [with_tile(*config)]).kernels
                made = assembled(source.symbol, source.text, "sm_90a")
                assert not made.flaws, (d, config, made.flaws)
                assert made.report.registers == {2: 168, 3: 128}[config[0]]
