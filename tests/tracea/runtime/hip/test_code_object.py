"""Reading what a code object says of its kernels: MessagePack by its document's own rules, notes of ELF files, and real ones."""

from __future__ import annotations

import struct

import pytest

from xyntra_ep.tracea.runtime.hip import code_object, compilers
from xyntra_ep.tracea.runtime.hip.code_object import _unpacked, refusal, reports

KERNEL = {
    ".name": "xy_f", ".vgpr_count": 70, ".agpr_count": 16, ".sgpr_count": 300, ".group_segment_fixed_size": 32768,
    ".private_segment_fixed_size": 0, ".vgpr_spill_count": 0,
}  # fmt: skip


def packed(value: object) -> bytes:
    """MessagePack, the shortest form of each."""
    match value:
        case None:
            return b"\xc0"
        case bool():
            return b"\xc3" if value else b"\xc2"
        case int() if 0 <= value < 128:
            return bytes([value])
        case int() if -32 <= value < 0:
            return bytes([256 + value])
        case int() if value < 0:
            return b"\xd1" + struct.pack(">h", value)
        case int():
            return (b"\xcd" + struct.pack(">H", value)) if value < 1 << 16 else (b"\xce" + struct.pack(">I", value))
        case str():
            data = value.encode()
            return (bytes([0xA0 | len(data)]) if len(data) < 32 else b"\xd9" + bytes([len(data)])) + data
        case list():
            head = bytes([0x90 | len(value)]) if len(value) < 16 else b"\xdc" + struct.pack(">H", len(value))
            return head + b"".join(map(packed, value))
        case dict():
            head = bytes([0x80 | len(value)]) if len(value) < 16 else b"\xde" + struct.pack(">H", len(value))
            return head + b"".join(packed(k) + packed(v) for k, v in value.items())
    raise AssertionError(value)


def code(metadata: object, *, machine: int = 224, kind: int = 32) -> bytes:
    """An ELF file with one note."""
    content = packed(metadata)
    content += b"\0" * (-len(content) % 4)
    note = struct.pack("<III", 7, len(packed(metadata)), kind) + b"AMDGPU\0\0" + content
    head = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHIQQQIHHH", 3, machine, 1, 0, 64, 0, 0, 64, 56, 1) + bytes(6)
    return head + struct.pack("<IIQQQQQQ", 4, 4, 64 + 56, 0, 0, len(note), len(note), 4) + note


def test_numbers_texts_lists_and_maps() -> None:
    for value in (0, 127, 128, 65535, 70000, -1, -32, -300, "", "x" * 31, "y" * 200, None, True, False, [], list(range(20))):
        assert _unpacked(packed(value)) == value
    large = {f"key{i}": {"a": [i, -i, str(i)]} for i in range(40)}
    assert _unpacked(packed(large)) == large
    assert _unpacked(b"\xcb" + struct.pack(">d", 0.1)) == 0.1 and _unpacked(b"\xc4\x02ab") == b"ab"
    with pytest.raises(ValueError, match="of a kind that is not known: 0xc1"):
        _unpacked(b"\xc1")


def test_kernels() -> None:
    found = reports(code({"amdhsa.version": [1, 2], "amdhsa.kernels": [KERNEL, {**KERNEL, ".name": "xy_g", ".vgpr_count": 9}]}))
    assert list(found) == ["xy_f", "xy_g"] and found["xy_g"].registers == 9
    report = found["xy_f"]
    assert (report.registers, report.accumulators, report.scalars, report.shared_bytes) == (70, 16, 300, 32768)
    without = {name: value for name, value in KERNEL.items() if name != ".agpr_count"}
    assert reports(code({"amdhsa.kernels": [without]}))["xy_f"].accumulators == 0


def test_what_is_no_code_object() -> None:
    whole = code({"amdhsa.kernels": [KERNEL]})
    assert refusal(whole) == ""
    for data in (b"", b"\x7fELF", code({}, machine=62), b"MZ" + whole[2:]):
        assert refusal(data) == "no code object for AMD's GPUs"
        with pytest.raises(ValueError, match="no code object"):
            reports(data)
    with pytest.raises(ValueError, match="says nothing of its kernels"):
        reports(code({}, kind=1))
    for end in range(64, len(whole) - 4):  # what fills the note up to words at most
        with pytest.raises((ValueError, KeyError)):
            reports(whole[:end])


@pytest.mark.compiler("hip")
def test_what_a_compiler_made() -> None:
    text = (
        'extern "C" __attribute__((global)) __attribute__((amdgpu_flat_work_group_size(64, 64))) void xy_f(float *y) '
        "{ __attribute__((shared)) float tile[64]; tile[__builtin_amdgcn_workitem_id_x()] = y[0]; "
        "__builtin_amdgcn_s_barrier(); y[1] = tile[(int)y[2]]; }"
    )
    made = code_object.reports(compilers.code_of("f", text, "gfx90a", compilers.find().clang))["xy_f"]
    assert made.shared_bytes == 256 and 0 < made.registers < 32 and made.scalars > 0 and not made.spilled_bytes
