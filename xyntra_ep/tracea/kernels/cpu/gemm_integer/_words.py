"""What the products of words of integers have in common: which ops they do, what they cost, their calls."""

from __future__ import annotations

from collections.abc import Callable

from xyntra_ep.tracea.core_ir.dims import product, typical
from xyntra_ep.tracea.core_ir.ops import Gemm, Product
from xyntra_ep.tracea.kernels.cpu.gemm._choice import best_tile, peak_of, tile_refusal, tile_space
from xyntra_ep.tracea.kernels.cpu.gemm._columns import PanelLayout, uniform_panels
from xyntra_ep.tracea.kernels.cpu.gemm._multiply import multiply
from xyntra_ep.tracea.kernels.cpu.gemm._tile import CLAMPED_QUADS, Tile, Words
from xyntra_ep.tracea.kernels.cpu.gemm_integer._excess import even_elements, excess_of, split_off
from xyntra_ep.tracea.kernels.cpu.gemm_integer._left import left_words
from xyntra_ep.tracea.kernels.cpu.gemm_integer._pack import pack_words, panels_of
from xyntra_ep.tracea.kernels.shared.gemm_shape import own_batches, shape_of
from xyntra_ep.tracea.kernels.variant import BuildContext, Config, KernelCall, TempBuffer, Variant

PACKING = 0.5  # nanoseconds for a byte of b that is packed in each run


def why_not(op: Gemm) -> str | None:
    """None where ``op`` multiplies bytes."""
    return None if op.product is Product.I32 else f"the product is in {op.product}"


def why_not_of(op: Gemm, words: Words) -> str | None:
    """The same, of the types of ``words`` as they are."""
    a, b = op.inputs[:2]
    if (a.dtype, b.dtype) != (words.left, words.right):
        return f"{a.dtype} times {b.dtype}, not {words.left} times {words.right}"
    return why_not(op)


def why_not_constant(op: Gemm, words: Words, context: BuildContext) -> str | None:
    """The same, with one constant b."""
    if (why := why_not_of(op, words)) is not None:
        return why
    b = op.inputs[1]
    if not context.is_constant(b.value):
        return "b is not a constant"
    if not all(isinstance(size, int) for size in b.shape[-2:]):
        return "the size of b is known only at run time"
    return None if shape_of(op).b_is_shared else "b differs between batches"


def variant_of(words: Words, admits: Callable[[Gemm, BuildContext], str | None], *, needs: str = "") -> Variant[Gemm]:
    """The row of the table for products of ``words``."""
    return Variant(
        name=f"gemm.{words.name}",
        op=Gemm,
        needs=needs,
        admits=admits,
        space=lambda op, context: tile_space(context.caps),
        refuses=lambda op, config, context: tile_refusal(config, context.caps),
        default=lambda op, context: best_tile(op.domain[-1], context.caps, of_integers=True),
        cost_ns=lambda op, config, context: words_ns(op, config, words, context),
        build=lambda op, config, context: build_words(op, config, words, context),
    )


def words_ns(op: Gemm, config: Config, words: Words, context: BuildContext) -> float:
    """On one core: the arithmetic or the reading of b, whatever takes longer, and the packing where that is done in each run."""
    shape, caps = shape_of(op), context.caps
    rows, columns, depth = typical(shape.m * product(shape.batch_extents)), typical(shape.n), typical(shape.depth)
    padded = -(-columns // config["columns"]) * config["columns"]
    size = words.right.bytes * padded * depth
    packing = 0.0 if context.is_constant(op.inputs[1].value) else PACKING * size
    return max(2.0 * rows * padded * depth / peak_of(words, caps), size / caps.dram_gbs) + packing + 150.0


def build_words(op: Gemm, config: Config, words: Words, context: BuildContext) -> list[KernelCall]:
    """Packing, rows of words, the product."""
    shape, lanes = shape_of(op), context.caps.lanes
    tile = Tile(rows=config["rows"], vectors=config["columns"] // lanes, lanes=lanes, words=words)
    panels = panels_of(shape, words, tile.columns)
    matrix = panels.panels * panels.step
    own = own_batches(shape)
    extents = [group.extents[0] for group in own]
    weights = TempBuffer(name="panels", size_bytes=product(extents) * panels.size_bytes)
    layout = PanelLayout(
        panels=uniform_panels(shape.n, tile),
        buffer=weights,
        dtype=words.right,
        offset=0,
        batch_strides=tuple(product(extents[own.index(g) + 1 :]) * matrix if g in own else 0 for g in shape.batch),
        column=panels.steps * words.depth,
        row=None,
        padded=True,
        fetch=True,
    )
    rows, copying = left_words(shape, panels, context)
    packing = pack_words(shape, weights, panels, context)
    if words is not CLAMPED_QUADS:
        return [packing, *copying, multiply(shape, tile, layout, context, rows)]
    excess = excess_of(shape, panels)
    return [
        packing,
        split_off(panels, weights, excess, context),
        *copying,
        even_elements(shape, panels, rows, excess, context),
        multiply(shape, tile, layout, context, rows, excess),
    ]
