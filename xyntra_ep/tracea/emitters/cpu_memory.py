"""How a CPU's C has elements: types, and loads and stores between memory and vectors, whole or of the first few lanes."""

from __future__ import annotations

from abc import ABC, abstractmethod

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.emitters import cpu_matrix
from xyntra_ep.tracea.emitters.cpu_gather import near_gather
from xyntra_ep.tracea.semantic_ir.capabilities import Capabilities, Isa
from xyntra_ep.tracea.semantic_ir.nodes import Elem, PointerType, Type

_SCALAR = {Elem.F32: "float", Elem.I32: "int", Elem.I64: "i64"}
_STORAGE = {
    DType.F32: "float", DType.F16: "_Float16", DType.BF16: "unsigned short", DType.I64: "i64", DType.I32: "int",
    DType.I16: "short", DType.U16: "unsigned short", DType.I8: "signed char", DType.U8: "unsigned char",
    DType.BOOL: "unsigned char",
}  # fmt: skip
_ELEM_BYTES = {Elem.F32: 4, Elem.I32: 4, Elem.I64: 8}


class CpuMemory(ABC):
    """The part of the target that knows this. Types and helpers that were asked for are kept, to be defined."""

    def __init__(self, caps: Capabilities) -> None:
        self.isa = caps.isa
        self._has_avx2 = caps.isa in (Isa.AVX512, Isa.AVX2)
        self._has_pairs = caps.isa is Isa.AVX512 and (caps.avx512_bf16 or caps.avx512_bf16_convert)
        self._has_f16 = caps.isa is not Isa.WASM  # as a type of the compiler's
        self._has_vnni = caps.vnni
        self._has_vbmi = caps.isa is Isa.AVX512 and caps.avx512_vbmi
        self._types: dict[str, str] = {}
        self._helpers: dict[str, str] = {}

    @abstractmethod
    def helper(self, name: str, kind: Type, dtype: DType | None = None) -> str:
        """The name of a helper for ``kind``, which is defined with this."""

    def type(self, kind: Type) -> str:
        if kind.lanes <= 1:
            return _SCALAR[kind.elem]
        return self._vector(f"{kind.elem}x{kind.lanes}", _SCALAR[kind.elem], kind.lanes, _ELEM_BYTES[kind.elem])

    def _storage_vector(self, dtype: DType, lanes: int) -> str:
        return self._vector(f"s_{dtype}x{lanes}", self.storage(dtype), lanes, dtype.bytes)

    def _vector(self, name: str, element: str, lanes: int, element_bytes: int) -> str:
        """The type ``name``, which is defined with this."""
        # aligned(): loads through this type may be unaligned; may_alias: buffers are reused for other types
        attributes = f"vector_size({lanes * element_bytes}), aligned({element_bytes}), may_alias"
        self._types[name] = f"typedef {element} {name} __attribute__(({attributes}));"
        return name

    def storage(self, dtype: DType) -> str:
        return "unsigned short" if dtype is DType.F16 and not self._has_f16 else _STORAGE[dtype]

    def pointer(self, kind: PointerType) -> str:
        return f"{self.storage(kind.dtype)} *" if kind.writable else f"const {self.storage(kind.dtype)} *"

    def memory_helper(self, name: str, full: str, kind: Type, dtype: DType) -> str:
        t, n, s = self.type(kind), kind.lanes, self.storage(dtype)
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
            return f"for (int l = 0; l < {n}; l++) p[l] = {self._narrow('v[l]', dtype)};"
        v = self._storage_vector(dtype, n)
        if dtype in (DType.I8, DType.U8) and kind == Type(Elem.I32, 16) and self.isa is Isa.AVX512:
            return f"{self._narrowed_bytes(v)} *({v} *)p = r;"
        value = "v & 1" if dtype is DType.BOOL else "v"
        return f"*({v} *)p = {self._in_steps(value, dtype, v, n, narrow=True)};"

    def store_bytes_text(self, full: str, dtype: DType, vectors: int) -> str:
        """The definition of `StoreBytes`. Packing takes a quarter of each of its operands after the other: with words of all
        vectors of a quarter side by side, one permutation brings the vectors together."""
        t, last = self.type(Type(Elem.I32, 16)), vectors - 1
        given = ", ".join(f"{t} v{i}" for i in range(vectors))
        packed = "".join(
            f'{t} {to}; __asm__("{name} %2, %1, %0" : "=v"({to}) : "v"({a}), "v"({b})); '
            for name, to, a, b in (
                ("vpackssdw", "low", "v0", "v1"),
                ("vpackssdw", "high", f"v{min(2, last)}", f"v{last}"),
                ("vpacksswb" if dtype is DType.I8 else "vpackuswb", "all", "low", "high"),
            )
        )
        order = ", ".join(str(4 * (i % 4) + i // 4) for i in range(16))
        parts, stores = {2: ((0, 8),), 3: ((0, 8), (8, 4)), 4: ((0, 16),)}[vectors], ""
        for first, words in parts:
            lanes = ", ".join(map(str, range(first, first + words)))
            value = "r" if words == 16 else f"__builtin_shufflevector(r, r, {lanes})"
            v = self._storage_vector(dtype, 4 * words)
            stores += f" *({v} *)(p + {4 * first}) = ({v}){value};"
        permuted = f'const {t} order = {{{order}}}; {t} r; __asm__("vpermd %1, %2, %0" : "=v"(r) : "v"(all), "v"(order));'
        return f"void {full}({self.storage(dtype)} *p, {given}) {{ {packed}{permuted}{stores} }}"

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
        return self._vector(f"s_{'i' if signed else 'u'}16x{lanes}", f"{'' if signed else 'unsigned '}short", lanes, 2)

    def _converts_f16(self, lanes: int) -> bool:
        """Whether one instruction converts a vector of half floats."""
        return (lanes == 16 and self.isa is Isa.AVX512) or (lanes == 8 and self._has_avx2)

    def _char_vector(self, lanes: int) -> str:
        """As compilers' functions for instructions take bytes."""
        return self._vector(f"s_charx{lanes}", "char", lanes, 1)

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
            return f"(float){element}" if self._has_f16 else f"{self._f16_helper('widen')}({element})"
        if dtype is DType.BOOL:
            return f"-({element} != 0)"
        return element

    def _narrow(self, element: str, dtype: DType) -> str:
        if dtype is DType.BF16:
            return f"{self.narrow_bf16()}({element})"
        if dtype is DType.F16 and not self._has_f16:
            return f"{self._f16_helper('narrow')}({element})"
        if dtype is DType.BOOL:
            return f"(unsigned char)({element} & 1)"
        return f"({self.storage(dtype)}){element}"

    def rounded_f16(self, element: str) -> str:
        """A float as it is after it was stored as f16."""
        return self._widen(self._narrow(element, DType.F16), DType.F16)

    def _f16_helper(self, which: str) -> str:
        """Of half floats as bits: to f32, or the nearest of one, half to even."""
        name = f"xy_{which}_f16"
        if name not in self._helpers:
            to_bits, to_float = (f"{self.helper('bits', Type(elem, 1))}" for elem in (Elem.I32, Elem.F32))
            head = "static inline __attribute__((always_inline))"
            # 2^112 between their exponents; the last exponent of each stands for infinity and NaN.
            widen = (
                f"{head} float {name}(unsigned short h) {{ int u = (h & 0x7fff) << 13; float v = {to_float}(u) * 0x1p112f; "
                f"if (v >= 65536.0f) v = {to_float}(u | 0x7f800000); return h & 0x8000 ? -v : v; }}"
            )
            # Below 2^-14 a half float is a multiple of 2^-24, the distance of floats from 0.5 on.
            narrow = (
                f"{head} unsigned short {name}(float v) {{ "
                f"unsigned b = (unsigned){to_bits}(v), s = (b >> 16) & 0x8000, u = b & 0x7fffffff; "
                "if (u > 0x7f800000) return (unsigned short)(s | 0x7e00 | ((u >> 13) & 0x3ff)); "
                "if (u >= 0x477ff000) return (unsigned short)(s | 0x7c00); "
                f"if (u < 0x38800000) {{ unsigned n = (unsigned){to_bits}({to_float}((int)u) + 0.5f) - 0x3f000000; "
                "return (unsigned short)(s | n); } "
                "return (unsigned short)(s | ((u - 0x38000000 + 0xfff + ((u >> 13) & 1)) >> 13)); }"
            )
            self._helpers[name] = widen if which == "widen" else narrow
        return name

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
