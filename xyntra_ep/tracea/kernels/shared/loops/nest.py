"""Evaluating expressions inside a loop nest: every value where its axes are first known, and lanes over one axis at the bottom.

nest = Nest(b, table, lane_axis, roots)        what will be computed
scope = nest.outside()                         nothing bound: constants are loaded here
inner = scope.bind({axis: loop variable})      what depends on bound axes only is computed here, once
vector = inner.lanes(at, 16)                   lanes at, at + 1 ... of the lane axis
vector.store(k, vector.value(root))
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xyntra_ep.tracea.core_ir.dims import Size
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr, acc, acc_bool, acc_int, axis, load, walk
from xyntra_ep.tracea.kernels.shared.index import Access, AccessTable, Lane, LaneAddress, is_coordinate
from xyntra_ep.tracea.kernels.shared.loops.lane_picks import are_picked, every
from xyntra_ep.tracea.kernels.shared.words import as_words, in_words
from xyntra_ep.tracea.semantic_ir.builder import BlockBuilder, KernelBuilder
from xyntra_ep.tracea.semantic_ir.nodes import (
    INDEX,
    Const,
    Convert,
    Gather,
    Iota,
    Load,
    Offset,
    Rvalue,
    Shuffle,
    Var,
    binary,
    i64,
    index,
    le,
    loaded_type,
    lt,
    splat,
    vmin,
)
from xyntra_ep.tracea.semantic_ir.scalar_code import ScalarCode

Given = Sequence[tuple[Expr, Rvalue]]


class Nest:
    """What a kernel computes: decides which values are worth a name outside of the loops that use them."""

    def __init__(
        self,
        b: KernelBuilder,
        table: AccessTable,
        lane_axis: int | None,
        roots: Sequence[Expr],
        *,
        any_point: bool = False,
        rough: bool = False,
    ) -> None:
        """``any_point``: lanes may start anywhere and have accumulators of their own. ``rough``: see ``ScalarCode``."""
        self.b = b
        self.table = table
        self.lane_axis = lane_axis
        self.any_point = any_point
        self.rough = rough
        self._addresses: dict[int, LaneAddress] = {}
        self._roots = list(roots)
        for address in [self.address(k) for k in range(len(table.accesses))]:
            self._roots += [address.base] if address.mode is not Lane.GATHER else []
            self._roots += [address.uniform, address.varying] if address.mode is Lane.GATHER or address.checks else []
            self._roots += [c.first for c in address.checks]
        self.nodes = walk(*self._roots)

    def moves(self, access: Access) -> bool:
        """Whether it is another element from lane to lane."""
        return self.lane_axis is not None and axis(self.lane_axis) in self.table.access_deps(access)

    def dtype_of(self, k: int) -> DType:
        """As what the k-th access finds its operand."""
        return self.table.accesses[k].dtype

    def address(self, k: int) -> LaneAddress:
        """The k-th access along the lane axis."""
        if k not in self._addresses:
            access = self.table.accesses[k]
            number = -1 if self.lane_axis is None else self.lane_axis
            self._addresses[k] = self.table.lanewise(access, number, self.any_point)
        return self._addresses[k]

    def outside(self) -> Scope:
        return Scope(self, self.b, {}, {}, None)

    def points(self, block: BlockBuilder) -> Points:
        """Straight-line code in ``block``; make new ones when the code there branches."""
        return Points(Scope(self, block, {}, {}, None, loads={}))

    def frontier(self, known: frozenset[Expr]) -> list[Expr]:
        """Calls and loads that depend on ``known`` only and are used by something that depends on more."""
        inside = {id(e): self.table.deps(e) <= known for e in self.nodes}
        wanted = {id(e) for e in self._roots}
        for e in self.nodes:
            if not inside[id(e)]:
                wanted.update(id(a) for a in e.args)
        return [e for e in self.nodes if e.kind in ("call", "load") and inside[id(e)] and id(e) in wanted]


class Scope:
    """A place where some axes and accumulators have values, all scalar.

    In a loop nest (``loads`` None) what a scope's axes decide is computed when it is made, once for all that is inside of it.
    For ``Points`` it is computed when it is wanted, and ``loads`` are what was loaded at other points of the same code.
    ``count``: elements of the lane axis from its value on, where that may be none."""

    def __init__(
        self,
        nest: Nest,
        block: BlockBuilder,
        axes: Mapping[int, Rvalue],
        accs: Mapping[int, Rvalue],
        parent: ScalarCode | None,
        given: Given = (),
        loads: dict[object, Rvalue] | None = None,
        count: Rvalue | None = None,
    ) -> None:
        self.nest = nest
        self.b = block
        self._axes = axes
        self._accs = accs
        self._loads = loads
        self._count = count
        self.code = parent.fork(1, self._leaf) if parent else ScalarCode(nest.b, block, 1, self._leaf, nest.dtype_of, nest.rough)
        for e, value in given:
            self.code.define(e, value)
        if loads is None:
            self._compute()

    def _compute(self) -> None:
        nest, axes, accs = self.nest, self._axes, self._accs
        known = {axis(a) for a in axes} | {make(j) for j in accs for make in (acc, acc_int, acc_bool)}
        for e in nest.frontier(frozenset(known)):
            if not self.code.knows(e):
                self.code.define(e, self.b.let("h", self.code.emit(e)[0]))

    def bind(
        self, axes: Mapping[int, Rvalue] | None = None, accs: Mapping[int, Rvalue] | None = None, given: Given = ()
    ) -> Scope:
        """An inner scope with more axes and accumulators; ``given``: expressions whose values there are known already."""
        loads = None if self._loads is None else dict(self._loads)
        return self._with(axes or {}, accs or {}, given, loads, self._count)

    def at(self, axes: Mapping[int, Rvalue], accs: Mapping[int, Rvalue], count: Rvalue | None) -> Scope:
        """A point in the same straight line of code."""
        return self._with(axes, accs, (), self._loads, count)

    def _with(
        self,
        axes: Mapping[int, Rvalue],
        accs: Mapping[int, Rvalue],
        given: Given,
        loads: dict[object, Rvalue] | None,
        count: Rvalue | None,
    ) -> Scope:
        return Scope(self.nest, self.b, {**self._axes, **axes}, {**self._accs, **accs}, self.code, given, loads, count)

    def lanes(
        self,
        at: Rvalue,
        lanes: int,
        count: Rvalue | None = None,
        accs: Mapping[int, Rvalue] | None = None,
        given: Given = (),
    ) -> Lanes | Scope:
        """The elements at, at + 1 ... of the lane axis; those below ``count``. ``accs`` and ``given``: over these lanes."""
        number = self.nest.lane_axis
        if lanes == 1 or number is None:
            return self.bind({} if number is None else {number: at}, accs, given)
        here = Lanes(self.bind(), at, lanes, count, accs or {})
        for e, value in given:
            here.define(e, value)
        return here

    def value(self, e: Expr) -> Rvalue:
        return self.code.emit(e)[0]

    def stored(self, e: Expr, is_clamped: bool = False) -> Rvalue:
        """``e`` for a store, see ``ScalarCode.emit_stored``."""
        return self.code.emit_stored(e, is_clamped)

    def index(self, e: Expr) -> Rvalue:
        """An i64 expression as an index scalar."""
        if e.kind == "const":
            return index(e.attr)
        if e.kind == "size":
            return self.size(e.attr)
        if self._loads is not None:  # in a loop nest, parts of it are known from further outside
            plain = self._plain(e)
            if plain is not None:
                return plain
        value = self.value(e)
        return value if value.type == INDEX else Convert(INDEX, value)

    def _plain(self, e: Expr) -> Rvalue | None:
        """``e`` by arithmetic of indices: sums and products of axes and sizes, and coordinates of axes that are counted together,
        which are never negative."""
        if e.kind in ("const", "size"):
            return self.size(e.attr)
        if e.kind == "axis":
            return self._axes[e.attr]
        if e.kind != "call" or e.attr not in ("add", "sub", "mul", "div", "mod"):
            return None
        if e.attr in ("div", "mod") and not is_coordinate(e):
            return None
        a, b = (self._plain(x) for x in e.args)
        if a is None or b is None:
            return None
        return (
            binary(e.attr, a, b)
            if e.attr in ("div", "mod")
            else a + b
            if e.attr == "add"
            else a - b
            if e.attr == "sub"
            else a * b
        )

    def size(self, value: Size) -> Rvalue:
        return self.nest.b.param(value)

    def store(self, k: int, value: Rvalue) -> None:
        self.b.store(self.nest.table.accesses[k].pointer, self.position(k), value, self._count)

    def position(self, k: int) -> Rvalue:
        """The position of the k-th access in its buffer."""
        address = self.nest.address(k)
        if address.mode in (Lane.ONE, Lane.VECTOR, Lane.STRIDED) or (address.mode is Lane.GUARDED and not address.checks):
            base = self.index(address.base)
            if address.step == 0:
                return base
            assert self.nest.lane_axis is not None
            at = self._axes[self.nest.lane_axis]
            return base + at * self.size(address.step)
        return self.index(address.uniform) + self.index(address.varying)

    def load(self, k: int) -> Rvalue:
        access = self.nest.table.accesses[k]
        count = None if access.count is None else self.size(access.count)
        if self._count is not None and self.nest.moves(access):
            count = self._count if count is None else vmin(count, self._count)
        return Load(access.pointer, self.position(k), 1, count)

    def once(self, e: Expr, lanes: tuple[Rvalue, int, Rvalue | None] | None, read: Callable[[], Rvalue]) -> Rvalue:
        """What ``read`` makes of the load ``e``, made once for all points that have it in common. ``lanes``: (first, number,
        count) where it is of several."""
        deps = self.nest.table.deps(e)
        if self._loads is None or any(d.kind == "acc" for d in deps):
            return read()
        key = self.key(e, lanes)
        if key not in self._loads:
            self._loads[key] = self.b.let("x", read())
        return self._loads[key]

    def key(self, e: Expr, lanes: tuple[Rvalue, int, Rvalue | None] | None) -> object:
        moving = sorted(d.attr for d in self.nest.table.deps(e))
        first = None if lanes is None else lanes[0]
        where = tuple(first if first is not None and a == self.nest.lane_axis else self._axes[a] for a in moving)
        return (e.attr, where, lanes[1:] if lanes else self._count)

    def _leaf(self, e: Expr, lanes: int) -> Rvalue:
        if e.kind == "axis":
            return as_element(self._axes[e.attr])
        if e.kind == "acc":
            return self._accs[e.attr]
        return self.once(e, None, lambda: self.load(e.attr))


class Points:
    """Straight-line code for several points of a nest, each of which has a value for every axis: what was loaded for one is not
    loaded again for another."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def at(self, axes: Sequence[Rvalue], accs: Mapping[int, Rvalue], lanes: int, count: Rvalue | None = None) -> Lanes | Scope:
        """``lanes`` points of the lane axis, the first one at ``axes``; those below ``count`` exist."""
        where = dict(enumerate(axes))
        lane = self._scope.nest.lane_axis
        assert lane is not None, "points have a lane axis"
        if lanes == 1:
            return self._scope.at(where, accs, count)
        first = where.pop(lane)
        return Lanes(self._scope.at(where, {}, None), first, lanes, count, accs)

    def one(self, axes: Sequence[Rvalue]) -> Scope:
        """A single point that exists."""
        return self._scope.at(dict(enumerate(axes)), {}, None)

    def know(self, k: int, axes: Sequence[Rvalue], value: Rvalue) -> None:
        """``value`` is what the access ``k`` is at one point: whoever stores several has read them together."""
        self.one(axes).once(load(k, dtype=self._scope.nest.table.accesses[k].dtype.compute), None, lambda: value)


