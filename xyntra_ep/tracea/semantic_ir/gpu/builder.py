"""Writing GPU kernels: a KernelBuilder whose body is one thread's.

>>> from xyntra_ep.tracea.core_ir.dims import symbol
>>> from xyntra_ep.tracea.core_ir.dtypes import DType
>>> from xyntra_ep.tracea.semantic_ir.nodes import lt
>>> b = GpuBuilder("double", threads=64)
>>> x, y = b.buffer("x", DType.F32), b.buffer("y", DType.F32, writable=True)
>>> at = b.let("at", b.block * 64 + b.thread)
>>> with b.when(lt(at, b.param(symbol("n")))):
...     b.store(y, at, b.load(x, at) * 2.0)
>>> kernel, params = b.finish()
>>> kernel.threads, params
(64, (n,))
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xyntra_ep.tracea.core_ir.dims import Size
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder
from xyntra_ep.tracea.semantic_ir.gpu.fragment_nodes import FragmentDot, LoadFragments
from xyntra_ep.tracea.semantic_ir.gpu.matrix_dot import MatrixDot, MatrixShape, TakePacket
from xyntra_ep.tracea.semantic_ir.gpu.nodes import (
    PACKET_BYTES,
    AsyncCommit,
    AsyncCopy,
    AsyncWait,
    Barrier,
    LoadPacket,
    SharedArray,
    Slot,
    StorePacket,
    SubgroupXor,
)
from xyntra_ep.tracea.semantic_ir.nodes import (
    BLOCK,
    INDEX,
    THREAD,
    Array,
    Kernel,
    Pointer,
    PointerType,
    Rvalue,
    Space,
    Var,
    as_rvalue,
    i32,
    loaded_type,
)


class GpuBuilder(KernelBuilder):
    """A kernel of blocks of ``threads`` threads."""

    def __init__(self, name: str, threads: int) -> None:
        super().__init__(name)
        self.threads = threads
        self._shared: list[SharedArray] = []

    @property
    def block(self) -> Var:
        return BLOCK

    @property
    def thread(self) -> Var:
        return THREAD

    @property
    def shared_bytes(self) -> int:
        return sum(array.bytes for array in self._shared)

    def array(self, stem: str, dtype: DType, count: int) -> Var:
        """A thread's own array."""
        var = Var(PointerType(dtype, True, Space.PRIVATE), self.fresh(stem))
        self.emit(Array(var, dtype, count))
        return var

    def shared(self, stem: str, dtype: DType, count: int, slots: int = 1, alignment: int = PACKET_BYTES) -> Var:
        """Memory of the block, declared at the top of the kernel wherever this is called."""
        var = Var(PointerType(dtype, True, Space.SHARED), self.fresh(stem))
        self._shared.append(SharedArray(var, dtype, count, slots, alignment))
        return var

    def slot(self, array: Var, number: Rvalue | int) -> Slot:
        """One slot of a shared array that has several."""
        declared = next(a for a in self._shared if a.var == array)
        number = as_rvalue(number, INDEX)
        return Slot(array, number * declared.count, number)

    def barrier(self) -> None:
        self.emit(Barrier())

    def copy_async(
        self,
        target: Pointer,
        target_at: Rvalue | int,
        source: Pointer,
        source_at: Rvalue | int,
        count: int,
        valid: Rvalue | None = None,
    ) -> None:
        self.emit(AsyncCopy(target, as_rvalue(target_at, INDEX), source, as_rvalue(source_at, INDEX), count, valid))

    def commit(self) -> None:
        self.emit(AsyncCommit())

    def wait(self, pending: int) -> None:
        self.emit(AsyncWait(pending))

    def load_packet(self, stem: str, pointer: Pointer, at: Rvalue | int, count: int) -> list[Rvalue]:
        """``count`` neighbours, each a value."""
        kind = pointer.vtype
        assert isinstance(kind, PointerType)
        if count == 1:
            return [self.let(stem, self.load(pointer, at))]
        names = tuple(Var(loaded_type(kind.dtype, 1), self.fresh(stem)) for _ in range(count))
        self.emit(LoadPacket(names, pointer, as_rvalue(at, INDEX)))
        return list(names)

    def store_packet(self, pointer: Pointer, at: Rvalue | int, values: Sequence[Rvalue]) -> None:
        if len(values) == 1:
            self.store(pointer, at, values[0])
        else:
            self.emit(StorePacket(pointer, as_rvalue(at, INDEX), tuple(values)))

    def subgroup_xor(self, value: Rvalue, mask: int) -> Rvalue:
        return SubgroupXor(value, mask)

    def load_fragments(self, stem: str, pointer: Pointer, at: Rvalue, transposed: bool = False) -> list[Rvalue]:
        """Four matrices of 8 x 8; this thread says where a row of one of them is."""
        names = tuple(Var(i32(1), self.fresh(stem)) for _ in range(4))
        self.emit(LoadFragments(names, pointer, at, transposed))
        return list(names)

    def fragment_dot(self, c: Sequence[Var], a: Sequence[Rvalue], b: Sequence[Rvalue], dtype: DType) -> None:
        self.emit(FragmentDot(tuple(c), tuple(a), tuple(b), dtype))

    def take_packet(self, target: Pointer, pointer: Pointer, at: Rvalue, count: int) -> None:
        self.emit(TakePacket(target, pointer, as_rvalue(at, INDEX), count))

    def matrix_dot(self, shape: MatrixShape, c: Pointer, a: Pointer, b: Pointer) -> None:
        self.emit(MatrixDot(shape, c, a, b))

    def finish(self) -> tuple[Kernel, tuple[Size, ...]]:
        kernel, params = super().finish()
        return replace(kernel, body=(*self._shared, *kernel.body), threads=self.threads), params
