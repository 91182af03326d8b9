"""pointwise.transposed: an elementwise op of which operands are contiguous along another axis than the result.

A block has a square of elements. Operands that lie across are read along their own axis into shared memory, and from there along
the result's: both sides move neighbours. What lies as the result does is read where it is used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from xyntra_ep.tracea.core_ir.dims import Size, ceildiv, product, typical
from xyntra_ep.tracea.core_ir.expr import load
from xyntra_ep.tracea.core_ir.ops import Pointwise
from xyntra_ep.tracea.kernels.gpu.shared.launch import estimate_ns, gpu_of, launch_of, steps_ns
from xyntra_ep.tracea.kernels.gpu.shared.packets import Packet, packet_width
from xyntra_ep.tracea.kernels.shared.index import Lane
from xyntra_ep.tracea.kernels.shared.loops.nest import Nest
from xyntra_ep.tracea.kernels.shared.loops.plan import Loop
from xyntra_ep.tracea.kernels.shared.loops.pointwise import PointwisePlan, plan_pointwise
from xyntra_ep.tracea.kernels.variant import BuildContext, Config, KernelCall, Variant
from xyntra_ep.tracea.semantic_ir.gpu.builder import GpuBuilder
from xyntra_ep.tracea.semantic_ir.gpu.lane_map import Digit, LaneMap
from xyntra_ep.tracea.semantic_ir.gpu.swizzle import TileAccess, TileLayout, choose
from xyntra_ep.tracea.semantic_ir.nodes import Rvalue, Var, lt, vmin

SIDE = 32  # of a square: lanes of a warp, which read so many neighbours
_THREADS = 256
_MOST = 3  # operands that lie across
_WIDEST = 4  # neighbours that a thread writes at once
_WASTE = 4.0  # squares that are this much larger than what is in them cost as much as they save


@dataclass(frozen=True, slots=True)
class _Turned:
    """``accesses`` are contiguous along the loop ``across``, the result along ``along``. ``width``: results written at once."""

    plan: PointwisePlan
    accesses: tuple[int, ...]
    along: Loop
    across: Loop
    width: int

    @property
    def outer(self) -> list[Loop]:
        return [loop for loop in self.plan.loops if loop not in (self.along, self.across)]

    @property
    def squares(self) -> list[Size]:
        """How many there are: for each point of the outer loops, across, along."""
        return [*(loop.extent for loop in self.outer), *(ceildiv(x.extent, SIDE) for x in (self.across, self.along))]


def _turned(op: Pointwise, b: GpuBuilder) -> _Turned | str:
    """How the op is a transposition, or why it is none."""
    plan = plan_pointwise(op, b)
    nest, table, loops = plan.nest, plan.nest.table, plan.loops
    if len(loops) < 2 or any(nest.address(k).mode is not Lane.VECTOR for k in plan.outputs):
        return "results are contiguous along no axis of two"
    axes, found = [loop.axis for loop in loops], {}
    for k, access in enumerate(table.accesses):
        if nest.address(k).mode in (Lane.ONE, Lane.VECTOR):
            continue
        strides = None if access.writable or access.count is not None else table.strides(access, axes)
        across = next((loop for loop in loops[:-1] if strides and strides[loop.axis] == 1), None)
        if across is None:
            return "an operand lies neither as the result nor across it"
        found[k] = across
    if not 0 < len(found) <= _MOST or len(set(found.values())) > 1:
        return f"{len(found)} operands lie across the result"
    width = min(_WIDEST, packet_width(nest, loops[-1].extent, apart=found))
    return _Turned(plan, tuple(found), loops[-1], next(iter(found.values())), width)


def _admits(op: Pointwise, context: BuildContext) -> str | None:
    if gpu_of(context).is_cpu:
        return "a CPU gains nothing from tiles in shared memory"
    found = _turned(op, GpuBuilder("legality", _THREADS))
    if isinstance(found, str):
        return found
    waste = 1.0
    for loop in (found.along, found.across):
        extent = max(1, typical(loop.extent))
        waste *= -(-extent // SIDE) * SIDE / extent
    return None if waste <= _WASTE else "squares would be mostly empty"


def _cost_ns(op: Pointwise, config: Config, context: BuildContext) -> float:
    """As `pointwise.packets`, whose estimate knows nothing of how operands lie: where squares are admitted, they are taken."""
    return estimate_ns(product(op.domain), gpu_of(context))


def reading() -> LaneMap:
    """A thread's element of a square, along (r) and across (c), as it reads operands that lie across."""
    return LaneMap((Digit("c", SIDE), Digit("r", _THREADS // SIDE)))


def writing(width: int) -> LaneMap:
    """The same as it computes results."""
    return LaneMap((Digit("r", SIDE // width, step=width), Digit("c", _THREADS * width // SIDE)))


@cache
def layout(element_bytes: int, width: int) -> TileLayout:
    """Free of conflicts both ways."""
    accesses = [TileAccess(reading(), "r", "c"), TileAccess(writing(width), "r", "c")]
    found = choose(SIDE, SIDE, element_bytes, accesses)
    assert found is not None, f"a square of {element_bytes} bytes an element has conflicts"
    return found


def _build(op: Pointwise, config: Config, context: BuildContext) -> list[KernelCall]:
    b = GpuBuilder(f"xy_transposed_{op.outputs[0].dtype}", _THREADS)
    turned = _turned(op, b)
    assert isinstance(turned, _Turned)
    table = turned.plan.nest.table
    *outer, top, left = b.split(b.block, turned.squares)
    axes = {loop.axis: at for loop, at in zip(turned.outer, outer, strict=True)}
    top, left = b.let("top", top * SIDE), b.let("left", left * SIDE)
    shared = {k: b.shared("square", table.accesses[k].dtype, SIDE * SIDE) for k in turned.accesses}
    _read(b, turned, shared, axes, top, left)
    b.barrier()
    _write(b, turned, shared, axes, top, left)
    return [launch_of(b, table.buffers, units=product(turned.squares), cost_ns=steps_ns(product(op.domain), gpu_of(context)))]


def _read(
    b: GpuBuilder, turned: _Turned, shared: Mapping[int, Var], axes: Mapping[int, Rvalue], top: Rvalue, left: Rvalue
) -> None:
    """Operands that lie across, into shared memory. Past their ends the last element is read once more."""
    here, rounds = reading().emit(b, b.thread), range(0, SIDE, reading().extent("r"))
    table = turned.plan.nest.table
    across = b.let("across", vmin(top + here["c"], b.param(turned.across.extent - 1)))
    found: list[tuple[int, int, Rvalue]] = []
    for k in shared:
        element = load(k, dtype=table.accesses[k].dtype)
        scope = Nest(b, table, None, [element]).outside().bind({**axes, turned.across.axis: across})
        for more in rounds:
            along = b.let("along", vmin(left + here["r"] + more, b.param(turned.along.extent - 1)))
            found.append((k, more, b.let("x", scope.bind({turned.along.axis: along}).value(element))))
    for k, more, value in found:
        at = layout(table.accesses[k].dtype.bytes, turned.width).emit(b, here["r"] + more, here["c"])
        b.store(shared[k], at, value)


def _write(
    b: GpuBuilder, turned: _Turned, shared: Mapping[int, Var], axes: Mapping[int, Rvalue], top: Rvalue, left: Rvalue
) -> None:
    """All results of the square."""
    plan, width = turned.plan, turned.width
    here, rounds = writing(width).emit(b, b.thread), range(0, SIDE, writing(width).extent("c"))
    along = b.let("along", left + here["r"])
    for more in rounds:
        across = b.let("across", top + here["c"] + more)
        loaded: dict[int, Sequence[Rvalue]] = {}
        for k, array in shared.items():
            places = layout(plan.nest.table.accesses[k].dtype.bytes, width)
            loaded[k] = [b.let("x", b.load(array, places.emit(b, here["r"] + i, here["c"] + more))) for i in range(width)]
        with b.when(lt(across, b.param(turned.across.extent))), b.when(lt(along, b.param(turned.along.extent))):
            scope = plan.nest.outside().bind({**axes, turned.across.axis: across})
            packet = Packet(b, scope, along, width, loaded)
            values = [packet.values(body) for body in plan.bodies]
            for k, stored in zip(plan.outputs, values, strict=True):
                packet.store(k, stored)


VARIANTS = [
    Variant(
        name="pointwise.transposed",
        op=Pointwise,
        admits=_admits,
        cost_ns=_cost_ns,
        build=_build,
        rank=0,
    )
]
