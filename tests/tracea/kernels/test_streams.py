"""What kernels fetch ahead, by what they tell instead: prefetches have no result."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.tracea.kernels.gemm_programs import GemmCase, build, gemm_of
from xyntra_ep.tracea.core_ir.dims import evaluate
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.emitters.cpu import emit
from xyntra_ep.tracea.kernels.cpu import gemm_packed_b
from xyntra_ep.tracea.kernels.cpu._gemm_tile import Matrix, Tile, accumulate, fetch_itself
from xyntra_ep.tracea.kernels.cpu._streams import LINE_BYTES, STREAMS, fetch_beside
from xyntra_ep.tracea.kernels.variant import BuildContext
from xyntra_ep.tracea.runtime.compilers import find_compiler
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder
from xyntra_ep.tracea.semantic_ir.capabilities import AVX2, AVX512, Capabilities
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
    kernel: Kernel, caps: Capabilities, folder: Path, sizes: Sequence[int], w: int, units: int, *params: int
) -> list[int]:
    """The numbers of the cache lines of buffer ``w`` in the order in which they are prefetched; ``sizes``: bytes of buffers."""
    # Compiled for any machine of this architecture, whatever the kernel was written for: what it fetches is the same.
    text = emit(kernel, caps).replace("__builtin_prefetch(", "tell((").replace(", 0, 2);", "));")
    assert "tell(" in text
    source, library = folder / "k.c", folder / "k.so"
    source.write_text(RECORDER + text)
    command = [*find_compiler().command, "-O1", "-shared", "-fPIC", "-w", str(source), "-o", str(library), "-lm"]
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


@pytest.mark.parametrize(("vectors", "unroll", "steps"), [(6, 4, 64), (2, 4, 256), (1, 2, 32)])
def test_a_tile_fetches_what_comes_next_a_line_of_each_stream_a_turn(
    vectors: int, unroll: int, steps: int, tmp_path: Path
) -> None:
    tile = Tile(rows=1, vectors=vectors, lanes=8, unroll=unroll)
    k = KernelBuilder("tile")
    w, out = k.buffer("w", DType.F32), k.buffer("out", DType.F32, writable=True)
    with k.units():
        ahead = fetch_itself(k, tile, w, index(steps))
        rows = Matrix(pointer=w, row=index(0), step=index(1))
        sums = accumulate(k, tile, rows, Matrix(pointer=w, row=index(tile.columns), step=index(1)), index(steps), ahead=ahead)
        for j, c in enumerate(sums[0]):
            k.store(out, j * tile.lanes, c)
    size = steps * tile.columns * DType.F32.bytes
    kernel, _ = k.finish()
    found = fetched(kernel, AVX2, tmp_path, [2 * size, 1 << 12], 0, 1)
    lines, turns = size // LINE_BYTES, steps // unroll
    assert sorted(found) == list(range(lines, 2 * lines)), "each line of what comes next, once"
    streams = lines // turns
    for turn in range(turns):
        assert found[turn * streams : (turn + 1) * streams] == [lines + i * turns + turn for i in range(streams)]


@pytest.mark.parametrize("m", [16, 24, 40])
def test_blocks_of_rows_share_in_fetching_the_next_part(m: int, tmp_path: Path) -> None:
    """Each goes on where the one before ended, in four streams: three blocks and more fetch all that follows."""
    depth, part, columns = 512, 256, 48
    program, _, _ = build(GemmCase(m=m, k=depth, n=2 * columns, symbolic=""))
    context = BuildContext(caps=AVX512, program=program, constants=frozenset({1}))
    [variant], op = gemm_packed_b.VARIANTS, gemm_of(program)
    call = variant.build(op, {"rows": 8, "columns": columns}, context)[-1]
    lines = part * columns * 4 // LINE_BYTES
    sizes = [m * depth * 4, 3 * depth * columns * 4, m * 2 * columns * 4, 64]
    found = fetched(call.kernel, AVX512, tmp_path, sizes, 1, 2, *(evaluate(p, {}) for p in call.params))
    for following in (1, 2, 3):
        there = [line - following * lines for line in found if following * lines <= line < (following + 1) * lines]
        assert len(set(there)) >= (lines if m > 16 else lines * 2 // 3)
        streams = [line // (lines // 4) for line in dict.fromkeys(there)]
        assert streams == [0, 1, 2, 3] * (len(streams) // 4)
