"""Writing kernels whose warpgroups have parts of their own: a GpuBuilder whose body ends in roles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from xyntra_ep.tracea.core_ir.dims import Size
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.semantic_ir.gpu.builder import GpuBuilder
from xyntra_ep.tracea.semantic_ir.gpu.nodes import Slot
from xyntra_ep.tracea.semantic_ir.gpu.warpgroup_nodes import (
    WARPGROUP,
    Arrive,
    CopyTensor,
    ExpectBytes,
    Mbarriers,
    Once,
    Role,
    Roles,
    SharedMatrix,
    WaitAt,
    WarpgroupCommit,
    WarpgroupDot,
    WarpgroupFence,
    WarpgroupWait,
)
from xyntra_ep.tracea.semantic_ir.nodes import INDEX, Kernel, Let, Pointer, Rvalue, TensorMap, Var, index

_APART = 2  # i64 from one mbarrier to the next: slots are aligned to packets


class WarpgroupBuilder(GpuBuilder):
    """A kernel of blocks of so many ``warpgroups``, in clusters; ``role`` is called for one part after the other."""

    def __init__(self, name: str, warpgroups: int, cluster: int = 1) -> None:
        super().__init__(name, warpgroups * WARPGROUP)
        self._cluster = cluster
        self._maps: list[TensorMap] = []
        self._mbarriers: list[Mbarriers] = []
        self._parts: list[Role] = []

    def tensor(self, stem: str, dtype: DType, box: Sequence[int]) -> TensorMap:
        """The next tensor of the call that is copied in boxes, the contiguous axis first."""
        made = TensorMap(f"m_{stem}{len(self._maps)}", dtype, tuple(box))
        self._maps.append(made)
        return made

    def mbarriers(self, stem: str, count: int, arrivals: int) -> Var:
        """``count`` of them, in slots."""
        array = self.shared(stem, DType.I64, _APART, count)
        self._mbarriers.append(Mbarriers(array, arrivals))
        return array

    def rounds(self, stem: str, value: Rvalue) -> Var:
        """How often loops of roles go round, by a name. Also where it is a literal, `rings.py` proves them right for any."""
        var = Var(INDEX, self.fresh(stem))
        self.emit(Let(var, value))
        return var

    @contextmanager
    def role(self, name: str, warpgroups: int, registers: int = 0) -> Iterator[Rvalue]:
        """Gives the number of a warpgroup in the role."""
        group = Var(INDEX, self.fresh("group")) if warpgroups > 1 else None
        self._blocks.append([])
        yield index(0) if group is None else group
        self._parts.append(Role(name, warpgroups, registers, tuple(self._blocks.pop()), group))

    @contextmanager
    def once(self) -> Iterator[None]:
        """What one thread of the role does."""
        self._blocks.append([])
        yield
        self.emit(Once(tuple(self._blocks.pop())))

    def expect(self, mbarrier: Slot, size: int) -> None:
        self.emit(ExpectBytes(mbarrier, size))

    def arrive(self, mbarrier: Slot, everywhere: bool = False) -> None:
        self.emit(Arrive(mbarrier, everywhere))

    def wait_at(self, mbarrier: Slot, parity: Rvalue) -> None:
        self.emit(WaitAt(mbarrier, parity))

    def copy_tensor(
        self, target: Pointer, source: TensorMap, at: Sequence[Rvalue], mbarrier: Slot, everywhere: bool = False
    ) -> None:
        self.emit(CopyTensor(target, source.name, tuple(at), mbarrier, everywhere))

    def warpgroup_dot(
        self, c: Sequence[Var], a: SharedMatrix | Sequence[Var], b: SharedMatrix, dtype: DType, fresh: bool = False
    ) -> None:
        self.emit(WarpgroupDot(tuple(c), a if isinstance(a, SharedMatrix) else tuple(a), b, dtype, fresh))

    def fence_products(self) -> None:
        self.emit(WarpgroupFence())

    def commit_products(self) -> None:
        self.emit(WarpgroupCommit())

    def wait_products(self, pending: int, sums: Sequence[Var] = ()) -> None:
        self.emit(WarpgroupWait(pending, tuple(sums)))

    def finish(self) -> tuple[Kernel, tuple[Size, ...]]:
        self.emit(Roles(tuple(self._mbarriers), tuple(self._parts)))
        kernel, params = super().finish()
        return replace(kernel, maps=tuple(self._maps), cluster=self._cluster), params
