"""The end of a kernel that has neighbours of a row in one thread: through the epilogue to memory, in packets where those lie
whole and aligned."""

from __future__ import annotations

from collections.abc import Sequence

from xyntra_ep.tracea.core_ir.dims import Size
from xyntra_ep.tracea.core_ir.expr import walk
from xyntra_ep.tracea.core_ir.ops import Operand
from xyntra_ep.tracea.kernels.gpu.shared.packets import is_multiple
from xyntra_ep.tracea.kernels.shared.affine import CONSTANT, Affine, add_affine, affine
from xyntra_ep.tracea.kernels.shared.epilogue import Epilogue, Group, Here
from xyntra_ep.tracea.semantic_ir.gpu.builder import GpuBuilder
from xyntra_ep.tracea.semantic_ir.gpu.nodes import PACKET_BYTES
from xyntra_ep.tracea.semantic_ir.nodes import Pointer, Rvalue


class PacketEnd:
    """``groups``: the axes of ``output`` that are counted together, one index each; neighbours are along number ``column``, which
    has ``extent`` of them. ``width``: how many are stored at once, ``packet`` or 1; the first of them at a multiple of it."""

    def __init__(
        self,
        b: GpuBuilder,
        epilogue: Epilogue,
        output: Operand,
        target: Pointer,
        groups: Sequence[Group],
        column: int,
        extent: Size,
        packet: int,
    ) -> None:
        self._b, self._epilogue, self._output, self._target = b, epilogue, output, target
        self._groups, self._column, self._packet = groups, column, packet
        self.width = packet if is_multiple(extent, packet) and self._in_packets(_form_of(output)) else 1

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
            self._b.store_packet(self._target, self._address(_form_of(self._output), places[0]), values)

    def _read_packets(self, here: Here, places: Sequence[Sequence[Rvalue]]) -> None:
        """What the epilogue loads at neighbouring points, together where it lies so."""
        for e in walk(self._epilogue.root):
            form = self._form(self._epilogue.inputs[e.attr], [affine(a) for a in e.args]) if e.kind == "load" else None
            if form is not None and self._epilogue.is_inside(e) and self._in_packets(form):
                pointer: Pointer = self._epilogue.pointers[e.attr]
                most = min(len(places), PACKET_BYTES // self._epilogue.inputs[e.attr].dtype.bytes)
                for part in (places[i : i + most] for i in range(0, len(places), most)):
                    values = self._b.load_packet("x", pointer, self._address(form, part[0]), most)
                    for place, value in zip(part, values, strict=True):
                        here.know(e, place, value)

    def _form(self, operand: Operand, arguments: Sequence[Affine | None]) -> Affine | None:
        form: Affine = {CONSTANT: operand.offset}
        for part, stride in zip(arguments, operand.strides, strict=True):
            if part is None:
                return None
            add_affine(form, part, stride)
        return form

    def _in_packets(self, form: Affine) -> bool:
        """Whether an address steps by one from column to column, and by whole packets wherever else it steps."""
        steps = [group.merged(form) for group in self._groups]
        others = [s for i, s in enumerate(steps) if i != self._column]
        if steps[self._column] != 1 or any(s is None for s in others):
            return False
        return all(is_multiple(s, self._packet) for s in (form.get(CONSTANT, 0), *others) if s is not None)

    def _address(self, form: Affine, place: Sequence[Rvalue]) -> Rvalue:
        b, address = self._b, self._b.param(form.get(CONSTANT, 0))
        for group, at in zip(self._groups, place, strict=True):
            step = group.merged(form)
            assert step is not None, "in packets"
            address = address + at * b.param(step)
        return b.let("from", address)


def _form_of(output: Operand) -> Affine:
    """Where the output's elements are, by the axes of its domain."""
    return {CONSTANT: output.offset, **dict(enumerate(output.strides))}
