"""What a compiler makes of the inner loops: sums stay in registers."""

from __future__ import annotations

import platform
import re
import shutil
from pathlib import Path

import pytest

from tests.support.instructions import built_alone, disassembly
from tests.support.printed import c_text
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.kernels.cpu.gemm._choice import tile_of, tile_space
from xyntra_ep.tracea.kernels.cpu.gemm._tile import Matrix, Tile, accumulate
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder
from xyntra_ep.tracea.semantic_ir.capabilities import AVX2
from xyntra_ep.tracea.semantic_ir.nodes import index

pytestmark = [
    pytest.mark.compiler("cc"),
    pytest.mark.skipif(platform.machine() != "x86_64", reason="AVX2 is about x86"),
    pytest.mark.skipif(shutil.which("objdump") is None, reason="without objdump nothing is seen"),
]

ROWS, COLUMNS = (axis.values for axis in tile_space(AVX2))
TILES = [tile_of({"rows": r, "columns": c}, AVX2) for r in ROWS for c in COLUMNS if r * c <= 6 * 16]


def assembler(tile: Tile, folder: Path) -> list[str]:
    """The loop over k that a tile of products runs in, line by line."""
    k = KernelBuilder("tile")
    a, w, out = k.buffer("a", DType.F32), k.buffer("w", DType.F32), k.buffer("out", DType.F32, writable=True)
    with k.units():
        rows, panel = Matrix(pointer=a, row=index(768), step=index(1)), Matrix(pointer=w, row=index(tile.columns), step=index(1))
        for i, row in enumerate(accumulate(k, tile, rows, panel, index(768), whole_iterations=True)):
            for j, c in enumerate(row):
                k.store(out, i * tile.columns + j * tile.lanes, c)
    kernel, _ = k.finish()
    text = disassembly(built_alone(c_text(kernel, AVX2), AVX2.isa, folder)).splitlines()
    products = [i for i, line in enumerate(text) if "vfmadd" in line]
    assert len(products) >= tile.rows * tile.vectors * tile.unroll
    return text[products[0] : products[-1] + 1]


@pytest.mark.parametrize("tile", TILES, ids=lambda tile: f"{tile.rows}x{tile.columns}")
def test_no_sum_of_an_avx2_tile_lives_in_memory(tile: Tile, tmp_path: Path) -> None:
    lines = assembler(tile, tmp_path)
    assert not [line for line in lines if re.search(r"\(%r[sb]p\)", line) and "ymm" in line]
