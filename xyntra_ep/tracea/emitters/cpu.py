"""The CPU target: header-free C for gcc >= 12 and clang >= 16, vectors by the GNU vector extension.

Vector width and instruction set come from the capabilities. What the extension cannot express (NaN-exact min and max, masked
loads, rounding) is a helper with one spelling per instruction set and a plain loop as the fallback.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Sequence

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.emitters import cpu_matrix, cpu_tables
from xyntra_ep.tracea.emitters.cpu_gather import near_gather
from xyntra_ep.tracea.emitters.cpu_supersteps import SUPERSTEP_HELPERS
from xyntra_ep.tracea.emitters.vector_c import VectorPrinter
from xyntra_ep.tracea.runtime.kernel_source import Definition, Definitions
from xyntra_ep.tracea.semantic_ir.capabilities import Capabilities, Isa
from xyntra_ep.tracea.semantic_ir.nodes import Elem, Function, Kernel, PointerType, Type, Var
from xyntra_ep.tracea.semantic_ir.table_nodes import HALF, as_bytes

_SCALAR = {Elem.F32: "float", Elem.I32: "int", Elem.I64: "i64"}
_STORAGE = {
    DType.F32: "float", DType.F16: "_Float16", DType.BF16: "unsigned short", DType.I64: "i64", DType.I32: "int",
    DType.I16: "short", DType.U16: "unsigned short", DType.I8: "signed char", DType.U8: "unsigned char",
    DType.BOOL: "unsigned char",
}  # fmt: skip
# all ones where a < b; a - b may wrap, which is why it only counts where the signs agree
_LESS_I64 = "((({a}) & ~({b})) | (~(({a}) ^ ({b})) & (({a}) - ({b})))) >> 63"
_TILE_NAMES = {
    "zero": "tilezero", "load": "tileloadd", "pair_dot": "tdpbf16ps", "quad_dot": "tdpbusd", "store": "tilestored",
    "release": "tilerelease",
}  # fmt: skip
_ELEM_BYTES = {Elem.F32: 4, Elem.I32: 4, Elem.I64: 8}


def emit(kernel: Kernel, caps: Capabilities) -> Definitions:
    """The C translation unit of ``kernel``; exports one function."""
    return VectorPrinter(CpuTarget(caps)).kernel(kernel)


class CpuTarget:
    """See `emitters.vector_c.VectorTarget`."""

    out_of_line = True

    def __init__(self, caps: Capabilities) -> None:
        self.isa = caps.isa
        self._has_avx2 = caps.isa in (Isa.AVX512, Isa.AVX2)
        self._has_pairs = caps.isa is Isa.AVX512 and (caps.avx512_bf16 or caps.avx512_bf16_convert)
        self._has_vnni = caps.vnni
        self._has_vbmi = caps.isa is Isa.AVX512 and caps.avx512_vbmi
        self._types: dict[str, str] = {}
        self._helpers: dict[str, str] = {}

    # -- types

    def type(self, kind: Type) -> str:
        if kind.lanes <= 1:
            return _SCALAR[kind.elem]
        name = f"{kind.elem}x{kind.lanes}"
        width, align = kind.lanes * _ELEM_BYTES[kind.elem], _ELEM_BYTES[kind.elem]
        # aligned(): loads through this type may be unaligned; may_alias: buffers are reused for other types
        self._types[name] = (
            f"typedef {_SCALAR[kind.elem]} {name} __attribute__((vector_size({width}), aligned({align}), may_alias));"
        )
        return name

    def _storage_vector(self, dtype: DType, lanes: int) -> str:
        name = f"s_{dtype}x{lanes}"
        self._types[name] = (
            f"typedef {_STORAGE[dtype]} {name} "
            f"__attribute__((vector_size({lanes * dtype.bytes}), aligned({dtype.bytes}), may_alias));"
        )
        return name

    def storage(self, dtype: DType) -> str:
        return _STORAGE[dtype]

    def pointer(self, kind: PointerType) -> str:
        return f"{_STORAGE[kind.dtype]} *" if kind.writable else f"const {_STORAGE[kind.dtype]} *"

    # -- text around the walk

    def definitions(self) -> list[Definition]:
        types = {"i64": "typedef __INT64_TYPE__ i64;", **self._types}
        return [
            *(Definition(text=f"{text}\n", name=name, is_type=True) for name, text in types.items()),
            *(
                Definition(text=f"{text}\n", name=name, is_type=name == cpu_matrix.NEEDS_TILES)
                for name, text in self._helpers.items()
            ),
        ]

    def qualifiers(self, function: Function) -> str:
        return f"static {'inline __attribute__((always_inline))' if function.inline else '__attribute__((noinline))'}"

    def signature(self, function: Function) -> str:
        result = self.type(function.result) if function.result else "void"
        return f"{result} {function.name}({', '.join(self._argument(v) for v in function.arguments)})"

    def _argument(self, var: Var) -> str:
        if isinstance(var.vtype, PointerType):
            return f"{self.pointer(var.vtype)}{var.name}"
        return f"{self.type(var.vtype)} {var.name}"

    def kernel_head(self, kernel: Kernel) -> list[str]:
        lines = [
            '__attribute__((visibility("default")))',
            f"void {kernel.name}(void *const *buffers, const i64 *params, i64 begin, i64 end) {{",
        ]
        for i, b in enumerate(kernel.buffers):
            kind = self.pointer(PointerType(b.dtype, b.writable))
            lines.append(f"  {kind}const {b.name} = ({kind})buffers[{i}];")
        lines += [f"  const i64 {name} = params[{i}];" for i, name in enumerate(kernel.params)]
        return lines if kernel.params else [*lines, "  (void)params;"]

    def array(self, var: Var, dtype: DType, count: int) -> str:
        return f"{_STORAGE[dtype]} {var.name}[{count}] __attribute__((aligned(64)));"

    def prefetch(self, address: str, locality: int, write: bool) -> str:
        return f"__builtin_prefetch({address}, {int(write)}, {locality});"

    def add_product(self, kind: Type, total: str, a: str, b: str) -> str | None:
        # GCC 12 lets a sum move to the register of its last factor; where 15 of 16 are in use it then finds none for the next
        # iteration of the loop, and keeps one sum in memory (6 x 16 rows and columns: 79 of 89 GFLOP/s, so 85).
        if self.isa is not Isa.AVX2 or kind != Type(Elem.F32, 8):
            return None
        return f'__asm__("vfmadd231ps %2, %1, %0" : "+x"({total}) : "x"({a}), "x"({b}));'

    def float_literal(self, value: float) -> str:
        if math.isnan(value):
            return '__builtin_nanf("")'
        if math.isinf(value):
            return "__builtin_inff()" if value > 0 else "(-__builtin_inff())"
        try:
            narrow = struct.unpack("<f", struct.pack("<f", value))[0]
        except OverflowError:
            return self.float_literal(math.copysign(math.inf, value))
        text = float(narrow).hex() + "f"
        return f"({text})" if text.startswith("-") else text

    def bits(self, kind: Type, value: str) -> str:
        return f"{self.helper('bits', kind)}({value})"

    def nibble(self, kind: Type, words: str, position: int) -> str:
        if self.isa is Isa.AVX512 and kind.lanes == 16:  # a table of 16, which looks at no more than four bits of an index
            return f"{self.helper('nibble', kind)}({f'{words} >> {4 * position}' if position else words})"
        left = 28 - 4 * position
        if kind.lanes <= 1:
            return f"((float)((int)((unsigned){words} << {left}) >> 28))"
        alone = f"(({words} << {left}) >> 28)" if left else f"({words} >> 28)"
        return f"__builtin_convertvector({alone}, {self.type(kind)})"

    def lookup(self, table: Sequence[float], kind: Type) -> str:
        packed = as_bytes(table, kind.elem) if self._has_vbmi and kind.lanes == 16 else None
        low, values = packed or (0, table)
        dtype = DType.U8 if packed else DType.F32 if kind.elem is Elem.F32 else DType.I32
        literals = [self.float_literal(v) if dtype is DType.F32 else str(int(v)) for v in values]
        digest = hashlib.sha256(" ".join((*literals, str(low))).encode()).hexdigest()[:16]
        name, full = f"xy_table_{dtype}_{digest}", f"xy_lookup_{dtype}_{digest}_{kind.elem}x{kind.lanes}"
        if full not in self._helpers:
            self._helpers[name] = cpu_tables.table_text(self, name, literals, dtype)
            if packed:
                vectors = len(values) // (HALF // 2)
                lookup = self.byte_lookup(vectors, kind)
                text = cpu_tables.literal_byte_lookup_text(self, full, kind, name, vectors, low, lookup)
            else:
                text = cpu_tables.lookup_text(self, full, kind, name)
            self._helpers[full] = f"static inline __attribute__((always_inline)) {text}"
        return full

    def lookup_in(self, kind: Type) -> str:
        full = f"xy_lookup_in_{kind.elem}x{kind.lanes}"
        if full not in self._helpers:
            self._helpers[full] = f"static inline __attribute__((always_inline)) {cpu_tables.lookup_in_text(self, full, kind)}"
        return full

    def byte_lookup(self, vectors: int, kind: Type) -> str:
        full = f"xy_lookup_bytes_{vectors}_{kind.elem}x{kind.lanes}"
        if full not in self._helpers:
            text = cpu_tables.byte_lookup_text(self, full, kind, vectors)
            self._helpers[full] = f"static inline __attribute__((always_inline)) {text}"
        return full

    # -- products of bfloat16

    def tile_configure(self, shapes: Sequence[tuple[str, str]]) -> str:
        self._types["xy_tiles"] = cpu_matrix.TILES_TYPE
        self._helpers[cpu_matrix.NEEDS_TILES] = cpu_matrix.NEEDS_TILES_TEXT
        return cpu_matrix.tile_configure(shapes)

    def tile_operation(self, name: str, tiles: Sequence[int], address: str = "", stride_bytes: str = "") -> str:
        # An assembler has the operands of a product the other way round.
        return cpu_matrix.tile_operation(_TILE_NAMES[name], tiles[::-1], address, stride_bytes)

    def word_vector(self, lanes: int, dtype: DType) -> str:
        name = f"s_words_{dtype}x{lanes}"
        size = f"vector_size({4 * lanes}), " if lanes > 1 else ""
        self._types[name] = f"typedef int {name} __attribute__(({size}aligned({dtype.bytes}), may_alias));"
        return name

    def superstep(self, name: str) -> str:
        full = f"xy_{name}"
        self._helpers.setdefault(full, SUPERSTEP_HELPERS[name])
        return full

    # -- helpers

    def helper(self, name: str, kind: Type, dtype: DType | None = None) -> str:
        lanes = kind.lanes
        suffix = f"{kind.elem}x{lanes}" if lanes else "index"
        full = f"xy_{name}_{dtype}_{suffix}" if dtype else f"xy_{name}_{suffix}"
        if full not in self._helpers:
            self._helpers[full] = ""  # keeps definition order: dependencies ask for theirs while the body is made
            text = self._define(name, full, kind, dtype)
            del self._helpers[full]
            self._helpers[full] = text
        return full

    def _define(self, name: str, full: str, kind: Type, dtype: DType | None) -> str:
        t = self.type(kind)
        head = "static inline __attribute__((always_inline)) "
        if name in cpu_matrix.PAIR_HELPERS:
            return head + cpu_matrix.pair_helper(self, name, full, kind, self._has_pairs)
        if name in cpu_matrix.INTEGER_HELPERS:
            return head + cpu_matrix.integer_dot(self, name, full, kind, self.isa, self._has_vnni)
        if name in cpu_matrix.WORD_HELPERS:
            assert dtype is not None
            return head + cpu_matrix.word_helper(self, name, full, kind, dtype, self.isa is Isa.AVX512)
        if dtype is not None:
            return head + self._memory_helper(name, full, kind, dtype)
        if name.startswith("reduce_"):
            return head + self._reduce(name.removeprefix("reduce_"), full, kind)
        scalar = self.type(kind.with_lanes(1))
        n = kind.lanes
        each = f"for (int l = 0; l < {n}; l++)"
        if name == "splat":
            return head + f"{t} {full}({scalar} a) {{ return ({t}){{{', '.join('a' * n)}}}; }}"
        if name == "nearest":
            return head + self._nearest(full, kind)
        if name == "nibble":
            numbers = ", ".join(f"{float(i)}f" for i in (*range(8), *range(-8, 0)))
            lookup = '__asm__("vpermps %1, %2, %0" : "=v"(r) : "v"(table), "v"(i));'
            return (
                head
                + f"{t} {full}({self.type(Type(Elem.I32, n))} i) {{ const {t} table = {{{numbers}}}; {t} r; {lookup} return r; }}"
            )
        if name == "bits":
            other = "int" if kind.elem is Elem.F32 else "float"
            return head + f"{t} {full}({other} a) {{ union {{ {other} a; {t} b; }} u; u.a = a; return u.b; }}"
        if name in ("lt", "le", "eq", "ne"):
            mask = self.type(Type(Elem.I32, n))
            return head + f"{mask} {full}({t} a, {t} b) {{ return {self._compare_i64(name, t, mask)}; }}"
        if name == "select":
            mask = self.type(Type(Elem.I32, n))
            if kind.elem is Elem.I64:
                body = f"{t} w = __builtin_convertvector(m, {t}); return (w & a) | (~w & b);"
            else:
                body = f"return ({t})((m & ({mask})a) | (~m & ({mask})b));"
            return head + f"{t} {full}({mask} m, {t} a, {t} b) {{ {body} }}"
        if name in ("min", "max"):
            return head + f"{t} {full}({t} a, {t} b) {{ {self._min_max(name, kind)} }}"
        if name in ("div", "mod"):
            op = "/" if name == "div" else "%"
            guard = "0" if name == "mod" else "-{a}"
            one = f"({{b}} == 0 ? 0 : {{b}} == -1 ? {guard} : {{a}} {op} {{b}})"
            if n == 1:
                return head + f"{t} {full}({t} a, {t} b) {{ return {one.format(a='a', b='b')}; }}"
            return head + f"{t} {full}({t} a, {t} b) {{ {t} r; {each} r[l] = {one.format(a='a[l]', b='b[l]')}; return r; }}"
        if name in ("pow", "fmod"):
            if n == 1:
                return head + f"{t} {full}({t} a, {t} b) {{ return __builtin_{name}f(a, b); }}"
            return head + f"{t} {full}({t} a, {t} b) {{ {t} r; {each} r[l] = __builtin_{name}f(a[l], b[l]); return r; }}"
        return head + f"{t} {full}({t} a) {{ {self._unary(name, kind)} }}"

    @staticmethod
    def _compare_i64(name: str, t: str, mask: str) -> str:
        """By arithmetic on the sign bit: GCC compares vectors wider than a register element by element."""
        if name in ("eq", "ne"):
            differs = f"__builtin_convertvector(((a ^ b) | -(a ^ b)) >> 63, {mask})"
            return differs if name == "ne" else f"~{differs}"
        x, y = ("a", "b") if name == "lt" else ("b", "a")
        less = f"__builtin_convertvector({_LESS_I64.format(a=x, b=y)}, {mask})"
        return less if name == "lt" else f"~{less}"

    def _min_max(self, name: str, kind: Type) -> str:
        relation = ">" if name == "max" else "<"
        if kind.lanes <= 1:
            return f"return a {relation} b ? a : b;"
        if kind.elem is Elem.F32 and kind.lanes == 16 and self.isa is Isa.AVX512:
            return (
                f"\n#ifdef __clang__\n return __builtin_ia32_{name}ps512(a, b, 4);\n#else\n"
                f" return __builtin_ia32_{name}ps512_mask(a, b, a, -1, 4);\n#endif\n"
            )
        if kind.elem is Elem.F32 and kind.lanes == 8 and self._has_avx2:
            return f"return __builtin_ia32_{name}ps256(a, b);"
        mask = self.type(Type(Elem.I32 if kind.elem is Elem.F32 else kind.elem, kind.lanes))
        t = self.type(kind)
        chosen = f"({mask})(a {relation} b)"
        if kind.elem is Elem.I64:
            chosen = _LESS_I64.format(a="b", b="a") if name == "max" else _LESS_I64.format(a="a", b="b")
        return f"{mask} m = {chosen}; return ({t})((m & ({mask})a) | (~m & ({mask})b));"

    def _unary(self, name: str, kind: Type) -> str:
        n, t = kind.lanes, self.type(kind)
        if name == "abs":
            if kind.elem is not Elem.F32:
                if n == 1:
                    return "return a < 0 ? -a : a;"
                bits = {Elem.I64: 63, Elem.I32: 31}[kind.elem]
                return f"{t} s = a >> {bits}; return (a ^ s) - s;"
            if n == 1:
                return "return __builtin_fabsf(a);"
            mask = self.type(Type(Elem.I32, n))
            return f"return ({t})(({mask})a & 0x7fffffff);"
        if name == "opaque":
            letter = {Isa.AVX512: "v", Isa.NEON: "w"}.get(self.isa, "x")
            return f'__asm__("" : "+{letter}"(a)); return a;'
        if name == "round_f16":
            if n == 1:
                return "return (float)(_Float16)a;"
            return f"{t} r; for (int l = 0; l < {n}; l++) r[l] = (float)(_Float16)a[l]; return r;"
        rounding = {"floor": 9, "ceil": 10, "rint": 8}
        if n == 16 and self.isa is Isa.AVX512:
            if name == "sqrt":
                return (
                    "\n#ifdef __clang__\n return __builtin_ia32_sqrtps512(a, 4);\n#else\n"
                    " return __builtin_ia32_sqrtps512_mask(a, a, -1, 4);\n#endif\n"
                )
            if name in rounding:
                return f"return __builtin_ia32_rndscaleps_mask(a, {rounding[name]}, a, -1, 4);"
        if n == 8 and self.isa in (Isa.AVX512, Isa.AVX2):
            if name == "sqrt":
                each = "for (int l = 0; l < 8; l++) r[l] = __builtin_sqrtf(a[l]);"
                return f"\n#ifdef __clang__\n {t} r; {each} return r;\n#else\n return __builtin_ia32_sqrtps256(a);\n#endif\n"
            if name in rounding:
                return f"return __builtin_ia32_roundps256(a, {rounding[name]});"
        function = f"__builtin_{name.removeprefix('libm_')}f"
        if n == 1:
            return f"return {function}(a);"
        return f"{t} r; for (int l = 0; l < {n}; l++) r[l] = {function}(a[l]); return r;"

    def _nearest(self, full: str, kind: Type) -> str:
        """The nearest words of floats, half to even."""
        t, n = self.type(kind), kind.lanes
        if n == 16 and self.isa is Isa.AVX512:
            value = f"__builtin_ia32_cvtps2dq512_mask(a, ({t}){{0}}, -1, 8)"
        elif n == 8 and self.isa in (Isa.AVX512, Isa.AVX2):
            value = f"({t})__builtin_ia32_cvtps2dq256(a)"
        else:
            value = f"__builtin_convertvector({self.helper('rint', Type(Elem.F32, n))}(a), {t})"
        return f"{t} {full}({self.type(Type(Elem.F32, n))} a) {{ return {value}; }}"

    def _reduce(self, op: str, full: str, kind: Type) -> str:
        steps = []
        name, n, current = "a", kind.lanes, kind
        while n > 1:
            # The last four stay in their register: GCC sends vectors of two through memory.
            half = kind.with_lanes(4 if n == 4 else n // 2)
            t = self.type(half)
            low, high = ", ".join(map(str, range(n // 2))), ", ".join(map(str, range(n // 2, n)))
            if n == 4:
                low, high = "0, 1, 2, 3", "2, 3, 2, 3"
            if n == 2:
                x, y = f"{name}[0]", f"{name}[1]"
            else:
                x, y = (f"__builtin_shufflevector({name}, {name}, {part})" for part in (low, high))
            infix = {"add": "+", "mul": "*", "or": "|", "and": "&"}.get(op)
            value = f"{x} {infix} {y}" if infix else f"{self.helper(op, half if n > 2 else kind.with_lanes(1))}({x}, {y})"
            steps.append(f"{t} h{n} = {value};")
            name, n, current = f"h{n}", n // 2, half
        return f"{self.type(current)} {full}({self.type(kind)} a) {{ {' '.join(steps)} return {name}; }}"

    # -- memory

    def _memory_helper(self, name: str, full: str, kind: Type, dtype: DType) -> str:
        t, n, s = self.type(kind), kind.lanes, _STORAGE[dtype]
        if name in ("load", "load_n"):
            extra = ", i64 n" if name == "load_n" else ""
            return f"{t} {full}(const {s} *p{extra}) {{ {self._load_body(name, kind, dtype)} }}"
        if name in ("store", "store_n"):
            extra = ", i64 n" if name == "store_n" else ""
            return f"void {full}({s} *p, {t} v{extra}) {{ {self._store_body(name, kind, dtype)} }}"
        assert name == "gather"
        index = self.type(Type(Elem.I64, n))
        if n == 1:
            return f"{t} {full}(const {s} *p, {index} i) {{ return {self._widen('p[i]', dtype)}; }}"
        elements = ", ".join(self._widen(f"p[i[{lane}]]", dtype) for lane in range(n))
        near = near_gather(self, self.isa, n) if dtype is DType.F32 else ""
        return f"{t} {full}(const {s} *p, {index} i) {{ {near}return ({t}){{{elements}}}; }}"

    def _load_body(self, name: str, kind: Type, dtype: DType) -> str:
        t, n = self.type(kind), kind.lanes
        if n == 1:
            one = self._widen("p[0]", dtype)
            return f"return n > 0 ? {one} : ({t})0;" if name == "load_n" else f"return {one};"
        if name == "load_n":
            if dtype is DType.F32 and n == 16 and self.isa is Isa.AVX512:
                return f"{cpu_matrix.MASK16} return __builtin_ia32_loadups512_mask((const float *)p, ({t}){{0}}, k);"
            if dtype is DType.BF16 and n == 16 and self.isa is Isa.AVX512:
                bits, wide = self._short_vector(n, signed=False), self.type(Type(Elem.I32, n))
                words = f"__builtin_ia32_loaddquhi256_mask((const {self._short_vector(n)} *)p, ({self._short_vector(n)}){{0}}, k)"
                return f"{cpu_matrix.MASK16} return ({t})(__builtin_convertvector(({bits}){words}, {wide}) << 16);"
            if dtype in (DType.I8, DType.U8) and n == 16 and kind.elem is not Elem.I64 and self.isa is Isa.AVX512:
                b = self._char_vector(n)
                found = f"({self._storage_vector(dtype, n)})__builtin_ia32_loaddquqi128_mask((const {b} *)p, ({b}){{0}}, k)"
                return f"{cpu_matrix.MASK16} {self._widened_bytes(kind, dtype, found, 'v')}"
            if dtype is DType.F32 and n == 8 and self._has_avx2:
                mask, steps = self.type(Type(Elem.I32, n)), ", ".join(map(str, range(n)))
                count = f"const int m = n >= {n} ? {n} : n <= 0 ? 0 : (int)n;"
                mask = f"({mask}){{{steps}}} < ({mask}){{{', '.join('m' * n)}}}"
                return f"{count} return __builtin_ia32_maskloadps256((const {t} *)p, {mask});"
            return f"{t} r = ({t}){{0}}; for (int l = 0; l < {n}; l++) if (l < n) r[l] = {self._widen('p[l]', dtype)}; return r;"
        v = self._storage_vector(dtype, n)
        if dtype is DType.BF16:
            wide = self.type(Type(Elem.I32, n))
            return f"return ({t})(__builtin_convertvector(*(const {v} *)p, {wide}) << 16);"
        if dtype is DType.BOOL:
            mask = self.type(Type(Elem.I32, n))
            return f"return ({mask})({self._in_steps(f'*(const {v} *)p', dtype, mask, n)} != 0);"
        if dtype is DType.F16:
            if self._converts_f16(n):
                bits = self._short_vector(n)
                if n == 16:
                    return f"return __builtin_ia32_vcvtph2ps512_mask(*(const {bits} *)p, ({t}){{0}}, -1, 4);"
                return f"return __builtin_ia32_vcvtph2ps256(*(const {bits} *)p);"
            return f"{t} r; for (int l = 0; l < {n}; l++) r[l] = {self._widen('p[l]', dtype)}; return r;"
        if dtype in (DType.I8, DType.U8) and kind.elem in (Elem.F32, Elem.I32) and self._widens_bytes(n):
            return self._widened_bytes(kind, dtype, f"*(const {v} *)p", "m")
        return f"return {self._in_steps(f'*(const {v} *)p', dtype, t, n)};"

    def _store_body(self, name: str, kind: Type, dtype: DType) -> str:
        t, n = self.type(kind), kind.lanes
        if n == 1:
            one = f"p[0] = {self._narrow('v', dtype)};"
            return f"if (n > 0) {one}" if name == "store_n" else one
        if name == "store_n":
            if dtype is DType.F32 and n == 16 and self.isa is Isa.AVX512:
                return f"{cpu_matrix.MASK16} __builtin_ia32_storeups512_mask((float *)p, v, k);"
            if dtype is DType.BF16 and n == 16 and self.isa is Isa.AVX512:
                short = self._short_vector(n)
                masked = f"__builtin_ia32_storedquhi256_mask(({short} *)p, ({short})r, k);"
                return f"{cpu_matrix.MASK16} {self._round_bf16(n)} {masked}"
            if dtype in (DType.I8, DType.U8) and kind == Type(Elem.I32, 16) and self.isa is Isa.AVX512:
                b = self._char_vector(n)
                return f"{cpu_matrix.MASK16} {self._narrowed_bytes(b)} __builtin_ia32_storedquqi128_mask(({b} *)p, r, k);"
            if dtype is DType.F32 and n == 8 and self._has_avx2:
                return self._store_by_halves(t)
            return f"for (int l = 0; l < {n}; l++) if (l < n) p[l] = {self._narrow('v[l]', dtype)};"
        if dtype is DType.BF16:
            return f"{self._round_bf16(n)} *({self._storage_vector(dtype, n)} *)p = r;"
        if dtype is DType.F16:
            if self._converts_f16(n):
                bits = self._short_vector(n)
                if n == 16:
                    return f"*({bits} *)p = __builtin_ia32_vcvtps2ph512_mask(v, 0, ({bits}){{0}}, -1);"
                return f"*({bits} *)p = __builtin_ia32_vcvtps2ph256(v, 0);"
            return f"for (int l = 0; l < {n}; l++) p[l] = (_Float16)v[l];"
        v = self._storage_vector(dtype, n)
        if dtype in (DType.I8, DType.U8) and kind == Type(Elem.I32, 16) and self.isa is Isa.AVX512:
            return f"{self._narrowed_bytes(v)} *({v} *)p = r;"
        value = "v & 1" if dtype is DType.BOOL else "v"
        return f"*({v} *)p = {self._in_steps(value, dtype, v, n, narrow=True)};"

    def _store_by_halves(self, t: str) -> str:
        """The first ``n`` of 8 floats. A store under a mask is some forty instructions on AMD's processors."""
        half, pair = (self.type(Type(Elem.F32, lanes)) for lanes in (4, 2))
        return (
            f"if (n >= 8) {{ *({t} *)p = v; return; }} if (n <= 0) return; "
            f"{half} h = __builtin_shufflevector(v, v, 0, 1, 2, 3); "
            f"if (n & 4) {{ *({half} *)p = h; p += 4; h = __builtin_shufflevector(v, v, 4, 5, 6, 7); }} "
            f"{pair} q = __builtin_shufflevector(h, h, 0, 1); "
            f"if (n & 2) {{ *({pair} *)p = q; p += 2; q = __builtin_shufflevector(h, h, 2, 3); }} if (n & 1) *p = q[0];"
        )

    def _round_bf16(self, lanes: int) -> str:
        """Text that declares ``r``, the vector ``v`` in storage."""
        v = self._storage_vector(DType.BF16, lanes)
        if self._has_pairs and lanes == 16:
            return f'{v} r; __asm__("vcvtneps2bf16 %1, %0" : "=v"(r) : "v"(v));'
        i = self.type(Type(Elem.I32, lanes))
        return (
            f"{i} b = ({i})v, nan = ({i})(v != v), w = (b + 0x7fff + ((b >> 16) & 1)) >> 16; "
            f"w = (nan & ((b >> 16) | 0x40)) | (~nan & w); {v} r = __builtin_convertvector(w, {v});"
        )

    def _in_steps(self, value: str, dtype: DType, to: str, lanes: int, narrow: bool = False) -> str:
        """``value`` converted between bytes and words by doubling or halving: GCC takes larger steps element by element."""
        if dtype.bytes == 1:
            word, short = self.type(Type(Elem.I32, lanes)), self._short_vector(lanes, signed=dtype is DType.I8)
            for step in (word, short) if narrow else (short, word):
                value = f"__builtin_convertvector({value}, {step})"
            if to == word:
                return value
        return f"__builtin_convertvector({value}, {to})"

    def _short_vector(self, lanes: int, signed: bool = True) -> str:
        name = f"s_{'i' if signed else 'u'}16x{lanes}"
        self._types[name] = (
            f"typedef {'' if signed else 'unsigned '}short {name} "
            f"__attribute__((vector_size({lanes * 2}), aligned(2), may_alias));"
        )
        return name

    def _converts_f16(self, lanes: int) -> bool:
        """Whether one instruction converts a vector of half floats."""
        return (lanes == 16 and self.isa is Isa.AVX512) or (lanes == 8 and self._has_avx2)

    def _char_vector(self, lanes: int) -> str:
        """As compilers' functions for instructions take bytes."""
        name = f"s_charx{lanes}"
        self._types[name] = f"typedef char {name} __attribute__((vector_size({lanes}), aligned(1), may_alias));"
        return name

    def _widened_bytes(self, kind: Type, dtype: DType, value: str, place: str) -> str:
        """Text that returns the bytes ``value`` (in a register, "v", or memory, "m") as lanes of ``kind``."""
        word, sign = self.type(Type(Elem.I32, kind.lanes)), "sx" if dtype is DType.I8 else "zx"
        found = "w" if kind.elem is Elem.I32 else f"__builtin_convertvector(w, {self.type(kind)})"
        return f'{word} w; __asm__("vpmov{sign}bd %1, %0" : "=v"(w) : "{place}"({value})); return {found};'

    def _narrowed_bytes(self, vector: str) -> str:
        """Text that declares ``r``, the 16 words ``v`` as bytes."""
        return f'{vector} r; __asm__("vpmovdb %1, %0" : "=v"(r) : "v"(v));'

    def _widens_bytes(self, lanes: int) -> bool:
        """Whether one instruction widens bytes to a vector of words; compilers do not all find it."""
        return (lanes == 16 and self.isa is Isa.AVX512) or (lanes == 8 and self._has_avx2)

    def _widen(self, element: str, dtype: DType) -> str:
        if dtype is DType.BF16:
            return f"{self.helper('bits', Type(Elem.F32, 1))}((int)((unsigned){element} << 16))"
        if dtype is DType.F16:
            return f"(float){element}"
        if dtype is DType.BOOL:
            return f"-({element} != 0)"
        return element

    def _narrow(self, element: str, dtype: DType) -> str:
        if dtype is DType.BF16:
            return f"{self.narrow_bf16()}({element})"
        if dtype is DType.BOOL:
            return f"(unsigned char)({element} & 1)"
        return f"({_STORAGE[dtype]}){element}"

    def narrow_bf16(self) -> str:
        name = "xy_narrow_bf16"
        if name not in self._helpers:
            bits = self.helper("bits", Type(Elem.I32, 1))
            self._helpers[name] = (
                f"static inline __attribute__((always_inline)) unsigned short {name}(float v) {{ "
                f"unsigned b = (unsigned){bits}(v); "
                "return (unsigned short)(v != v ? (b >> 16) | 0x40 : (b + 0x7fff + ((b >> 16) & 1)) >> 16); }"
            )
        return name
