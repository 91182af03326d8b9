"""A plan file as Python data: for tests and diagnostics."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from xyntra_ep.errors import XyntraError
from xyntra_ep.tracea.planning.manifest import MAGIC, NO_OFFSET, VERSION, KernelEntry, LogLevel, TensorEntry
from xyntra_ep.tracea.planning.plan import BufferKind
from xyntra_ep.tracea.planning.size_table import Row
from xyntra_ep.tracea.runtime.kernel_files import Hash128

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadBuffer:
    kind: BufferKind
    index: int
    size: int  # an expression
    first: int
    last: int
    literal: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadTensor:
    """Offset, extents and strides are indices of expressions."""

    buffer: int
    element_bytes: int
    offset: int
    extents: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadStep:
    """Sizes are indices of expressions; an offset of None is 0."""

    kernel: int
    label: str
    buffers: tuple[tuple[int, int | None], ...]
    params: tuple[int, ...]
    units: int
    cost_ns: int
    flops: int
    bytes: int
    tensors: tuple[ReadTensor, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLoop:
    """Sizes are indices of expressions."""

    first: int
    last: int
    images: int
    strides: tuple[tuple[int, int], ...]  # buffer, bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadAlternative:
    symbols: tuple[tuple[int, int, int], ...]  # kind, input, index
    sizes: tuple[Row, ...]
    guards: tuple[int, ...]
    checks: tuple[tuple[int, str], ...]
    output_shapes: tuple[tuple[int, ...], ...]
    buffers: tuple[ReadBuffer, ...]
    init: tuple[ReadStep, ...]
    run: tuple[ReadStep, ...]
    faults: tuple[tuple[int, str], ...]
    loops: tuple[ReadLoop, ...]
    waves: tuple[tuple[int, int], ...]  # first, last


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadIsland:
    name: str
    nodes: tuple[int, ...]
    inputs: tuple[TensorEntry, ...]
    outputs: tuple[TensorEntry, ...]
    constants: tuple[str, ...]
    alternatives: tuple[ReadAlternative, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadManifest:
    digest: str
    root: str
    device: str
    refusal: str
    may_move: bool
    log_level: LogLevel
    log_line: str
    report: str
    depends: tuple[tuple[str, bytes], ...]
    kernels: tuple[KernelEntry, ...]
    islands: tuple[ReadIsland, ...]


def read_manifest(data: bytes, hash128: Hash128 | None = None) -> ReadManifest:
    """The plan in ``data``. Raises XyntraError when it is not one; the checksum needs the hash function."""
    if hash128 is not None and hash128(data[:-16]) != data[-16:]:
        raise XyntraError("the checksum does not match", where="plan")
    read = Reader(data[:-16])
    try:
        if read.raw(4) != MAGIC or read.u32() != VERSION:
            raise XyntraError(f"is not a plan of version {VERSION}", where="plan")
        manifest = _manifest(read)
    except (struct.error, ValueError) as error:
        raise XyntraError(f"is cut short or damaged ({error})", where="plan") from error
    if read.at != len(read.data):
        raise XyntraError(f"has {len(read.data) - read.at} bytes too many", where="plan")
    return manifest


def read_island(data: bytes) -> ReadIsland:
    """The part of a plan file that is about one island."""
    return _island(Reader(data))


class Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def raw(self, n: int) -> bytes:
        if self.at + n > len(self.data):
            raise ValueError(f"{n} bytes wanted at {self.at} of {len(self.data)}")
        self.at += n
        return self.data[self.at - n : self.at]

    def unpack(self, layout: str) -> Any:
        return struct.unpack("<" + layout, self.raw(struct.calcsize("<" + layout)))

    def u8(self) -> int:
        return int(self.raw(1)[0])

    def u32(self) -> int:
        return int(self.unpack("I")[0])

    def bytes(self) -> bytes:
        return self.raw(self.u32())

    def text(self) -> str:
        return self.bytes().decode("utf-8")

    def list(self, item: Callable[[], Item]) -> tuple[Item, ...]:
        return tuple(item() for _ in range(self.u32()))

    def u32s(self) -> tuple[int, ...]:
        return self.list(self.u32)


def _manifest(read: Reader) -> ReadManifest:
    digest, root, device = read.text(), read.text(), read.text()
    verdict, message = read.u8(), read.text()
    return ReadManifest(
        digest=digest,
        root=root,
        device=device,
        refusal=message if verdict == 1 else "",
        may_move=verdict == 2,
        log_level=LogLevel(read.u8()),
        log_line=read.text(),
        report=read.text(),
        depends=read.list(lambda: (read.text(), read.raw(16))),
        kernels=read.list(lambda: _kernel(read)),
        islands=read.list(lambda: _island(read)),
    )


def _kernel(read: Reader) -> KernelEntry:
    path, symbol, digest = read.text(), read.text(), read.raw(16)
    return KernelEntry(
        path=path,
        symbol=symbol,
        hash128=digest,
        threads=read.u32(),
        shared_bytes=read.u32(),
        successor=read.text(),
        successor_symbol=read.text(),
    )


def _island(read: Reader) -> ReadIsland:
    def tensor() -> TensorEntry:
        name = read.text()
        elem_type, rank = read.unpack("ii")
        return TensorEntry(name=name, elem_type=elem_type, rank=rank)

    return ReadIsland(
        name=read.text(),
        nodes=read.list(lambda: int(read.unpack("Q")[0])),
        inputs=read.list(tensor),
        outputs=read.list(tensor),
        constants=read.list(read.text),
        alternatives=read.list(lambda: _alternative(read)),
    )


def _alternative(read: Reader) -> ReadAlternative:
    return ReadAlternative(
        symbols=read.list(lambda: read.unpack("BII")),
        sizes=read.list(lambda: read.unpack("Bqqq")),
        guards=read.u32s(),
        checks=read.list(lambda: (read.u32(), read.text())),
        output_shapes=read.list(read.u32s),
        buffers=read.list(lambda: _buffer(read)),
        init=read.list(lambda: _step(read)),
        run=read.list(lambda: _step(read)),
        faults=read.list(lambda: (read.u32(), read.text())),
        loops=read.list(lambda: _loop(read)),
        waves=read.list(lambda: read.unpack("II")),
    )


def _loop(read: Reader) -> ReadLoop:
    first, last, images = read.unpack("III")
    return ReadLoop(first=first, last=last, images=images, strides=read.list(lambda: read.unpack("II")))


def _buffer(read: Reader) -> ReadBuffer:
    kind, index, size, first, last = read.unpack("BIIII")
    literal = read.bytes() if kind == BufferKind.LITERAL else b""
    return ReadBuffer(kind=BufferKind(kind), index=index, size=size, first=first, last=last, literal=literal)


def _step(read: Reader) -> ReadStep:
    kernel, label = read.u32(), read.text()
    pairs = read.list(lambda: read.unpack("II"))
    params = read.u32s()
    units, cost_ns, flops, moved = read.unpack("IIII")
    return ReadStep(
        kernel=kernel,
        label=label,
        buffers=tuple((buffer, None if offset == NO_OFFSET else offset) for buffer, offset in pairs),
        params=params,
        units=units,
        cost_ns=cost_ns,
        flops=flops,
        bytes=moved,
        tensors=read.list(lambda: _tensor(read)),
    )


def _tensor(read: Reader) -> ReadTensor:
    buffer, element_bytes, offset = read.unpack("III")
    return ReadTensor(
        buffer=buffer,
        element_bytes=element_bytes,
        offset=offset,
        extents=read.u32s(),
        strides=read.u32s(),
        box=read.u32s(),
    )
