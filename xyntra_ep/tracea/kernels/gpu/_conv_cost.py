"""What the tiles of a convolution are estimated to take: their arithmetic, and bringing their operands."""

from __future__ import annotations

from xyntra_ep.tracea.core_ir.dims import Size, typical
from xyntra_ep.tracea.kernels.gpu._launch import CACHE
from xyntra_ep.tracea.semantic_ir.gpu_capabilities import Gpu


def tiles_ns(blocks: Size, rows: int, columns: int, depth: int, element_bytes: int, gflops: float, gpu: Gpu) -> float:
    """Waves of blocks, each rows x columns x depth on one unit; of ``gflops``, and of the cache's rate, it has its part. Copies
    are under way while products are made, but wait for each other's steps: taken as one after the other."""
    waves = -(-typical(blocks) // gpu.units)
    arithmetic = 2 * rows * columns * depth / (gflops / gpu.units)
    copies = (rows + columns) * depth * element_bytes / (CACHE * gpu.memory_gbs / gpu.units)
    return waves * (arithmetic + copies)
