"""gemm.streamed: a handful of rows times a run-time b whose rows are contiguous: b goes by once, front to back.

    for part of k:
        for some steps of k:              their elements of a stay in registers
            for vector of columns:        sums in L1 += a vector of each of the rows of b
    the sums of all parts, epilogue, store

A register tile reads a few vectors of a row of b and then the next row, and panels of columns would be read in runs, too: memory
and its prefetchers are made for whole pages (1 x 1500 x 1000 in panels of 256 columns took 1.15 times as long). So what threads
share out is k.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xyntra_ep.tracea.core_ir.dims import Size, ceildiv, product, smax, typical
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Gemm
from xyntra_ep.tracea.kernels.cpu.gemm._choice import product_ns, weight_ns
from xyntra_ep.tracea.kernels.shared.address import address
from xyntra_ep.tracea.kernels.shared.epilogue import Epilogue, is_rough
from xyntra_ep.tracea.kernels.shared.gemm_shape import GemmShape, own_batches, shape_of
from xyntra_ep.tracea.kernels.variant import Axis, BuildContext, Config, KernelCall, TempBuffer, ValueBuffer, Variant
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder
from xyntra_ep.tracea.semantic_ir.capabilities import Capabilities
from xyntra_ep.tracea.semantic_ir.nodes import (
    Const,
    Fma,
    Pointer,
    Rvalue,
    Var,
    f32,
    index,
    lt,
    splat,
    vmin,
)

_ROWS = 4  # of more, a register tile's sums save more than its short runs cost
_SUMS = 4096  # sums that stay in L1 beside what goes by
_PART_BYTES = 256 << 10  # of b: what a unit should at least read
_PARTS = 16
_UNIT = 16  # vectors of columns, where these are shared out


def admits(op: Gemm, context: BuildContext) -> str | None:
    a, b = op.inputs[:2]
    if not (a.dtype.is_float and b.dtype.is_float):
        return f"a is {a.dtype} and b {b.dtype}, not floats"
    if b.strides[-1] != 1:
        return "the rows of b are not contiguous"
    rows = shape_of(op).m
    return None if isinstance(rows, int) and 0 < rows <= _ROWS else f"{rows} rows, not 1 to {_ROWS}"


def space(op: Gemm, context: BuildContext) -> Sequence[Axis]:
    return (Axis(name="steps", values=(1, 2, 4, 8)),)


def default(op: Gemm, context: BuildContext) -> Config:
    """Steps of k whose elements of a fill half of the registers; of more than 4 rows of b at a time memory is no faster."""
    rows, half = shape_of(op).m, context.caps.vector_registers // 2
    assert isinstance(rows, int)
    return {"steps": next(n for n in (4, 2, 1) if n * rows <= max(half, rows))}


def cost_ns(op: Gemm, config: Config, context: BuildContext) -> float:
    shape = shape_of(op)
    matrices = typical(product(group.extents[0] for group in own_batches(shape)))
    arithmetic = 1.4 * typical(product_ns(shape, context.caps))  # with what the sums add
    return max(arithmetic, matrices * typical(weight_ns(shape, context.caps))) + 200.0


def build(op: Gemm, config: Config, context: BuildContext) -> list[KernelCall]:
    """A unit is a part of k, or a few vectors of columns, in one batch."""
    shape, lanes = shape_of(op), context.caps.lanes
    parts, rows = _parts(shape, context.caps), shape.m
    assert isinstance(rows, int)
    a, b, out = op.inputs[0], op.inputs[1], op.output
    k = KernelBuilder(f"xy_gemm_{a.dtype}_streamed_{rows}x{config['steps']}_{context.caps.isa}")
    k.note(f"m = {rows}, k = {shape.depth}, n = {shape.n}, epilogue: {op.epilogue}")
    a_data, b_data = k.buffer("a", a.dtype), k.buffer("b", b.dtype)
    together = _Together(shape, config["steps"], lanes)
    partial = _partial_sums(shape, parts, lanes)
    finish = None
    if partial is None:
        result = k.buffer("out", out.dtype, writable=True)
        finish = _Finish(k, shape, result, context)
        target: ValueBuffer | TempBuffer = ValueBuffer(value=out.value)
    else:
        result = k.buffer("partial", DType.F32, writable=True)
        target = partial.buffer
    most = _SUMS // rows // lanes * lanes
    # Near data is shared out by columns: there is no second pass, and its runs may be short.
    width = k.param(shape.n) if parts > 1 else index(_UNIT * lanes)
    chunks = 1 if parts > 1 else ceildiv(shape.n, _UNIT * lanes)
    sums = k.array("sums", DType.F32, rows * most)
    with k.units() as unit:
        *batch, part, chunk = k.split(unit, [*shape.batch_extents, parts, chunks])
        a_at, b_at = address(k, a, batch), address(k, b, batch)
        first = k.let("first", part * k.param(shape.depth) // parts)
        last = k.let("last", (part + 1) * k.param(shape.depth) // parts)
        a_matrix, b_matrix = k.pointer("a_at", a_data, a_at), k.let("b_at", b_at)
        begin = k.let("begin", chunk * width)
        end = k.let("end", vmin(begin + width, k.param(shape.n)))
        with k.loop("column", begin, end, most) as column:
            left = k.let("left", vmin(end - column, most))
            with k.loop("at", 0, left, lanes) as at:
                for i in range(rows):
                    k.store(sums, at + i * most, Const(f32(lanes), 0.0))
            together.add(k, (a_matrix, k.pointer("columns", b_data, b_matrix + column)), (first, last), sums, most, left)

            def store(at: Rvalue, count: Rvalue | None) -> None:
                totals = [k.let("total", k.load(sums, at + i * most, lanes)) for i in range(rows)]
                if finish is not None:
                    finish.emit([*batch], k.let("at", column + at), totals, count)
                    return
                assert partial is not None
                for i, total in enumerate(totals):
                    k.store(result, (unit * rows + i) * k.param(partial.row) + (column + at), total)

            _for_each_vector(k, shape.n, lanes, left, store)
    kernel, params = k.finish()
    call = KernelCall(
        kernel=kernel,
        buffers=(ValueBuffer(value=a.value), ValueBuffer(value=b.value), target, *(finish.buffers if finish else ())),
        params=params,
        units=product(shape.batch_extents) * parts * chunks,
        cost_ns=smax(product_ns(shape, context.caps), weight_ns(shape, context.caps)),
    )
    return [call] if partial is None else [call, _add_parts(shape, partial, parts, context)]


def _parts(shape: GemmShape, caps: Capabilities) -> int:
    """Parts of k: enough for a few threads, where b does not stay near."""
    if not isinstance(shape.depth, int) or not isinstance(shape.n, int):
        return 1
    size = 4 * shape.depth * shape.n
    return 1 if size <= caps.l2_bytes // 2 else max(1, min(size // _PART_BYTES, shape.depth // 64, _PARTS))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Partial:
    """Sums [batch][part][m][n, whole vectors]; ``row``: from one row to the next."""

    buffer: TempBuffer
    row: Size


def _partial_sums(shape: GemmShape, parts: int, lanes: int) -> _Partial | None:
    """None where there is but one part."""
    if parts == 1:
        return None
    row = ceildiv(shape.n, lanes) * lanes
    size = product(shape.batch_extents) * parts * shape.m * row * DType.F32.bytes
    return _Partial(buffer=TempBuffer(name="partial", size_bytes=size), row=row)


class _Finish:
    """The epilogue of a vector of columns, all rows of it, and the only store."""

    def __init__(self, kernel: KernelBuilder, shape: GemmShape, out: Var, context: BuildContext) -> None:
        op, groups = shape.op, shape.groups
        self._kernel, self._output, self._out = kernel, op.output, out
        self._lanes = context.caps.lanes
        self._epilogue = Epilogue(kernel, op.epilogue, op.inputs, op.domain, groups, len(groups) - 1, rough=is_rough(op))
        self.buffers = tuple(self._epilogue.buffers)

    def emit(self, batch: Sequence[Rvalue], column: Rvalue, totals: Sequence[Rvalue], count: Rvalue | None) -> None:
        here = self._epilogue.at(self._kernel)
        for i, total in enumerate(totals):
            point = [*batch, index(i), column]
            here.store(self._output, self._out, point, here.value(point, total, self._lanes, count), count)


def _add_parts(shape: GemmShape, partial: _Partial, parts: int, context: BuildContext) -> KernelCall:
    """The sums of all parts, and the epilogue."""
    op, lanes, rows = shape.op, context.caps.lanes, shape.m
    assert isinstance(rows, int)
    k = KernelBuilder(f"xy_gemm_{op.inputs[0].dtype}_add_parts_{rows}_{context.caps.isa}")
    data = k.buffer("partial", DType.F32)
    finish = _Finish(k, shape, k.buffer("out", op.output.dtype, writable=True), context)
    width = _UNIT * lanes
    chunks = ceildiv(shape.n, width)
    row = k.param(partial.row)
    with k.units() as unit:
        *batch, chunk = k.split(unit, [*shape.batch_extents, chunks])
        matrix = k.let("matrix", unit // k.param(chunks) * (parts * rows) * row)
        column = k.let("column", chunk * width)

        def add(at: Rvalue, count: Rvalue | None) -> None:
            here = k.let("at", column + at)
            totals = [k.variable("total", Const(f32(lanes), 0.0)) for _ in range(rows)]
            with k.loop("part", 0, parts) as part:
                for i, total in enumerate(totals):
                    k.assign(total, total + k.load(data, matrix + (part * rows + i) * row + here, lanes))
            finish.emit(batch, here, totals, count)

        _for_each_vector(k, shape.n, lanes, k.let("left", vmin(k.param(shape.n) - column, width)), add)
    kernel, params = k.finish()
    size = product(shape.batch_extents) * rows * shape.n
    return KernelCall(
        kernel=kernel,
        buffers=(partial.buffer, ValueBuffer(value=op.output.value), *finish.buffers),
        params=params,
        units=product(shape.batch_extents) * chunks,
        cost_ns=size * (parts + 4) // 16,
    )


@dataclass(frozen=True, slots=True)
class _Together:
    """``steps`` of k at a time."""

    shape: GemmShape
    steps: int
    lanes: int

    def add(
        self,
        k: KernelBuilder,
        data: tuple[Pointer, Pointer],
        part: tuple[Rvalue, Rvalue],
        sums: Var,
        width: int,
        left: Rvalue,
    ) -> None:
        """Steps [first, last) of k, of ``left`` columns of b, into ``sums``, whose rows are ``width`` apart. ``data``: where a
        and b start."""
        first, last = part
        whole = k.let("whole", last - (last - first) % self.steps)
        with k.loop("k", first, whole, self.steps) as at:
            self._step(k, data, at, self.steps, sums, width, left)
        if self.steps > 1:
            with k.loop("k", whole, last) as at:
                self._step(k, data, at, 1, sums, width, left)

    def _step(
        self, k: KernelBuilder, data: tuple[Pointer, Pointer], first: Rvalue, number: int, sums: Var, width: int, left: Rvalue
    ) -> None:
        a, b = data
        shape, rows, lanes = self.shape, self.shape.m, self.lanes
        assert isinstance(rows, int)
        a_row, a_step, b_row = (k.param(stride) for stride in (shape.a_row, shape.a_k, shape.op.inputs[1].strides[-2]))
        elements = [
            [k.let("x", splat(k.load(a, index(i) * a_row + (first + u) * a_step), lanes)) for u in range(number)]
            for i in range(rows)
        ]

        def add(at: Rvalue, count: Rvalue | None) -> None:
            ws = [k.let("w", k.load(b, (first + u) * b_row + at, lanes, count)) for u in range(number)]
            for i, xs in enumerate(elements):
                total: Rvalue = xs[0] * ws[0]
                for x, w in zip(xs[1:], ws[1:], strict=True):
                    total = k.let("c", Fma(x, w, total))
                k.store(sums, at + i * width, k.load(sums, at + i * width, lanes) + total)

        _for_each_vector(k, shape.n, lanes, left, add)


def _for_each_vector(k: KernelBuilder, n: Size, lanes: int, left: Rvalue, body: Callable[[Rvalue, Rvalue | None], None]) -> None:
    """Emit ``body(column, count)`` for all ``left`` columns; the last vector may have only ``count`` of them. ``n``: all there
    are."""
    whole = k.let("vectors", left - left % lanes)
    with k.loop("n", 0, whole, lanes) as at:
        body(at, None)
    if not isinstance(n, int) or n % lanes:
        with k.when(lt(whole, left)):
            body(whole, k.let("rest", left - whole))


VARIANTS = [
    Variant(
        name="gemm.streamed",
        op=Gemm,
        admits=admits,
        space=space,
        default=default,
        cost_ns=cost_ns,
        build=build,
        rank=3,
    )
]
