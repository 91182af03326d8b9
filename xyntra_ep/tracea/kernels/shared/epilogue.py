"""What a kernel does to a result between its registers and its only store: an ``Expr`` at a vector of the domain's points.

A kernel walks the domain of its output by running indices, one per ``Group`` of axes that it counts together (row-major); the
lanes of a vector are consecutive indices of one of them, the *lane group*. A GEMM tile has one group for its rows (m, and the
batch axes that collapse into it) and the lane group n. A convolution may have the pixels (h, w) as lane group.

    epilogue = Epilogue(kernel, program, op.epilogue, op.inputs, op.domain, groups, lane_group=1)
    here = epilogue.at(block)                           # loads are shared within one straight line of code
    for each vector of the tile:
        value = here.value([row, n], acc, lanes)        # `count`: only so many lanes exist (the last panel)
        here.store(op.output, pointer, [row, n], value)
    KernelCall(buffers=[..., *epilogue.buffers])        # what it reads, declared when the Epilogue is made

How a load meets the lanes follows from its index expressions. An index that is affine in the axes becomes one address per vector:
lane stride 0 is a scalar load, 1 a vector load, anything else (also one known only at run time) a gather. Other indices (an
element of another operand, a quotient of axes) are computed as values, once when they are the same in all lanes. A load that is
not provably inside its value (it may stand under a ``where`` that discards it) is clamped to the value's memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xyntra_ep.tracea.core_ir.dims import Size, known_nonnegative, product
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr, walk
from xyntra_ep.tracea.core_ir.index_range import stays_inside
from xyntra_ep.tracea.core_ir.ops import Conv, Gemm, Operand, Product, Program
from xyntra_ep.tracea.kernels.shared.affine import CONSTANT, Affine, add_affine, affine
from xyntra_ep.tracea.kernels.variant import ValueBuffer
from xyntra_ep.tracea.semantic_ir.builder import BlockBuilder, KernelBuilder
from xyntra_ep.tracea.semantic_ir.nodes import (
    INDEX,
    Const,
    Convert,
    Gather,
    Iota,
    Load,
    Pointer,
    Rvalue,
    i64,
    index,
    lt,
    splat,
    vmax,
    vmin,
)
from xyntra_ep.tracea.semantic_ir.scalar_code import ScalarCode


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Axes of the domain counted by one running index, row-major; ``extents`` are theirs in the domain."""

    axes: tuple[int, ...]
    extents: tuple[Size, ...]

    def merged(self, form: Affine) -> Size | None:
        """The coefficient of the running index in ``form``; None when the axes do not step as one."""
        step: Size = 0
        span: Size | None = None  # what one step of the axis to the left must be to go on where the last row ended
        for axis, extent in zip(reversed(self.axes), reversed(self.extents), strict=True):
            if extent == 1:
                continue
            coefficient = form.get(axis, 0)
            if span is None:
                step = coefficient
            elif coefficient != span:
                return None
            span = coefficient * extent
        return step


def is_rough(op: Gemm | Conv) -> bool:
    """Whether an epilogue's functions may be as exact as bfloat16: it is what is multiplied and what is stored."""
    return op.product is Product.BF16 and op.output.dtype is DType.BF16


