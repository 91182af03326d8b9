"""The CPU target: header-free C for gcc >= 12 and clang >= 16, vectors by the GNU vector extension.

Vector width and instruction set come from the capabilities. What the extension cannot express (NaN-exact min and max, masked
loads, rounding) is a helper with one spelling per instruction set and a plain loop as the fallback.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.emitters import cpu_matrix, cpu_tables
from xyntra_ep.tracea.emitters.cpu_memory import CpuMemory
from xyntra_ep.tracea.emitters.cpu_supersteps import SUPERSTEP_HELPERS
from xyntra_ep.tracea.emitters.vector_c import VectorPrinter
from xyntra_ep.tracea.runtime.kernel_source import Definition, Definitions
from xyntra_ep.tracea.semantic_ir.capabilities import Capabilities, Isa
from xyntra_ep.tracea.semantic_ir.nodes import Elem, Function, Kernel, PointerType, Type, Var

# all ones where a < b; a - b may wrap, which is why it only counts where the signs agree
_LESS_I64 = "((({a}) & ~({b})) | (~(({a}) ^ ({b})) & (({a}) - ({b})))) >> 63"
_TILE_NAMES = {
    "zero": "tilezero", "load": "tileloadd", "pair_dot": "tdpbf16ps", "quad_dot": "tdpbusd", "store": "tilestored",
    "release": "tilerelease",
}  # fmt: skip


def emit(kernel: Kernel, caps: Capabilities) -> Definitions:
    """The C translation unit of ``kernel``; exports one function."""
    return VectorPrinter(CpuTarget(caps)).kernel(kernel)


class CpuTarget(CpuMemory):
    """See `emitters.vector_c.VectorTarget`."""

    out_of_line = True

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
        return f"{self.storage(dtype)} {var.name}[{count}] __attribute__((aligned(64)));"

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

    def store_bytes(self, dtype: DType, vectors: int) -> str:
        full = f"xy_store_bytes_{dtype}_{vectors}"
        if full not in self._helpers:
            self._helpers[full] = f"static inline __attribute__((always_inline)) {self.store_bytes_text(full, dtype, vectors)}"
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
            return head + self.memory_helper(name, full, kind, dtype)
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
            # LLVM has no vectors of WebAssembly as operands of assembly text.
            letter = {Isa.AVX512: "v", Isa.NEON: "w", Isa.WASM: "m"}.get(self.isa, "x")
            return f'__asm__("" : "+{letter}"(a)); return a;'
        if name == "round_f16":
            if n == 1:
                return f"return {self.rounded_f16('a')};"
            return f"{t} r; for (int l = 0; l < {n}; l++) r[l] = {self.rounded_f16('a[l]')}; return r;"
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
