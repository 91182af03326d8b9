"""Nodes for products by warpgroups, of 16-bit elements in f32 (NVIDIA's compute capability 9.0): parts of a block that work side
by side, tensors that are copied by one thread, and matrices that are multiplied out of shared memory.

roles      ``Roles`` ends a kernel's body: each of its parts is run by warpgroups (128 threads each) of its own, at the same
           time. They wait for each other at *mbarriers* only. An mbarrier counts arrivals and bytes of copies; when all that it
           expects have come, its phase is complete and the next one begins. ``WaitAt(parity)`` goes on when the phase under way
           has the other parity: phases count from 0, and the one before the first is complete
copies     ``CopyTensor`` brings a box of a tensor to shared memory, in rows of 128 bytes whose 16-byte chunks are swizzled: chunk
           c of row r lies where chunk c ^ r % 8 would. What is outside of the tensor becomes 0; the bytes of the whole box count
products   ``WarpgroupDot``: c (64 x N) += a (64 x 16) times b (16 x N), a warpgroup together; b is in shared memory, a there
           or in registers. It runs on while the warpgroup does; ``WarpgroupCommit`` and ``WarpgroupWait`` are as those of
           asynchronous copies. Sums, and a's registers, may not be touched before they are waited for; ``WarpgroupFence`` comes
           between touching them and the next product

Blocks of a cluster run at the same time, begin their roles together and end together. What is done ``everywhere`` is done in
all of them, at the same place of each one's shared memory: a copy lands in all and counts at the mbarrier of each; a warp
arrives at the mbarrier of each.

A matrix of a product (``SharedMatrix``) lies in rows of 128 bytes, as ``CopyTensor`` puts it down: along k (64 of k for each of
m or n), or ``across`` (64 of m or n for each of k, further 64 ``apart`` bytes on). Sums of thread t of the warpgroup: value i is
in row 16 (t / 32) + t % 32 / 4 + 8 (i / 2 % 2), column 8 (i / 4) + 2 (t % 4) + i % 2. Of a in registers it has eight such
values, two in an i32, the first one below.

From the PTX ISA: "mbarrier", "cp.async.bulk.tensor", "Tensors: Swizzling modes", "wgmma.mma_async", "Matrix-Descriptor Format".
`rings.py` has the rules of who waits for what.
"""

from __future__ import annotations

from dataclasses import dataclass

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.semantic_ir.gpu.nodes import Slot
from xyntra_ep.tracea.semantic_ir.nodes import Pointer, Rvalue, Statement, Var

WARPGROUP = 128  # threads
WARPS = 4  # of a warpgroup
ROWS = 64  # of a product
DEPTH = 16
ROW_BYTES = 128  # of a matrix in shared memory
SWIZZLED_ROWS = 8  # after which the swizzle repeats


@dataclass(frozen=True, slots=True)
class Mbarriers:
    """The mbarriers in the slots of ``array``, a shared array of i64: a phase is complete after so many ``arrivals``."""

    array: Var
    arrivals: int


@dataclass(frozen=True, slots=True)
class Role:
    """What ``warpgroups`` do, each with so many ``registers`` a thread (0: as many as the kernel begins with). ``group`` is the
    name by which a warpgroup's threads know its number in the role, where there are several."""

    name: str
    warpgroups: int
    registers: int
    body: tuple[Statement, ...]
    group: Var | None = None


@dataclass(frozen=True, slots=True)
class Roles(Statement):
    """Make the mbarriers ready; then every warpgroup its part, from the block's first threads on."""

    mbarriers: tuple[Mbarriers, ...]
    parts: tuple[Role, ...]


@dataclass(frozen=True, slots=True)
class Once(Statement):
    """One thread of the role does it: the first. Only there tensors are copied."""

    body: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class ExpectBytes(Statement):
    """Arrive at an mbarrier, whose phase then waits for so many bytes of copies too."""

    mbarrier: Slot
    bytes: int


@dataclass(frozen=True, slots=True)
class Arrive(Statement):
    """One thread of each warp of the warpgroup arrives."""

    mbarrier: Slot
    everywhere: bool = False


@dataclass(frozen=True, slots=True)
class WaitAt(Statement):
    mbarrier: Slot
    parity: Rvalue


@dataclass(frozen=True, slots=True)
class CopyTensor(Statement):
    """The box of tensor ``map`` that begins at ``coordinates`` (the contiguous axis first) to ``target``; its bytes count at
    ``mbarrier`` when they have come."""

    target: Pointer
    map: str
    coordinates: tuple[Rvalue, ...]
    mbarrier: Slot
    everywhere: bool = False


@dataclass(frozen=True, slots=True)
class SharedMatrix:
    """Where a matrix of 16-bit elements begins: see the module's docstring."""

    pointer: Pointer
    index: Rvalue
    across: bool
    apart: int = 0


@dataclass(frozen=True, slots=True)
class WarpgroupDot(Statement):
    """``c``: N / 2 mutable f32 of each thread; N is a multiple of 8, at most 256. ``a`` in registers: four mutable i32.
    ``fresh``: c is the product, whatever it was before."""

    c: tuple[Var, ...]
    a: SharedMatrix | tuple[Var, ...]
    b: SharedMatrix
    dtype: DType
    fresh: bool = False

    @property
    def columns(self) -> int:
        return 2 * len(self.c)

    @property
    def registers(self) -> tuple[Var, ...]:
        """What is in use until the product is complete."""
        return self.c if isinstance(self.a, SharedMatrix) else (*self.c, *self.a)

    @property
    def matrices(self) -> tuple[SharedMatrix, ...]:
        """Those in shared memory."""
        return (self.a, self.b) if isinstance(self.a, SharedMatrix) else (self.b,)


@dataclass(frozen=True, slots=True)
class WarpgroupFence(Statement):
    """What was done to sums is done before the products that follow."""


@dataclass(frozen=True, slots=True)
class WarpgroupCommit(Statement):
    """The products since the last one are a group."""


@dataclass(frozen=True, slots=True)
class WarpgroupWait(Statement):
    """Until at most the ``pending`` latest groups are under way. ``sums``: of those that are then complete."""

    pending: int
    sums: tuple[Var, ...] = ()
