"""Where the shared arrays of a kernel lie in its block's memory, and how much of that the kernel's launch has to give.

A kernel of CUDA may declare 48 KiB itself (CUDA C++ Programming Guide, "Shared Memory"). What takes more declares nothing: the
launch gives all of it as one piece, in which arrays follow each other, each at a multiple of its alignment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xyntra_ep.tracea.semantic_ir.gpu.capabilities import STATIC_SHARED_BYTES
from xyntra_ep.tracea.semantic_ir.gpu.nodes import SharedArray
from xyntra_ep.tracea.semantic_ir.nodes import Kernel


@dataclass(frozen=True, slots=True)
class SharedLayout:
    """``offsets`` of the arrays, by name, in ``bytes`` together."""

    offsets: Mapping[str, int]
    bytes: int

    @property
    def given_bytes(self) -> int:
        """What a launch gives to a block; 0 where the kernel declares its arrays.

        >>> SharedLayout({}, 48 << 10).given_bytes, SharedLayout({}, 49 << 10).given_bytes
        (0, 50176)
        """
        return self.bytes if self.bytes > STATIC_SHARED_BYTES else 0


def shared_layout(kernel: Kernel) -> SharedLayout:
    offsets: dict[str, int] = {}
    end = 0
    for s in kernel.body:
        if isinstance(s, SharedArray):
            offsets[s.var.name] = -(-end // s.alignment) * s.alignment
            end = offsets[s.var.name] + s.bytes
    return SharedLayout(offsets, end)
