"""recurrence.supersteps: the steps of a recurrence in one launch; threads share out the units of each step, and wait for each
other.

    for direction (threads have one each before two share one):
        for step, for stage:                                       a superstep
            for chunk of the panels, as long as one is unclaimed:  panel of matrices x rows of the batch, bodies, stores
            wait until all chunks of the superstep are done

A step is some microseconds of work, as long as a launch takes, so the steps are a loop inside of the kernel (`superstep_nodes`:
why nobody waits in vain). Each thread begins a superstep at a chunk of its own and goes on to the next ones, and in every other
superstep it comes back the way that it went: the panels that it had last are in its L2 still, and a matrix somewhat larger than
L2 is read from there for the most part. What a chunk computes does not depend on who does it.
"""

from __future__ import annotations

from xyntra_ep.tracea.core_ir.dims import Size, le, product, smax, smin, typical
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Recurrence
from xyntra_ep.tracea.kernels.cpu.gemm._rows import divide_rows
from xyntra_ep.tracea.kernels.cpu.recurrence._memory import COUNTS, MOST_CHUNKS, Memory, for_each_vector
from xyntra_ep.tracea.kernels.cpu.recurrence._panels import Panels, pack, panels_of
from xyntra_ep.tracea.kernels.cpu.recurrence._step import StepCode, groups_of
from xyntra_ep.tracea.kernels.cpu.recurrence._words import QuantisedRows, pack_words, quantising_ns, rate_of, words_of
from xyntra_ep.tracea.kernels.shared.epilogue import Epilogue
from xyntra_ep.tracea.kernels.variant import BuildContext, Config, KernelCall, Variant
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder
from xyntra_ep.tracea.semantic_ir.capabilities import Capabilities
from xyntra_ep.tracea.semantic_ir.nodes import (
    Const,
    Offset,
    Rvalue,
    Select,
    Var,
    binary,
    f32,
    i64,
    index,
    lt,
)

_VECTOR_NS = 12  # of cells, whether of an LSTM's five functions or a GRU's three (Zen 4: 9 to 16)
_THREADS = 8  # that begin at chunks far from each other
_CLAIMS = COUNTS - MOST_CHUNKS
_CHUNKED_FLOPS = ((2, 128 << 10), (4, 256 << 10), (8, 512 << 10), (16, 4 << 20))  # of a step that is parted into so many


def admits(op: Recurrence, context: BuildContext) -> str | None:
    if not all(o.dtype.is_float for o in (op.output, *op.finals) if o is not None):
        return "not of floats"
    return None if op.domain[3] != 0 else "states of no elements"


