"""gemm.block_tiles and gemm.thread against the interpreter by OpenCL, and through NVRTC; no tile has a bank conflict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.support.gpu.run import check_on_opencl, compile_for_cuda, plan_for
from tests.tracea.kernels.gemm_programs import GemmCase, build, gemm_of, swap_output
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Gemm, Product
from xyntra_ep.tracea.kernels.gpu.gemm import _tiles, block_tiles, thread
from xyntra_ep.tracea.kernels.variant import Variant
from xyntra_ep.tracea.semantic_ir.gpu.banks import conflicts
from xyntra_ep.tracea.semantic_ir.gpu.capabilities import ANY_GPU, SM_80, SM_90
from xyntra_ep.tracea.semantic_ir.gpu.swizzle import TileAccess, TileLayout

opencl = pytest.mark.device("opencl")
[TILES], [THREAD] = block_tiles.VARIANTS, thread.VARIANTS
F32_ERR = 2e-6


def with_tile(rows: int, columns: int, parts: int = 1) -> Variant[Gemm]:
    """The variant with another default."""
    return replace(TILES, default=lambda op, context: {"rows": rows, "columns": columns, "parts": parts})


def check(case: GemmCase, variant: Variant[Gemm] = TILES, max_err: float = F32_ERR) -> None:
    program, inputs, constants = build(case)
    check_on_opencl(program, inputs, constants, max_err, variants=[variant])


def warp_conflicts(access: TileAccess, layout: TileLayout, more_row: int = 0, more_column: int = 0) -> int:
    """Of every warp, ``more`` away from the threads' places."""
    total = 0
    for first in range(0, access.lanes.threads, 32):
        places = [access.lanes.at(t) for t in range(first, min(first + 32, access.lanes.threads))]
        at = [4 * layout.offset(p.get(access.row, 0) + more_row, p.get(access.column, 0) + more_column) for p in places]
        total += conflicts(at, 4 * access.packet)
    return total


@pytest.mark.parametrize("axis", ["m", "n"])
def test_no_tile_of_the_search_space_has_bank_conflicts(axis: str) -> None:
    for fetch in _tiles.all_fetches()[axis]:
        layout, store, read = fetch.layout(axis), fetch.store(), fetch.read(axis)
        turned = fetch.packet if fetch.along_k else 1
        for o, k in fetch.rounds():
            assert sum(warp_conflicts(store, layout, k + i, o) for i in range(turned)) == 0, fetch
        for k in range(fetch.tile.depth):
            assert sum(warp_conflicts(read, layout, k, more) for more in fetch.tile.packets(fetch.extent)) == 0, fetch


def test_turning_round_without_a_swizzle_has_conflicts() -> None:
    fetch = _tiles.Fetch(_tiles.GemmTile(rows=128, columns=128), 128, along_k=True, packet=4)
    assert fetch.layout("m").masks
    assert warp_conflicts(fetch.store(), replace(fetch.layout("m"), masks=())) == 8 * 3


def test_every_element_is_fetched_and_computed_once() -> None:
    for fetch in (f for fetches in _tiles.all_fetches().values() for f in fetches):
        lanes, tile = fetch.lanes(), fetch.tile
        o_more, k_more = (0, 1) if fetch.along_k else (1, 0)
        moved = [
            (p["o"] + o + i * o_more, p["k"] + k + i * k_more)
            for p in map(lanes.at, range(tile.threads))
            for o, k in fetch.rounds()
            for i in range(fetch.packet)
        ]
        assert lanes.threads == tile.threads
        assert sorted(moved) == [(o, k) for o in range(fetch.extent) for k in range(tile.depth)], fetch
    for tile in _tiles.all_tiles():
        lanes = tile.lanes()
        assert lanes.threads == tile.threads <= ANY_GPU.max_threads and tile.shared_bytes <= ANY_GPU.shared_bytes
        computed = [
            (p["m"] + m + i, p["n"] + n + j)
            for p in map(lanes.at, range(tile.threads))
            for m in tile.packets(tile.rows)
            for n in tile.packets(tile.columns)
            for i in range(4)
            for j in range(4)
        ]
        assert sorted(computed) == [(m, n) for m in range(tile.rows) for n in range(tile.columns)], tile


@opencl
@pytest.mark.parametrize("transpose", ["", "a", "b", "ab"])
def test_edges_of_tiles(transpose: str) -> None:
    tile = with_tile(32, 64)
    for m, k, n in ((1, 1, 1), (31, 15, 63), (33, 17, 65)):
        check(GemmCase(m=m, k=k, n=n, transpose=transpose, symbolic="mkn", constant_b=False), tile)
    check(GemmCase(m=64, k=32, n=128, transpose=transpose, symbolic=""), tile)
    check(GemmCase(m=36, k=20, n=68, transpose=transpose, symbolic=""), tile)


