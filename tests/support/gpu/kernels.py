"""Small GPU kernels that between them have every node: for printing, compiling and running."""

from __future__ import annotations

from collections.abc import Sequence

from xyntra_ep.tracea.core_ir.dims import symbol
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.semantic_ir.gpu.builder import GpuBuilder
from xyntra_ep.tracea.semantic_ir.gpu.lane_map import Digit, LaneMap
from xyntra_ep.tracea.semantic_ir.gpu.swizzle import TileAccess, choose
from xyntra_ep.tracea.semantic_ir.math_library import math_dependencies, math_function
from xyntra_ep.tracea.semantic_ir.nodes import CallValue, Kernel, Unary, lt

EXPONENTIALS = ("exp2", "exp2_nonpositive", "exp2_weight", "exp2_weight_bf16", "exp_nonpositive")
TILE = 32  # of the transposition, in elements


def transpose() -> Kernel:
    """y [n, m] = x [m, n] transposed, m and n multiples of 32: through a tile of shared memory that is written by rows and read
    by columns, in packets of 4 both times."""
    rows = LaneMap((Digit("c", 8, step=4), Digit("r", 32)))
    columns = LaneMap((Digit("c", 8), Digit("r", 8, step=4), Digit("c", 4, step=8)))
    layout = choose(TILE, TILE, 4, [TileAccess(rows, "r", "c", 4), TileAccess(columns, "r", "c")])
    assert layout is not None
    b = GpuBuilder("transpose", threads=256)
    x, y = b.buffer("x", DType.F32), b.buffer("y", DType.F32, writable=True)
    m, n = b.param(symbol("m")), b.param(symbol("n"))
    tile = b.shared("tile", DType.F32, layout.elements)
    across = b.let("across", n // TILE)
    top, left = b.let("top", b.block // across * TILE), b.let("left", b.block % across * TILE)
    put = rows.emit(b, b.thread)
    packet = b.load_packet("v", x, (top + put["r"]) * n + left + put["c"], 4)
    b.store_packet(tile, layout.emit(b, put["r"], put["c"]), packet)
    b.barrier()
    get = columns.emit(b, b.thread)
    found = [b.let("w", b.load(tile, layout.emit(b, get["r"] + i, get["c"]))) for i in range(4)]
    b.store_packet(y, (left + get["c"]) * m + top + get["r"], found)
    return b.finish()[0]


def pipeline(slots: int = 3, wait: int | None = None, barrier: bool = True) -> Kernel:
    """y [steps, 64] = the sum of each row of x [steps, 256] with its neighbour in the block, copied ``slots`` - 1 steps ahead;
    the last step's copies are short. ``wait`` and ``barrier`` say otherwise than is right."""
    b = GpuBuilder("pipeline", threads=64)
    x, y = b.buffer("x", DType.F32), b.buffer("y", DType.F32, writable=True)
    steps = b.param(symbol("steps"))
    stages = b.shared("stage", DType.F32, 256, slots)

    def fetch(step) -> None:  # type: ignore[no-untyped-def]  # a counter or a number
        with b.when(lt(step, steps)):
            into = b.slot(stages, step % slots)
            b.copy_async(into, b.thread * 4, x, step * 256 + b.thread * 4, 4)
        b.commit()

    with b.loop("ahead", 0, slots - 1) as ahead:
        fetch(ahead)
    with b.loop("step", 0, steps) as step:
        b.wait(slots - 2 if wait is None else wait)
        if barrier:
            b.barrier()
        here = b.slot(stages, step % slots)
        mine = b.load_packet("v", here, (b.thread + 1) % 64 * 4, 4)
        b.store(y, step * 64 + b.thread, mine[0] + mine[1] + mine[2] + mine[3])
        fetch(step + (slots - 1))
    b.wait(0)
    return b.finish()[0]


def convert(pairs: Sequence[tuple[DType, DType]], packet: int) -> Kernel:
    """y = x for each pair of types, floats by way of a half, ``packet`` elements a thread. Buffers: all x, then all y."""
    b = GpuBuilder(f"convert_{packet}", threads=32)
    sources = [b.buffer("x", source) for source, _ in pairs]
    results = [b.buffer("y", result, writable=True) for _, result in pairs]
    at = b.let("at", (b.block * 32 + b.thread) * packet)
    for (source, result), x, y in zip(pairs, sources, results, strict=True):
        count = min(packet, 16 // max(source.bytes, result.bytes))
        with b.loop("i", 0, packet, count) as i:
            values = b.load_packet("v", x, at + i, count)
            b.store_packet(y, at + i, [Unary("round_f16", v) if source.is_float else v for v in values])
    return b.finish()[0]


def exponentials() -> Kernel:
    """y = f(x) for x <= 0, one block's worth of x for each f of ``EXPONENTIALS``."""
    b = GpuBuilder("exponentials", threads=64)
    x, y = b.buffer("x", DType.F32), b.buffer("y", DType.F32, writable=True)
    for i, name in enumerate(EXPONENTIALS):
        for function in math_dependencies(name, 1):
            b.function(function)
        at = b.let("at", (b.block * len(EXPONENTIALS) + i) * 64 + b.thread)
        b.store(y, at, CallValue(math_function(name, 1), (b.load(x, at),)))
    return b.finish()[0]


def subgroup_sum() -> Kernel:
    """y[block] = sum of 32 elements, by exchange between registers."""
    b = GpuBuilder("subgroup_sum", threads=32)
    x, y = b.buffer("x", DType.F32), b.buffer("y", DType.F32, writable=True)
    total = b.variable("total", b.load(x, b.block * 32 + b.thread))
    for mask in (16, 8, 4, 2, 1):
        b.assign(total, total + b.subgroup_xor(total, mask))
    with b.when(lt(b.thread, 1)):
        b.store(y, b.block, total)
    return b.finish()[0]
