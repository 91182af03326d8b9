"""attention.row: a block for each row of q. Any mask, any layout, any number of columns, any device.

Columns come in chunks of as many as there are threads; chunks that a mask surely hides from the row are left out. A thread
multiplies q with one column of k; the block finds the chunk's maximum and puts weights relative to the running one into shared
memory; then a thread sums some of v's columns over the chunk. What was summed before is scaled down where the maximum has grown
(Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018).

The maximum leaves NaN out, and a row without any finite score has the lowest float for one: weights are then 0 where a score is
minus infinity and NaN where it is NaN or infinity, which reaches the sum of weights and by it the whole row, as it must.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from xyntra_ep.tracea.core_ir.dims import Size, ceildiv, product, typical
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import acc
from xyntra_ep.tracea.core_ir.ops import Attention, Operand, ReduceKind
from xyntra_ep.tracea.kernels.gpu.attention._space import STREAM, bounds_of, or_zero, read_ns, share_of, sure_mask_of
from xyntra_ep.tracea.kernels.gpu.shared.block_reduce import block_reduced
from xyntra_ep.tracea.kernels.gpu.shared.launch import LAUNCH_NS, estimate_ns, gpu_of, steps_ns
from xyntra_ep.tracea.kernels.shared.epilogue import Epilogue
from xyntra_ep.tracea.kernels.shared.index import Group
from xyntra_ep.tracea.kernels.shared.loops.reduce import Accumulator
from xyntra_ep.tracea.kernels.shared.sight import Sight
from xyntra_ep.tracea.kernels.variant import Axis, BuildContext, Config, KernelCall, ValueBuffer, Variant
from xyntra_ep.tracea.semantic_ir.gpu.builder import GpuBuilder
from xyntra_ep.tracea.semantic_ir.math_library import math_dependencies, math_function
from xyntra_ep.tracea.semantic_ir.nodes import CallValue, Const, Fma, Offset, Rvalue, Var, f32, index, lt, vmax, vmin

_LOWEST = float(np.finfo(np.float32).min)
_EXP = "exp_nonpositive"
_THREADS = (64, 128, 256)
_APART = 16  # a warp's threads read as many rows of k: a load is as many accesses, half of which the next loads find done


def _admits(op: Attention, context: BuildContext) -> str | None:
    depth, width = op.inputs[0].shape[3], op.inputs[2].shape[3]
    if not all(o.dtype.is_float for o in (*op.inputs[:3], op.output)):
        return "q, k, v and the output must be floating point"
    if not isinstance(depth, int) or not isinstance(width, int):
        return "the size of a head must be known"
    return "a row of q must fit in shared memory" if depth * 4 > gpu_of(context).common_shared_bytes // 2 else None


def _space(op: Attention, context: BuildContext) -> Sequence[Axis]:
    return (Axis(name="threads", values=_THREADS),)


def _default(op: Attention, context: BuildContext) -> Config:
    columns = typical(op.inputs[1].shape[2])
    return {"threads": next((t for t in _THREADS if t >= columns), _THREADS[-1])}


def _steps(op: Attention, threads: int, context: BuildContext) -> Size:
    """For each column, the loads of k and the sums of v; threads without a column of v wait."""
    gpu, (q, k, v) = gpu_of(context), op.inputs[:3]
    sixteenths = int(16 * share_of(op, sure_mask_of(op, context)))
    apart = 1 if gpu.is_cpu or k.strides[2] == 1 else _APART
    width = v.shape[3] if gpu.is_cpu else ceildiv(v.shape[3], threads) * threads
    return product(q.shape[:3]) * k.shape[2] * (q.shape[3] * apart + width) * sixteenths // 16


def _cost_ns(op: Attention, config: Config, context: BuildContext) -> float:
    gpu = gpu_of(context)
    steps = _steps(op, config["threads"], context)
    # Few rows leave most of the device idle: a row takes as long alone as beside others.
    alone = typical(steps) / max(1, typical(product(op.inputs[0].shape[:3]))) * gpu.units
    return max(estimate_ns(max(typical(steps), int(alone)), gpu), LAUNCH_NS + read_ns(op, gpu) / STREAM)


def _build(op: Attention, config: Config, context: BuildContext) -> list[KernelCall]:
    code = _RowCode(op, config["threads"], context)
    code.emit()
    kernel, params = code.b.finish()
    return [
        KernelCall(
            kernel=kernel,
            buffers=(
                *(ValueBuffer(value=o.value) for o in (*op.inputs[:3], op.output)),
                *code.scores.buffers,
                *code.sight.buffers,
            ),
            params=params,
            units=product(op.inputs[0].shape[:3]),
            cost_ns=steps_ns(_steps(op, config["threads"], context), gpu_of(context)),
        )
    ]


class _RowCode:
    """What a block does for its row."""

    def __init__(self, op: Attention, threads: int, context: BuildContext) -> None:
        self.op = op
        self.b = b = GpuBuilder(f"xy_attention_{op.inputs[0].dtype}_row", threads)
        self.subgroup = gpu_of(context).subgroup
        self.q, self.k, self.v = (b.buffer(name, o.dtype) for name, o in zip("qkv", op.inputs, strict=False))
        self.out = b.buffer("out", op.output.dtype, writable=True)
        q, k, v = op.inputs[:3]
        domain = (*q.shape[:3], k.shape[2])
        self.scores = Epilogue(b, op.score, op.inputs, domain, _groups(domain), lane_group=3)
        shape = op.output.shape
        self.result = Epilogue(b, acc(), op.inputs, shape, _groups(shape), lane_group=3)
        self.columns = b.param(k.shape[2])
        assert isinstance(q.shape[3], int) and isinstance(v.shape[3], int)
        self.depth, self.width = q.shape[3], v.shape[3]
        self.sight = Sight(b, op, bounds_of(sure_mask_of(op, context)), threads)
        for function in math_dependencies(_EXP, 1):
            b.function(function)

    def emit(self) -> None:
        b, threads = self.b, self.b.threads
        self.at = b.split(b.block, self.op.inputs[0].shape[:3])
        row, weights = b.shared("row", DType.F32, self.depth), b.shared("weights", DType.F32, threads)
        q = Offset(self.q, self._start(self.op.inputs[0], self.at))
        with b.loop("d", b.thread, self.depth, threads) as d:
            b.store(row, d, b.load(q, d * b.param(self.op.inputs[0].strides[3])))
        b.barrier()
        top = b.variable("top", Const(f32(1), _LOWEST))
        total = b.variable("total", Const(f32(1), 0.0))
        sums = [b.variable("sum", Const(f32(1), 0.0)) for _ in range(-(-self.width // threads))]
        self.sight.enter(self.at[:2], self.at[2], index(1))
        with b.loop("chunk", *self.sight.panels()) as chunk:
            first = b.let("first", chunk * threads)
            score = self._score(row, b.let("t", first + b.thread))
            higher = b.let("higher", vmax(self._meet(ReduceKind.MAX, score), top))
            factor = b.let("factor", self._exp(top - higher))
            b.assign(top, higher)
            weight = b.let("weight", self._exp(score - higher))
            b.store(weights, b.thread, weight)
            b.assign(total, total * factor + self._meet(ReduceKind.SUM, weight))
            b.barrier()
            self._sum(sums, factor, weights, first)
            b.barrier()
        self._store(sums, total)

    def _start(self, operand: Operand, at: Sequence[Rvalue]) -> Rvalue:
        """Where (batch, head, row) begins; of fewer coordinates, a whole head."""
        total = self.b.param(operand.offset)
        for coordinate, stride in zip(at, operand.strides, strict=False):
            total = total + coordinate * self.b.param(stride)
        return self.b.let("start", total)

    def _score(self, row: Var, t: Rvalue) -> Var:
        """Of column ``t``; minus infinity past the last one."""
        b, operand = self.b, self.op.inputs[1]
        score = b.variable("score", Const(f32(1), float("-inf")))
        with b.when(lt(t, self.columns)):
            column = Offset(self.k, self._start(operand, [*self.at[:2], t]))
            dot = b.variable("dot", Const(f32(1), 0.0))
            with b.loop("d", 0, self.depth) as d:
                b.assign(dot, Fma(b.load(row, d), b.load(column, d * b.param(operand.strides[3])), dot))
            b.assign(score, self.scores.at(b).value([*self.at, t], dot, 1))
        return score

    def _meet(self, kind: ReduceKind, value: Rvalue) -> Rvalue:
        """The maximum or the sum over all threads."""
        own, fresh = (Accumulator(self.b, kind, DType.F32, 1) for _ in range(2))
        own.update(value)
        return block_reduced(self.b, own, fresh, self.subgroup).result(DType.F32)

    def _exp(self, x: Rvalue) -> Rvalue:
        return CallValue(math_function(_EXP, 1), (x,))

    def _sum(self, sums: Sequence[Var], factor: Rvalue, weights: Var, first: Rvalue) -> None:
        """A thread's columns of v, over the columns of k that the chunk has."""
        b, operand = self.b, self.op.inputs[2]
        count = b.let("count", vmin(self.columns - first, b.threads))
        for i, total in enumerate(sums):
            with b.when(lt(b.thread + i * b.threads, self.width)):
                b.assign(total, total * factor)
                start = self._start(operand, [*self.at[:2], first])
                values = Offset(self.v, start + (b.thread + i * b.threads) * b.param(operand.strides[3]))
                with b.loop("t", 0, count) as t:
                    b.assign(total, Fma(b.load(weights, t), b.load(values, t * b.param(operand.strides[2])), total))

    def _store(self, sums: Sequence[Var], total: Var) -> None:
        b = self.b
        scale = b.let("scale", 1.0 / total)
        for i, value in enumerate(sums):
            e = b.let("e", b.thread + i * b.threads)
            with b.when(lt(e, self.width)):
                result = or_zero(self.op, value * scale, total)
                self.result.at(b).store(self.op.output, self.out, [*self.at, e], result)


def _groups(domain: Sequence[Size]) -> list[Group]:
    return [Group(axes=(i,), extents=(extent,)) for i, extent in enumerate(domain)]


VARIANTS = [
    Variant(
        name="attention.row",
        op=Attention,
        admits=_admits,
        space=_space,
        default=_default,
        cost_ns=_cost_ns,
        build=_build,
        rank=10,
    )
]
