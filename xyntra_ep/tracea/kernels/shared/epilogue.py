"""What a kernel does to a result between its registers and its only store: an ``Expr`` at points of the output's domain.

A kernel walks the domain of its output by running indices, one per ``Group`` of axes that it counts together (row-major); the
lanes of a vector are consecutive indices of one of them, the *lane group*. A GEMM tile has one group for its rows (m, and the
batch axes that collapse into it) and the lane group n. A convolution may have the pixels (h, w) as lane group.

    epilogue = Epilogue(kernel, op.epilogue, op.inputs, op.domain, groups, lane_group=1)
    here = epilogue.at(block)                           # loads are shared within one straight line of code
    for each vector of the tile:
        value = here.value([row, n], acc, lanes)        # `count`: only so many lanes exist (the last panel)
        here.store(op.output, pointer, [row, n], value)
    here.finish(op.output, pointer, lanes, columns)     # all that, for a tile of several vectors
    KernelCall(buffers=[..., *epilogue.buffers])        # what it reads, declared when the Epilogue is made

The points are those of a ``Nest`` over the groups: see there for how lanes meet memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xyntra_ep.tracea.core_ir.dims import Size
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr, walk
from xyntra_ep.tracea.core_ir.ops import Operand, Product
from xyntra_ep.tracea.core_ir.ops.product import EpilogueOp
from xyntra_ep.tracea.kernels.shared.index import AccessTable, Group, Lane, coordinates_of, in_coordinates
from xyntra_ep.tracea.kernels.shared.loops.nest import Nest
from xyntra_ep.tracea.kernels.variant import ValueBuffer
from xyntra_ep.tracea.semantic_ir.builder import BlockBuilder, KernelBuilder
from xyntra_ep.tracea.semantic_ir.nodes import Pointer, Rvalue
from xyntra_ep.tracea.semantic_ir.scalar_code import fills_bytes

_LANES_OF_BYTES = 16  # of the vectors that `StoreBytes` takes


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One vector of each row of a tile: at the groups' indices ``points`` the results ``accs``; ``count``: of so many lanes."""

    points: Sequence[Sequence[Rvalue]]
    accs: Sequence[Rvalue]
    count: Rvalue | None = None


def is_rough(op: EpilogueOp) -> bool:
    """Whether an epilogue's functions may be as exact as bfloat16: it is what is multiplied and what is stored."""
    return op.product is Product.BF16 and op.output.dtype is DType.BF16


class Epilogue:
    """One expression over a domain, with the buffers it reads. See the module's docstring. ``rough``: see ``ScalarCode``;
    ``more``: further expressions, which ``Here.values`` computes together with it."""

    def __init__(
        self,
        kernel: KernelBuilder,
        root: Expr,
        inputs: Sequence[Operand],
        domain: Sequence[Size],
        groups: Sequence[Group],
        lane_group: int,
        rough: bool = False,
        more: Sequence[Expr] = (),
    ) -> None:
        self.root = root
        self.more = tuple(more)
        over_axes = AccessTable(kernel, domain)
        for j in sorted({e.attr for e in walk(root, *more) if e.kind == "load"}):
            over_axes.pointer(inputs[j], writable=False)
        bodies = [over_axes.reading(e, inputs) for e in (root, *more)]
        self.reads = range(len(over_axes.accesses))
        self._over_axes = over_axes
        self._groups = tuple(groups)
        self._targets: dict[tuple[int, Pointer], int] = {}
        coordinates = coordinates_of(groups)
        self.bodies = tuple(in_coordinates(body, coordinates) for body in bodies)
        table = over_axes.over_groups(groups)
        self.nest = Nest(kernel, table, lane_group, self.bodies, any_point=True, rough=rough)

    @property
    def buffers(self) -> Sequence[ValueBuffer]:
        return self.nest.table.buffers

    def at(self, block: BlockBuilder) -> Here:
        """A place in ``block`` to compute from; make a new one when the code there branches."""
        return Here(self, block)

    def pointer(self, operand: Operand) -> Pointer:
        """Where ``operand``, one of those that it reads, is."""
        return self.nest.table.pointer(operand, writable=False)

    def groups_of(self, k: int) -> frozenset[int]:
        """The groups whose index the access ``k`` changes with."""
        deps = self.nest.table.access_deps(self.nest.table.accesses[k])
        return frozenset(e.attr for e in deps if e.kind == "axis")

    def lies_in_lanes(self, k: int) -> bool:
        """Whether neighbours in the lane group are neighbours in the memory of access ``k``."""
        return self.nest.address(k).mode is Lane.VECTOR

    def target(self, output: Operand, pointer: Pointer) -> int:
        """The access of ``output``, whose axes are the domain's, at ``pointer``."""
        key = (id(output), pointer)
        if key not in self._targets:
            self._over_axes.writing(output, pointer)
            self._targets[key] = len(self.nest.table.accesses)
            self.nest.table.accesses.append(self._over_axes.over_groups(self._groups).accesses[-1])
        return self._targets[key]


