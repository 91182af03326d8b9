"""A plan as bytes, exactly as docs/plan-format.md says. `manifest_reader.py` reads them back for tests and diagnostics."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum

from xyntra_ep.tracea.core_ir.dims import Size
from xyntra_ep.tracea.core_ir.ops import SymbolKind
from xyntra_ep.tracea.planning.plan import BufferKind, PlannedProgram, PlanStep
from xyntra_ep.tracea.planning.size_table import SizeTable
from xyntra_ep.tracea.runtime.kernel_files import Hash128

MAGIC = b"XYPL"
VERSION = 10
NO_OFFSET = 0xFFFFFFFF
_SYMBOL_KIND = {SymbolKind.DIM: 0, SymbolKind.ELEMENT: 1}


class LogLevel(IntEnum):
    """As in ONNX Runtime."""

    VERBOSE = 0
    INFO = 1
    WARNING = 2
    ERROR = 3
    FATAL = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorEntry:
    """An input or output of an island. ``rank`` -1: unknown (inputs only)."""

    name: str
    elem_type: int
    rank: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelEntry:
    """``path`` is relative to the plan's root, or absolute. ``hash128`` is over the file. ``threads`` and
    ``shared_bytes`` as in KernelSource. ``successor`` and ``successor_symbol``: the file and the name of a kernel that takes its
    place once it is there ("" = none)."""

    path: str
    symbol: str
    hash128: bytes
    threads: int = 0
    shared_bytes: int = 0
    successor: str = ""
    successor_symbol: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """One plan of an island. ``kernels[i]``: where kernel i of ``planned`` stands in the file's list."""

    planned: PlannedProgram
    kernels: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class IslandEntry:
    """``constants``: graph names, in the order that alternatives refer to by ``Program.constants`` names. ``data``: all of it as
    the file has it, where that was written already."""

    name: str
    nodes: tuple[int, ...]
    inputs: tuple[TensorEntry, ...]
    outputs: tuple[TensorEntry, ...]
    constants: tuple[str, ...]
    alternatives: tuple[Alternative, ...]
    data: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """A whole plan file. ``device``: the identity of the device that it is for ("" = the CPU). ``may_move``: where the device
    fails, the graph may be planned for the CPU instead.

    ``refusal``: the session is refused with INVALID_ARGUMENT and this message ("" = it is not)."""

    digest: str
    root: str
    device: str = ""
    refusal: str = ""
    may_move: bool = False
    log_level: LogLevel = LogLevel.VERBOSE
    log_line: str = ""
    report: str = ""
    depends: tuple[tuple[str, bytes], ...] = ()
    kernels: tuple[KernelEntry, ...] = ()
    islands: tuple[IslandEntry, ...] = ()


def write_manifest(manifest: Manifest, hash128: Hash128) -> bytes:
    """The plan file."""
    out = Writer()
    out.raw(MAGIC)
    out.u32(VERSION)
    out.text(manifest.digest)
    out.text(manifest.root)
    out.text(manifest.device)
    out.u8(1 if manifest.refusal else 2 if manifest.may_move else 0)
    out.text(manifest.refusal)
    out.u8(manifest.log_level)
    out.text(manifest.log_line)
    out.text(manifest.report)
    out.u32(len(manifest.depends))
    for name, digest in manifest.depends:
        out.text(name)
        out.hash(digest)
    out.u32(len(manifest.kernels))
    for kernel in manifest.kernels:
        out.text(kernel.path)
        out.text(kernel.symbol)
        out.hash(kernel.hash128)
        out.u32(kernel.threads)
        out.u32(kernel.shared_bytes)
        out.text(kernel.successor)
        out.text(kernel.successor_symbol)
    out.u32(len(manifest.islands))
    for island in manifest.islands:
        out.raw(island.data or write_island(island))
    body = bytes(out.data)
    return body + hash128(body)


class Writer:
    """Little-endian, unaligned."""

    __slots__ = ("data",)

    def __init__(self) -> None:
        self.data = bytearray()

    def raw(self, data: bytes) -> None:
        self.data += data

    def hash(self, data: bytes) -> None:
        assert len(data) == 16, "a hash has 16 bytes"
        self.data += data

    def u8(self, value: int) -> None:
        self.data.append(value)

    def u32(self, value: int) -> None:
        self.data += struct.pack("<I", value)

    def u32s(self, values: Sequence[int]) -> None:
        self.data += struct.pack(f"<I{len(values)}I", len(values), *values)

    def bytes(self, data: bytes) -> None:
        self.u32(len(data))
        self.data += data

    def text(self, text: str) -> None:
        self.bytes(text.encode("utf-8"))


