"""What the code of kernels for AMD's GPUs says of itself: registers, LDS and scratch memory of each kernel.

A code object is an ELF file with a note "AMDGPU" of type 32, whose content is a map in MessagePack (LLVM, "User Guide for AMDGPU
Backend", "Code Object V3 and Above Metadata"). The key `amdhsa.kernels` has a map for each kernel.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import Any

from xyntra_ep.tracea.runtime.kernel_report import KernelReport

_ELF64 = b"\x7fELF\x02\x01"  # of 64 bits, the least byte first
_MACHINE = 224  # EM_AMDGPU
_NOTES = 4  # PT_NOTE
_METADATA = 32  # NT_AMDGPU_METADATA


def refusal(data: bytes) -> str:
    """What it is instead of a code object; empty for one."""
    if not data.startswith(_ELF64) or len(data) < 64 or struct.unpack_from("<H", data, 18)[0] != _MACHINE:
        return "no code object for AMD's GPUs"
    return ""


def reports(data: bytes) -> dict[str, KernelReport]:
    """Of its kernels, by symbol. Raises ValueError for what is no code object, or has no such note."""
    if why := refusal(data):
        raise ValueError(why)
    for name, kind, content in _notes(data):
        if name == b"AMDGPU" and kind == _METADATA:
            kernels = _unpacked(content)["amdhsa.kernels"]
            return {str(kernel[".name"]): _report(kernel) for kernel in kernels}
    raise ValueError("a code object that says nothing of its kernels")


def _report(kernel: Mapping[str, Any]) -> KernelReport:
    """Registers are those of vectors, with the accumulators where both are of one file."""
    return KernelReport(
        registers=kernel[".vgpr_count"],
        shared_bytes=kernel[".group_segment_fixed_size"],
        spilled_bytes=kernel[".private_segment_fixed_size"],
        accumulators=kernel.get(".agpr_count", 0),
        scalars=kernel[".sgpr_count"],
        spilled_registers=kernel[".vgpr_spill_count"],
    )


def _notes(data: bytes) -> Iterator[tuple[bytes, int, bytes]]:
    """(name, type, content) of each note of the file's program headers."""
    try:
        first, size, count = (
            *struct.unpack_from("<Q", data, 32),
            *struct.unpack_from("<H", data, 54),
            *struct.unpack_from("<H", data, 56),
        )
        for header in range(first, first + size * count, size):
            kind, _, at, _, _, length = struct.unpack_from("<IIQQQQ", data, header)
            end = at + length
            while kind == _NOTES and at < end:
                name_bytes, content_bytes, note = struct.unpack_from("<III", data, at)
                name = data[at + 12 : at + 12 + name_bytes].rstrip(b"\0")
                at += 12 + _words(name_bytes)
                yield name, note, data[at : at + content_bytes]
                at += _words(content_bytes)
    except struct.error as error:
        raise ValueError("a code object that is cut off") from error


def _words(size: int) -> int:
    return (size + 3) // 4 * 4


def _unpacked(content: bytes) -> Any:
    """The value that MessagePack bytes stand for (github.com/msgpack/msgpack, spec.md), as far as metadata has such.

    >>> _unpacked(bytes([0x82, 0xA1, 0x61, 0xCD, 1, 2, 0xA1, 0x62, 0x92, 0xC3, 5]))
    {'a': 258, 'b': [True, 5]}
    """
    try:
        return _value(content, 0)[0]
    except (IndexError, struct.error) as error:
        raise ValueError("metadata that is cut off") from error


_FIXED: Mapping[int, tuple[str, int]] = {  # numbers by their first byte: as struct knows them, and their size
    0xCA: (">f", 4), 0xCB: (">d", 8), 0xCC: (">B", 1), 0xCD: (">H", 2), 0xCE: (">I", 4), 0xCF: (">Q", 8),
    0xD0: (">b", 1), 0xD1: (">h", 2), 0xD2: (">i", 4), 0xD3: (">q", 8),
}  # fmt: skip
_LENGTHS: Mapping[int, tuple[str, str, int]] = {  # what has a length: of what, as struct knows the length, its size
    0xC4: ("bytes", ">B", 1), 0xC5: ("bytes", ">H", 2), 0xC6: ("bytes", ">I", 4),
    0xD9: ("text", ">B", 1), 0xDA: ("text", ">H", 2), 0xDB: ("text", ">I", 4),
    0xDC: ("list", ">H", 2), 0xDD: ("list", ">I", 4), 0xDE: ("map", ">H", 2), 0xDF: ("map", ">I", 4),
}  # fmt: skip
_CONSTANTS: Mapping[int, bool | None] = {0xC0: None, 0xC2: False, 0xC3: True}


def _value(content: bytes, at: int) -> tuple[Any, int]:
    """A value, and where the next one begins."""
    head, at = content[at], at + 1
    if head < 0x80:
        return head, at
    if head >= 0xE0:
        return head - 256, at
    if head < 0xC0:
        kind, length = ("map", head & 15) if head < 0x90 else ("list", head & 15) if head < 0xA0 else ("text", head & 31)
    elif head in _CONSTANTS:
        return _CONSTANTS[head], at
    elif head in _FIXED:
        form, size = _FIXED[head]
        return struct.unpack_from(form, content, at)[0], at + size
    elif head in _LENGTHS:
        kind, form, size = _LENGTHS[head]
        length, at = struct.unpack_from(form, content, at)[0], at + size
    else:
        raise ValueError(f"metadata of a kind that is not known: {head:#x}")
    if kind in ("text", "bytes"):
        found = content[at : at + length]
        if len(found) < length:
            raise ValueError("metadata that is cut off")
        return (found.decode() if kind == "text" else found), at + length
    items = []
    for _ in range(length if kind == "list" else 2 * length):
        item, at = _value(content, at)
        items.append(item)
    return (items if kind == "list" else dict(zip(items[::2], items[1::2], strict=True))), at