def step_ns(op: Recurrence, caps: Capabilities) -> Size:
    """One step of one direction on one core: arithmetic, or reading the matrices from L2, or from L3 where they are larger; and
    the cells."""
    _, _, rows, width = op.domain
    assert isinstance(width, int)
    words = words_of(op, caps)
    weights = op.gates * width * width
    size = weights * (DType.F32 if words is None else words.right).bytes
    near = size <= caps.l2_bytes
    reading = int(size / (caps.fma_gflops * (0.9 if near else 0.8)))
    cells = -(-width // caps.lanes) * _VECTOR_NS
    products = 2 * weights * rows // max(1, int(0.9 * caps.fma_gflops * rate_of(words)))
    return smax(products, reading) + rows * cells + quantising_ns(op, caps) + 60


def total_ns(op: Recurrence, caps: Capabilities) -> Size:
    return op.domain[0] * op.domain[1] * step_ns(op, caps) + 500


def cost_ns(op: Recurrence, config: Config, context: BuildContext) -> float:
    return float(typical(total_ns(op, context.caps)))


def build(op: Recurrence, config: Config, context: BuildContext) -> list[KernelCall]:
    words = words_of(op, context.caps)
    panels = panels_of(op, context.caps, words)
    packed = [pack(op, p, context) if words is None else pack_words(op, p, words, context) for p in panels]
    return [*packed, _begin(op, context), _steps(op, panels, context)]


def _begin(op: Recurrence, context: BuildContext) -> KernelCall:
    """Counts at 0, states as they are before the first step, final states of rows that have none. A unit is a direction."""
    lanes = context.caps.lanes
    b = KernelBuilder(f"xy_recurrence_begin_{len(op.initial)}_{context.caps.isa}")
    memory = Memory(b, op, lanes, [])
    counts = memory.counts()
    states = [memory.vector(i) for i in range(len(op.initial))]
    finals = [memory.result(final) for final in op.finals]
    length = memory.lengths() if any(finals) else None
    first, *more = op.initial
    initial = Epilogue(b, first, op.inputs, op.domain, groups_of(op), 3, more=more)
    memory.buffers.extend(initial.buffers)
    width = op.domain[3]
    assert isinstance(width, int)
    with b.units() as direction:
        with b.loop("i", 0, COUNTS) as i:
            b.store(counts, direction * COUNTS + i, Const(i64(1), 0))
        with b.loop("row", 0, b.param(op.domain[2])) as row:
            stays = None if length is None else binary("eq", length(b, row), 0)

            def vector(column: Rvalue, count: Rvalue | None, row: Rvalue = row, stays: Rvalue | None = stays) -> None:
                here, point = initial.at(b), [direction, index(0), row, column]
                values = here.values(point, {}, lanes, count)
                for state, value in zip(states, values, strict=True):
                    b.store(state.data, state.at(direction, row, index(0)) + column, value)
                if stays is not None:
                    with b.when(stays):
                        for final in finals:
                            if final is not None:
                                initial.at(b).store(final[1], final[0], point, Const(f32(lanes), 0.0), count)

            for_each_vector(b, width, lanes, vector)
    kernel, params = b.finish()
    return KernelCall(
        kernel=kernel,
        buffers=tuple(memory.buffers),
        params=params,
        units=op.domain[0],
        cost_ns=product(op.domain) // smax(1, op.domain[1]) // 8 + 50,
    )


def _steps(op: Recurrence, panels: tuple[Panels, ...], context: BuildContext) -> KernelCall:
    """A unit is a thread that may take part in a direction; whoever carries it out sees the direction through to its end."""
    gates = "_".join(f"{p.gates}x{p.units}" for p in panels)
    b = KernelBuilder(f"xy_recurrence_{gates}_{context.caps.isa}")
    b.note(f"{op.domain[0]} directions of width {op.domain[3]}: " + "; ".join(str(e) for s in op.stages for e in s.bodies))
    memory = Memory(b, op, context.caps.lanes, [])
    counts = memory.counts()
    parts = []
    for p in panels:
        parts.append(_Part(p, b.buffer("panels", p.dtype)))
        memory.buffers.append(p.buffer(memory.directions))
    code = StepCode(b, memory, context)
    number = chunks_of(op, panels)
    units = op.domain[0] * smin(number, _THREADS)
    words = panels[0].words
    if words is not None:
        code.quantised = QuantisedRows.declare(b, memory, words, units)
    for part in parts:
        part.use(b, op, code)
    chunks, steps = b.param(number), b.param(op.domain[1])
    with b.units() as unit:
        direction = b.let("direction", unit % memory.directions)
        home = b.let("home", _spread(unit // memory.directions) * chunks // _THREADS)
        end = b.variable("end", home)
        done = b.let("done", direction * COUNTS)
        with b.when(lt(b.reached(counts, done), steps * len(panels) * chunks)), b.loop("step", 0, steps) as step:
            returns = b.let("returns", step & 1)
            for s, part in enumerate(parts):
                superstep = b.let("superstep", step * len(parts) + s)
                target = b.let("target", (superstep + 1) * chunks)
                with b.when(lt(b.reached(counts, done), target)):
                    start = b.let("start", Select(returns, end, home))
                    with b.when(binary("eq", returns, 0)):
                        b.assign(end, home)
                    mine, made = b.variable("mine", index(1)), b.variable("made", index(0))
                    with b.loop("i", 0, chunks) as i:
                        chunk = b.let("chunk", Select(returns, start + chunks - i, start + i) % chunks)
                        with b.when(b.claim(counts, done + _CLAIMS + chunk, superstep)):
                            if code.quantised is not None:
                                with b.when(binary("eq", made, 0)):
                                    code.quantised.make(b, part.factor, unit, direction, step)
                            part.chunk(b, unit, direction, step, (chunk, chunks), returns)
                            b.assign(made, made + 1)
                            with b.when(lt(returns, mine)):
                                b.assign(end, chunk)
                        with b.otherwise():
                            b.assign(mine, 0)
                    with b.when(lt(0, made)):
                        b.announce(counts, done, made)
                    b.wait_for(counts, done, target)
    kernel, params = b.finish()
    return KernelCall(
        kernel=kernel,
        buffers=tuple(memory.buffers),
        params=params,
        units=units,
        cost_ns=total_ns(op, context.caps),
    )


class _Part:
    """One stage of a step: its panels in chunks, its rows in blocks."""

    def __init__(self, panels: Panels, matrices: Var) -> None:
        self._panels = panels
        self._matrices = matrices

    def use(self, kernel: KernelBuilder, op: Recurrence, code: StepCode) -> None:
        self.factor = code.vectors[op.stages[self._panels.stage].factor]
        self._quantised = code.quantised
        self._tiles = code.stage(self._panels)
        self._blocks = divide_rows(kernel, op.domain[2], self._panels.rows)

    def chunk(
        self,
        b: KernelBuilder,
        unit: Rvalue,
        direction: Rvalue,
        step: Rvalue,
        chunk: tuple[Rvalue, Rvalue],
        returns: Rvalue,
    ) -> None:
        """Chunk i of n; backwards where the way ``returns``."""
        p, (i, n) = self._panels, chunk
        first, last = b.let("first", i * p.number // n), b.let("last", (i + 1) * p.number // n)
        with b.loop("p", first, last) as at:
            panel = b.let("panel", Select(returns, first + last - 1 - at, at))
            matrix = Offset(self._matrices, b.let("matrix", (direction * p.number + panel) * p.size))
            column = b.let("column", panel * p.columns)
            with b.loop("block", 0, self._blocks.number) as block:
                row = b.let("row", self._blocks.start(block))
                if self._quantised is None:
                    vector = [Offset(self.factor.data, b.let("vector", self.factor.at(direction, row, step)))]
                else:
                    vector = self._quantised.at(b, unit, row)
                self._tiles.call(self._blocks.rows(block), [*vector, matrix, direction, step, row, column])


def chunks_of(op: Recurrence, panels: tuple[Panels, ...]) -> Size:
    """Into how many chunks a step is parted: as many as are worth the wait at its end, at most one for each panel."""
    rate = rate_of(panels[0].words)
    flops = 2 * op.gates * op.domain[3] * op.domain[3] * op.domain[2]
    most, number, before = min(p.number for p in panels), 1, 1
    found: Size = number
    for number, least in _CHUNKED_FLOPS:
        if number <= most:
            found = found + (number - before) * le(least * rate, flops)
            before = number
    return found


def _spread(thread: Rvalue) -> Rvalue:
    """The three bits of a number the other way round: 0, 4, 2, 6 ... are far from each other from the first on."""
    return binary("shl", thread & 1, 2) | (thread & 2) | (binary("shr", thread, 2) & 1)


VARIANTS = [
    Variant(
        name="recurrence.supersteps",
        op=Recurrence,
        admits=admits,
        cost_ns=cost_ns,
        build=build,
    )
]