def write_island(island: IslandEntry) -> bytes:
    """The part of the plan file that is about one island."""
    out = Writer()
    out.text(island.name)
    out.raw(struct.pack(f"<I{len(island.nodes)}Q", len(island.nodes), *island.nodes))
    for tensors in (island.inputs, island.outputs):
        out.u32(len(tensors))
        for tensor in tensors:
            out.text(tensor.name)
            out.raw(struct.pack("<ii", tensor.elem_type, tensor.rank))
    out.u32(len(island.constants))
    for constant in island.constants:
        out.text(constant)
    out.u32(len(island.alternatives))
    for alternative in island.alternatives:
        _alternative(out, alternative, island.constants)
    return bytes(out.data)


def _alternative(out: Writer, alternative: Alternative, constants: Sequence[str]) -> None:
    planned = alternative.planned
    program = planned.program
    sizes = SizeTable([b.name for b in program.bindings], program.definitions)
    rest = Writer()  # what refers to sizes comes before it is known how many there are, and after them in the file
    rest.u32s([sizes.add(g) for g in program.guards])
    rest.u32(len(program.checks))
    for check, message in program.checks:
        rest.u32(sizes.add(check))
        rest.text(message)
    rest.u32(len(planned.output_shapes))
    for shape in planned.output_shapes:
        rest.u32s([sizes.add(size) for size in shape])
    rest.u32(len(planned.buffers))
    for buffer in planned.buffers:
        index = buffer.index
        if buffer.kind is BufferKind.CONSTANT:
            index = constants.index(program.constants[index])
        sized = buffer.kind in (BufferKind.POOL, BufferKind.ARENA, BufferKind.INIT)
        size = sizes.add(buffer.size_bytes) if sized else 0
        rest.raw(struct.pack("<BIIII", buffer.kind, index, size, buffer.first, buffer.last))
        if buffer.kind is BufferKind.LITERAL:
            rest.bytes(buffer.literal)
    for steps in (planned.init, planned.run):
        rest.u32(len(steps))
        for step in steps:
            _step(rest, step, alternative.kernels, sizes)
    rest.u32(len(planned.faults))
    for buffer_index, message in planned.faults:
        rest.u32(buffer_index)
        rest.text(message)
    rest.u32(len(planned.loops))
    for loop in planned.loops:
        rest.raw(struct.pack("<IIII", loop.first, loop.last, sizes.add(loop.images), len(loop.strides_bytes)))
        for stepped, stride in loop.strides_bytes:
            rest.raw(struct.pack("<II", stepped, sizes.add(stride)))
    rest.u32(len(planned.waves))
    for wave in planned.waves:
        rest.raw(struct.pack("<II", wave.first, wave.last))
    out.u32(len(program.bindings))
    for b in program.bindings:
        out.raw(struct.pack("<BII", _SYMBOL_KIND[b.kind], b.input, b.index))
    out.u32(len(sizes.rows))
    for row in sizes.rows:
        out.raw(struct.pack("<Bqqq", *row))
    out.raw(bytes(rest.data))


def _step(out: Writer, step: PlanStep, kernels: Sequence[int], sizes: SizeTable) -> None:
    out.u32(kernels[step.kernel])
    out.text(step.label)
    out.u32(len(step.buffers))
    for use in step.buffers:
        out.raw(struct.pack("<II", use.buffer, _offset(use.offset_bytes, sizes)))
    out.u32s([sizes.add(p) for p in step.params])
    counts = (step.units, step.cost_ns, step.work.flops, step.work.bytes)
    out.raw(struct.pack("<IIII", *map(sizes.add, counts)))
    out.u32(len(step.tensors))
    for tensor in step.tensors:
        view = tensor.view
        out.raw(struct.pack("<III", view.buffer, tensor.dtype.bytes, sizes.add(view.offset_bytes)))
        out.u32s([sizes.add(size) for size in view.extents])
        out.u32s([sizes.add(size) for size in view.strides_bytes])
        out.u32s(tensor.box)


def _offset(size: Size, sizes: SizeTable) -> int:
    return NO_OFFSET if size == 0 else sizes.add(size)


def merge_constants(programs: Iterable[PlannedProgram]) -> tuple[str, ...]:
    """The constants that an island's alternatives read, each once."""
    names: dict[str, None] = {}
    for planned in programs:
        for buffer in planned.buffers:
            if buffer.kind is BufferKind.CONSTANT:
                names[planned.program.constants[buffer.index]] = None
    return tuple(names)
