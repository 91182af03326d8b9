"""Products whose number of rows only a run knows: by gemm.gemv where it turns out to be small, as when a language model generates
token by token, else by tiles.

Both kernels are made; the sizes of a run say which one has blocks, and what has none is not launched. Constants that both read in
another form are copied once for both.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from xyntra_ep.tracea.core_ir.dims import le, lt
from xyntra_ep.tracea.core_ir.ops import Gemm
from xyntra_ep.tracea.kernels.gpu.gemm import block_tiles, gemv
from xyntra_ep.tracea.kernels.gpu.matrix_cores import gemm_matrix
from xyntra_ep.tracea.kernels.gpu.shared.launch import only_where
from xyntra_ep.tracea.kernels.gpu.shared.sum_parts import MOST
from xyntra_ep.tracea.kernels.gpu.tensor_cores import gemm_fragments, gemm_wgmma
from xyntra_ep.tracea.kernels.shared.gemm_shape import shape_of
from xyntra_ep.tracea.kernels.variant import BuildContext, Config, KernelCall, Variant

_FEW = 8  # rows that are read by packets of b
_MOST_AT_ONCE = 4  # one row computes no more than a device has to spare, eight read b twice


def _admits(tiles: Variant[Gemm], op: Gemm, context: BuildContext) -> str | None:
    if (why := tiles.admits(op, context)) is not None:
        return why
    return "the number of rows is known" if isinstance(shape_of(op).m, int) else None


def _build(tiles: Variant[Gemm], op: Gemm, config: Config, context: BuildContext) -> list[KernelCall]:
    m = shape_of(op).m
    [gemv_variant] = gemv.VARIANTS
    [rows, _] = gemv_variant.space(op, context)
    together = max(n for n in rows.values if n <= _MOST_AT_ONCE)
    calls = only_where(le(m, _FEW), gemv.build(op, {"rows": together, "parts": MOST[-1]}, context))
    others = only_where(lt(_FEW, m), tiles.build(op, config, context))
    return [*(call for call in calls if call not in others), *others]


def _or_gemv(tiles: Variant[Gemm]) -> Variant[Gemm]:
    """At the cost of ``tiles``, which it comes before."""
    return replace(
        tiles,
        name=f"{tiles.name}_or_gemv",
        admits=partial(_admits, tiles),
        build=partial(_build, tiles),
        rank=tiles.rank - 1,
        parts=(tiles.name, *(variant.name for variant in gemv.VARIANTS)),
    )


_TILES = (*gemm_wgmma.VARIANTS, *gemm_fragments.VARIANTS, *gemm_matrix.VARIANTS, *block_tiles.VARIANTS)
VARIANTS = [_or_gemv(tiles) for tiles in _TILES]
