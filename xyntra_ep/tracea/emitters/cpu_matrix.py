"""How the CPU target spells products of narrow types: by instruction where the machine has it, else in plain vectors.

The instructions are inline assembly: their builtins differ between compilers and versions, their names in an assembler do not,
and assemblers know them without being told a target. No compiler keeps values in tile registers of its own accord, so numbers
written here stay out of its way; being volatile keeps tile instructions in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.semantic_ir.capabilities import Isa
from xyntra_ep.tracea.semantic_ir.nodes import Type, f32, i32

PAIR_HELPERS = frozenset({"pair_dot", "pack_pairs", "round_pairs"})
INTEGER_HELPERS = frozenset({"short_dot", "quad_dot", "clamped_quad_dot"})
WORD_HELPERS = frozenset({"load_words", "load_words_n", "store_words", "store_words_n"})
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
    def storage(self, dtype: DType) -> str: ...
    def word_vector(self, lanes: int, dtype: DType) -> str:
        """Words as they lie in memory, wherever an element may begin."""
        ...

    def narrow_bf16(self) -> str: ...


def pair_helper(names: Names, name: str, full: str, kind: Type, instructions: bool) -> str:
    """The definition of a helper for bfloat16. ``instructions``: vectors of 16 have AVX512_BF16."""
    n, pairs, values = kind.lanes, names.type(i32(kind.lanes)), names.type(f32(kind.lanes))
    fast = instructions and n == 16
    match name:
        case "pair_dot":
            return f"{values} {full}({pairs} a, {pairs} b, {values} c) {{ {_dot(names, n, fast)} }}"
        case "round_pairs":
            nan = f"{pairs} nan = ({pairs})(v != v);"
            rounded = "(((b + 0x7fff + ((b >> 16) & 1)) & ~nan) | ((b | 0x400000) & nan)) & -65536"
            return f"{pairs} {full}({values} v) {{ {pairs} b = ({pairs})v; {nan} return {rounded}; }}"
        case "pack_pairs":
            return f"{pairs} {full}({values} low, {values} high) {{ {_pack(names, n, fast)} }}"
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


def word_helper(names: Names, name: str, full: str, kind: Type, dtype: DType, masks: bool) -> str:
    """The definition of a load or a store of words. ``masks``: vectors of 16 have masked ones."""
    n, words, element = kind.lanes, names.type(i32(kind.lanes)), names.storage(dtype)
    match name:
        case "load_words":
            return f"{words} {full}(const {element} *p) {{ return *(const {names.word_vector(n, dtype)} *)p; }}"
        case "load_words_n":
            return f"{words} {full}(const {element} *p, i64 n) {{ {_load_n(names, n, dtype, masks and n == 16)} }}"
        case "store_words":
            return f"void {full}({element} *p, {words} v) {{ *({names.word_vector(n, dtype)} *)p = v; }}"
        case _:
            return f"void {full}({element} *p, {words} v, i64 n) {{ {_store_n(names, n, dtype, masks and n == 16)} }}"


def integer_dot(names: Names, name: str, full: str, kind: Type, isa: Isa, vnni: bool) -> str:
    """The definition of a product of words of integers. ``vnni``: see `Capabilities`."""
    n, words = kind.lanes, names.type(kind)
    signature = f"{words} {full}({words} a, {words} b, {words} c)"
    if name == "clamped_quad_dot":
        return f"{signature} {{ {_clamped_dot(names, kind, isa)} }}"
    if vnni and (n, isa) in ((16, Isa.AVX512), (8, Isa.AVX2)):
        anywhere = "v" if isa is Isa.AVX512 else "x"
        return (
            f'{signature} {{ __asm__("{vnni_instruction(name, isa)} %2, %1, %0" : "+{anywhere}"(c) : '
            f'"{anywhere}"(a), "{anywhere}"(b)); return c; }}'
        )
    if name == "short_dot" and (n, isa) in ((16, Isa.AVX512), (8, Isa.AVX512), (8, Isa.AVX2)):
        return f"{signature} {{ {_added(words, isa, 'vpmaddwd %3, %2, %1')} }}"
    width = 16 if name == "short_dot" else 8
    kept = "(({a} << {left}) >> {right})" if name == "short_dot" else "(({a} >> {at}) & 255)"
    total = "c" if n > 1 else "(unsigned)c"
    for at in range(0, 32, width):
        left, right = 32 - width - at, 32 - width
        x = kept.format(a="a", at=at, left=left, right=right)
        total = f"{total} + {'' if n > 1 else '(unsigned)'}({x} * ((b << {left}) >> {right}))"
    return f"{signature} {{ return {total if n > 1 else f'(int)({total})'}; }}"


def vnni_instruction(name: str, isa: Isa) -> str:
    """As inline assembly spells it: an assembler that is told nothing takes a vector of 8 for AVX512_VNNI's."""
    instruction = "vpdpbusd" if name == "quad_dot" else "vpdpwssd"
    return instruction if isa is Isa.AVX512 else f"%{{vex%}} {instruction}"


