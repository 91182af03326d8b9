"""gemm.block_sparse: a product with constant weights, many of which are zero, that goes by lists of the steps of k that are not.

    prepare   panel p of b -> [K][columns]; then the rows that are not all zero, one after the other, and a list of where they are
    run       for panel: for block of rows: for step in list: one row of the panel times an element of each row of a

The list is of single steps and for all columns of a panel: what was pruned in blocks of 16 x 16 or more leaves most of it out,
where panels are as narrow as the blocks. It is made of the weights themselves, when the session begins: what the plan knew of
them decides how fast this is and not what comes out. x * 0 counts as 0, also where x is infinite or NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Gemm
from xyntra_ep.tracea.core_ir.zeros import ALL
from xyntra_ep.tracea.kernels.cpu.gemm import packed_b
from xyntra_ep.tracea.kernels.cpu.gemm._choice import padded_ns, tile_of, tile_refusal, tile_space, weight_ns
from xyntra_ep.tracea.kernels.cpu.gemm._columns import ListedPanels, Panels, uniform_panels
from xyntra_ep.tracea.kernels.cpu.gemm._multiply import multiply
from xyntra_ep.tracea.kernels.cpu.gemm._tile import Tile
from xyntra_ep.tracea.kernels.shared.gemm_shape import GemmShape, shape_of
from xyntra_ep.tracea.kernels.variant import Axis, BuildContext, Config, KernelCall, Phase, TempBuffer, Variant
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder
from xyntra_ep.tracea.semantic_ir.capabilities import Capabilities
from xyntra_ep.tracea.semantic_ir.nodes import Bitcast, Const, Convert, Reduce, Rvalue, binary, i32, i64, index

_LISTED = 1.5  # what a step of a list takes, in steps of a loop over all: measured, 1.2 (AVX2) to 1.5 (AVX-512)
_SURE = 0.9  # of the time without lists: what is estimated to be nearer is not worth it


def admits(op: Gemm, context: BuildContext) -> str | None:
    if not op.filled:
        return "b is not known to have many zeros"
    if (why := packed_b.admits(op, context)) is not None:
        return why
    if any(operand.dtype is not DType.F32 for operand in op.inputs[:2]):
        return "not both factors are f32"
    if not isinstance(shape_of(op).a_k, int):
        return "how far apart the columns of a are is known only at run time"
    sparse, dense = (space_ns(op, context.caps, filled) for filled in (True, False))
    if sparse > _SURE * dense:
        return f"with {_share(op, context.caps):.0%} of the steps it is not faster than with all"
    return None


def space(op: Gemm, context: BuildContext) -> Sequence[Axis]:
    return tile_space(context.caps)


def default(op: Gemm, context: BuildContext) -> Config:
    """Of tiles that cost the same the one of most rows: each row has sums of its own, and few of them wait for each other."""
    return min(_tiles(context.caps), key=lambda config: (cost_ns(op, config, context), -config["rows"]))


def cost_ns(op: Gemm, config: Config, context: BuildContext) -> float:
    return _ns(op, config, context.caps, _filled(op, config["columns"]))


def space_ns(op: Gemm, caps: Capabilities, filled: bool) -> float:
    """The least that any tile takes, with lists or without."""
    return min(_ns(op, config, caps, _filled(op, config["columns"]) if filled else None) for config in _tiles(caps))


def _ns(op: Gemm, config: Config, caps: Capabilities, filled: float | None) -> float:
    shape = shape_of(op)
    columns = uniform_panels(shape.n, tile_of(config, caps)).columns
    share, pace = (1.0, 1.0) if filled is None else (filled, _LISTED)
    weights = weight_ns(shape, caps)
    assert isinstance(weights, int)
    return share * max(pace * padded_ns(shape, caps, columns), weights) + 100.0


def _tiles(caps: Capabilities) -> list[Config]:
    rows, columns = (axis.values for axis in tile_space(caps))
    configs: list[Config] = [{"rows": r, "columns": c} for r in rows for c in columns]
    return [config for config in configs if not tile_refusal(config, caps)]


def _filled(op: Gemm, columns: int) -> float:
    """Of the steps of panels of so many columns, or of the next width that was counted, those that are not all zero."""
    return next((n for width, n in op.filled if width >= columns), ALL) / ALL


def _share(op: Gemm, caps: Capabilities) -> float:
    return min(_filled(op, config["columns"]) for config in _tiles(caps))


def build(op: Gemm, config: Config, context: BuildContext) -> list[KernelCall]:
    shape = shape_of(op)
    tile = tile_of(config, context.caps)
    panels = uniform_panels(shape.n, tile)
    assert isinstance(shape.depth, int)
    assert isinstance(panels.number, int)
    weights, layout = packed_b.packed("panels", panels, shape.depth, shape)
    offsets = TempBuffer(name="steps", size_bytes=panels.number * (shape.depth + 1) * DType.I32.bytes)
    listed = ListedPanels(offsets=offsets, most=shape.depth)
    run = multiply(shape, tile, replace(layout, fetch=False), context, listed=listed)
    share = round(ALL * _filled(op, tile.columns))
    return [
        packed_b.pack(op.inputs[1], shape, panels, weights, context),
        _list_steps(shape, panels, tile, weights, listed, context),
        replace(run, cost_ns=run.cost_ns * share // ALL),
    ]


def _list_steps(
    shape: GemmShape, panels: Panels, tile: Tile, weights: TempBuffer, listed: ListedPanels, context: BuildContext
) -> KernelCall:
    """The call that lists the rows of packed ``weights`` that are not all zero and moves them to the beginning of their panel."""
    row, lanes = tile.columns, tile.lanes
    k = KernelBuilder(f"xy_gemm_list_{row}_{context.caps.isa}")
    packed, offsets = k.buffer("panels", DType.F32, writable=True), k.buffer("steps", DType.I32, writable=True)
    with k.units() as unit:
        panel = k.pointer("panel", packed, unit * k.param(shape.depth * row))
        table = k.pointer("table", offsets, unit * k.param(listed.most + 1))
        number = k.variable("number", index(0))
        with k.loop("k", 0, k.param(shape.depth)) as step:
            vectors = [k.let("w", k.load(panel, step * row + j, lanes)) for j in range(0, row, lanes)]
            with k.when(_has_any(vectors)):
                for j, vector in enumerate(vectors):
                    k.store(panel, number * row + j * lanes, vector)
                k.store(table, number + 1, Convert(i32(1), step * k.param(shape.a_k)))
                k.assign(number, number + 1)
        k.store(table, 0, Convert(i32(1), number))
    kernel, params = k.finish()
    return KernelCall(
        kernel=kernel,
        buffers=(weights, listed.offsets),
        params=params,
        units=panels.number,
        cost_ns=weight_ns(shape, context.caps),
        phase=Phase.PREPARE,
    )


def _has_any(vectors: Sequence[Rvalue]) -> Rvalue:
    """Whether a bit is set in any of ``vectors`` besides signs."""
    lanes = vectors[0].type.lanes
    words: list[Rvalue] = [Bitcast(i32(lanes), vector) for vector in vectors]
    bits = reduce(lambda a, b: a | b, words) & 0x7FFFFFFF
    return binary("ne", Convert(i64(1), Reduce("or", bits) if lanes > 1 else bits), Const(i64(1), 0))


VARIANTS = [
    Variant(
        name="gemm.block_sparse",
        op=Gemm,
        admits=admits,
        space=space,
        refuses=lambda op, config, context: tile_refusal(config, context.caps),
        default=default,
        cost_ns=cost_ns,
        build=build,
    )
]
