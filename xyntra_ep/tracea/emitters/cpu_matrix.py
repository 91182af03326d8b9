"""How the CPU target spells products of bfloat16: by instruction where the machine has it, else in plain vectors.

The instructions are inline assembly: their builtins differ between compilers and versions, their names in an assembler do not,
and assemblers know them without being told a target. No compiler keeps values in tile registers of its own accord, so numbers
written here stay out of its way; being volatile keeps tile instructions in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from xyntra_ep.tracea.semantic_ir.nodes import Type, f32, i32

PAIR_HELPERS = frozenset({"pair_dot", "pack_pairs", "round_pairs", "load_pairs", "load_pairs_n", "store_pairs", "store_pairs_n"})
# What a loader looks for: the kernel needs the operating system's permission to use tiles. Without a value, and the type as a
# typedef, because kernels that are compiled together each declare them.
NEEDS_TILES = "xy_needs_tiles"
# Weak: kernels that are linked together all have it.
NEEDS_TILES_TEXT = f'__attribute__((visibility("default"), weak)) char {NEEDS_TILES};'
TILES_TYPE = (
    "typedef struct { unsigned char palette, start_row, reserved[14]; unsigned short row_bytes[16]; unsigned char rows[16]; } "
    "xy_tiles;"
)
MASK16 = "unsigned short k = n >= 16 ? 65535 : n <= 0 ? 0 : (unsigned short)((1u << n) - 1);"


class Names(Protocol):
    """What of the target is needed here."""

    def type(self, kind: Type) -> str: ...
    def helper(self, name: str, kind: Type) -> str: ...
    def pair_vector(self, lanes: int) -> str:
        """Pairs as they lie in memory, at any even address."""
        ...

    def narrow_bf16(self) -> str: ...


def pair_helper(names: Names, name: str, full: str, kind: Type, instructions: bool, masks: bool) -> str:
    """The definition of a helper. ``instructions``: vectors of 16 have AVX512_BF16; ``masks``: and masked loads and stores."""
    n, pairs, values = kind.lanes, names.type(i32(kind.lanes)), names.type(f32(kind.lanes))
    fast, masked = instructions and n == 16, masks and n == 16
    match name:
        case "pair_dot":
            return f"{values} {full}({pairs} a, {pairs} b, {values} c) {{ {_dot(names, n, fast)} }}"
        case "round_pairs":
            nan = f"{pairs} nan = ({pairs})(v != v);"
            rounded = "(((b + 0x7fff + ((b >> 16) & 1)) & ~nan) | ((b | 0x400000) & nan)) & -65536"
            return f"{pairs} {full}({values} v) {{ {pairs} b = ({pairs})v; {nan} return {rounded}; }}"
        case "pack_pairs":
            return f"{pairs} {full}({values} low, {values} high) {{ {_pack(names, n, fast)} }}"
        case "load_pairs":
            return f"{pairs} {full}(const unsigned short *p) {{ return *(const {names.pair_vector(n)} *)p; }}"
        case "load_pairs_n":
            return f"{pairs} {full}(const unsigned short *p, i64 n) {{ {_load_n(names, n, masked)} }}"
        case "store_pairs":
            return f"void {full}(unsigned short *p, {pairs} v) {{ *({names.pair_vector(n)} *)p = v; }}"
        case "store_pairs_n":
            return f"void {full}(unsigned short *p, {pairs} v, i64 n) {{ {_store_n(names, n, masked)} }}"
        case _:
            raise AssertionError(f"no helper {name}")


def _dot(names: Names, lanes: int, fast: bool) -> str:
    if fast:
        return '__asm__("vdpbf16ps %2, %1, %0" : "+v"(c) : "v"(a), "v"(b)); return c;'
    if lanes == 1:
        bits = names.helper("bits", f32(1))
        low, high = (f"{bits}({{0}} << 16)", f"{bits}({{0}} & -65536)")
    else:
        values = names.type(f32(lanes))
        low, high = (f"({values})({{0}} << 16)", f"({values})({{0}} & -65536)")
    lows, highs = ((part.format("a"), part.format("b")) for part in (low, high))
    return f"return {lows[0]} * {lows[1]} + ({highs[0]} * {highs[1]} + c);"


def _pack(names: Names, lanes: int, fast: bool) -> str:
    if fast:
        order = ", ".join(f"{i}, {i + 16}" for i in range(16))
        return (
            "typedef short words __attribute__((vector_size(64))); words w; "
            '__asm__("vcvtne2ps2bf16 %1, %2, %0" : "=v"(w) : "v"(low), "v"(high)); '
            f"return ({names.type(i32(16))})__builtin_shufflevector(w, w, {order});"
        )
    if lanes == 1:
        narrow = names.narrow_bf16()
        return f"return (int)({narrow}(low) | (unsigned){narrow}(high) << 16);"
    rounded = names.helper("round_pairs", i32(lanes))
    return f"return (({rounded}(low) >> 16) & 0xffff) | {rounded}(high);"


def _load_n(names: Names, lanes: int, masked: bool) -> str:
    one = names.pair_vector(1)
    if lanes == 1:
        return f"return n > 0 ? *(const {one} *)p : 0;"
    pairs = names.type(i32(lanes))
    if masked:
        return f"{MASK16} return ({pairs})__builtin_ia32_loaddqusi512_mask((const int *)p, ({pairs}){{0}}, k);"
    each = f"for (int l = 0; l < {lanes}; l++) if (l < n) r[l] = *(const {one} *)(p + 2 * l);"
    return f"{pairs} r = ({pairs}){{0}}; {each} return r;"


def _store_n(names: Names, lanes: int, masked: bool) -> str:
    one = names.pair_vector(1)
    if lanes == 1:
        return f"if (n > 0) *({one} *)p = v;"
    if masked:
        return f"{MASK16} __builtin_ia32_storedqusi512_mask((int *)p, v, k);"
    return f"for (int l = 0; l < {lanes}; l++) if (l < n) *({one} *)(p + 2 * l) = v[l];"


def tile_configure(shapes: Sequence[tuple[str, str]]) -> str:
    """``shapes``: text of (rows, bytes of a row) of each register."""
    parts = ["xy_tiles t __attribute__((aligned(64))) = {1};"]
    for i, (rows, row_bytes) in enumerate(shapes):
        parts.append(f"t.rows[{i}] = (unsigned char)({rows}); t.row_bytes[{i}] = (unsigned short)({row_bytes});")
    parts.append('__asm__ volatile("ldtilecfg %0" :: "m"(t));')
    return f"{{ {' '.join(parts)} }}"


def tile_operation(name: str, registers: Sequence[int], address: str, stride_bytes: str) -> str:
    """One tile instruction; memory operands by text."""
    tmm = ", ".join(f"%%tmm{r}" for r in registers)
    if not address:
        return f'__asm__ volatile("{name} {tmm}" ::);' if tmm else f'__asm__ volatile("{name}" ::);'
    operands = f'"r"({address}), "r"((i64)({stride_bytes})) : "memory"'
    text = f"{name} {tmm}, (%0,%1,1)" if name == "tilestored" else f"{name} (%0,%1,1), {tmm}"
    return f'__asm__ volatile("{text}" :: {operands});'