class Epilogue:
    """One expression over a domain, with the buffers it reads. See the module's docstring. ``rough``: see ``ScalarCode``;
    ``more``: further expressions, which ``Here.values`` computes together with it."""

    def __init__(
        self,
        kernel: KernelBuilder,
        program: Program,
        root: Expr,
        inputs: Sequence[Operand],
        domain: Sequence[Size],
        groups: Sequence[Group],
        lane_group: int,
        rough: bool = False,
        more: Sequence[Expr] = (),
    ) -> None:
        self.kernel = kernel
        self.rough = rough
        self.program = program
        self.root = root
        self.more = tuple(more)
        self.inputs = inputs
        self.domain = tuple(domain)
        self.groups = tuple(groups)
        self.lane_group = lane_group
        self.group_of = {axis: g for g, group in enumerate(groups) for axis in group.axes}
        self.pointers: dict[int, Pointer] = {}
        self.buffers: list[ValueBuffer] = []
        for j in sorted({e.attr for e in walk(root, *more) if e.kind == "load"}):
            self.pointers[j] = kernel.buffer("x", inputs[j].dtype)
            self.buffers.append(ValueBuffer(value=inputs[j].value))
        self._varies: dict[int, frozenset[int]] = {}

    def at(self, block: BlockBuilder) -> Here:
        """A place in ``block`` to compute from; make a new one when the code there branches."""
        return Here(self, block)

    def depends(self, e: Expr) -> frozenset[int]:
        """The groups whose index ``e`` changes with; -1 stands for the accumulator."""
        found = self._varies.get(id(e))
        if found is None:
            nodes = walk(e)
            groups = {self.group_of[n.attr] for n in nodes if n.kind == "axis" and self.domain[n.attr] != 1}
            found = frozenset(groups | ({-1} if any(n.kind == "acc" for n in nodes) else set()))
            self._varies[id(e)] = found
        return found

    def is_inside(self, e: Expr) -> bool:
        """Whether every index of a load is provably within the operand's shape."""
        return all(stays_inside(arg, extent, self.domain) for arg, extent in zip(e.args, self.inputs[e.attr].shape, strict=True))


class Here:
    """Code for points of an epilogue's domain at one place: what was loaded or computed once is not loaded again."""

    def __init__(self, epilogue: Epilogue, block: BlockBuilder) -> None:
        self._e = epilogue
        self._block = block
        self._loads: dict[object, Rvalue] = {}
        self._coordinates: dict[object, list[Rvalue]] = {}

    def know(self, load: Expr, at: Sequence[Rvalue], value: Rvalue) -> None:
        """``value`` is what ``load`` gives at the one point ``at``: whoever stores several points has read them together."""
        self._loads[self._key(load, at, 1, None)] = value

    def _key(self, load: Expr, at: Sequence[Rvalue], lanes: int, count: Rvalue | None) -> object:
        deps = self._e.depends(load)
        where = tuple(index for g, index in enumerate(at) if g in deps)
        return (id(load), where, lanes, count) if self._e.lane_group in deps else (id(load), where, 1, None)

    def value(
        self,
        at: Sequence[Rvalue],
        acc: Rvalue | Mapping[int, Rvalue],
        lanes: int,
        count: Rvalue | None = None,
    ) -> Rvalue:
        """The expression at ``lanes`` consecutive points of the lane group, the first at the groups' indices ``at``."""
        results = {0: acc} if isinstance(acc, Rvalue) else acc
        return _Vector(self, at, results, lanes, count).emit(self._e.root)[0]

    def values(self, at: Sequence[Rvalue], acc: Mapping[int, Rvalue], lanes: int, count: Rvalue | None = None) -> list[Rvalue]:
        """All expressions there, the first one before ``more``."""
        return _Vector(self, at, acc, lanes, count).emit(self._e.root, *self._e.more)

    def fetch(self, at: Sequence[Rvalue], groups: frozenset[int]) -> None:
        """Asks for the cache lines that ``values`` will read at one vector, whose first point is ``at``: those of loads that
        change with any of ``groups``."""
        e = self._e
        for load in walk(e.root, *e.more):
            if load.kind != "load" or not e.depends(load) & groups:
                continue
            form: Affine = {CONSTANT: e.inputs[load.attr].offset}
            parts = [affine(arg) for arg in load.args]
            if all(part is not None for part in parts):
                for part, stride in zip(parts, e.inputs[load.attr].strides, strict=True):
                    assert part is not None
                    add_affine(form, part, stride)
                self._block.prefetch(e.pointers[load.attr], _Vector(self, at, {}, 1, None).address(form)[0], 3)

    def store(self, output: Operand, pointer: Pointer, at: Sequence[Rvalue], value: Rvalue, count: Rvalue | None = None) -> None:
        """Store one vector of the operand, whose axes are the domain's."""
        lanes = max(1, value.type.lanes)
        form: Affine = {CONSTANT: output.offset, **dict(enumerate(output.strides))}
        vector = _Vector(self, at, {}, lanes, count)
        base, step = vector.address(form)
        if lanes == 1 or step == 1:
            self._block.store(pointer, base, value, count)
            return
        # No target has a scatter worth its name: through memory, element by element.
        block = self._block
        spill = block.array("spill", output.dtype.compute, lanes)
        block.store(spill, 0, value)
        last = index(lanes) if count is None else vmin(count, lanes)
        with block.loop("lane", 0, last) as lane:
            target = base + lane * self._e.kernel.param(step) if step is not None else vector.element(form, lane)
            block.store(pointer, target, block.load(spill, lane, 1))


