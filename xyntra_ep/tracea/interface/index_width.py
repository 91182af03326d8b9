"""Kernels for devices count elements in 32 bits: what is larger must not reach them."""

from __future__ import annotations

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.tracea.core_ir.dims import Size, le, product
from xyntra_ep.tracea.core_ir.ops import Program

MOST_ELEMENTS = 1 << 30  # half of what 31 bits count: a tile may look beyond the end before it sees that it does


def limit_elements(program: Program) -> None:
    """Let runs fail in which a value has more than ``MOST_ELEMENTS``. Raises UnsupportedError where that is in every run."""
    sizes: list[Size] = []
    for value in program.values:
        size = product(value.shape)
        if isinstance(size, int) and size > MOST_ELEMENTS:
            raise UnsupportedError(f"a tensor of {size} elements is too large for a device (at most {MOST_ELEMENTS})")
        if not isinstance(size, int) and size not in sizes:
            sizes.append(size)
    program.checks += [
        (le(size, MOST_ELEMENTS), f"XyntraEP: a tensor has more than {MOST_ELEMENTS} elements, too many for a device")
        for size in sizes
    ]
