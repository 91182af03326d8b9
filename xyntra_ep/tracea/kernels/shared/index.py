"""The memory that an op's expressions touch: loads taken out of them and their addresses taken apart.

In the expressions that kernels evaluate, a load has no indices any more: ``load(k)`` stands for ``AccessTable.accesses[k]``.
An index that cannot be proven to stay inside its dimension is clamped into it, because a load below a ``where`` (padding,
windows, concatenation) is computed although its value is not used, and a Gather's indices are the user's data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from xyntra_ep.tracea.core_ir.dims import Size, known_nonnegative, product
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr, axis, call, const, load, rewrite, size, walk
from xyntra_ep.tracea.core_ir.index_range import Affine, affine, clamped, scaled, stays_inside, without_axis
from xyntra_ep.tracea.core_ir.ops import Operand
from xyntra_ep.tracea.kernels.variant import ValueBuffer
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder
from xyntra_ep.tracea.semantic_ir.nodes import Pointer, PointerType, Var


@dataclass(frozen=True, slots=True)
class Term:
    """One dimension of a view: ``index`` times ``stride``. ``inside``: 0 <= index < extent is proven."""

    index: Expr
    stride: Size
    extent: Size
    inside: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Axes of the domain counted by one running index, row-major; ``extents`` are theirs in the domain."""

    axes: tuple[int, ...]
    extents: tuple[Size, ...]

    def merged(self, form: Mapping[int, Size]) -> Size | None:
        """The coefficient of the running index in the affine ``form``; None when the axes do not step as one."""
        step: Size = 0
        span: Size | None = None  # what one step of the axis to the left must be to go on where the last row ended
        for number, extent in zip(reversed(self.axes), reversed(self.extents), strict=True):
            if extent == 1:
                continue
            coefficient = form.get(number, 0)
            if span is None:
                step = coefficient
            elif coefficient != span:
                return None
            span = coefficient * extent
        return step


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Elements of one buffer. ``count``: of a view that may be empty although the loops are not; 0 of it forbids the read."""

    pointer: Pointer
    dtype: DType
    offset: Size
    terms: tuple[Term, ...]
    count: Size | None = None

    @property
    def writable(self) -> bool:
        kind = self.pointer.vtype
        return isinstance(kind, PointerType) and kind.writable

    @property
    def position(self) -> Expr:
        """The element's position in the buffer, clamped where it has to be."""
        return self._sum([t.index if t.inside else clamped(t.index, t.extent) for t in self.terms])

    def _sum(self, indices: Sequence[Expr]) -> Expr:
        total = size(self.offset)
        for term, index in zip(self.terms, indices, strict=True):
            total = call("add", total, scaled(index, term.stride))
        return total


class Lane(StrEnum):
    """How consecutive lanes of a vector meet memory."""

    ONE = "one"  # all lanes the same element
    VECTOR = "vector"  # consecutive elements
    REPEATED = "repeated"  # consecutive elements, each ``times`` times; lanes start at a multiple of their number
    GUARDED = "guarded"  # consecutive, or a constant distance apart, when a check at run time says so
    STRIDED = "strided"  # a constant distance apart
    GATHER = "gather"  # anywhere


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """``first`` + l * ``step`` must be in [0, extent) for all lanes l."""

    first: Expr
    step: int
    extent: Size


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneAddress:
    """An access with its lane axis split off: position = base + lane // times * step, but for GATHER. Where lanes are clamped or
    anywhere, it is uniform + varying, of which the second depends on the lane."""

    mode: Lane
    base: Expr
    step: Size
    times: int = 1
    checks: tuple[Check, ...]
    uniform: Expr
    varying: Expr


