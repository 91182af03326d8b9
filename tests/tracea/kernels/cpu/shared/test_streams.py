"""What kernels fetch ahead, by what they tell instead: prefetches have no result."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.machine import need
from tests.support.printed import c_text
from tests.support.run_program import plan_for
from tests.tracea.kernels.conv_programs import ConvCase, conv_program
from tests.tracea.kernels.gemm_programs import GemmCase, build, gemm_of
from xyntra_ep.tracea.core_ir.dims import evaluate
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Conv
from xyntra_ep.tracea.kernels.cpu.conv import nhwc_direct
from xyntra_ep.tracea.kernels.cpu.gemm import packed_b
from xyntra_ep.tracea.kernels.cpu.gemm._tile import NEAR, Matrix, Tile, accumulate, fetch_itself
from xyntra_ep.tracea.kernels.cpu.shared.streams import LINE_BYTES, STREAMS, fetch_beside
from xyntra_ep.tracea.kernels.cpu.winograd import nhwc_winograd
from xyntra_ep.tracea.kernels.variant import BuildContext, TempBuffer, Variant
from xyntra_ep.tracea.runtime.compilers import find_compiler, target_flags
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder
from xyntra_ep.tracea.semantic_ir.capabilities import AVX2, AVX512, Capabilities, Prefetching
from xyntra_ep.tracea.semantic_ir.nodes import Kernel, index

pytestmark = pytest.mark.compiler("cc")

MOST = 1 << 16
RECORDER = f"""
static long long seen[{MOST}], count;
static void tell(const void *address) {{ if (count < {MOST}) seen[count++] = (long long)address; }}
__attribute__((visibility("default"))) long long told(long long *to) {{
  for (long long i = 0; i < count; i++) to[i] = seen[i];
  return count;
}}
"""


def fetched(
    kernel: Kernel,
    caps: Capabilities,
    folder: Path,
    sizes: Sequence[int],
    w: int,
    units: int,
    *params: int,
    flags: Sequence[str] = (),
) -> list[int]:
    """The numbers of the cache lines of buffer ``w`` in the order in which they are prefetched; ``sizes``: bytes of buffers."""
    # Compiled for any machine of this architecture, whatever the kernel was written for: what it fetches is the same.
    text = c_text(kernel, caps).replace("__builtin_prefetch(", "tell((").replace(", 0, 2);", "));").replace(", 0, 3);", "));")
    stem = f"k{len(list(folder.iterdir()))}"  # a library that is loaded already would be found again
    source, library = folder / f"{stem}.c", folder / f"{stem}.so"
    source.write_text(RECORDER + text)
    command = [*find_compiler().command, "-O1", "-shared", "-fPIC", "-w", *flags, str(source), "-o", str(library), "-lm"]
    subprocess.run(command, check=True, capture_output=True)
    loaded = ctypes.CDLL(str(library))
    memory = [ctypes.create_string_buffer(size + 2 * LINE_BYTES) for size in sizes]
    starts = [-(-ctypes.addressof(block) // LINE_BYTES) * LINE_BYTES for block in memory]
    buffers, numbers = (ctypes.c_void_p * len(starts))(*starts), (ctypes.c_longlong * max(1, len(params)))(*params)
    getattr(loaded, kernel.name)(buffers, numbers, ctypes.c_longlong(0), ctypes.c_longlong(units))
    told = (ctypes.c_longlong * MOST)()
    return [(told[i] - starts[w]) // LINE_BYTES for i in range(loaded.told(told))]


@pytest.mark.parametrize("lines", [64, 192, 768])
def test_blocks_together_fetch_all_lines_in_several_streams(lines: int, tmp_path: Path) -> None:
    at_a_time = 16
    k = KernelBuilder("fetch")
    w = k.buffer("w", DType.BF16)
    k.buffer("out", DType.F32, writable=True)
    with k.units() as unit:
        fetch_beside(k, w, lines * LINE_BYTES // DType.BF16.bytes, unit * at_a_time, index(at_a_time))
    kernel, _ = k.finish()
    found = fetched(kernel, AVX2, tmp_path, [lines * LINE_BYTES, 64], 0, lines // at_a_time)
    assert sorted(found) == list(range(lines)), "each line once"
    part = lines // STREAMS
    assert [line // part for line in found] == list(range(STREAMS)) * part, "the parts in turn"
    assert [line % part for line in found] == [i for i in range(part) for _ in range(STREAMS)], "each part in order"


def fetched_by_itself(tile: Tile, steps: int, caps: Capabilities, folder: Path) -> tuple[int, list[int]]:
    """The number of lines in a panel of so many steps, and those that a tile of one row asks for meanwhile."""
    k = KernelBuilder("tile")
    w, out = k.buffer("w", DType.F32), k.buffer("out", DType.F32, writable=True)
    with k.units():
        ahead = fetch_itself(k, tile, w, index(steps), caps)
        rows = Matrix(pointer=w, row=index(0), step=index(1))
        sums = accumulate(k, tile, rows, Matrix(pointer=w, row=index(tile.columns), step=index(1)), index(steps), ahead=ahead)
        for j, c in enumerate(sums[0]):
            k.store(out, j * tile.lanes, c)
    size = steps * tile.columns * DType.F32.bytes
    kernel, _ = k.finish()
    return size // LINE_BYTES, fetched(kernel, caps, folder, [2 * size, 1 << 12], 0, 1)


@pytest.mark.parametrize(("vectors", "unroll", "steps"), [(6, 4, 64), (2, 4, 256), (1, 2, 32)])
def test_a_tile_fetches_what_comes_next_a_line_of_each_stream_a_turn(
    vectors: int, unroll: int, steps: int, tmp_path: Path
) -> None:
    tile = Tile(rows=1, vectors=vectors, lanes=8, unroll=unroll)
    lines, found = fetched_by_itself(tile, steps, replace(AVX2, prefetching=Prefetching.FAR), tmp_path)
    turns = steps // unroll
    assert sorted(found) == list(range(lines, 2 * lines)), "each line of what comes next, once"
    streams = lines // turns
    for turn in range(turns):
        assert found[turn * streams : (turn + 1) * streams] == [lines + i * turns + turn for i in range(streams)]


@pytest.mark.parametrize(("vectors", "steps"), [(2, 256), (1, 64)])
def test_without_far_streams_a_tile_fetches_a_little_ahead_in_order(vectors: int, steps: int, tmp_path: Path) -> None:
    tile = Tile(rows=1, vectors=vectors, lanes=8)
    lines, found = fetched_by_itself(tile, steps, AVX2, tmp_path)
    ahead_lines = NEAR * tile.lanes
    assert found == list(range(ahead_lines, ahead_lines + lines)), "each line once, in the order of use"


def fetched_by_blocks(m: int, depth: int, columns: int, caps: Capabilities, folder: Path) -> list[int]:
    """As ``fetched``, by a product with two panels."""
    program, _, _ = build(GemmCase(m=m, k=depth, n=2 * columns, symbolic=""))
    context = BuildContext(caps=caps, program=program, constants=frozenset({1}))
    [variant], op = packed_b.VARIANTS, gemm_of(program)
    call = variant.build(op, {"rows": 8, "columns": columns}, context)[-1]
    sizes = [m * depth * 4, 3 * depth * columns * 4, m * 2 * columns * 4, 64]
    return fetched(call.kernel, caps, folder, sizes, 1, 2, *(evaluate(p, {}) for p in call.params))


@pytest.mark.parametrize("m", [12, 16, 24, 16 * 8])
def test_without_far_streams_blocks_of_rows_fetch_the_next_part_in_order(m: int, tmp_path: Path) -> None:
    """However few they are."""
    depth, part, columns = 512, 256, 48
    lines = part * columns * 4 // LINE_BYTES
    found = fetched_by_blocks(m, depth, columns, AVX512, tmp_path)
    assert set(found) >= set(range(lines, 4 * lines)), "all that follows the first part"
    ahead = list(dict.fromkeys(line for line in found if lines <= line < 2 * lines))
    assert ahead == sorted(ahead)


def test_what_a_few_blocks_fetch_is_too_much_for_l1() -> None:
    """The last argument of a prefetch says how near it brings a line: 3 to L1."""
    for m, near in ((16, False), (96, True)):
        program, _, _ = build(GemmCase(m=m, k=512, n=96, symbolic=""))
        assert (", 0, 3);" in plan_for(program, AVX512, packed_b.VARIANTS).kernels[-1].text) == near


@pytest.mark.parametrize("m", [16, 24, 40])
def test_blocks_of_rows_share_in_fetching_the_next_part(m: int, tmp_path: Path) -> None:
    """Each goes on where the one before ended, in four streams: three blocks and more fetch all that follows."""
    depth, part, columns = 512, 256, 48
    lines = part * columns * 4 // LINE_BYTES
    found = fetched_by_blocks(m, depth, columns, replace(AVX512, prefetching=Prefetching.FAR), tmp_path)
    for following in (1, 2, 3):
        there = [line - following * lines for line in found if following * lines <= line < (following + 1) * lines]
        assert len(set(there)) >= (lines if m > 16 else lines * 2 // 3)
        streams = [line // (lines // 4) for line in dict.fromkeys(there)]
        assert streams == [0, 1, 2, 3] * (len(streams) // 4)


CONV = ConvCase(x=(1, 128, 28, 28), w=(128, 128, 3, 3), pads=(1, 1, 1, 1))


def fetched_by_conv(variant: Variant[Conv], caps: Capabilities, folder: Path) -> tuple[int, list[int]]:
    """The number of cache lines of the packed weights of ``CONV``, and those that its last kernel asks for."""
    program, _, _ = conv_program(CONV)
    [op] = [node for node in program.ops if isinstance(node, Conv)]
    context = BuildContext(caps=caps, program=program, constants=frozenset({1, 2}))
    call = variant.build(op, variant.default(op, context), context)[-1]
    assert isinstance(call.units, int)
    w = next(i for i, buffer in enumerate(call.buffers) if isinstance(buffer, TempBuffer) and i > 0)
    weights = call.buffers[w]
    assert isinstance(weights, TempBuffer) and isinstance(weights.size_bytes, int)
    sizes = [1 << 20] * len(call.buffers)
    sizes[w] = 2 * weights.size_bytes
    params, flags = [evaluate(p, {}) for p in call.params], target_flags(caps.isa)
    found = fetched(call.kernel, caps, folder, sizes, w, call.units, *params, flags=flags)
    return weights.size_bytes // LINE_BYTES, found


@pytest.mark.parametrize("variant", [*nhwc_direct.VARIANTS, *nhwc_winograd.VARIANTS], ids=lambda v: v.name)
def test_bursts_ask_for_each_line_of_the_weights_once_in_a_block_of_pixels(variant: Variant[Conv], tmp_path: Path) -> None:
    need(AVX2)
    lines, found = fetched_by_conv(variant, replace(AVX2, prefetching=Prefetching.BURST), tmp_path)
    inside = [line for line in found if line < lines]
    assert len(set(inside)) >= 0.85 * lines, "all but the first panel, an eighth"
    assert len(inside) <= 2 * lines, "once in each of two blocks of pixels"
    _, others = fetched_by_conv(variant, AVX2, tmp_path)
    assert len(others) > 1.5 * len(found), "a turn of a loop over k asks again for what it has"


def test_where_bursts_are_wanted_few_rows_are_left_to_the_processor(tmp_path: Path) -> None:
    burst = replace(AVX2, prefetching=Prefetching.BURST)
    _, alone = fetched_by_itself(Tile(rows=1, vectors=2, lanes=8), 256, burst, tmp_path)
    assert alone == []
    found = fetched_by_blocks(16, 512, 48, replace(AVX512, prefetching=Prefetching.BURST), tmp_path)
    assert len(set(found)) <= 4 * 12, "of each part the lines that a turn begins with, which are there"
