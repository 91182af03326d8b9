"""A compiled model as bytes, exactly as docs/compiled-models.md says: plans and kernels for several instruction sets. Native code
reads it (native/compiled/compiled_model.cc)."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass

from xyntra_ep.errors import XyntraError
from xyntra_ep.tracea.planning.manifest import VERSION as PLAN_VERSION
from xyntra_ep.tracea.planning.manifest import Writer
from xyntra_ep.tracea.planning.manifest_reader import Reader
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
    out = Writer()
    out.raw(MAGIC)
    out.u32(VERSION)
    out.text(model.release)
    out.u32(PLAN_VERSION)
    out.u32(len(model.targets))
    for target in model.targets:
        out.text(target.isa)
        out.u32(len(target.features))
        for feature in target.features:
            out.text(feature)
        out.bytes(target.plan)
    out.u32(len(model.tensors))
    for tensor in model.tensors:
        out.text(tensor.name)
        dims = () if tensor.shape is None else tuple(-1 if size is None else size for size in tensor.shape)
        out.raw(struct.pack("<iBi", tensor.elem_type, tensor.is_constant, -1 if tensor.shape is None else len(dims)))
        out.raw(struct.pack(f"<{len(dims)}q", *dims))
    out.u32(len(model.islands))
    for island in model.islands:
        out.u32s(island)
    out.u32(len(model.kernels))
    for name, kernel in model.kernels.items():
        out.hash(name)
        out.bytes(kernel)
    body = bytes(out.data)
    return body + hash128(body)


def read_compiled_model(data: bytes) -> CompiledModel:
    """For people and tests: native code checks what it executes by itself. Raises XyntraError for what is none."""
    read = Reader(data[:-_CHECKSUM_BYTES])
    try:
        if read.raw(4) != MAGIC or read.u32() != VERSION:
            raise XyntraError(f"is not of version {VERSION}", where="compiled model")
        release, plan_version = read.text(), read.u32()
        if plan_version != PLAN_VERSION:
            raise XyntraError(f"its plans are of version {plan_version}", where="compiled model")
        return CompiledModel(
            release=release,
            targets=read.list(lambda: CompiledTarget(isa=read.text(), features=read.list(read.text), plan=read.bytes())),
            tensors=read.list(lambda: _tensor(read)),
            islands=read.list(read.u32s),
            kernels=dict(read.list(lambda: (read.raw(_CHECKSUM_BYTES), read.bytes()))),
        )
    except (struct.error, ValueError) as error:
        raise XyntraError(f"is cut short or damaged ({error})", where="compiled model") from error


def _tensor(read: Reader) -> DeclaredTensor:
    name = read.text()
    elem_type, is_constant, rank = read.unpack("iBi")
    sizes = read.unpack(f"{rank}q") if rank > 0 else ()
    shape = None if rank < 0 else tuple(None if size < 0 else size for size in sizes)
    return DeclaredTensor(name=name, elem_type=elem_type, is_constant=bool(is_constant), shape=shape)