class _Vector:
    """The leaves of one vector's expression."""

    def __init__(self, here: Here, at: Sequence[Rvalue], acc: Mapping[int, Rvalue], lanes: int, count: Rvalue | None) -> None:
        self._here = here
        self._e = here._e
        self._block = here._block
        self._at = tuple(at)
        self._acc = acc
        self._lanes = lanes
        self._count = count
        kernel = self._e.kernel
        self._vector = ScalarCode(kernel, self._block, lanes, self._leaf, self._e.rough)
        self._scalar = self._vector if lanes == 1 else ScalarCode(kernel, self._block, 1, self._leaf, self._e.rough)

    def emit(self, *roots: Expr) -> list[Rvalue]:
        return self._vector.emit(*roots)

    def _leaf(self, e: Expr, lanes: int) -> Rvalue:
        if e.kind == "acc":
            return self._acc[e.attr]
        if e.kind == "axis":
            return self._axis(e.attr, lanes)
        # What an accumulator picks is of this vector alone.
        if -1 in self._e.depends(e):
            return self._load(e)
        key = self._here._key(e, self._at, lanes, self._count)
        if key not in self._here._loads:
            self._here._loads[key] = self._block.let("x", self._load(e))
        return self._here._loads[key]

    # -- where the lanes are

    def _numbers(self) -> Rvalue:
        """0, 1, 2 ...; from the last lane that exists on, its number, so that no address leaves the domain."""
        numbers: Rvalue = Iota(i64(self._lanes))
        if self._count is not None:
            numbers = vmin(numbers, splat(Convert(i64(1), self._count - 1), self._lanes))
        return numbers

    def _axis(self, axis: int, lanes: int) -> Rvalue:
        g = self._e.group_of[axis]
        if self._e.domain[axis] == 1:
            return Const(i64(1), 0)
        group, linear = self._e.groups[g], self._at[g]
        k = group.axes.index(axis)
        if g != self._e.lane_group or lanes == 1:
            return Convert(i64(1), self._split(g, linear)[k])
        value = splat(Convert(i64(1), linear), lanes) + self._numbers()
        inner = self._e.kernel.param(product(group.extents[k + 1 :]))
        if inner != index(1):
            value = value // Convert(i64(1), inner)
        if k > 0:
            value = value % Convert(i64(1), self._e.kernel.param(group.extents[k]))
        return self._block.let("lane", value)

    def _split(self, g: int, linear: Rvalue) -> list[Rvalue]:
        """The coordinates of one group's axes at its running index."""
        key = (g, linear)
        if key not in self._here._coordinates:
            coordinates: list[Rvalue] = []
            rest = linear
            for extent in reversed(self._e.groups[g].extents[1:]):
                e = self._e.kernel.param(extent)
                coordinates.append(self._block.let("at", rest % e))
                rest = self._block.let("at", rest // e)
            self._here._coordinates[key] = [rest, *reversed(coordinates)]
        return self._here._coordinates[key]

    # -- addresses

    def address(self, form: Affine) -> tuple[Rvalue, Size | None]:
        """(address of lane 0, step from lane to lane). Lanes that do not step evenly: step None, the address without
        the lane group's part."""
        param = self._e.kernel.param
        base = param(form.get(CONSTANT, 0))
        step: Size | None = 0
        for g, group in enumerate(self._e.groups):
            merged = group.merged(form)
            if g == self._e.lane_group:
                step = merged
            if merged is not None:
                base = base + self._at[g] * param(merged)
            elif g != self._e.lane_group or self._lanes == 1:
                base = base + self._inside(form, g, self._at[g])
        return base, step

    def element(self, form: Affine, lane: Rvalue) -> Rvalue:
        """Address of one lane where the lanes do not step evenly."""
        at = list(self._at)
        at[self._e.lane_group] = self._block.let("lane", at[self._e.lane_group] + lane)
        here = Here(self._e, self._block)  # in a loop: what it computes is not seen outside
        return _Vector(here, at, {}, 1, None).address(form)[0]

    def _inside(self, form: Affine, g: int, linear: Rvalue) -> Rvalue:
        total: Rvalue = index(0)
        for axis, coordinate in zip(self._e.groups[g].axes, self._split(g, linear), strict=True):
            total = total + coordinate * self._e.kernel.param(form.get(axis, 0))
        return total

    def _load(self, e: Expr) -> Rvalue:
        operand, pointer = self._e.inputs[e.attr], self._e.pointers[e.attr]
        param = self._e.kernel.param
        form: Affine = {CONSTANT: operand.offset}
        computed: Rvalue = index(0)  # indices that are no affine form but the same in all lanes
        per_lane: list[Rvalue] = []
        for arg, stride in zip(e.args, operand.strides, strict=True):
            part = affine(arg)
            if part is not None:
                add_affine(form, part, stride)
            elif self._lanes > 1 and self._e.depends(arg) & {self._e.lane_group, -1}:
                per_lane.append(self._vector.emit(arg)[0] * Convert(i64(1), param(stride)))
            else:
                computed = computed + Convert(INDEX, self._scalar.emit(arg)[0]) * param(stride)
        base, step = self.address(form)
        base = self._block.let("from", base + computed)
        inside = self._e.is_inside(e)
        if step is None and self._lanes > 1:
            for axis in self._e.groups[self._e.lane_group].axes:
                coordinate = self._axis(axis, self._lanes)
                per_lane.append(coordinate * Convert(i64(1), param(form.get(axis, 0))))
            step = 0
        assert step is not None or self._lanes == 1
        if not per_lane and (step == 0 or self._lanes == 1):
            at = base if inside else self._clamped(operand, base)
            # A vector of one lane may be past the end as well.
            count = self._count if self._lanes == 1 and self._e.lane_group in self._e.depends(e) else None
            return self._guarded(operand, inside, Load(pointer, at, 1, count))
        if not per_lane and step == 1 and inside:
            return Load(pointer, base, self._lanes, self._count)
        vector = splat(Convert(i64(1), base), self._lanes)
        if step:
            vector = vector + self._numbers() * Convert(i64(1), param(step))
        for part_of_lane in per_lane:
            vector = vector + part_of_lane
        if not inside:
            vector = self._clamped(operand, vector)
        return self._guarded(operand, inside, Gather(pointer, self._block.let("address", vector)))

    def _count_of(self, operand: Operand) -> Size:
        return product(self._e.program.values[operand.value].shape)

    def _clamped(self, operand: Operand, at: Rvalue) -> Rvalue:
        last = self._e.kernel.param(self._count_of(operand) - 1)
        limit = last if at.type == INDEX else splat(Convert(i64(1), last), self._lanes)
        return vmax(vmin(at, limit), 0)

    def _guarded(self, operand: Operand, inside: bool, value: Rvalue) -> Rvalue:
        """``value``, or 0 when the operand is empty at run time: a clamped address is valid in memory that exists."""
        if inside or known_nonnegative(self._count_of(operand) - 1):
            return value
        found = self._block.variable("x", Const(value.type, 0))
        with self._block.when(lt(0, self._e.kernel.param(self._count_of(operand)))):
            self._block.assign(found, value)
        return found
