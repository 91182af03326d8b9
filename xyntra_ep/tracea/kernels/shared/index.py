"""The memory that an op's expressions touch: loads taken out of them and their addresses taken apart.

In the expressions that kernels evaluate, a load has no indices any more: ``load(k)`` stands for ``AccessTable.accesses[k]``.
An index that cannot be proven to stay inside its dimension is clamped into it, because a load below a ``where`` (padding,
windows, concatenation) is computed although its value is not used, and a Gather's indices are the user's data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from xyntra_ep.tracea.core_ir.dims import Size, known_nonnegative, product
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr, axis, call, const, load, rewrite, size, walk
from xyntra_ep.tracea.core_ir.index_range import Affine, affine, clamped, scaled, stays_inside, without_axis
from xyntra_ep.tracea.core_ir.ops import Operand
from xyntra_ep.tracea.kernels.variant import TempBuffer, ValueBuffer
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder
from xyntra_ep.tracea.semantic_ir.nodes import PointerType, Var


@dataclass(frozen=True, slots=True)
class Term:
    """One dimension of a view: ``index`` times ``stride``. ``inside``: 0 <= index < extent is proven."""

    index: Expr
    stride: Size
    extent: Size
    inside: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Elements of one buffer. ``count``: of a view that may be empty although the loops are not; 0 of it forbids the read."""

    pointer: Var
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
        self.buffers: list[ValueBuffer | TempBuffer] = []
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

    def writing(self, operand: Operand) -> int:
        """The access of an output at the domain's own axes (of its leading ones, for results per row)."""
        return self._add(self._access(operand, tuple(map(axis, range(len(operand.shape)))), writable=True))

    def add(self, pointer: Var, dtype: DType, index: Expr) -> int:
        """An access to memory of the kernel's own, at a position known to be good."""
        term = Term(index, 1, 1, inside=True)
        return self._add(Access(pointer=pointer, dtype=dtype, offset=0, terms=(term,)))

    def _add(self, access: Access) -> int:
        self.accesses.append(access)
        return len(self.accesses) - 1

    def _access(self, operand: Operand, indices: Sequence[Expr], writable: bool) -> Access:
        terms = [
            Term(index, stride, extent, inside=writable or stays_inside(index, extent, self._domain))
            for index, stride, extent in zip(indices, operand.strides, operand.shape, strict=True)
            if stride != 0
        ]
        return Access(
            pointer=self.pointer(operand, writable),
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

    def lanewise(self, access: Access, number: int) -> LaneAddress:
        """``access`` as lanes along axis(number) see it."""
        lane = axis(number)
        step: Size = 0
        times = 1
        checks: list[Check] = []
        starts: list[Expr] = []
        linear = True
        for term in access.terms:
            start = term.index
            if (repeats := _repeats(start, lane)) and term.inside and step == 0:
                times, step, start = repeats, term.stride, const(0)
            elif lane in self.deps(start):
                parts = affine(start)
                stride = parts.coefficients.get(number, 0)
                linear = linear and times == 1 and lane not in self.deps(parts.rest) and (term.inside or isinstance(stride, int))
                step = step + stride * term.stride
                start = without_axis(start, number)
                if not term.inside:
                    checks.append(Check(first=start, step=stride if isinstance(stride, int) else 0, extent=term.extent))
            elif not term.inside:
                start = clamped(start, term.extent)
            starts.append(start)
        base = access._sum(starts) if linear else const(0)
        moving = [lane in self.deps(t.index) for t in access.terms]
        uniform = replace(access, terms=tuple(t for t, moves in zip(access.terms, moving, strict=True) if not moves))
        varying = replace(access, offset=0, terms=tuple(t for t, moves in zip(access.terms, moving, strict=True) if moves))
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