class Here:
    """Code for points of an epilogue's domain at one place: what was loaded once is not loaded again."""

    def __init__(self, epilogue: Epilogue, block: BlockBuilder) -> None:
        self._e = epilogue
        self._block = block
        self._points = epilogue.nest.points(block)

    def know(self, k: int, at: Sequence[Rvalue], value: Rvalue) -> None:
        """``value`` is what the access ``k`` gives at the one point ``at``: who stores several has read them together."""
        self._points.know(k, at, value)

    def value(self, at: Sequence[Rvalue], acc: Rvalue | Mapping[int, Rvalue], lanes: int, count: Rvalue | None = None) -> Rvalue:
        """The expression at ``lanes`` consecutive points of the lane group, the first at the groups' indices ``at``."""
        results = {0: acc} if isinstance(acc, Rvalue) else acc
        return self._points.at(at, results, lanes, count).stored(self._e.bodies[0])

    def finish(self, output: Operand, pointer: Pointer, lanes: int, columns: Sequence[Column]) -> None:
        """Store the values of ``columns``, each next to the one before. They are computed column by column: what depends on the
        column alone (a bias) is loaded once and needs one register. Bytes are then stored row by row."""
        if not self._are_bytes(output, pointer, lanes, columns):
            for column in columns:
                for at, acc in zip(column.points, column.accs, strict=True):
                    self.store(output, pointer, at, self.value(at, acc, lanes, column.count), column.count)
            return
        body = self._e.bodies[0]
        words = [
            [
                self._block.let("word", self._points.at(at, {0: acc}, lanes).stored(body, is_clamped=True))
                for at, acc in zip(column.points, column.accs, strict=True)
            ]
            for column in columns
        ]
        k = self._e.target(output, pointer)
        for at, *row in zip(columns[0].points, *words, strict=True):
            self._block.store_bytes(pointer, self._points.one(at).position(k), row)

    def _are_bytes(self, output: Operand, pointer: Pointer, lanes: int, columns: Sequence[Column]) -> bool:
        """Whether `StoreBytes` does for them."""
        if lanes != _LANES_OF_BYTES or not 2 <= len(columns) <= 4 or any(column.count is not None for column in columns):
            return False
        return fills_bytes(self._e.root, output.dtype) and self._e.lies_in_lanes(self._e.target(output, pointer))

    def values(self, at: Sequence[Rvalue], acc: Mapping[int, Rvalue], lanes: int, count: Rvalue | None = None) -> list[Rvalue]:
        """All expressions there, the first one before ``more``."""
        here = self._points.at(at, acc, lanes, count)
        return [here.stored(body) for body in self._e.bodies]

    def address(self, k: int, at: Sequence[Rvalue]) -> Rvalue:
        """The position of the access ``k`` at one point."""
        return self._points.one(at).position(k)

    def fetch(self, at: Sequence[Rvalue], groups: frozenset[int]) -> None:
        """Asks for the cache lines that ``values`` will read at one vector, whose first point is ``at``: those of loads that
        change with any of ``groups`` and whose address no other load decides."""
        table = self._e.nest.table
        for k in self._e.reads:
            access = table.accesses[k]
            if self._e.groups_of(k) & groups and not any(e.kind == "load" for e in walk(*(t.index for t in access.terms))):
                self._block.prefetch(access.pointer, self.address(k, at), 3)

    def store(self, output: Operand, pointer: Pointer, at: Sequence[Rvalue], value: Rvalue, count: Rvalue | None = None) -> None:
        """Store one vector of the operand, whose axes are the domain's."""
        k = self._e.target(output, pointer)
        self._points.at(at, {}, max(1, value.type.lanes), count).store(k, value)
