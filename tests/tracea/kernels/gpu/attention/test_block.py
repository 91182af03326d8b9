"""attention.block against the interpreter by simulation, by OpenCL, and through NVRTC; no tile has a bank conflict."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest

from tests.support.gpu.run import check_on_opencl, check_simulated, compile_for_cuda, plan_for
from tests.tracea.kernels.attention_programs import LOWEST, AttentionCase, attention_of, build
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Attention, NoSoftmax
from xyntra_ep.tracea.doctor.occupancy import occupancy
from xyntra_ep.tracea.kernels.gpu.attention import _tiles as _attention_tiles
from xyntra_ep.tracea.kernels.gpu.attention._tiles import AttentionTile
from xyntra_ep.tracea.kernels.gpu.attention.block import VARIANTS
from xyntra_ep.tracea.kernels.variant import BuildContext, Variant
from xyntra_ep.tracea.runtime import nvrtc
from xyntra_ep.tracea.semantic_ir.capabilities import SCALAR
from xyntra_ep.tracea.semantic_ir.gpu.banks import conflicts
from xyntra_ep.tracea.semantic_ir.gpu.capabilities import ANY_GPU, SM_80, SM_90, STATIC_SHARED_BYTES, Gpu
from xyntra_ep.tracea.semantic_ir.gpu.swizzle import TileAccess, TileLayout

MAX_ERR = 3e-6
[BLOCK] = VARIANTS
_HEADS = (1, 40, 64, 128)
_PACKETS = (1, 2, 4, 8)


def with_tile(rows: int = 16, columns: int = 16, threads: int = 64) -> Variant[Attention]:
    """The variant with another default."""
    return replace(BLOCK, default=lambda op, context: {"rows": rows, "columns": columns, "threads": threads})


SMALL = with_tile()


def check(case: AttentionCase, variant: Variant[Attention] = SMALL, max_err: float = MAX_ERR, gpu: Gpu = SM_80) -> None:
    program, inputs = build(case)
    assert check_simulated(program, inputs, [], max_err, variants=[variant], gpu=gpu).bank_conflicts == 0


def all_tiles() -> Iterator[AttentionTile]:
    """What the search space has for some heads."""
    for head in _HEADS:
        for dtype in (DType.F32, DType.F16):
            for gpu in (ANY_GPU, SM_80):
                space = _attention_tiles.space_of(head, head, dtype, gpu.common_shared_bytes)
                for tile in _attention_tiles.tiles_in(space, head, head, dtype) if space else ():
                    assert tile.shared_bytes <= gpu.shared_bytes and tile.threads <= gpu.max_threads
                    yield tile


def warp_conflicts(access: TileAccess, layout: TileLayout, more_row: int, more_column: int) -> int:
    """Of every warp, ``more`` away from the threads' places."""
    total, size = 0, layout.element_bytes
    for first in range(0, access.lanes.threads, 32):
        places = [access.lanes.at(t) for t in range(first, first + 32)]
        at = [layout.offset(p.get(access.row, 0) + more_row, p.get(access.column, 0) + more_column) for p in places]
        total += conflicts([size * a for a in at if a < layout.elements], size * access.packet)
    return total


def test_no_tile_of_the_search_space_has_bank_conflicts() -> None:
    tiles = set(all_tiles())
    assert len(tiles) > 80
    for tile in tiles:
        for name in "qkv":
            for packet in (p for p in _PACKETS if p * tile.dtype.bytes <= 16 and tile.depth % p == 0):
                fetch, layout = tile.fetch(name, packet), tile.layout(name, packet)
                assert sum(warp_conflicts(fetch.access(), layout, *fetch.rounds()[i]) for i in (0, -1)) == 0, (tile, name)
                rows = {"q": tile.rows_of(), "k": tile.columns_of(), "v": range(tile.columns)}[name]
                assert sum(warp_conflicts(tile.read(name), layout, rows[i], 0) for i in (0, 1, -1) if i < len(rows)) == 0
        for name, columns in (("w", tile.columns_of()), ("x", range(0, 1))):
            store, read = tile.accesses(name)
            for row in (tile.rows_of()[0], tile.rows_of()[-1]):
                assert sum(warp_conflicts(store, tile.layout(name), row, column) for column in columns) == 0, (tile, name)
                assert sum(warp_conflicts(read, tile.layout(name), row, column) for column in (0, 4)) == 0, (tile, name)