class AccessTable:
    """The buffers and accesses of one kernel. ``domain`` gives the extents of the axes its expressions may use."""

    def __init__(self, b: KernelBuilder, domain: Sequence[Size]) -> None:
        self._b = b
        self._domain = tuple(domain)
        self._pointers: dict[tuple[int | str, bool], Var] = {}
        self.buffers: list[ValueBuffer] = []
        self.accesses: list[Access] = []
        self._number: dict[Expr, int] = {}
        self._deps: dict[Expr, frozenset[Expr]] = {}

    # -- making accesses

    def pointer(self, operand: Operand, writable: bool) -> Var:
        key = (operand.value, writable)
        if key not in self._pointers:
            self._pointers[key] = self._b.buffer("o" if writable else "i", operand.dtype, writable)
            self.buffers.append(ValueBuffer(value=operand.value))
        return self._pointers[key]

    def reading(self, body: Expr, inputs: Sequence[Operand]) -> Expr:
        """``body`` with its loads (those inside indices too) turned into accesses."""

        def leaf(e: Expr) -> Expr | None:
            if e.kind != "load":
                return None
            indices = tuple(self.reading(a, inputs) for a in e.args)
            key = load(e.attr, *indices, dtype=e.dtype)
            if key not in self._number:
                self._number[key] = self._add(self._access(inputs[e.attr], indices, writable=False))
            return load(self._number[key], dtype=e.dtype)

        return rewrite(body, leaf)

    def writing(self, operand: Operand, pointer: Pointer | None = None) -> int:
        """The access of an output at the domain's own axes (of its leading ones, for results per row); at a ``pointer`` to it
        that the kernel has already."""
        access = self._access(operand, tuple(map(axis, range(len(operand.shape)))), writable=True, pointer=pointer)
        return self._add(access)

    def add(self, pointer: Var, dtype: DType, index: Expr) -> int:
        """An access to memory of the kernel's own, at a position known to be good."""
        term = Term(index, 1, 1, inside=True)
        return self._add(Access(pointer=pointer, dtype=dtype, offset=0, terms=(term,)))

    def _add(self, access: Access) -> int:
        self.accesses.append(access)
        return len(self.accesses) - 1

    def _access(self, operand: Operand, indices: Sequence[Expr], writable: bool, pointer: Pointer | None = None) -> Access:
        terms = [
            Term(index, stride, extent, inside=writable or stays_inside(index, extent, self._domain))
            for index, stride, extent in zip(indices, operand.strides, operand.shape, strict=True)
            if stride != 0
        ]
        return Access(
            pointer=self.pointer(operand, writable) if pointer is None else pointer,
            dtype=operand.dtype,
            offset=operand.offset,
            terms=tuple(terms),
            count=None if all(t.inside for t in terms) else self._may_be_none(operand, indices),
        )

    def _may_be_none(self, operand: Operand, indices: Sequence[Expr]) -> Size | None:
        """A size that is 0 where the view has no elements while the loops run; None where that cannot be."""
        doubtful = [extent for index, extent in zip(indices, operand.shape, strict=True) if not self._has_elements(index, extent)]
        return product(doubtful) if doubtful else None

    def _has_elements(self, index: Expr, extent: Size) -> bool:
        """Whether ``extent`` > 0 where ``index`` is computed: because it is inside, or a loop that it depends on is some whole
        times as long."""
        if extent == 0 or known_nonnegative(extent - 1) or stays_inside(index, extent, self._domain):
            return extent != 0
        return any(e.kind == "axis" and self._domain[e.attr] % extent == 0 for e in self.deps(index))

    def fix_accesses(self, number: int) -> None:
        """From now on axis(number) is always 0."""
        self.accesses = [
            replace(a, terms=tuple(replace(t, index=without_axis(t.index, number)) for t in a.terms)) for a in self.accesses
        ]
        self._deps.clear()

    def with_accesses(self, accesses: Sequence[Access]) -> AccessTable:
        """The same buffers, read otherwise."""
        table = AccessTable(self._b, self._domain)
        table._pointers, table.buffers, table.accesses = self._pointers, self.buffers, list(accesses)
        return table

    # -- looking at them

    def deps(self, e: Expr) -> frozenset[Expr]:
        """The axes and accumulators that ``e`` depends on, through its loads' addresses too."""
        found = self._deps.get(e)
        if found is None:
            if e.kind in ("axis", "acc"):
                found = frozenset({e})
            elif e.kind == "load":
                found = self.access_deps(self.accesses[e.attr])
            else:
                found = frozenset().union(*map(self.deps, e.args))
            self._deps[e] = found
        return found

    def access_deps(self, access: Access) -> frozenset[Expr]:
        return frozenset().union(*(self.deps(t.index) for t in access.terms))

    def strides(self, access: Access, axes: Sequence[int]) -> dict[int, Size] | None:
        """Elements per step of each axis; None when an axis is used in another way, or through a clamp."""
        total: dict[int, Size] = dict.fromkeys(axes, 0)
        for term in access.terms:
            parts: Affine = affine(term.index)
            used = self.deps(term.index) & {axis(a) for a in axes}
            if used and (not term.inside or used & self.deps(parts.rest)):
                return None
            for a in axes:
                total[a] = total[a] + parts.coefficients.get(a, 0) * term.stride
        return total

    def over_groups(self, groups: Sequence[Group]) -> AccessTable:
        """The same buffers in terms of running indices: axis(g) counts the axes of ``groups[g]``. An access steps evenly along a
        group whose axes it walks through as one; otherwise along coordinates, which are divisions."""
        coordinates = coordinates_of(groups)
        table = AccessTable(self._b, [product(group.extents) for group in groups])
        table._pointers, table.buffers = self._pointers, self.buffers
        table.accesses = [_over_groups(a, groups, coordinates) for a in self.accesses]
        return table

    def lanewise(self, access: Access, number: int, any_point: bool = False) -> LaneAddress:
        """``access`` as lanes along axis(number) see it. ``any_point``: lanes may start anywhere, and accumulators differ from
        lane to lane."""
        lane = axis(number)

        def moves(e: Expr) -> bool:
            deps = self.deps(e)
            return lane in deps or (any_point and any(d.kind == "acc" for d in deps))

        step: Size = 0
        times = 1
        checks: list[Check] = []
        starts: list[Expr] = []
        linear = True
        for term in access.terms:
            start = term.index
            if not any_point and (repeats := _repeats(start, lane)) and term.inside and step == 0:
                times, step, start = repeats, term.stride, const(0)
            elif moves(start):
                parts = affine(start)
                stride = parts.coefficients.get(number, 0)
                linear = linear and times == 1 and not moves(parts.rest) and (term.inside or isinstance(stride, int))
                step = step + stride * term.stride
                start = without_axis(start, number)
                if not term.inside:
                    checks.append(Check(first=start, step=stride if isinstance(stride, int) else 0, extent=term.extent))
            elif not term.inside:
                start = clamped(start, term.extent)
            starts.append(start)
        base = access._sum(starts) if linear else const(0)
        uniform = replace(access, terms=tuple(t for t in access.terms if not moves(t.index)))
        varying = replace(access, offset=0, terms=tuple(t for t in access.terms if moves(t.index)))
        mode = Lane.GATHER if not linear else _mode(step, checks)
        if times > 1:
            mode = Lane.REPEATED if mode is Lane.VECTOR else Lane.GATHER
        return LaneAddress(
            mode=mode,
            base=base,
            step=step,
            times=times,
            checks=tuple(checks),
            uniform=uniform.position,
            varying=varying.position,
        )