@opencl
def test_the_largest_tile() -> None:
    check(GemmCase(m=132, k=20, n=136, transpose="b", symbolic=""), with_tile(128, 128))


@opencl
def test_parts_of_k() -> None:
    """As many as the sizes of a run ask for; each block finishes what it has where that is one."""
    check(GemmCase(m=37, k=150, n=70, epilogue="gelu", symbolic=""), with_tile(32, 32, 4), 1e-5)
    for m in (5, 70):
        few = replace(ANY_GPU, units=3)
        program, inputs, constants = build(GemmCase(m=m, k=83, n=70, symbolic="mk", epilogue="bias", constant_b=False))
        check_on_opencl(program, inputs, constants, F32_ERR, variants=[with_tile(32, 32, 4)], gpu=few)


@opencl
@pytest.mark.parametrize("epilogue", ["bias", "gelu", "residual", "row", "mask", "gather", "window", "sizes"])
def test_epilogues(epilogue: str) -> None:
    check(GemmCase(m=37, k=19, n=70, epilogue=epilogue), with_tile(32, 32), 1e-5)


@opencl
def test_batches() -> None:
    tile = with_tile(32, 32)
    check(GemmCase(m=9, k=21, n=33, batch=(2, 3), b_batch=(2, 3), constant_b=False), tile)
    check(GemmCase(m=9, k=20, n=36, batch=(3,), constant_b=False, symbolic="0m"), tile)  # rows of all batches are one matrix
    check(GemmCase(m=7, k=12, n=20, batch=(2, 3), a_batch=(1, 3), b_batch=(2, 1), constant_b=False, transpose="b"), tile)
    check(GemmCase(m=5, k=0, n=6, epilogue="bias"), tile)
    check(GemmCase(m=0, k=4, n=6), tile)


@opencl
def test_types() -> None:
    half, short = DType.F16, DType.BF16
    for dtypes, err in (((half, half, half), 1e-3), ((DType.F32, short, short), 8e-3), ((short, short, DType.F32), F32_ERR)):
        for transpose in ("", "ab"):
            check(GemmCase(m=36, k=24, n=40, dtypes=dtypes, transpose=transpose, symbolic=""), with_tile(32, 32), err)


@opencl
def test_a_result_with_swapped_axes() -> None:
    program, inputs, constants = build(GemmCase(m=37, k=19, n=70, symbolic=""))
    swap_output(program)
    check_on_opencl(program, inputs, constants, F32_ERR, variants=[with_tile(32, 32)])


@opencl
def test_one_element_a_thread() -> None:
    for case in (
        GemmCase(m=9, k=21, n=33, batch=(2,), epilogue="gelu", transpose="b"),
        GemmCase(m=3, k=4, n=5, dtypes=(DType.I8, DType.I8, DType.I64), constant_b=False, product=Product.I32),
    ):
        check(case, THREAD, 1e-5)


def test_tiles_follow_the_shape() -> None:
    def tile(m: int, n: int, symbolic: str = "") -> tuple[int, ...]:
        program, _, _ = build(GemmCase(m=m, k=768, n=n, symbolic=symbolic))
        return tuple(plan_for(program, SM_80).decisions[0][1].config.values())

    assert tile(8192, 8192) == (128, 128, 1)
    assert tile(128, 768) == (128, 128, 16)  # six tiles, cut as far as there are units
    assert tile(8192, 8192, "m") == (128, 128, 16)  # where that is needed
    program, _, _ = build(GemmCase(m=3, k=4, n=5, dtypes=(DType.I8, DType.I8, DType.I64), constant_b=False, product=Product.I32))
    assert plan_for(program, SM_80).decisions[0][1].chosen.name == "gemm.thread"


@pytest.mark.compiler("nvrtc")
def test_cuda() -> None:
    for case in (
        GemmCase(m=33, k=64, n=768, epilogue="gelu", transpose="b"),
        GemmCase(m=33, k=20, n=70, epilogue="residual", dtypes=(DType.F16, DType.F16, DType.F16)),
    ):
        compile_for_cuda(build(case)[0], [TILES], SM_90)
    compile_for_cuda(build(GemmCase(m=33, k=64, n=768, epilogue="gelu"))[0], [with_tile(128, 128)], SM_90)


def test_text(golden: Callable[[str, str], None]) -> None:
    program, _, _ = build(GemmCase(m=64, k=768, n=768, epilogue="bias", symbolic=""))
    assert gemm_of(program).label == "gemm"
    [source] = [s for s in plan_for(program, SM_80, [with_tile(32, 32)]).kernels if "gemm" in s.symbol]
    golden(source.text, ".cu")
