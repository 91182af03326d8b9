"""Types and memory of WGSL: elements of whole words, and those of fewer than 32 bits, which lie in words.

A kernel that writes packed elements does so by atomic operations, for neighbours are other threads'. Each memory of them has
functions of its own, since WGSL gives no pointer to a buffer to a function.
"""

from __future__ import annotations

import math
import struct

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.emitters.c_family import CPrinter
from xyntra_ep.tracea.emitters.webgpu import functions, int64
from xyntra_ep.tracea.emitters.webgpu.int64 import LONG
from xyntra_ep.tracea.runtime.kernel_source import Definition
from xyntra_ep.tracea.semantic_ir.gpu.nodes import AsyncCopy, LoadPacket, SharedArray, StorePacket
from xyntra_ep.tracea.semantic_ir.nodes import Elem, Function, Gather, Kernel, Load, Pointer, Rvalue, Store, Type, Var

_HELPERS = {**{f"{name}(": text for name, text in int64.HELPERS.items()}, **functions.HELPERS}
_WHOLE = {DType.F32: "f32", DType.I32: "i32", DType.I64: LONG}  # those of words
_RAW = {  # from the bits of an element to its value, where that is no float
    DType.I16: "(bitcast<i32>({v} << 16u) >> 16u)", DType.I8: "(bitcast<i32>({v} << 24u) >> 24u)", DType.U16: "i32({v})",
    DType.U8: "i32({v})", DType.BOOL: "select(0, -1, {v} != 0u)",
}  # fmt: skip
_I32 = Type(Elem.I32, 1)


def is_long(kind: Type) -> bool:
    return kind.elem is Elem.I64 and kind.lanes > 0


class WgslTarget:
    """See `emitters.c_family.Target`."""

    out_of_line = False

    def __init__(self) -> None:
        self._defined: dict[str, str] = {}

    def type(self, kind: Type) -> str:
        return LONG if is_long(kind) else "f32" if kind.elem is Elem.F32 else "i32"

    def helper(self, name: str, kind: Type, dtype: DType | None = None) -> str:
        if name in ("sqrt", "floor", "ceil", "abs") and not is_long(kind):
            return name
        if name == "rint":
            return "round"
        if name.startswith("libm_") or name in ("pow", "fmod", "round_f16"):
            return self.use(f"xy_{name.removeprefix('libm_')}(")[:-1]
        if kind.elem is Elem.F32 or is_long(kind):
            return self.use(f"xy_{name}_{'f32' if kind.elem is Elem.F32 else 'long'}(")[:-1]
        return name  # min and max of words

    def use(self, text: str) -> str:
        """``text``, after the helpers that it calls."""
        for name, definition in _HELPERS.items():
            if name in text and name not in self._defined:
                self._defined[name] = ""  # before those that it calls
                self.use(definition)
                self._defined[name] = definition
        return text

    def define(self, name: str, text: str) -> None:
        self._defined.setdefault(name, self.use(text))

    def definitions(self) -> list[Definition]:
        return [Definition(text=f"{text}\n", name=name.rstrip("(")) for name, text in self._defined.items()]

    def qualifiers(self, function: Function) -> str:
        return "fn"

    def signature(self, function: Function) -> str:
        assert function.result is not None, "functions give a value"
        return f"{function.name}({', '.join(map(self._argument, function.arguments))}) -> {self.type(function.result)}"

    def _argument(self, var: Var) -> str:
        return f"{var.name}: {self.type(var.type)}"

    def kernel_head(self, kernel: Kernel) -> list[str]:
        bindings = [
            f"@group(0) @binding({i}) var<storage, read_write> {b.name}: {self.memory(b.dtype, '', b.writable)};"
            for i, b in enumerate(kernel.buffers)
        ]
        return [
            *bindings,
            f"struct xy_given {{ {', '.join(f'{name}: i32' for name in (*kernel.params, 'xy_units'))} }}",
            f"@group(0) @binding({len(bindings)}) var<uniform> xy_params: xy_given;",
            f"@compute @workgroup_size({kernel.threads}) fn {kernel.name}(@builtin(workgroup_id) xy_block: vec3<u32>,",
            "    @builtin(num_workgroups) xy_blocks: vec3<u32>, @builtin(local_invocation_index) xy_thread: u32) {",
            "  let block = i32(xy_block.x + xy_block.y * xy_blocks.x);",
            "  if (block >= xy_params.xy_units) { return; }",
            "  let thread = i32(xy_thread);",
            *(f"  let {name} = xy_params.{name};" for name in kernel.params),
        ]

    def memory(self, dtype: DType, count: str, shared_by_words: bool) -> str:
        """An array of ``count`` elements; empty: of as many as there are."""
        kind = _WHOLE.get(dtype) or ("atomic<u32>" if shared_by_words else "u32")
        return f"array<{kind}{', ' if count else ''}{count}>"

    def array(self, var: Var, dtype: DType, count: int) -> str:
        assert dtype in _WHOLE, "what one thread has is not packed"
        return f"var {var.name}: {self.memory(dtype, str(count), False)};"

    def float_literal(self, value: float) -> str:
        if math.isnan(value):
            return self.use("xy_nan()")
        try:
            narrow = struct.unpack("<f", struct.pack("<f", value))[0]
        except OverflowError:
            narrow = math.copysign(math.inf, value)
        text = self.use("xy_infinity()") if math.isinf(narrow) else abs(narrow).hex() + "f"
        return f"(-{text})" if math.copysign(1.0, narrow) < 0 else text

    def bits(self, kind: Type, value: str) -> str:
        return f"bitcast<{self.type(kind)}>({value})"


