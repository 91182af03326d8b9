"""Division by a size that only a run knows, without dividing: a multiplication by a reciprocal that comes with the sizes.

For 0 <= n < 2^31 and d >= 1 the reciprocal is m = floor((2^31 - 1) / d), so m d >= 2^31 - d and

    n/d - n m / 2^31  <=  n / 2^31  <  1

floor(n m / 2^31) is the quotient or one less, which the remainder tells (Barrett, CRYPTO '86, for words of 31 bits). GPUs divide
integers by some twenty instructions; this takes six for quotient and remainder together. Constants are left to the compiler,
which does the same for them.
"""

from __future__ import annotations

from collections.abc import Sequence

from xyntra_ep.tracea.core_ir.dims import Size
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder
from xyntra_ep.tracea.semantic_ir.nodes import INDEX, Convert, Rvalue, Select, binary, i64, le

BITS = 31  # of an index on a GPU, without its sign
_GREATEST = (1 << BITS) - 1


def reciprocal(divisor: Size) -> Size:
    """What is passed to the kernel beside the divisor."""
    return _GREATEST // divisor


def divide(b: KernelBuilder, n: Rvalue, divisor: Size) -> tuple[Rvalue, Rvalue]:
    """Quotient and remainder of an index ``n`` >= 0."""
    d = b.param(divisor)
    if isinstance(divisor, int):
        return b.let("quotient", n // d), b.let("remainder", n % d)
    wide = Convert(i64(1), n) * Convert(i64(1), b.param(reciprocal(divisor)))
    low = b.let("quotient", Convert(INDEX, binary("shr", wide, BITS)))
    rest = b.let("remainder", n - low * d)
    short = b.let("short", le(d, rest))
    return b.let("quotient", low + short), b.let("remainder", Select(short, rest - d, rest))


def split(b: KernelBuilder, linear: Rvalue, extents: Sequence[Size]) -> list[Rvalue]:
    """As ``KernelBuilder.split``: row-major coordinates of ``linear``, the first not reduced modulo its extent."""
    coordinates: list[Rvalue] = []
    for extent in reversed(extents[1:]):
        linear, coordinate = divide(b, linear, extent)
        coordinates.append(coordinate)
    return [linear, *reversed(coordinates)] if extents else []
