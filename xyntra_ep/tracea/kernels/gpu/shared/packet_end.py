"""The end of a kernel that has neighbours of a row in one thread: through the epilogue to memory, in packets where those lie
whole and aligned."""

from __future__ import annotations

from collections.abc import Sequence

from xyntra_ep.tracea.core_ir.dims import Size
from xyntra_ep.tracea.core_ir.ops import Operand
from xyntra_ep.tracea.kernels.gpu.shared.packets import is_aligned, is_multiple
from xyntra_ep.tracea.kernels.shared.epilogue import Epilogue, Here
from xyntra_ep.tracea.kernels.shared.index import Lane
from xyntra_ep.tracea.semantic_ir.gpu.builder import GpuBuilder
from xyntra_ep.tracea.semantic_ir.gpu.nodes import PACKET_BYTES
from xyntra_ep.tracea.semantic_ir.nodes import Pointer, Rvalue


class PacketEnd:
    """Neighbours are along the lane group of the epilogue, which has ``extent`` of them. ``width``: how many are stored at once,
    ``packet`` or 1; the first of them at a multiple of it."""

    def __init__(
        self,
        b: GpuBuilder,
        epilogue: Epilogue,
        output: Operand,
        target: Pointer,
        extent: Size,
        packet: int,
    ) -> None:
        self._b, self._epilogue, self._output, self._target = b, epilogue, output, target
        self._packet = packet
        self._place = epilogue.target(output, target)
        self.width = packet if is_multiple(extent, packet) and self._in_packets(self._place) else 1

    def here(self) -> Here:
        """A place to compute from, under conditions of its own."""
        return self._epilogue.at(self._b)

    def put(self, here: Here, places: Sequence[Sequence[Rvalue]], totals: Sequence[Rvalue]) -> None:
        """Results at neighbouring places, each an index for every group: one, or ``width``."""
        if len(places) > 1:
            self._read_packets(here, places)
        values = [here.value(place, total, 1) for place, total in zip(places, totals, strict=True)]
        if len(places) == 1:
            here.store(self._output, self._target, places[0], values[0])
        else:
            self._b.store_packet(self._target, self._b.let("from", here.address(self._place, places[0])), values)

    def _read_packets(self, here: Here, places: Sequence[Sequence[Rvalue]]) -> None:
        """What the epilogue loads at neighbouring points, together where it lies so."""
        for k in self._epilogue.reads:
            access = self._epilogue.nest.table.accesses[k]
            if access.count is None and self._in_packets(k):
                most = min(len(places), PACKET_BYTES // access.dtype.bytes)
                for part in (places[i : i + most] for i in range(0, len(places), most)):
                    values = self._b.load_packet("x", access.pointer, self._b.let("from", here.address(k, part[0])), most)
                    for place, value in zip(part, values, strict=True):
                        here.know(k, place, value)

    def _in_packets(self, k: int) -> bool:
        """Whether the access steps by one from column to column, and by whole packets wherever else it steps."""
        nest = self._epilogue.nest
        assert nest.lane_axis is not None
        return nest.address(k).mode is Lane.VECTOR and is_aligned(nest.table.accesses[k], nest.lane_axis, self._packet)
