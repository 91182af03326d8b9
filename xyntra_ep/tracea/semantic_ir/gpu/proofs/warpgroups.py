"""Rules for single nodes of kernels whose warpgroups have roles; who waits for whom is in `rings.py`.

roles      end the kernel's body, and have as many threads as the kernel
mbarriers  are slots of shared arrays that roles declare
copies     are of a tensor of the kernel, whose box has rows of 128 bytes, to shared memory; done by one thread of a role
products   are of 16-bit elements, in shared memory 1024 bytes aligned, in registers four mutable i32; their sums mutable floats
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.semantic_ir.check import require
from xyntra_ep.tracea.semantic_ir.gpu.nodes import SHARED_ALIGNMENT, SharedArray
from xyntra_ep.tracea.semantic_ir.gpu.warpgroup_nodes import (
    ROW_BYTES,
    WARPGROUP,
    Arrive,
    CopyTensor,
    ExpectBytes,
    Once,
    Roles,
    SharedMatrix,
    WaitAt,
    WarpgroupCommit,
    WarpgroupDot,
    WarpgroupFence,
    WarpgroupWait,
)
from xyntra_ep.tracea.semantic_ir.nodes import (
    Kernel,
    Let,
    Offset,
    Pointer,
    PointerType,
    Rvalue,
    Space,
    Statement,
    Type,
    Var,
    f32,
    i32,
    index,
)

WARPGROUP_STATEMENTS = (
    Arrive, CopyTensor, ExpectBytes, Once, Roles, WaitAt, WarpgroupCommit, WarpgroupDot, WarpgroupFence, WarpgroupWait,
)  # fmt: skip
_BOX = 256  # the most elements along an axis of a box
_REGISTERS = range(24, 257, 8)  # what a thread may ask for (PTX ISA, "setmaxnreg")
_ALL_REGISTERS = 65536  # of a multiprocessor
_BLOCKS = 8  # of a cluster, that every device of this kind can run (CUDA C++ Programming Guide, "Thread Block Clusters")


class WarpgroupRules:
    """``value``, ``pointer``, ``block``: the checker's own rules. ``mutable``: whether a name may be assigned to."""

    def __init__(
        self,
        kernel: Kernel,
        value: Callable[[Rvalue], None],
        pointer: Callable[[Pointer], PointerType],
        block: Callable[[Sequence[Statement]], None],
        mutable: Callable[[str], bool],
    ) -> None:
        self._kernel, self._value, self._pointer, self._block, self._mutable = kernel, value, pointer, block, mutable
        self._maps = {m.name: m for m in kernel.maps}
        self._arrays = {s.var.name: s for s in kernel.body if isinstance(s, SharedArray)}
        self._mbarriers: set[str] = set()
        self._in_role = self._alone = False

    def statement(self, s: Statement) -> None:
        require(self._in_role != isinstance(s, Roles), "a role's statement outside of roles, or roles in one")
        require(self._alone == isinstance(s, (ExpectBytes, CopyTensor)) or isinstance(s, WaitAt), "done by the wrong threads")
        if isinstance(s, (Arrive, CopyTensor)):
            require(not s.everywhere or self._kernel.cluster > 1, "there are no other blocks")
        match s:
            case Roles():
                self._roles(s)
            case Once():
                self._alone = True
                self._block(s.body)
                self._alone = False
            case ExpectBytes() | Arrive() | WaitAt():
                self._mbarrier(s.mbarrier)
                if isinstance(s, WaitAt):
                    self._value(s.parity)
            case CopyTensor():
                self._copy(s)
            case WarpgroupDot():
                self._dot(s)
            case WarpgroupWait():
                require(s.pending >= 0, "{} groups cannot be pending", s.pending)
                for var in s.sums:
                    self._value(var)

    def _roles(self, s: Roles) -> None:
        require(self._kernel.body[-1] is s, "roles are not the end of the kernel")
        require(1 <= self._kernel.cluster <= _BLOCKS, "a cluster of {} blocks", self._kernel.cluster)
        threads = sum(part.warpgroups for part in s.parts) * WARPGROUP
        require(threads == self._kernel.threads, "roles of {} threads in a block of {}", threads, self._kernel.threads)
        for m in s.mbarriers:
            array = self._arrays.get(m.array.name)
            require(array is not None and array.dtype is DType.I64 and m.arrivals > 0, "{} has no mbarriers", m.array.name)
            self._mbarriers.add(m.array.name)
        for part in s.parts:
            require(part.registers in (0, *_REGISTERS), "{} registers of a thread", part.registers)
            self._in_role = True
            known = () if part.group is None else (Let(part.group, index(0)),)  # as if the role began with its name
            self._block((*known, *part.body))
            self._in_role = False
        registers = sum(part.registers * part.warpgroups for part in s.parts) * WARPGROUP
        require(registers <= _ALL_REGISTERS, "{} registers together", registers)

    def _mbarrier(self, pointer: Pointer) -> None:
        self._pointer(pointer)
        while isinstance(pointer, Offset):
            pointer = pointer.pointer
        require(pointer.name in self._mbarriers, "{} is no mbarrier", pointer.name)

    def _copy(self, s: CopyTensor) -> None:
        self._mbarrier(s.mbarrier)
        kind, tensor = self._pointer(s.target), self._maps.get(s.map)
        if tensor is None:
            require(False, "the kernel has no tensor {}", s.map)
            return
        axes = len(tensor.box)
        require(len(s.coordinates) == axes, "{} coordinates in a tensor of {} axes", len(s.coordinates), axes)
        require(kind == PointerType(tensor.dtype, True, Space.SHARED), "a copy of {} to {}", tensor.dtype, kind)
        row, *others = tensor.box
        require(row * tensor.dtype.bytes == ROW_BYTES, "rows of {} elements", row)
        require(all(0 < extent <= _BOX for extent in others) and 1 <= len(others) <= 4, "a box of {}", tensor.box)
        self._aligned(s.target)
        for at in s.coordinates:
            self._value(at)

    def _aligned(self, pointer: Pointer) -> None:
        while isinstance(pointer, Offset):
            pointer = pointer.pointer
        array = self._arrays[pointer.name]
        whole = array.alignment == SHARED_ALIGNMENT and array.count * array.dtype.bytes % SHARED_ALIGNMENT == 0
        require(whole, "{} is not aligned to {} bytes in every slot", pointer.name, SHARED_ALIGNMENT)

    def _dot(self, s: WarpgroupDot) -> None:
        require(s.columns % 8 == 0 and 0 < s.columns <= 256, "a product of {} columns", s.columns)
        require(s.dtype in (DType.F16, DType.BF16), "a product of {}", s.dtype)
        for matrix in s.matrices:
            self._matrix(matrix, s.dtype)
        self._registers(s.c, f32(1))
        if not isinstance(s.a, SharedMatrix):
            require(len(s.a) == 4, "a matrix in {} registers", len(s.a))
            self._registers(s.a, i32(1))

    def _registers(self, registers: Sequence[Var], kind: Type) -> None:
        for var in registers:
            self._value(var)
            require(var.type == kind and self._mutable(var.name), "{} is no mutable {}", var.name, kind.elem)

    def _matrix(self, matrix: SharedMatrix, dtype: DType) -> None:
        kind = self._pointer(matrix.pointer)
        self._value(matrix.index)
        require(kind == PointerType(dtype, True, Space.SHARED), "a matrix of {}", kind)
        require(matrix.apart % 16 == 0, "panels {} bytes apart", matrix.apart)
        self._aligned(matrix.pointer)
