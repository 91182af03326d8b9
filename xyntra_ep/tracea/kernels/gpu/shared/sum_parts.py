"""Products and convolutions whose sum over k is cut into parts, so that small results keep a whole device busy.

A block sums one part of k; what it has goes to memory, and a second kernel adds the parts up, always in the same order, and does
the epilogue. How many parts there are follows from the sizes of a run: as many as bring blocks to all units, no more than the
configuration allows. Where that is one, blocks finish their results themselves and the second kernel has nothing to do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from xyntra_ep.tracea.core_ir.dims import Size, ceildiv, lt, product, select, smax, smin, typical
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import acc
from xyntra_ep.tracea.core_ir.ops import Conv, Gemm
from xyntra_ep.tracea.kernels.gpu.shared.launch import CACHE, LAUNCH_NS, gpu_of, steps_ns
from xyntra_ep.tracea.kernels.shared.epilogue import Epilogue, Here
from xyntra_ep.tracea.kernels.shared.index import Group
from xyntra_ep.tracea.kernels.variant import Axis, BuildContext, KernelCall, TempBuffer, ValueBuffer
from xyntra_ep.tracea.semantic_ir.gpu.builder import GpuBuilder
from xyntra_ep.tracea.semantic_ir.gpu.capabilities import Gpu
from xyntra_ep.tracea.semantic_ir.nodes import Const, Pointer, Rvalue, binary, f32, index, vmax, vmin
from xyntra_ep.tracea.semantic_ir.nodes import lt as less

MOST = (1, 2, 4, 8, 16)
AXIS = Axis(name="parts", values=MOST)  # at most
_THREADS = 128

Summed = Gemm | Conv


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Of a sum over ``depth`` in whole steps of ``step``, the last one perhaps short: ``count`` parts of ``length`` each, in
    whole steps; the last ones may be short or empty."""

    count: Size
    length: Size
    depth: Size

    @property
    def is_cut(self) -> bool:
        """Whether there may be more than one."""
        return self.count != 1

    def split(self, k: GpuBuilder, extents: Sequence[Size]) -> list[Rvalue]:
        """The block's part, and where it is in ``extents``."""
        if self.is_cut:
            return k.split(k.block, [self.count, *extents])
        return [index(0), *k.split(k.block, extents)]

    def range(self, k: GpuBuilder, part: Rvalue) -> tuple[Rvalue, Rvalue]:
        """Of k, from where to where (not before that)."""
        if not self.is_cut:
            return index(0), k.param(self.depth)
        begin = k.let("begin", part * k.param(self.length))
        return begin, k.let("end", vmax(begin, vmin(begin + k.param(self.length), k.param(self.depth))))

    def steps(self, k: GpuBuilder, begin: Rvalue, end: Rvalue, step: int) -> Rvalue:
        """How many from ``begin`` to ``end``, as ``range`` has them."""
        return k.let("steps", (end - begin + (step - 1)) // step) if self.is_cut else k.param(ceildiv(self.depth, step))


def parts_of(depth: Size, step: int, blocks: Size, wanted: int, most: int, fewest: int = 4) -> Parts:
    """As many as give ``wanted`` blocks where one part has ``blocks``; none of less than ``fewest`` steps, which would not be
    worth the way of its sums through memory.

    >>> parts_of(768, 32, blocks=24, wanted=132, most=8)
    Parts(count=5, length=160, depth=768)
    >>> parts_of(768, 32, blocks=200, wanted=132, most=8).is_cut
    False
    """
    steps = ceildiv(depth, step)
    most = min(most, steps // fewest) if isinstance(steps, int) else most
    count = smin(most, smax(1, wanted // smax(1, blocks))) if most > 1 else 1
    if isinstance(count, int) and isinstance(steps, int):
        count = ceildiv(steps, ceildiv(steps, count)) or 1  # none is empty
    return Parts(count=count, length=ceildiv(steps, count) * step if count != 1 else depth, depth=depth)


def _row_major(groups: Sequence[Group]) -> tuple[Size, ...]:
    """Strides of the axes by which the groups' indices count memory."""
    strides: dict[int, Size] = {}
    step: Size = 1
    for axis, extent in reversed([pair for group in groups for pair in zip(group.axes, group.extents, strict=True)]):
        strides[axis], step = step, step * extent
    return tuple(strides[axis] for axis in sorted(strides))


class End:
    """A way to store results: through ``op``'s epilogue to its output, which is in ``buffer``."""

    def __init__(
        self, k: GpuBuilder, op: Summed, groups: Sequence[Group], buffer: ValueBuffer | TempBuffer, context: BuildContext
    ) -> None:
        self._k, self.op = k, op
        self.target: Pointer = k.buffer("out", op.output.dtype, writable=True)
        self.epilogue = Epilogue(k, op.epilogue, op.inputs, op.domain, groups, len(groups) - 1)
        self.buffers: Sequence[ValueBuffer | TempBuffer] = (buffer, *self.epilogue.buffers)

    def move(self, elements: Rvalue) -> None:
        """What is stored from now on is so much further behind."""
        self.target = self._k.pointer("part", self.target, elements)

    def here(self) -> Here:
        """A place to compute from; make a new one when the code there branches."""
        return self.epilogue.at(self._k)

    def put(self, here: Here, at: Sequence[Rvalue], total: Rvalue) -> None:
        """Store one result. ``at``: by the groups of axes, as batch, row, column."""
        here.store(self.op.output, self.target, at, here.value(at, total, 1))


class Sums:
    """Where the sums of a kernel's blocks go. Made when the kernel's operands are declared: its buffers are behind
    them. ``memory``: what the sums of parts are called within the op."""

    def __init__(
        self,
        k: GpuBuilder,
        op: Summed,
        groups: Sequence[Group],
        parts: Parts,
        context: BuildContext,
        memory: str = "parts",
    ) -> None:
        self._k, self._op, self._groups, self._parts, self._context, self._name = k, op, groups, parts, context, memory
        self._elements = product(op.domain)
        self._whole: End | None = None
        self._part: End | None = None
        # Which of them a block takes may be for the run to say.
        if not parts.is_cut or not isinstance(parts.count, int):
            self._whole = End(k, op, groups, ValueBuffer(value=op.output.value), context)
        if parts.is_cut:
            rows = replace(op.output, dtype=DType.F32, strides=_row_major(groups), offset=0)
            self._part = End(k, replace(op, epilogue=acc(), output=rows), groups, self._memory, context)

    @property
    def buffers(self) -> Sequence[ValueBuffer | TempBuffer]:
        """Of the call, behind the operands."""
        return [buffer for end in (self._whole, self._part) if end is not None for buffer in end.buffers]

    def finish(self, part: Rvalue, code: Callable[[End], None]) -> None:
        """Store results by ``code``, which puts each one that a thread has; they are of the sum's ``part``."""
        k = self._k
        if self._part is not None:
            self._part.move(part * k.param(self._elements))
        if self._whole is not None and self._part is not None:
            with k.when(binary("eq", k.param(self._parts.count), index(1))):
                code(self._whole)
            with k.otherwise():
                code(self._part)
            return
        end = self._whole or self._part
        assert end is not None
        code(end)

    def meeting(self) -> list[KernelCall]:
        """The call that adds up what the kernel has stored; none where there are no parts."""
        parts, op, context = self._parts, self._op, self._context
        if not parts.is_cut:
            return []
        k = GpuBuilder(f"xy_sums_{op.output.dtype}_parts", _THREADS)
        sums = k.buffer("sums", DType.F32)
        end = End(k, op, self._groups, ValueBuffer(value=op.output.value), context)
        number = k.let("element", k.block * _THREADS + k.thread)
        with k.when(less(number, k.param(self._elements))):
            total = k.variable("total", Const(f32(1), 0.0))
            with k.loop("part", 0, k.param(parts.count)) as part:
                k.assign(total, total + k.load(sums, part * k.param(self._elements) + number))
            extents = [product(group.extents) for group in self._groups]
            end.put(end.here(), k.split(number, extents), total)
        kernel, params = k.finish()
        return [
            KernelCall(
                kernel=kernel,
                buffers=(self._memory, *end.buffers),
                params=params,
                units=select(lt(1, parts.count), ceildiv(self._elements, _THREADS), 0),
                cost_ns=steps_ns(self._elements * parts.count, gpu_of(context)),
            )
        ]

    @property
    def _memory(self) -> TempBuffer:
        elements = select(lt(1, self._parts.count), self._parts.count * self._elements, 0)
        return TempBuffer(name=self._name, size_bytes=elements * DType.F32.bytes)


def meeting_ns(parts: Parts, elements: int, gpu: Gpu) -> float:
    """What the second kernel takes: the sums are written and read once more."""
    if not parts.is_cut:
        return 0.0
    return LAUNCH_NS + 2 * typical(parts.count) * elements * DType.F32.bytes / (CACHE * gpu.memory_gbs)
