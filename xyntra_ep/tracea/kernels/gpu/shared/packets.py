"""Several neighbours of a loop nest's last axis in one thread, moved in packets where memory lies so."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial

from xyntra_ep.tracea.core_ir.dims import Size
from xyntra_ep.tracea.core_ir.expr import Expr
from xyntra_ep.tracea.core_ir.index_range import without_axis
from xyntra_ep.tracea.kernels.shared.affine import affine
from xyntra_ep.tracea.kernels.shared.index import Access, Lane, Term
from xyntra_ep.tracea.kernels.shared.loops.nest import Nest, Scope, as_element
from xyntra_ep.tracea.semantic_ir.gpu.builder import GpuBuilder
from xyntra_ep.tracea.semantic_ir.gpu.nodes import PACKET_BYTES
from xyntra_ep.tracea.semantic_ir.nodes import Const, Rvalue, loaded_type, lt

_WIDEST = 8  # more values would cost more registers than the wider access saves


def packet_width(nest: Nest, extent: Size, apart: Collection[int] = ()) -> int:
    """How many neighbours every access of ``nest`` but those ``apart`` can move at once: all lie side by side, aligned, in whole
    packets of the axis of ``extent``, or are one element for all."""
    modes = {k: nest.address(k).mode for k in range(len(nest.table.accesses)) if k not in apart}
    moved = [nest.table.accesses[k] for k, mode in modes.items() if mode is Lane.VECTOR]
    if not moved or not all(mode in (Lane.VECTOR, Lane.ONE) for mode in modes.values()):
        return 1
    assert nest.lane_axis is not None
    width = min(_WIDEST, PACKET_BYTES // max(access.dtype.bytes for access in moved))
    while width > 1 and not (is_multiple(extent, width) and all(is_aligned(a, nest.lane_axis, width) for a in moved)):
        width //= 2
    return width


def is_aligned(access: Access, lane: int, width: int) -> bool:
    """Whether the access is at a multiple of ``width`` where axis(``lane``) is 0, whatever the other axes are, and whatever else
    an index is made of."""

    def is_whole(term: Term) -> bool:
        if is_multiple(term.stride, width):
            return True
        form = affine(without_axis(term.index, lane))
        return form is not None and all(is_multiple(size * term.stride, width) for size in form.values())

    return is_multiple(access.offset, width) and all(map(is_whole, access.terms))


def is_multiple(size: Size, of: int) -> bool:
    """Whether ``size`` is one for every value of its symbols."""
    rest = size % of
    return isinstance(rest, int) and rest == 0


class Packet:
    """``width`` points of a nest, the first at ``at`` of its lane axis. ``loaded``: accesses at these points whose values are
    known, others that are contiguous are added; then all that are not must be one element for all."""

    def __init__(
        self, b: GpuBuilder, scope: Scope, at: Rvalue, width: int, loaded: dict[int, Sequence[Rvalue]] | None = None
    ) -> None:
        self._b = b
        self._nest = scope.nest
        self._at = at
        self._width = width
        lane = self._nest.lane_axis
        self._alone = width == 1 and loaded is None  # any access will do
        self._scope = scope.bind({lane: at} if self._alone and lane is not None else {})
        self._codes = [self._scope.code.fork(1, partial(self._leaf, i)) for i in range(width)]
        self._loaded = {} if loaded is None else loaded

    def values(self, e: Expr) -> list[Rvalue]:
        """``e`` at each point."""
        if self._alone:
            return [self._scope.value(e)]
        return [code.emit(e)[0] for code in self._codes]

    def define(self, e: Expr, values: Sequence[Rvalue]) -> None:
        """``values`` stand for ``e`` at these points."""
        for code, value in zip([self._scope.code] if self._alone else self._codes, values, strict=True):
            code.define(e, value)

    def store(self, k: int, values: Sequence[Rvalue]) -> None:
        """Write the ``k``-th access at each point."""
        if self._alone:
            self._scope.store(k, values[0])
        else:
            self._b.store_packet(self._nest.table.accesses[k].pointer, self._position(k), values)

    def _position(self, k: int) -> Rvalue:
        return self._scope.index(self._nest.address(k).base) + self._at

    def _leaf(self, point: int, e: Expr, lanes: int) -> Rvalue:
        if e.kind == "axis" and e.attr == self._nest.lane_axis:
            return as_element(self._at + point)
        if e.kind == "load" and e.attr in self._loaded:
            return self._loaded[e.attr][point]
        if e.kind != "load" or self._nest.address(e.attr).mode is not Lane.VECTOR:
            return self._scope.value(e)
        self._loaded[e.attr] = self._neighbours(e.attr)
        return self._loaded[e.attr][point]

    def _neighbours(self, k: int) -> Sequence[Rvalue]:
        """Loaded at once; 0 from a buffer that is empty."""
        b, access = self._b, self._nest.table.accesses[k]
        position = self._position(k)
        if access.count is None:
            return b.load_packet("v", access.pointer, position, self._width)
        values = [b.variable("v", Const(loaded_type(access.dtype, 1), 0)) for _ in range(self._width)]
        with b.when(lt(0, self._scope.size(access.count))):
            for value, loaded in zip(values, b.load_packet("v", access.pointer, position, self._width), strict=True):
                b.assign(value, loaded)
        return values