def test_rows_of_k_without_a_swizzle_have_conflicts() -> None:
    tile = AttentionTile(32, 32, 64, 64, 64)
    layout = tile.layout("k", 4)
    assert layout.masks
    assert warp_conflicts(tile.read("k"), replace(layout, masks=()), 0, 0) == 2 * 4 * 7  # warps, phases, rounds too many


def test_every_element_is_fetched_and_computed_once() -> None:
    for tile in set(all_tiles()):
        for fetch in (tile.fetch("k", packet) for packet in _PACKETS if tile.depth % packet == 0):
            lanes = fetch.lanes()
            assert lanes.threads == tile.threads
            places = [p for p in map(lanes.at, range(tile.threads)) if not p["spare"]]
            moved = [(p["r"] + r, p["c"] + c + i) for p in places for r, c in fetch.rounds() for i in range(fetch.packet)]
            assert sorted(moved) == [(r, c) for r in range(tile.columns) for c in range(fetch.columns)], fetch
        places = [tile.lanes().at(t) for t in range(tile.threads)]
        scores = [(p["m"] + m, p["x"] + n) for p in places for m in tile.rows_of() for n in tile.columns_of()]
        assert sorted(scores) == [(m, n) for m in range(tile.rows) for n in range(tile.columns)], tile


@pytest.mark.parametrize("layout", ["bhsd", "bshd"])
def test_edges_of_tiles(layout: str) -> None:
    for s, t in ((1, 1), (15, 17), (16, 16), (17, 33)):
        check(AttentionCase(b=2, s=s, t=t, layout=layout))
    check(AttentionCase(b=1, s=32, t=32, layout=layout, symbolic=""))


@pytest.mark.parametrize("gpu", [SM_80, ANY_GPU], ids=["exchange", "shared"])
def test_head_sizes(gpu: Gpu) -> None:
    for d, e in ((1, 1), (15, 33), (20, 8), (40, 80)):
        check(AttentionCase(s=3, t=20, d=d, e=e, symbolic=""), gpu=gpu)
    check(AttentionCase(s=5, t=20, d=128, e=128, h=1), gpu=gpu)


@pytest.mark.parametrize("tile", [(16, 32, 128), (32, 16, 64), (64, 32, 64), (64, 32, 128)], ids=lambda t: "x".join(map(str, t)))
def test_tiles(tile: tuple[int, int, int]) -> None:
    check(AttentionCase(s=70, t=40, d=24, e=40, h=1, masks=("row", "causal")), with_tile(*tile))


@pytest.mark.parametrize(
    "masks", [("row",), ("full",), ("bool",), ("bias",), ("relative",), ("causal",), ("row", "causal")], ids="+".join
)
def test_masks(masks: tuple[str, ...]) -> None:
    check(AttentionCase(b=2, h=1, s=18, t=36, masks=masks, past=18, symbolic="t"))


@pytest.mark.parametrize("masked", [-np.inf, LOWEST, -1e4])
def test_tiles_that_nobody_sees_are_left_out(masked: float) -> None:
    """Only the interpreter meets the NaN in them, with weights of 0."""
    for t, seen in ((50, False), (17, False), (16, True)):
        program, inputs = build(AttentionCase(s=16, t=50, masks=("causal",), masked=masked, h=1))
        inputs[2][..., t - 1 :, :] = np.nan
        with nullcontext() if seen else pytest.raises(AssertionError, match="NaN/Inf are wrong"):
            check_simulated(program, inputs, [], MAX_ERR, variants=[SMALL])


