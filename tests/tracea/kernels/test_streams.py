"""What kernels fetch ahead, by what they tell instead: prefetches have no result."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import pytest

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.emitters.cpu import emit
from xyntra_ep.tracea.kernels.cpu._gemm_tile import Matrix, Tile, accumulate, fetch_itself
from xyntra_ep.tracea.kernels.cpu._streams import LINE_BYTES, STREAMS, fetch_beside
from xyntra_ep.tracea.runtime.compilers import find_compiler
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder
from xyntra_ep.tracea.semantic_ir.capabilities import AVX2
from xyntra_ep.tracea.semantic_ir.nodes import index

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


def fetched(kernel: KernelBuilder, units: int, folder: Path, w_bytes: int) -> list[int]:
    """The numbers of the cache lines of the first buffer, in the order in which they are prefetched. The second is written."""
    built, params = kernel.finish()
    assert not params
    text = emit(built, AVX2).replace("__builtin_prefetch(", "tell((")
    text = text.replace(", 0, 2);", "));")  # what kind of fetch it is
    assert "tell(" in text
    source, library = folder / "k.c", folder / "k.so"
    source.write_text(RECORDER + text)
    command = [*find_compiler().command, "-O1", "-shared", "-fPIC", "-w", str(source), "-o", str(library)]
    subprocess.run(command, check=True, capture_output=True)
    loaded = ctypes.CDLL(str(library))
    w, out = ctypes.create_string_buffer(w_bytes + LINE_BYTES), ctypes.create_string_buffer(1 << 12)
    start = -(-ctypes.addressof(w) // LINE_BYTES) * LINE_BYTES
    buffers = (ctypes.c_void_p * 2)(start, ctypes.addressof(out))
    getattr(loaded, built.name)(buffers, (ctypes.c_longlong * 1)(), ctypes.c_longlong(0), ctypes.c_longlong(units))
    told = (ctypes.c_longlong * MOST)()
    count = loaded.told(told)
    addresses = [told[i] - start for i in range(count)]
    assert all(address % LINE_BYTES == 0 for address in addresses)
    return [address // LINE_BYTES for address in addresses]


@pytest.mark.parametrize("lines", [64, 192, 768])
def test_blocks_together_fetch_all_lines_in_several_streams(lines: int, tmp_path: Path) -> None:
    at_a_time = 16
    k = KernelBuilder("fetch")
    w = k.buffer("w", DType.BF16)
    k.buffer("out", DType.F32, writable=True)
    with k.units() as unit:
        fetch_beside(k, w, lines * LINE_BYTES // DType.BF16.bytes, unit * at_a_time, index(at_a_time))
    found = fetched(k, lines // at_a_time, tmp_path, lines * LINE_BYTES)
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
    found = fetched(k, 1, tmp_path, 2 * size)
    lines, turns = size // LINE_BYTES, steps // unroll
    assert sorted(found) == list(range(lines, 2 * lines)), "each line of what comes next, once"
    streams = lines // turns
    for turn in range(turns):
        assert found[turn * streams : (turn + 1) * streams] == [lines + i * turns + turn for i in range(streams)]