def _added(words: str, isa: Isa, product: str, operand: str = "") -> str:
    """c plus what the instructions ``product`` make of a (%2), b (%3) and an ``operand`` (%4) in %1. The sum is made here too,
    so that it stays in its register: GCC 12 lets it move to that of the product, as with f32 (`CpuTarget.add_product`), and keeps
    others in memory (6 x 16 sums, GOP/s: pairs of shorts 124, else 87; clamped quads 180, else 148)."""
    anywhere = "v" if isa is Isa.AVX512 else "x"
    inputs = f'"{anywhere}"(a), "{anywhere}"(b){operand}'
    early = "&" if operand and isa is Isa.AVX512 else ""  # the first instruction is the last to read a and b
    outputs = f'"+{anywhere}"(c), "={early}{anywhere}"(p)'
    return f'{words} p; __asm__("{product}; vpaddd %1, %0, %0" : {outputs} : {inputs}); return c;'


def _clamped_dot(names: Names, kind: Type, isa: Isa) -> str:
    """By vpmaddubsw, which makes the sums of two and clamps them, and vpmaddwd with ones, which adds up pairs of them."""
    words, lanes = names.type(kind), kind.lanes
    if (lanes, isa) in ((16, Isa.AVX512), (8, Isa.AVX512), (8, Isa.AVX2)):
        # From memory with 16 registers: 12 sums, 2 of weights, one of a and a product are all of them.
        operand = ', "m"(ones)' if isa is Isa.AVX2 else ', "v"(ones)'
        ones = f"static const {words} ones __attribute__((aligned(64))) = {{{', '.join([str(0x10001)] * lanes)}}};"
        return f"{ones} {_added(words, isa, 'vpmaddubsw %3, %2, %1; vpmaddwd %4, %1, %1', operand)}"
    least, most = ((str(x) if lanes == 1 else f"({words}){{{', '.join([str(x)] * lanes)}}}") for x in (-32768, 32767))
    total = "c" if lanes > 1 else "(unsigned)c"
    for at in (0, 16):
        low, high = (f"((a >> {i}) & 255) * ((b << {24 - i}) >> 24)" for i in (at, at + 8))
        clamped = f"{names.helper('min', kind)}({names.helper('max', kind)}({low} + {high}, {least}), {most})"
        total = f"{total} + {'' if lanes > 1 else '(unsigned)'}{clamped}"
    return f"return {total if lanes > 1 else f'(int)({total})'};"


def _load_n(names: Names, lanes: int, dtype: DType, masked: bool) -> str:
    one = names.word_vector(1, dtype)
    if lanes == 1:
        return f"return n > 0 ? *(const {one} *)p : 0;"
    words = names.type(i32(lanes))
    if masked:
        return f"{MASK16} return ({words})__builtin_ia32_loaddqusi512_mask((const int *)p, ({words}){{0}}, k);"
    each = f"for (int l = 0; l < {lanes}; l++) if (l < n) r[l] = *(const {one} *)(p + {4 // dtype.bytes} * l);"
    return f"{words} r = ({words}){{0}}; {each} return r;"


def _store_n(names: Names, lanes: int, dtype: DType, masked: bool) -> str:
    one = names.word_vector(1, dtype)
    if lanes == 1:
        return f"if (n > 0) *({one} *)p = v;"
    if masked:
        return f"{MASK16} __builtin_ia32_storedqusi512_mask((int *)p, v, k);"
    return f"for (int l = 0; l < {lanes}; l++) if (l < n) *({one} *)(p + {4 // dtype.bytes} * l) = v[l];"


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