@pytest.mark.parametrize("no_softmax", NoSoftmax)
def test_rows_that_see_nothing(no_softmax: NoSoftmax) -> None:
    check(AttentionCase(s=20, t=30, masks=("causal",), past=-18, no_softmax=no_softmax, symbolic=""))
    program, inputs = build(AttentionCase(s=3, t=50, masks=("full",), no_softmax=no_softmax, symbolic=""))
    inputs[3][..., 0, :] = -np.inf  # a row sees nothing, another only what is in its last tile
    inputs[3][..., 1, :40] = -np.inf
    check_simulated(program, inputs, [], MAX_ERR, variants=[SMALL])


@pytest.mark.parametrize("gpu", [SM_80, ANY_GPU], ids=["exchange", "shared"])
def test_special_scores(gpu: Gpu) -> None:
    program, inputs = build(AttentionCase(s=4, t=40, masks=("full",), symbolic=""))
    inputs[3][..., 0, 37], inputs[3][..., 1, 3] = np.nan, np.inf
    inputs[3][..., 2, :] = LOWEST
    inputs[0][..., 2, :] = 0
    check_simulated(program, inputs, [], MAX_ERR, variants=[SMALL], gpu=gpu)


@pytest.mark.parametrize("masked", [LOWEST, -1e4, -2.0])
def test_causal_masks_that_put_a_number(masked: float) -> None:
    """What a row does not see weighs nothing, unless it sees nothing else or the number is near its scores."""
    for past in (0, 30, -3):
        check(AttentionCase(s=20, t=70, h=1, masks=("causal",), past=past, masked=masked, swapped=past == 30, symbolic="t"))


@pytest.mark.parametrize("masked", [-np.inf, LOWEST, -1e4])
def test_causal_masks_that_are_added(masked: float) -> None:
    """Their tiles are left out, too, unless an element of q or k may have made more of a score than that."""
    for past in (0, 30, 0 if masked == -1e4 else -3):
        check(AttentionCase(s=20, t=70, h=1, masks=("added",), past=past, masked=masked, swapped=past == 30, symbolic="t"))
    case = AttentionCase(s=16, t=50, masks=("added",), masked=masked, h=1)
    program, inputs = build(case)
    inputs[2][..., 40:, :] = np.nan  # only the interpreter meets it
    with pytest.raises(AssertionError, match="NaN/Inf are wrong"):
        check_simulated(program, inputs, [], MAX_ERR, variants=[SMALL])
    for operand, value in ((1, np.nan), (1, np.inf), (1, 3e5 if masked == -1e4 else 1e38), (0, 1e30)):
        program, inputs = build(replace(case, d=17 if operand else 16))
        inputs[operand][..., -1, 3] = value
        check_simulated(program, inputs, [], MAX_ERR, variants=[SMALL])


def test_large_heads() -> None:
    """Their tiles need more shared memory than a kernel may declare."""
    case = AttentionCase(s=5, t=19, d=256, e=200, h=1)
    assert plan_for(build(case)[0], SM_80, [SMALL]).kernels[0].shared_bytes > STATIC_SHARED_BYTES
    check(case)


def test_shared_heads_and_narrow_storage() -> None:
    check(AttentionCase(b=2, h=3, s=4, t=9, shared=True, layout="bshd"))
    check(AttentionCase(s=4, t=19, k_layout="bhds", v_layout="bshd"))
    for dtype, err in ((DType.F16, 1e-3), (DType.BF16, 8e-3)):
        for d in (16, 17, 22):  # packets of 8, of 1 and of 2
            check(AttentionCase(s=4, t=19, d=d, e=d, h=1, dtype=dtype), max_err=err)
    check(AttentionCase(s=4, t=19, h=1, dtype=DType.F16, out=DType.F32))


