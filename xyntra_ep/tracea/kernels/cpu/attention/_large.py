"""Whether q or k has an element by which a score may be anything, whatever a causal mask adds to it: huge, infinite or NaN."""

from __future__ import annotations

from xyntra_ep.tracea.core_ir.dims import Size
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder
from xyntra_ep.tracea.semantic_ir.nodes import INDEX, Const, Convert, Pointer, Reduce, Rvalue, Select, f32, le, lt


class LargeElements:
    """Looks through memory for elements that are not within ``limit``, ``lanes`` at a time."""

    def __init__(self, kernel: KernelBuilder, lanes: int, limit: float) -> None:
        self._k, self._lanes, self._square = kernel, lanes, limit * limit
        self._found = kernel.variable("large", Const(f32(lanes), 0.0))

    def look(self, data: Pointer, count: Rvalue, stride: Size = 1) -> None:
        """At ``count`` elements from ``data`` on: whole vectors of neighbours, or single ones ``stride`` apart."""
        k, lanes = self._k, self._lanes
        assert stride == 1 or lanes == 1, "vectors are of neighbours"
        with k.loop("at", 0, count, lanes) as at:
            x = k.let("x", k.load(data, at * k.param(stride), lanes))
            within = le(x * x, Const(f32(lanes), self._square))  # not so of NaN
            k.assign(self._found, Select(within, self._found, Const(f32(lanes), 1.0)))

    @property
    def found(self) -> Rvalue:
        """1 where there was one, else 0."""
        largest = Reduce("max", self._found)
        return Convert(INDEX, lt(Const(f32(1), 0.0), largest)) & 1