class WgslMemory(CPrinter):
    """What reads and writes memory."""

    def __init__(self) -> None:
        self.target = WgslTarget()
        super().__init__(self.target)
        self._atomic: set[str] = set()  # packed memory that is written
        self._visit[Gather] = self._gather

    def address(self, pointer: Pointer, at: Rvalue | None = None) -> str:
        """The number of the element in all of the memory."""
        return super().address(pointer, at).partition(" + ")[2] or "0"

    def _root(self, pointer: Pointer) -> str:
        return pointer.name if isinstance(pointer, Var) else self._root(pointer.pointer)

    def _moved(self, pointer: Pointer, at: Rvalue, by: int) -> str:
        return f"{self.address(pointer, at)} + {by}" if by else self.address(pointer, at)

    def _word(self, pointer: Pointer) -> str:
        """The function that gives a word of packed memory."""
        name = self._root(pointer)
        word = f"atomicLoad(&{name}[i])" if name in self._atomic else f"{name}[i]"
        self.target.define(f"{name}_word", f"fn {name}_word(i: u32) -> u32 {{ return {word}; }}")
        return f"{name}_word"

    def _bits(self, pointer: Pointer, address: str) -> str:
        """An element of packed memory as it is."""
        dtype, name = self._dtype(pointer), self._root(pointer)
        shift, mask = (1, "0xffffu") if dtype.bytes == 2 else (2, "0xffu")
        word = f"{self._word(pointer)}(u32(i) >> {shift}u)"
        place = f"((u32(i) & {(1 << shift) - 1}u) * {8 * dtype.bytes}u)"
        self.target.define(f"{name}_bits", f"fn {name}_bits(i: i32) -> u32 {{ return ({word} >> {place}) & {mask}; }}")
        return f"{name}_bits({address})"

    def _element(self, pointer: Pointer, address: str, kind: Type) -> str:
        dtype = self._dtype(pointer)
        if dtype in _WHOLE:
            value, found = f"{self._root(pointer)}[{address}]", Type(Elem[dtype.name], 1)
        elif dtype.is_float:
            return self.target.use(f"xy_widen_{dtype}({self._bits(pointer, address)})")
        else:
            value, found = _RAW[dtype].format(v=self._bits(pointer, address)), _I32
        return self._converted(value, found, kind)

    def _load(self, e: Load) -> str:
        if e.count is None:
            return self._element(e.pointer, self.address(e.pointer, e.index), e.type)
        here = f"({self.expr(e.count)} > 0)"
        nothing = {LONG: f"{LONG}(0u, 0u)", "f32": "0.0", "i32": "0"}[self.target.type(e.type)]
        at = f"select(0, {self.address(e.pointer, e.index)}, {here})"
        return f"select({nothing}, {self._element(e.pointer, at, e.type)}, {here})"

    def _gather(self, e: Gather) -> str:
        at = [part for part in (self.address(e.pointer), self._as(e.index, _I32)) if part != "0"]
        return self._element(e.pointer, " + ".join(at) or "0", e.type)

    def _narrowed(self, value: str, kind: Type, dtype: DType) -> str:
        """The bits of an element of packed memory."""
        if dtype.is_float:
            return self.target.use(f"xy_narrow_{dtype}({value})")
        word = f"{value}.x" if is_long(kind) else f"bitcast<u32>({value})"
        return f"({word} & {'1u' if dtype is DType.BOOL else '0xffu' if dtype.bytes == 1 else '0xffffu'})"

    def _stored(self, pointer: Pointer, address: str, value: str, kind: Type) -> str:
        dtype, name = self._dtype(pointer), self._root(pointer)
        if dtype in _WHOLE:
            return f"{name}[{address}] = {self._converted(value, kind, Type(Elem[dtype.name], 1))};"
        return self._put(pointer, address, self._narrowed(value, kind, dtype))

    def _put(self, pointer: Pointer, address: str, bits: str) -> str:
        dtype, name = self._dtype(pointer), self._root(pointer)
        shift, mask = (1, "0xffffu") if dtype.bytes == 2 else (2, "0xffu")
        place = f"((u32(i) & {(1 << shift) - 1}u) * {8 * dtype.bytes}u)"
        word = f"&{name}[u32(i) >> {shift}u]"
        body = f"atomicAnd({word}, ~({mask} << {place})); atomicOr({word}, v << {place});"
        self.target.define(f"{name}_put", f"fn {name}_put(i: i32, v: u32) {{ {body} }}")
        return f"{name}_put({address}, {bits});"

    def _store(self, s: Store) -> str:
        text = self._stored(s.pointer, self.address(s.pointer, s.index), self.expr(s.value), s.value.type)
        return text if s.count is None else f"if ({self.expr(s.count)} > 0) {{ {text} }}"

    def _shared_array(self, s: SharedArray) -> None:
        self._atomic.add(s.var.name)
        count = s.slots * s.count if s.dtype in _WHOLE else -(-s.slots * s.count * s.dtype.bytes // 4)
        self.target.define(s.var.name, f"var<workgroup> {s.var.name}: {self.target.memory(s.dtype, str(count), True)};")

    def _load_packet(self, s: LoadPacket, depth: int) -> None:
        for i, var in enumerate(s.variables):
            value = self._element(s.pointer, self._moved(s.pointer, s.index, i), var.type)
            self._line(depth, f"let {var.name} = {value};")

    def _store_packet(self, s: StorePacket, depth: int) -> None:
        dtype, values = self._dtype(s.pointer), [self.expr(v) for v in s.values]
        together = 4 // dtype.bytes
        if dtype in _WHOLE or len(values) % together:
            for i, value in enumerate(values):
                self._line(depth, self._stored(s.pointer, self._moved(s.pointer, s.index, i), value, s.values[i].type))
            return
        bits = [self._narrowed(v, value.type, dtype) for v, value in zip(values, s.values, strict=True)]
        first = f"u32({self.address(s.pointer, s.index)}) / {together}u"
        for i in range(0, len(bits), together):
            word = " | ".join(f"({part} << {8 * dtype.bytes * j}u)" for j, part in enumerate(bits[i : i + together]))
            self._line(depth, f"atomicStore(&{self._root(s.pointer)}[{first} + {i // together}u], {word});")

    def _copy(self, s: AsyncCopy, depth: int) -> None:
        packed = self._dtype(s.target) not in _WHOLE
        for i in range(s.count):
            to, at = self._moved(s.target, s.target_index, i), self._moved(s.source, s.source_index, i)
            here = None if s.valid is None else f"{self.expr(s.valid)} > {i}"
            at = at if here is None else f"select(0, {at}, {here})"
            element = self._bits(s.source, at) if packed else f"{self._root(s.source)}[{at}]"
            if here is not None:
                zero = "0u" if packed else f"{_WHOLE[self._dtype(s.target)]}()"
                element = f"select({zero}, {element}, {here})"
            self._line(depth, self._put(s.target, to, element) if packed else f"{self._root(s.target)}[{to}] = {element};")

    def _as(self, e: Rvalue, kind: Type) -> str:
        return self._converted(self.expr(e), e.type, kind)

    def _converted(self, value: str, found: Type, wanted: Type) -> str:
        a, b = self.target.type(found), self.target.type(wanted)
        if a == b:
            return value
        if a == LONG:
            return self.target.use(f"xy_float_of_long({value})") if b == "f32" else f"bitcast<i32>({value}.x)"
        if b == LONG:
            return self.target.use(f"xy_long_of_float({value})" if a == "f32" else f"xy_long({value})")
        return f"{b}({value})"
