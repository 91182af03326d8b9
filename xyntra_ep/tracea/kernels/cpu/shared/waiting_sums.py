"""The block of matrix tiles whose sums are in a scratch and not in the result yet.

The vector units have nothing to do while tiles are multiplied, so the epilogue of one block runs between the steps of the next:

    scratch = k.array("scratch", DType.F32, 2 * size)
    waiting = WaitingSums(k, scratch, size, fields)      # at first no block; all its fields are 0
    for each block:
        k.call(block, ..., waiting.free, *waiting.arguments)    # leaves its sums in the free half, finishes the other
        waiting.replace(fields of this block)
    k.call(last, *waiting.arguments)
"""

from __future__ import annotations

from collections.abc import Sequence

from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder
from xyntra_ep.tracea.semantic_ir.nodes import Offset, Rvalue, Var, index


class WaitingSums:
    """``size``: elements of half of the scratch; ``fields``: how many numbers say where the sums belong."""

    def __init__(self, kernel: KernelBuilder, scratch: Var, size: int, fields: int) -> None:
        self._kernel = kernel
        self._scratch = scratch
        self._size = size
        self._free = kernel.variable("free", index(0))
        self._fields = [kernel.variable("ready", index(0)) for _ in range(fields)]

    @property
    def free(self) -> Rvalue:
        """The half of the scratch for the next block."""
        return Offset(self._scratch, self._free)

    @property
    def arguments(self) -> list[Rvalue]:
        return [Offset(self._scratch, index(self._size) - self._free), *self._fields]

    def replace(self, fields: Sequence[Rvalue]) -> None:
        """The block just computed is the one that waits."""
        for field, value in zip(self._fields, fields, strict=True):
            self._kernel.assign(field, value)
        self._kernel.assign(self._free, index(self._size) - self._free)
