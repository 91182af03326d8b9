"""A compiled model as bytes, exactly as docs/compiled-models.md says: plans and kernels for several instruction sets. Native code
reads it (native/compiled/compiled_model.cc)."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xyntra_ep.errors import XyntraError
from xyntra_ep.tracea.planning.manifest import VERSION as PLAN_VERSION
from xyntra_ep.tracea.runtime.kernel_files import Hash128

MAGIC = b"XYCM"
VERSION = 1
_CHECKSUM_BYTES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledTarget:
    """``features``: words of /proc/cpuinfo that the kernels of ``plan`` need."""

    isa: str
    features: tuple[str, ...]
    plan: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredTensor:
    """What a model says of a tensor that plans were made for. ``shape``: None where they do not rely on one, and None for each
    size that they do not rely on."""

    name: str
    elem_type: int
    is_constant: bool
    shape: tuple[int | None, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledModel:
    """``targets``: the best first. ``islands``: what the node of each reads, as positions in ``tensors``. ``kernels``: files by
    their hash."""

    release: str
    targets: tuple[CompiledTarget, ...]
    tensors: tuple[DeclaredTensor, ...]
    islands: tuple[tuple[int, ...], ...]
    kernels: Mapping[bytes, bytes]


def write_compiled_model(model: CompiledModel, hash128: Hash128) -> bytes:
    """The bytes that an EPContext node, or a file beside the model, holds."""
    out = bytearray(MAGIC + struct.pack("<I", VERSION))

    def text(data: bytes) -> None:
        out.extend(struct.pack("<I", len(data)) + data)

    def count(items: Sequence[object] | Mapping[bytes, bytes]) -> None:
        out.extend(struct.pack("<I", len(items)))

    text(model.release.encode())
    out += struct.pack("<I", PLAN_VERSION)
    count(model.targets)
    for target in model.targets:
        text(target.isa.encode())
        count(target.features)
        for feature in target.features:
            text(feature.encode())
        text(target.plan)
    count(model.tensors)
    for tensor in model.tensors:
        text(tensor.name.encode())
        dims = () if tensor.shape is None else tuple(-1 if size is None else size for size in tensor.shape)
        out += struct.pack("<iBi", tensor.elem_type, tensor.is_constant, -1 if tensor.shape is None else len(dims))
        out += struct.pack(f"<{len(dims)}q", *dims)
    count(model.islands)
    for island in model.islands:
        count(island)
        out += struct.pack(f"<{len(island)}I", *island)
    count(model.kernels)
    for hash_, kernel in model.kernels.items():
        assert len(hash_) == _CHECKSUM_BYTES, "a hash has 16 bytes"
        out += hash_
        text(kernel)
    return bytes(out) + hash128(bytes(out))


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, n: int) -> bytes:
        if self.at + n > len(self.data):
            raise XyntraError("the compiled model is cut short")
        self.at += n
        return self.data[self.at - n : self.at]

    def number(self, form: str = "I") -> int:
        return int(struct.unpack(f"<{form}", self.take(struct.calcsize(f"<{form}")))[0])

    def text(self) -> bytes:
        return self.take(self.number())


def read_compiled_model(data: bytes) -> CompiledModel:
    """For people and tests: native code checks what it executes by itself. Raises XyntraError for what is none."""
    reader = _Reader(data[:-_CHECKSUM_BYTES])
    if reader.take(4) != MAGIC or reader.number() != VERSION:
        raise XyntraError("this is no compiled model of this release")
    release = reader.text().decode()
    reader.number()
    targets = []
    for _ in range(reader.number()):
        isa = reader.text().decode()
        features = tuple(reader.text().decode() for _ in range(reader.number()))
        targets.append(CompiledTarget(isa=isa, features=features, plan=reader.text()))
    tensors = []
    for _ in range(reader.number()):
        name, elem_type = reader.text().decode(), reader.number("i")
        is_constant, rank = bool(reader.number("B")), reader.number("i")
        sizes = [reader.number("q") for _ in range(rank)]
        shape = None if rank < 0 else tuple(None if size < 0 else size for size in sizes)
        tensors.append(DeclaredTensor(name=name, elem_type=elem_type, is_constant=is_constant, shape=shape))
    islands = tuple(tuple(reader.number() for _ in range(reader.number())) for _ in range(reader.number()))
    kernels = {reader.take(_CHECKSUM_BYTES): reader.text() for _ in range(reader.number())}
    return CompiledModel(release=release, targets=tuple(targets), tensors=tuple(tensors), islands=islands, kernels=kernels)