class Lanes:
    """Several consecutive elements of the lane axis at once; ``scalars`` is a scope of their own."""

    def __init__(self, scalars: Scope, at: Rvalue, lanes: int, count: Rvalue | None, accs: Mapping[int, Rvalue]) -> None:
        self.nest = scalars.nest
        self.b = scalars.b
        self._scalars = scalars
        self._at = at
        self.lanes = lanes
        self.count = count
        self._accs = accs
        self._code = self._scalars.code.fork(lanes, self._leaf)

    def value(self, e: Expr) -> Rvalue:
        return self._code.emit(e)[0]

    def stored(self, e: Expr, is_clamped: bool = False) -> Rvalue:
        """``e`` for a store, see ``ScalarCode.emit_stored``."""
        return self._code.emit_stored(e, is_clamped)

    def define(self, e: Expr, value: Rvalue) -> None:
        """``value`` stands for ``e`` in these lanes."""
        self._code.define(e, value)

    def store(self, k: int, value: Rvalue) -> None:
        """Write the lanes; one by one through a small buffer where they are not neighbours in memory."""
        access, address = self.nest.table.accesses[k], self.nest.address(k)
        if address.mode is Lane.VECTOR:
            self.b.store(access.pointer, self._scalars.index(address.base) + self._at, value, self.count)
            return
        buffer = self.b.array("lanes", access.dtype.compute, self.lanes)
        self.b.store(buffer, 0, value)
        last = index(self.lanes) if self.count is None else vmin(self.count, self.lanes)
        with self.b.loop("l", 0, last) as lane:
            assert self.nest.lane_axis is not None
            here = self._scalars.bind({self.nest.lane_axis: self.b.let("lane", self._at + lane)})
            here.store(k, self.b.load(buffer, lane))

    def _leaf(self, e: Expr, lanes: int) -> Rvalue:
        if e.kind == "axis":
            if e.attr != self.nest.lane_axis:
                return self._scalars.value(e)
            return binary("add", self._numbers(), as_element(self._at))
        if e.kind == "acc":
            return self._accs[e.attr] if e.attr in self._accs else self._scalars.value(e)
        access, address = self.nest.table.accesses[e.attr], self.nest.address(e.attr)
        if address.mode is Lane.ONE:
            return self._scalars.value(e)
        return self._scalars.once(e, (self._at, self.lanes, self.count), lambda: self._load(access, address))

    def _numbers(self) -> Rvalue:
        """0, 1, 2 ...; from the last lane that exists on, its number, so that no address leaves the domain."""
        numbers: Rvalue = Iota(i64(self.lanes))
        if self.count is not None and self.nest.any_point:
            numbers = vmin(numbers, splat(as_element(self.count - 1), self.lanes))
        return numbers

    def _inner(self) -> Lanes:
        """The same lanes in a block that may not be entered."""
        inner = Lanes(self._scalars.bind(), self._at, self.lanes, self.count, self._accs)
        inner._code = self._code.fork(self.lanes, inner._leaf)
        return inner

    def _load(self, access: Access, address: LaneAddress) -> Rvalue:
        at = self._at
        match address.mode:
            case Lane.VECTOR:
                found = self._unless_empty(
                    access, lambda s: Load(access.pointer, s.index(address.base) + at, self.lanes, self.count)
                )
                return as_words(found) if isinstance(found, Load) and in_words(access.dtype) else found
            case Lane.REPEATED:
                return self._repeated(access, address, self._scalars)
            case Lane.STRIDED:
                return self._unless_empty(access, lambda s: self._strided(access, address, s))
            case Lane.GUARDED:
                return self._guarded(access, address)
            case _:
                return self._gather(access, address)

    def _unless_empty(self, access: Access, read: Callable[[Scope], Rvalue]) -> Rvalue:
        """What ``read`` makes, 0 where the view has no elements."""
        if access.count is None:
            return read(self._scalars)
        result = self.b.variable("g", Const(loaded_type(access.dtype, self.lanes), 0))
        with self.b.when(lt(0, self._scalars.size(access.count))):
            self.b.assign(result, read(self._scalars.bind()))
        return result

    def _strided(self, access: Access, address: LaneAddress, scalars: Scope) -> Rvalue:
        """Elements at literal distances of a scalar position."""
        step = scalars.size(address.step)
        base = scalars.index(address.base) + self._at * step
        is_whole = self.count is None or not self.nest.any_point
        if isinstance(address.step, int) and access.dtype.is_float and is_whole and are_picked(address.step, self.lanes):
            return every(self.b, access.pointer, self.b.let("at", base), address.step, self.lanes)
        return Gather(Offset(access.pointer, base), binary("mul", self._numbers(), as_element(step)))

    def _repeated(self, access: Access, address: LaneAddress, scalars: Scope) -> Rvalue:
        """Fewer elements than lanes, each handed to several."""
        times, lanes = address.times, self.lanes  # powers of two
        at = scalars.index(address.base) + self._at // times
        if times >= lanes:
            return splat(Load(access.pointer, at, 1), lanes)
        if self.count is not None:  # masks are there for whole vectors
            few: Rvalue = Load(access.pointer, at, lanes, (self.count + (times - 1)) // times)
        else:
            few = Load(access.pointer, at, lanes // times)
        few = self.b.let("few", few)
        if self.count is not None:
            return Shuffle(few, few, tuple(lane // times for lane in range(lanes)))
        for doubled in (lanes // times << step for step in range(1, times.bit_length())):  # compilers know this shuffle best
            few = self.b.let("twice", Shuffle(few, few, tuple(lane // 2 for lane in range(doubled))))
        return few

    def _gather(self, access: Access, address: LaneAddress) -> Rvalue:
        """From a scalar address on, so that accesses that differ in it alone share the positions of their lanes."""
        position = self._code.emit(address.varying)[0]
        start = Offset(access.pointer, self._scalars.index(address.uniform))
        return self._unless_empty(access, lambda _: Gather(start, position))

    def _guarded(self, access: Access, address: LaneAddress) -> Rvalue:
        """Without clamps if all lanes are inside (and neighbours, where only that is worth code), else lane by lane."""
        literal = isinstance(address.step, int)
        condition = None if literal else binary("eq", self._scalars.size(address.step), 1)
        if access.count is not None:
            condition = _and(condition, lt(0, self._scalars.size(access.count)))
        for check in address.checks:
            first = self.b.let("first", self._scalars.index(check.first) + self._at * check.step)
            last = first + check.step * (self.lanes - 1)
            condition = _and(_and(condition, le(0, first)), lt(last, self._scalars.size(check.extent)))
        assert condition is not None
        result = self.b.variable("g", Const(loaded_type(access.dtype, self.lanes), 0))
        with self.b.when(condition):
            inside = self._scalars.bind()
            if literal and address.step != 1:
                self.b.assign(result, self._strided(access, address, inside))
            else:
                self.b.assign(result, Load(access.pointer, inside.index(address.base) + self._at, self.lanes, self.count))
        with self.b.otherwise():
            if literal or address.checks:
                self.b.assign(result, self._inner()._gather(access, address))
            else:  # a broadcast that the run decides on
                self._same_or_gathered(result, access, address)
        return result

    def _same_or_gathered(self, result: Var, access: Access, address: LaneAddress) -> None:
        same = binary("eq", self._scalars.size(address.step), 0)
        if access.count is not None:
            same = _and(same, lt(0, self._scalars.size(access.count)))
        with self.b.when(same):
            one = Load(access.pointer, self._scalars.bind().index(address.base), 1)
            self.b.assign(result, splat(one, self.lanes))
        with self.b.otherwise():
            self.b.assign(result, self._inner()._gather(access, address))


def as_element(value: Rvalue) -> Rvalue:
    """An index as an i64 data element."""
    if isinstance(value, Const):
        return Const(i64(1), value.value)
    return Convert(i64(1), value) if value.type == INDEX else value


def _and(a: Rvalue | None, b: Rvalue) -> Rvalue:
    return b if a is None else binary("and", a, b)


def maskable(nest: Nest) -> bool:
    """Whether every access along the lanes is one element or consecutive floats: then a short vector can be masked."""
    for k, access in enumerate(nest.table.accesses):
        mode = nest.address(k).mode
        if mode is not Lane.ONE and not (mode in (Lane.VECTOR, Lane.REPEATED) and access.dtype is DType.F32):
            return False
    return True
