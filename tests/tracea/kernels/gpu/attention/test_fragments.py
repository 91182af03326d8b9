"""attention.fragments against the interpreter by simulation, and through NVRTC; no tile has a bank conflict."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest

from tests.support.gpu.run import check_simulated, compile_for_cuda, plan_for
from tests.tracea.kernels.attention_programs import LOWEST, AttentionCase, attention_of, build
from tests.tracea.kernels.gpu.attention.test_block import warp_conflicts
from xyntra_ep.tracea.core_ir.dtypes import DType, from_float64
from xyntra_ep.tracea.core_ir.ops import Attention, NoSoftmax, Product
from xyntra_ep.tracea.doctor.occupancy import occupancy
from xyntra_ep.tracea.kernels.gpu.attention import fragments
from xyntra_ep.tracea.kernels.gpu.attention._fragment_code import FragmentTile
from xyntra_ep.tracea.kernels.gpu.attention.fragments import VARIANTS
from xyntra_ep.tracea.kernels.variant import BuildContext, Variant
from xyntra_ep.tracea.runtime import nvrtc
from xyntra_ep.tracea.semantic_ir.capabilities import SCALAR
from xyntra_ep.tracea.semantic_ir.gpu.capabilities import ANY_GPU, SM_80, SM_90, Gpu
from xyntra_ep.tracea.semantic_ir.gpu.fragment_nodes import SIDE

[FRAGMENTS] = VARIANTS
# The result and the weights are rounded: half a unit in the last place of each.
MAX_ERR = {DType.F16: 1e-3, DType.BF16: 8e-3, DType.F32: 1e-3}


def with_tile(rows: int, columns: int) -> Variant[Attention]:
    """The variant with another default."""
    return replace(FRAGMENTS, default=lambda op, context: {"rows": rows, "columns": columns})


SMALL = with_tile(32, 32)


def case(dtype: DType = DType.F16, **wanted: object) -> AttentionCase:
    return replace(AttentionCase(dtype=dtype), **wanted)  # type: ignore[arg-type]  # fields of the case


def tf32(**wanted: object) -> AttentionCase:
    return case(DType.F32, product=Product.TF32, **wanted)


def check(what: AttentionCase, variant: Variant[Attention] = SMALL) -> None:
    program, inputs = build(what)
    assert check_simulated(program, inputs, [], MAX_ERR[what.dtype], variants=[variant]).bank_conflicts == 0


def all_tiles() -> Iterator[FragmentTile]:
    """What the search space has for some heads."""
    for head in (8, 16, 40, 64, 128):
        program, _ = build(case(d=head, e=head, layout="bshd"))
        context = BuildContext(caps=SCALAR, program=program, gpu=SM_80)
        axes = (axis.values for axis in FRAGMENTS.space(attention_of(program), context))
        yield from (FragmentTile(r, c, head, head, DType.F16, slots=2) for r, c in itertools.product(*axes))
    for head in (8, 16, 40, 64, 128):
        program, _ = build(tf32(d=head, e=head, layout="bshd"))
        context = BuildContext(caps=SCALAR, program=program, gpu=SM_80)
        axes = (axis.values for axis in FRAGMENTS.space(attention_of(program), context))
        yield from (FragmentTile(r, c, head, head, DType.F32, slots=1) for r, c in itertools.product(*axes))


def test_no_tile_of_the_search_space_has_bank_conflicts() -> None:
    tiles = list(all_tiles())
    assert len(tiles) > 20
    for tile in tiles:
        assert tile.shared_bytes <= SM_80.shared_bytes and tile.threads <= SM_80.max_threads
        packets = (1, 4, 8) if tile.dtype is DType.F16 else (1, 2, 4)
        for name, packet in itertools.product("qkv", packets):
            layout, (store, read) = tile.layout(name, packet), tile.accesses(name, packet)
            rounds = tile.fetch(name, packet).rounds()
            assert sum(warp_conflicts(store, layout, *rounds[i]) for i in (0, -1)) == 0, (tile, name)
            columns = range(0, layout.columns, SIDE if name == "v" and tile.dtype is DType.F32 else tile.grain)
            assert sum(warp_conflicts(read, layout, 0, column) for column in columns) == 0, (tile, name)


@pytest.mark.parametrize("dtype", [DType.F16, DType.BF16])
@pytest.mark.parametrize("layout", ["bhsd", "bshd"])
def test_edges_of_tiles(layout: str, dtype: DType) -> None:
    for s, t in ((1, 1), (31, 33), (33, 65)):
        check(case(dtype, b=2, s=s, t=t, layout=layout))
    check(case(dtype, s=64, t=64, layout=layout, symbolic=""))


@pytest.mark.parametrize("slots", [1, 2])
def test_slots(monkeypatch: pytest.MonkeyPatch, slots: int) -> None:
    """Where there is room for one only, v is copied while scores are computed."""
    monkeypatch.setattr(fragments, "_SLOTS", slots)
    for s, t in ((1, 1), (33, 97)):
        check(case(b=2, s=s, t=t, masks=("row", "causal"), past=20))
        check(tf32(b=2, s=s, t=t))


def test_scores_that_are_far_from_zero() -> None:
    """Weights are those of differences, whatever is added to all of them."""
    for offset in (3e3, -3e3, 3e10, -3e10, *(sign * size for sign in (1, -1) for size in (2.0**125, 2.0**126, 2.0**127, 3e38))):
        program, inputs = build(case(DType.BF16, s=6, t=80, h=1, masks=("full",), symbolic=""))
        inputs[3][...] = np.float32(offset)
        if abs(offset) == 3e10:  # no power of two, so that its product is rounded; floats have no room for the rest
            inputs[0][...] = 0
        inputs[3][..., 70:] = -np.inf
        check_simulated(program, inputs, [], MAX_ERR[DType.BF16], variants=[SMALL])


@pytest.mark.parametrize("layout", ["bhsd", "bshd"])
def test_tf32(layout: str) -> None:
    for s, t in ((1, 1), (31, 33), (33, 65)):
        check(tf32(b=2, s=s, t=t, layout=layout))
    check(tf32(s=70, t=80, d=64, e=40, h=1, masks=("row", "causal"), past=20), with_tile(64, 32))
    for d in (20, 22, 40):
        check(tf32(s=5, t=40, d=d, e=d, h=1))
    check(tf32(s=5, t=40, d=24, e=24, h=1, k_layout="bhds"))
    check(tf32(s=40, t=70, d=128, e=128, h=1, layout=layout), with_tile(64, 64))


def test_tf32_is_rounded_to_nearest() -> None:
    """All weights, and all of v, lie just below a number that tf32 has."""
    unit = 2.0**-10
    program, inputs = build(tf32(s=1, t=64, h=1, d=16, e=16, masks=("full",), symbolic=""))
    q, _, v, mask = inputs
    q[:], v[:], v[..., 0, :] = 0, 1 + 0.95 * unit, 0
    mask[..., 1:], mask[..., 0] = np.log(0.25 * (1 + 0.95 * unit)), 0
    check_simulated(program, inputs, [], 0.7 * unit, variants=[SMALL])


@pytest.mark.parametrize("tile", [(32, 64), (64, 32), (128, 32)], ids=lambda t: f"{t[0]}x{t[1]}")
def test_tiles_and_head_sizes(tile: tuple[int, int]) -> None:
    for d, e in ((64, 40), (8, 128), (128, 16)):
        check(case(s=70, t=80, d=d, e=e, h=1, masks=("row", "causal"), past=20), with_tile(*tile))


@pytest.mark.parametrize("masks", [("full",), ("bool",), ("bias",), ("relative",), ("row", "causal")], ids="+".join)
def test_masks(masks: tuple[str, ...]) -> None:
    check(case(b=2, s=34, t=70, masks=masks, past=36, symbolic="t"))


@pytest.mark.parametrize("masked", [LOWEST, -2.0])
def test_causal_masks_that_put_a_number(masked: float) -> None:
    for past in (0, -3):
        check(case(s=40, t=100, h=1, masks=("causal",), past=past, masked=masked, symbolic="t"))


@pytest.mark.parametrize("masks", [("causal",), ("added",)], ids="+".join)
def test_what_goes_through_registers_where_hidden_tiles_may_weigh(masks: tuple[str, ...]) -> None:
    """As the cache of a decoder in fp32 that computes in 16 bits."""
    for product in (Product.F16, Product.BF16):
        program, inputs = build(case(DType.F32, s=40, t=100, h=1, masks=masks, masked=LOWEST, product=product, symbolic="t"))
        check_simulated(program, inputs, [], MAX_ERR[DType.BF16], variants=[SMALL])


def test_causal_masks_that_are_added() -> None:
    added = case(s=40, t=100, h=1, masks=("added",), past=-3, masked=LOWEST, symbolic="t")
    check(added)
    program, inputs = build(added)
    inputs[1][..., 98, 2] = np.inf  # hidden from all rows
    check_simulated(program, inputs, [], MAX_ERR[added.dtype], variants=[SMALL])


@pytest.mark.parametrize("no_softmax", NoSoftmax)
@pytest.mark.parametrize("dtype", [DType.F16, DType.BF16])
def test_special_scores(dtype: DType, no_softmax: NoSoftmax) -> None:
    program, inputs = build(case(dtype, s=6, t=80, h=1, masks=("full",), no_softmax=no_softmax, symbolic=""))
    mask = inputs[3]
    mask[..., 0, :] = -np.inf  # sees nothing
    mask[..., 1, :70] = -np.inf  # sees its last tile
    mask[..., 2, :] = LOWEST
    inputs[0][..., 2, :] = 0
    if no_softmax is NoSoftmax.NAN:
        mask[..., 3, 75], mask[..., 4, 3] = np.nan, np.inf
    check_simulated(program, inputs, [], MAX_ERR[dtype], variants=[SMALL])


def test_small_weights_are_rounded_as_halves() -> None:
    """Below 2^-14 they are subnormal: a column that weighs 2^-20 brings 2^-20 times its 30000, and is a third of the result."""
    program, inputs = build(case(s=1, t=2, h=1, d=16, e=16, scale=1.0, symbolic=""))
    q, k, v = inputs
    q[:], k[:], v[:] = 0, 0, 0
    q[..., 0], k[..., 1, 0] = -1, 20 * np.log(2)
    v[..., 0, :], v[..., 1, :] = 0.06, 30000
    check_simulated(program, inputs, [], 2e-3, variants=[SMALL])


@pytest.mark.parametrize("dtype", [DType.F16, DType.BF16])
def test_weights_are_rounded_to_nearest(dtype: DType) -> None:
    """All of them lie just below a number that the type has: cut off, the result would be low by nearly a unit."""
    unit = 2.0**-10 if dtype is DType.F16 else 2.0**-7
    program, inputs = build(case(dtype, s=1, t=64, h=1, d=16, e=16, masks=("full",), symbolic=""))
    q, _, v, mask = inputs
    q[:], v[:], v[..., 0, :] = 0, from_float64(np.linspace(1, 1 + 16 * unit, 16), dtype), 0
    mask[..., 1:], mask[..., 0] = np.log(0.25 * (1 + 0.95 * unit)), 0
    check_simulated(program, inputs, [], 0.7 * unit, variants=[SMALL])


def test_shared_heads() -> None:
    check(case(b=2, h=3, s=4, t=9, shared=True, layout="bshd"))
    check(case(s=4, t=40, v_layout="bshd", out=DType.BF16, dtype=DType.BF16))


def test_what_is_not_stored_as_it_is_multiplied() -> None:
    for d in (20, 22, 40):
        program, inputs = build(case(DType.F32, s=5, t=40, d=d, e=d, h=1, product=Product.BF16))
        check_simulated(program, inputs, [], MAX_ERR[DType.BF16], variants=[SMALL])
    program, inputs = build(case(DType.F32, s=5, t=40, h=1, product=Product.F16))
    check_simulated(program, inputs, [], MAX_ERR[DType.F16], variants=[SMALL])
    for d, k_layout in ((20, ""), (21, ""), (24, "bhds")):
        check(case(s=5, t=40, d=d, e=d, h=1, k_layout=k_layout))


def test_what_is_not_for_fragments() -> None:
    def reason(what: AttentionCase, gpu: Gpu = SM_80) -> str | None:
        program, _ = build(what)
        return FRAGMENTS.admits(attention_of(program), BuildContext(caps=SCALAR, program=program, gpu=gpu))

    assert reason(case()) is None
    assert reason(case(), ANY_GPU) == "the GPU has no matrix units that are known"
    assert reason(case(DType.F32)) == "no fragments of f32 for f32"
    assert reason(case(out=DType.F32)) == "no fragments of f16 for f32"
    assert reason(case(d=256)) == "a head of more than 128 elements"
    assert reason(case(DType.F32, product=Product.BF16)) is None
    assert reason(tf32()) is None and reason(tf32(d=128, e=128)) is None


def test_tiles_follow_the_shape() -> None:
    def chosen(gpu: Gpu, s: int, d: int = 64) -> tuple[str, tuple[int, ...]]:
        program, _ = build(case(DType.BF16, h=12, s=s, t=512, d=d, e=d, symbolic=""))
        decision = plan_for(program, gpu).decisions[0][1]
        return decision.chosen.name, tuple(decision.config.values())

    assert chosen(SM_90, 1)[0] == "attention.split"
    assert chosen(SM_90, 128) == ("attention.fragments", (32, 64))  # few blocks: small ones are on more units
    assert chosen(SM_90, 4096) == ("attention.fragments", (64, 64))
    assert chosen(SM_90, 4096, 128) == ("attention.fragments", (64, 32))  # more columns, and registers would not suffice


@pytest.mark.compiler("nvrtc")
def test_cuda() -> None:
    for what, tile, blocks in (
        (case(DType.BF16, s=5, t=70, d=64, e=64, masks=("row", "causal")), (64, 64), 2),
        (case(s=5, t=70, d=64, e=64), (64, 64), 4),
        (case(s=5, t=70, d=128, e=128), (64, 32), 2),
        (tf32(s=5, t=70, d=64, e=64), (64, 32), 2),
        (tf32(s=5, t=70, d=128, e=128), (64, 32), 1),
    ):
        [source] = compile_for_cuda(build(what)[0], [with_tile(*tile)], SM_90).kernels
        cubin = nvrtc.load().compile(source.symbol, source.text, "sm_80")
        threads = 32 * tile[0] // 16
        assert occupancy("sm_80", threads=threads, registers=cubin.registers, shared_bytes=cubin.shared_bytes).blocks >= blocks


def test_text(golden: Callable[[str, str], None]) -> None:
    program, _ = build(case(DType.BF16, s=32, t=64, d=16, e=16, symbolic=""))
    [source] = plan_for(program, SM_80, [SMALL]).kernels
    golden(source.text, ".cu")