def _repeats(index: Expr, lane: Expr) -> int:
    """k where ``index`` is lane // k and k a power of two, as the number of lanes is; else 0."""
    if index.kind == "call" and index.attr == "div" and index.args[0] is lane and index.args[1].kind == "const":
        times = int(index.args[1].attr)
        return times if times > 1 and times & (times - 1) == 0 else 0
    return 0


def _mode(step: Size, checks: Sequence[Check]) -> Lane:
    if step == 0 and not checks:
        return Lane.ONE
    if any(c.step < 0 for c in checks):
        return Lane.GATHER
    if checks or not isinstance(step, int):
        return Lane.GUARDED
    return Lane.VECTOR if step == 1 else Lane.STRIDED


def axes_used(table: AccessTable, roots: Sequence[Expr]) -> frozenset[int]:
    """Axes whose value itself is an operand somewhere (not only through an address)."""
    return frozenset(e.attr for e in walk(*roots) if e.kind == "axis")


def coordinates_of(groups: Sequence[Group]) -> dict[int, Expr]:
    """Each axis as an expression of its group's running index, which is axis(number of the group)."""
    found: dict[int, Expr] = {}
    for g, group in enumerate(groups):
        for i, (number, extent) in enumerate(zip(group.axes, group.extents, strict=True)):
            if extent == 1:
                found[number] = const(0)
                continue
            inner = product(group.extents[i + 1 :])
            at = axis(g) if inner == 1 else call("div", axis(g), size(inner))
            is_first = all(e == 1 for e in group.extents[:i])
            found[number] = at if is_first else call("mod", at, size(extent))
    return found


def is_coordinate(e: Expr) -> bool:
    """Whether ``e`` is an axis as ``coordinates_of`` says it: a running index, divided by sizes."""
    return e.kind == "axis" or (
        e.kind == "call" and e.attr in ("div", "mod") and e.args[1].kind in ("const", "size") and is_coordinate(e.args[0])
    )


def in_coordinates(e: Expr, coordinates: Mapping[int, Expr]) -> Expr:
    """``e`` with its axes replaced."""
    return rewrite(e, lambda x: coordinates[x.attr] if x.kind == "axis" else None)


def _over_groups(access: Access, groups: Sequence[Group], coordinates: Mapping[int, Expr]) -> Access:
    """What is linear in the axes becomes one sum, whose part in each group is one step where it can be."""
    form: dict[int, Size] = {}
    offset = access.offset
    terms: list[Term] = []
    for term in access.terms:
        parts = affine(term.index)
        if not term.inside or parts.rest.kind not in ("const", "size"):
            terms.append(replace(term, index=in_coordinates(term.index, coordinates)))
            continue
        offset = offset + parts.rest.attr * term.stride
        for number, coefficient in parts.coefficients.items():
            form[number] = form.get(number, 0) + coefficient * term.stride
    for g, group in enumerate(groups):
        step = group.merged(form)
        steps = [(axis(g), step)] if step is not None else [(coordinates[number], form.get(number, 0)) for number in group.axes]
        terms += [Term(at, stride, 1, inside=True) for at, stride in steps if stride != 0 and at is not const(0)]
    return replace(access, offset=offset, terms=tuple(terms))