@pytest.mark.device("opencl")
def test_opencl() -> None:
    for case, tile in (
        (AttentionCase(b=2, s=17, t=35, layout="bshd", masks=("row", "causal"), past=20), SMALL),
        (
            AttentionCase(s=40, t=50, d=24, e=40, masks=("causal",), past=-3, no_softmax=NoSoftmax.ZERO, symbolic=""),
            with_tile(32, 32, 128),
        ),
        (AttentionCase(h=4, s=40, t=100, masks=("causal",), past=-3, masked=-1e4, symbolic=""), SMALL),
        (AttentionCase(b=2, s=40, t=100, d=20, masks=("added",), masked=LOWEST), SMALL),
    ):
        program, inputs = build(case)
        check_on_opencl(program, inputs, [], MAX_ERR, variants=[tile])


def test_tiles_follow_the_shape() -> None:
    def chosen(gpu: Gpu, s: int, d: int = 64) -> tuple[str, tuple[int, ...]]:
        program, _ = build(AttentionCase(h=12, s=s, t=512, d=d, e=d, symbolic=""))
        decision = plan_for(program, gpu).decisions[0][1]
        return decision.chosen.name, tuple(decision.config.values())

    assert chosen(ANY_GPU, 1)[0] == "attention.row" and chosen(SM_80, 1)[0] == "attention.split"
    assert chosen(SM_80, 128) == ("attention.block", (16, 32, 64))  # few blocks: small ones are on more units
    assert chosen(SM_80, 4096) == ("attention.block", (64, 32, 64))
    assert chosen(ANY_GPU, 512) == ("attention.block", (32, 32, 64))
    assert chosen(SM_80, 4096, 128) == ("attention.block", (32, 16, 64))
    assert chosen(ANY_GPU, 512, 129)[0] == "attention.row"


def test_what_is_not_for_tiles() -> None:
    def reason(case: AttentionCase, gpu: Gpu = SM_80) -> str | None:
        program, _ = build(case)
        return BLOCK.admits(attention_of(program), BuildContext(caps=SCALAR, program=program, gpu=gpu))

    assert reason(AttentionCase()) is None
    assert reason(AttentionCase(), replace(ANY_GPU, is_cpu=True)) == "a CPU gains nothing from tiles in shared memory"
    assert reason(AttentionCase(d=257)) == "a head of more than 256 elements"
    assert reason(AttentionCase(d=256)) is None
    assert (
        reason(AttentionCase(d=128, e=128), replace(ANY_GPU, shared_bytes=16 << 10))
        == "tiles of so large heads have no room in shared memory"
    )
    program, _ = build(AttentionCase())
    op = attention_of(program)
    mixed = replace(op, inputs=(replace(op.inputs[0], dtype=DType.F16), *op.inputs[1:]))
    context = BuildContext(caps=SCALAR, program=program, gpu=SM_80)
    assert BLOCK.admits(mixed, context) == "q, k and v are of several types"


@pytest.mark.compiler("nvrtc")
def test_cuda() -> None:
    for case, tile, blocks in (
        (AttentionCase(s=5, t=70, d=64, e=64, masks=("row", "causal")), (64, 32, 128), 3),
        (AttentionCase(s=5, t=70, d=128, e=128, dtype=DType.BF16), (64, 32, 128), 2),
    ):
        [source] = compile_for_cuda(build(case)[0], [with_tile(*tile)], SM_90).kernels
        cubin = nvrtc.load().compile(source.symbol, source.text, "sm_80")
        assert occupancy("sm_80", threads=tile[2], registers=cubin.registers, shared_bytes=cubin.shared_bytes).blocks >= blocks


def test_text(golden: Callable[[str, str], None]) -> None:
    program, _ = build(AttentionCase(h=2, s=32, t=32, d=16, e=16, symbolic=""))
    [source] = plan_for(program, SM_80, [SMALL]).kernels
    golden(source.text, ".cu")
    [source] = plan_for(program, ANY_GPU, [SMALL]).kernels
    golden(source.text, ".cl")
