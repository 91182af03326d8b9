"""C for GPUs: blocks, shared memory, packets and copies, spelled by a ``Dialect``.

A target is one ``Dialect``, a table of its spellings; helper functions are written in the target's language. Indices are 32 bits
wide; the caller makes sure that no buffer has more elements.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.emitters.c_family import CPrinter
from xyntra_ep.tracea.runtime.kernel_source import Definition, Definitions
from xyntra_ep.tracea.semantic_ir.gpu.fragment_nodes import FragmentDot, LoadFragments
from xyntra_ep.tracea.semantic_ir.gpu.matrix_dot import MatrixDot, TakePacket
from xyntra_ep.tracea.semantic_ir.gpu.nodes import (
    SHARED_ALIGNMENT,
    AsyncCommit,
    AsyncCopy,
    AsyncWait,
    Barrier,
    LoadPacket,
    SharedArray,
    StorePacket,
    SubgroupXor,
)
from xyntra_ep.tracea.semantic_ir.gpu.shared_memory import shared_layout
from xyntra_ep.tracea.semantic_ir.gpu.warpgroup_nodes import Roles
from xyntra_ep.tracea.semantic_ir.nodes import (
    BLOCK,
    THREAD,
    Elem,
    Function,
    Gather,
    Kernel,
    Load,
    Pointer,
    PointerType,
    Rvalue,
    Space,
    Statement,
    Store,
    Type,
    Var,
)

_GIVEN = "xy_shared"  # the name of the shared memory that a launch gives
_STORAGE = {
    DType.F32: "float", DType.F16: "unsigned short", DType.BF16: "unsigned short", DType.I32: "int", DType.I16: "short",
    DType.U16: "unsigned short", DType.I8: "signed char",
    DType.U8: "unsigned char", DType.BOOL: "unsigned char",
}  # fmt: skip
_COMPARED = {"min": "<", "max": ">"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """The words of one language. ``{}`` fields are filled by ``str.format``; empty text means there is nothing to say.

    ``functions`` are bodies, by name, of functions that the device has an instruction for: as exact as what they replace says of
    itself, or 2^-22 relative where that is less (drivers promise 2 or 3 units in the last place).
    ``helpers`` are definitions by name, or by name and parenthesis, printed when a spelling names them; ``xy_round_f16`` is one
    of them, and ``types`` says which are types. Types that do not convert by themselves: ``widen`` and ``narrow`` go from a
    stored element to a float and back, or, where only memory converts, ``load`` and ``store`` do it at address {p} in {space}, of
    one element or of a packet: {n} floats, aligned as {a} says; both are empty for one. ``packets``: types with a vector of {n}
    elements to move at once; ``part`` is its element {i}.

    Where a language says of each argument what it is, ``buffer`` and ``sizes`` do, and ``positions`` are the last ones, of which
    ``block`` and ``thread`` are made. ``names``: variables that the language does not let be called so.
    """

    long: str
    long_suffix: str
    kernel: str  # {name}, {threads}, {arguments}
    function: str
    spaces: Mapping[Space, str]
    shared: str  # {type}, {name}, {count}, {alignment}
    block: str
    thread: str
    barrier: str
    bits: Mapping[Elem, str]  # to this element, of {v}
    nan: str
    infinity: str
    math: str  # a function {name} of floats
    widen: Mapping[DType, str] = field(default_factory=dict)
    narrow: Mapping[DType, str] = field(default_factory=dict)
    load: Mapping[DType, str] = field(default_factory=dict)
    store: Mapping[DType, str] = field(default_factory=dict)
    functions: Mapping[str, str] = field(default_factory=dict)
    helpers: Mapping[str, str] = field(default_factory=dict)
    types: frozenset[str] = frozenset()
    packets: Mapping[DType, str] = field(default_factory=dict)  # the type of {n} elements
    packet_helper: str = ""  # {type}, {element}, {n}: a definition that goes with it
    part: str = ""
    packet: str = ""  # {type} of {parts}
    copy: str = ""  # {bytes} from {source} to {target}, {valid} bytes of them
    commit: str = ""
    wait: str = ""  # {pending}
    subgroup_xor: str = ""  # {v}, {mask}
    load_fragments: str = ""  # {variables}, {p}, {transposed}: _transposed or nothing
    fragment_dot: str = ""  # {dtype}, {values}: c, a, b
    prelude: str = ""  # what every kernel begins with
    names: Mapping[str, str] = field(default_factory=dict)
    buffer: str = "{argument}"  # one: the {argument} as C has it, the {index}-th
    sizes: str = ""  # one argument that all sizes are in, the {index}-th; empty where each is an argument
    size: str = ""  # the {index}-th of these
    positions: tuple[str, ...] = ()
    take_packet: str = ""  # {bytes} from {source} to {target}; empty where packets do it
    matrix_dots: Mapping[str, str] = field(default_factory=dict)  # by the shape's name: {c}, {a}, {b}
    tensor: str = ""  # an argument: the map of a tensor, {name}
    given: str = ""  # shared memory that a launch gives: {name}, {alignment}; empty where a kernel declares all it has
    go: str = ""  # a last argument; with 0 a launch does nothing: one for drivers that compile at the first. Of kernels
    not_go: str = ""  # with barriers it has this name and no meaning: PoCL 3.1 gets barriers wrong that stand under a condition


class GpuTarget:
    """See `emitters.c_family.Target`."""

    out_of_line = False

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self._helpers: dict[str, str] = {}
        self._types = set(dialect.types)  # which of them are

    # -- types

    def type(self, kind: Type) -> str:
        if kind.elem is Elem.F32:
            return "float"
        return self.dialect.long if kind.elem is Elem.I64 and kind.lanes else "int"

    def storage(self, dtype: DType) -> str:
        return self.dialect.long if dtype is DType.I64 else _STORAGE[dtype]

    def pointer(self, kind: PointerType) -> str:
        words = (self.dialect.spaces[kind.space], "" if kind.writable else "const", self.storage(kind.dtype), "*")
        return " ".join(w for w in words if w)

    # -- text around the walk

    def definitions(self) -> list[Definition]:
        prelude = self.dialect.prelude
        return [
            *([Definition(text=prelude, name=prelude, is_type=True)] if prelude else ()),
            *(
                Definition(text=f"{text}\n", name=name.rstrip("("), is_type=name in self._types)
                for name, text in self._helpers.items()
            ),
        ]

    def qualifiers(self, function: Function) -> str:
        return self.dialect.function

    def signature(self, function: Function) -> str:
        result = self.type(function.result) if function.result else "void"
        return f"{result} {function.name}({', '.join(self._argument(v) for v in function.arguments)})"

    def _argument(self, var: Var) -> str:
        kind = var.vtype
        return f"{self.pointer(kind)}{var.name}" if isinstance(kind, PointerType) else f"{self.type(kind)} {var.name}"

    def kernel_head(self, kernel: Kernel) -> list[str]:
        dialect = self.dialect
        plain = [f"{self.pointer(PointerType(b.dtype, b.writable))}{b.name}" for b in kernel.buffers]
        buffers = [dialect.buffer.format(argument=argument, index=i) for i, argument in enumerate(plain)]
        waits = any(isinstance(s, SharedArray) for s in kernel.body)
        go = dialect.not_go if waits else dialect.go
        tensors = [self.use(dialect.tensor.format(name=m.name)) for m in kernel.maps]
        numbers = [f"const int {name}" for name in (*kernel.params, *([go] if go else ()))]
        found: list[str] = []  # in what is one argument
        if dialect.sizes and numbers:
            found = [f"  {number} = {dialect.size.format(index=i)};" for i, number in enumerate(numbers)]
            numbers = [dialect.sizes.format(index=len(buffers))]
        arguments = ", ".join([*buffers, *tensors, *numbers, *dialect.positions])
        # Who changes how many registers its threads have must have a multiprocessor to itself.
        threads = f"{kernel.threads}, 1" if isinstance(kernel.body[-1], Roles) else str(kernel.threads)
        if kernel.cluster > 1:
            threads = f"{threads}) __cluster_dims__({kernel.cluster}, 1, 1"
        return [
            dialect.kernel.format(name=kernel.name, threads=threads, arguments=arguments) + " {",
            *([f"  if (!{go}) return;"] if go and not waits else ()),
            *found,
            f"  const int {self.name(BLOCK.name)} = {dialect.block};",
            f"  const int {self.name(THREAD.name)} = {dialect.thread};",
        ]

    def name(self, name: str) -> str:
        """What a variable of this name is called."""
        return self.dialect.names.get(name, name)

    def array(self, var: Var, dtype: DType, count: int) -> str:
        return f"{self.storage(dtype)} {var.name}[{count}];"

    def float_literal(self, value: float) -> str:
        if math.isnan(value):
            return self.dialect.nan
        try:
            narrow = struct.unpack("<f", struct.pack("<f", value))[0]
        except OverflowError:
            narrow = math.copysign(math.inf, value)
        text = self.dialect.infinity if math.isinf(narrow) else abs(narrow).hex() + "f"
        return f"(-{text})" if math.copysign(1.0, narrow) < 0 else text

    def bits(self, kind: Type, value: str) -> str:
        return self.dialect.bits[kind.elem].format(v=value)

    # -- helpers

    def define(self, name: str, definition: str) -> None:
        """A helper of this kernel alone, once."""
        self._helpers.setdefault(name, definition)

    def helper(self, name: str, kind: Type, dtype: DType | None = None) -> str:
        if name.startswith("libm_") or name in ("sqrt", "floor", "ceil", "rint", "pow", "fmod"):
            return self.use(self.dialect.math.format(name=name.removeprefix("libm_")))
        if name == "abs" and kind.elem is Elem.F32:
            return self.use(self.dialect.math.format(name="fabs"))
        if name == "round_f16":
            return self.use("xy_round_f16")
        full = f"xy_{name}_{'index' if not kind.lanes else kind.elem}"
        if full not in self._helpers:
            t = self.type(kind)
            arguments = f"{t} a, {t} b" if name != "abs" else f"{t} a"
            self._helpers[full] = f"{self.dialect.function} {t} {full}({arguments}) {{ return {_body(name)}; }}"
        return full

    def use(self, text: str) -> str:
        """``text``, after the helpers that it names."""
        for name, definition in self.dialect.helpers.items():
            if name in text and name not in self._helpers:
                self.use(definition.replace(name, ""))
                self._helpers[name] = definition
        return text

    def narrow_bf16(self) -> str:
        """The function that rounds a float to the bits of the nearest bfloat16."""
        name = "xy_narrow_bf16"
        bits = self.bits(Type(Elem.I32, 1), "v")
        rounded = "v != v ? (b >> 16) | 0x40 : (b + 0x7fff + ((b >> 16) & 1)) >> 16"
        head = f"{self.dialect.function} unsigned short {name}(float v)"
        self._helpers.setdefault(name, f"{head} {{ unsigned b = (unsigned){bits}; return (unsigned short)({rounded}); }}")
        return name

    def packet_type(self, dtype: DType, count: int) -> str:
        """The type of ``count`` neighbours; empty where the target has none."""
        spelled = self.dialect.packets.get(dtype, "").format(n=count)
        if spelled and self.dialect.packet_helper:
            definition = self.dialect.packet_helper.format(
                type=spelled, element=self.storage(dtype), n=count, bytes=count * dtype.bytes
            )
            self._helpers.setdefault(spelled, definition)
            self._types.add(spelled)
        return spelled


def _body(name: str) -> str:
    match name:
        case "abs":
            return "a < 0 ? -a : a"
        case "min" | "max":
            return f"a {_COMPARED[name]} b ? a : b"
        case "div":
            return "b == 0 ? 0 : b == -1 ? -a : a / b"
        case "mod":
            return "b == 0 || b == -1 ? 0 : a % b"
    raise AssertionError(f"no helper {name}")


class GpuPrinter(CPrinter):
    """One GPU kernel's text."""

    def __init__(self, dialect: Dialect) -> None:
        self.target = GpuTarget(dialect)
        super().__init__(self.target)
        self.long_suffix = dialect.long_suffix
        self._dialect = dialect
        self._given: Mapping[str, int] = {}  # where arrays lie in what the launch gives
        self._packets = 0
        self._visit |= {Gather: self._gather, SubgroupXor: self._subgroup_xor, Var: lambda e: self.target.name(e.name)}

    def kernel(self, kernel: Kernel) -> Definitions:
        layout = shared_layout(kernel)
        if layout.given_bytes and self._dialect.given:
            self._given = layout.offsets
        return super().kernel(kernel)

    def function(self, function: Function) -> Definition:
        body = self._dialect.functions.get(function.name)
        return super().function(function) if body is None else self._defined(function, f" {{ {self.target.use(body)} }}\n")

    def _statement(self, s: Statement, depth: int) -> None:
        match s:
            case SharedArray():
                self._shared_array(s, depth)
            case Barrier():
                self._say(depth, self._dialect.barrier)
            case AsyncCopy():
                self._copy(s, depth)
            case AsyncCommit():
                self._say(depth, self._dialect.commit)
            case AsyncWait():
                self._say(depth, self._dialect.wait.format(pending=s.pending))
            case LoadPacket():
                self._load_packet(s, depth)
            case StorePacket():
                self._store_packet(s, depth)
            case LoadFragments():
                names = ", ".join(v.name for v in s.variables)
                self._line(depth, f"int {names};")
                turned = "_transposed" if s.transposed else ""
                where = self.address(s.pointer, s.index)
                self._say(depth, self._dialect.load_fragments.format(variables=names, p=where, transposed=turned))
            case FragmentDot():
                values = ", ".join(self.expr(v) for v in (*s.c, *s.a, *s.b))
                self._say(depth, self._dialect.fragment_dot.format(dtype=s.dtype, values=values))
            case TakePacket():
                self._take_packet(s, depth)
            case MatrixDot():
                parts = {name: self.address(part) for name, part in (("c", s.c), ("a", s.a), ("b", s.b))}
                self._say(depth, self._dialect.matrix_dots[s.shape.name].format(**parts))
            case _:
                super()._statement(s, depth)

    def _say(self, depth: int, text: str) -> None:
        if text:
            self._line(depth, self.target.use(text))

    # -- memory

    def _shared_array(self, s: SharedArray, depth: int) -> None:
        name, kind = s.var.name, self.target.storage(s.dtype)
        if name not in self._given:
            text = self._dialect.shared.format(type=kind, name=name, count=s.slots * s.count, alignment=s.alignment)
            self._line(depth, text)
            return
        at = self._given[name]
        if at == 0:
            self._line(depth, self._dialect.given.format(name=_GIVEN, alignment=SHARED_ALIGNMENT))
        self._line(depth, f"{kind} *const {name} = ({kind} *)({_GIVEN} + {at});")

    def _load(self, e: Load) -> str:
        value = self._element(e.pointer, self.address(e.pointer, e.index), e.type)
        if e.count is None:
            return value
        return f"({self.expr(e.count)} > 0 ? {value} : ({self.target.type(e.type)})0)"

    def _gather(self, e: Gather) -> str:
        return self._element(e.pointer, f"{self.address(e.pointer)} + {self.expr(e.index)}", e.type)

    def _element(self, pointer: Pointer, address: str, kind: Type) -> str:
        dtype = self._dtype(pointer)
        if spelled := self._dialect.load.get(dtype):
            return self.target.use(spelled).format(p=address, space=self._space(pointer), a="", n="")
        return self._widened(f"*({address})", dtype, kind)

    def _widened(self, element: str, dtype: DType, kind: Type) -> str:
        if spelled := self._dialect.widen.get(dtype):
            return self.target.use(spelled).format(v=element)
        if dtype is DType.BF16:
            return self.target.bits(kind, f"(int)((unsigned){element} << 16)")
        if dtype is DType.BOOL:
            return f"(-({element} != 0))"
        compute = self.target.type(kind)
        return element if compute == self.target.storage(dtype) else f"(({compute}){element})"

    def _store(self, s: Store) -> str:
        address = self.address(s.pointer, s.index)
        whole = self._as_it_is(s.value, self._dtype(s.pointer))
        text = self._stored(s.pointer, address, self.expr(s.value)) if whole is None else f"*({address}) = {whole};"
        return text if s.count is None else f"if ({self.expr(s.count)} > 0) {text}"

    def _stored(self, pointer: Pointer, address: str, value: str) -> str:
        dtype = self._dtype(pointer)
        if spelled := self._dialect.store.get(dtype):
            return self.target.use(spelled).format(p=address, v=value, space=self._space(pointer), a="", n="")
        return f"*({address}) = {self._narrowed(value, dtype)};"

    def _as_it_is(self, value: Rvalue, dtype: DType) -> str | None:
        """An element of the thread's own array that is stored in the same type: nothing is widened to be narrowed again."""
        if isinstance(value, Load) and value.count is None:
            kind = value.pointer.vtype
            if isinstance(kind, PointerType) and kind.space is Space.PRIVATE and kind.dtype is dtype:
                return f"*({self.address(value.pointer, value.index)})"
        return None

    def _narrowed(self, value: str, dtype: DType) -> str:
        if spelled := self._dialect.narrow.get(dtype):
            return self.target.use(spelled).format(v=value)
        if dtype is DType.BF16:
            return f"{self.target.narrow_bf16()}({value})"
        if dtype is DType.BOOL:
            return f"(unsigned char)({value} & 1)"
        return value if dtype in (DType.F32, DType.I64) else f"({self.target.storage(dtype)}){value}"

    def _space(self, pointer: Pointer) -> str:
        kind = pointer.vtype
        assert isinstance(kind, PointerType)
        return self._dialect.spaces[kind.space]

    def _pointer_to(self, packet: str, pointer: Pointer, writable: bool) -> str:
        words = (self._space(pointer), "" if writable else "const", packet, "*")
        return " ".join(w for w in words if w)

    def _load_packet(self, s: LoadPacket, depth: int) -> None:
        dtype, count = self._dtype(s.pointer), len(s.variables)
        address, kind = self.address(s.pointer, s.index), s.variables[0].type
        load = self._dialect.load.get(dtype)
        packet = self.target.packet_type(DType.F32 if load else dtype, count)
        parts: Sequence[str]
        if packet:
            self._packets += 1
            name = f"packet{self._packets}"
            parts = [self._dialect.part.format(v=name, i=i) for i in range(count)]
            if load:
                whole = self.target.use(load).format(p=address, space=self._space(s.pointer), a="a", n=count)
            else:
                whole = f"*({self._pointer_to(packet, s.pointer, False)})({address})"
                parts = [self._widened(part, dtype, kind) for part in parts]
            self._line(depth, f"const {packet} {name} = {whole};")
        else:
            parts = [self._element(s.pointer, f"{address} + {i}", kind) for i in range(count)]
        for var, part in zip(s.variables, parts, strict=True):
            self._line(depth, f"const {self.target.type(kind)} {var.name} = {part};")

    def _take_packet(self, s: TakePacket, depth: int) -> None:
        dtype, target, source = self._dtype(s.pointer), self.address(s.target), self.address(s.pointer, s.index)
        if self._dialect.take_packet:
            self._say(depth, self._dialect.take_packet.format(bytes=s.count * dtype.bytes, target=target, source=source))
            return
        self._packets += 1
        name, packet = f"packet{self._packets}", self.target.packet_type(dtype, s.count)
        self._line(depth, f"const {packet} {name} = *({self._pointer_to(packet, s.pointer, False)})({source});")
        for i in range(s.count):
            self._line(depth, f"*({target} + {i}) = {self._dialect.part.format(v=name, i=i)};")

    def _store_packet(self, s: StorePacket, depth: int) -> None:
        dtype, count = self._dtype(s.pointer), len(s.values)
        address, values = self.address(s.pointer, s.index), [self.expr(v) for v in s.values]
        store = self._dialect.store.get(dtype)
        packet = self.target.packet_type(DType.F32 if store else dtype, count)
        if not packet:
            for i, value in enumerate(values):
                self._line(depth, self._stored(s.pointer, f"{address} + {i}", value))
            return
        parts = ", ".join(
            values if store else (self._as_it_is(e, dtype) or self._narrowed(self.expr(e), dtype) for e in s.values)
        )
        whole = self._dialect.packet.format(type=packet, parts=parts)
        if store:
            self._line(depth, self.target.use(store).format(p=address, v=whole, space=self._space(s.pointer), a="a", n=count))
            return
        self._line(depth, f"*({self._pointer_to(packet, s.pointer, True)})({address}) = {whole};")

    def _copy(self, s: AsyncCopy, depth: int) -> None:
        target, source = self.address(s.target, s.target_index), self.address(s.source, s.source_index)
        size = self._dtype(s.target).bytes
        if self._dialect.copy:
            valid = str(s.count * size)
            if s.valid is not None:
                limit = self._clamped(s.valid, s.count)
                valid = limit if size == 1 else f"{limit} * {size}"
            text = self._dialect.copy.format(target=target, source=source, bytes=s.count * size, valid=valid)
            self._line(depth, self.target.use(text))
            return
        packet = self.target.packet_type(self._dtype(s.target), s.count)
        if packet and s.valid is None:
            whole = f"*({self._pointer_to(packet, s.source, False)})({source})"
            self._line(depth, f"*({self._pointer_to(packet, s.target, True)})({target}) = {whole};")
            return
        for i in range(s.count):
            element = f"*({source} + {i})"
            if s.valid is not None:
                element = f"({self.expr(s.valid)} > {i} ? {element} : 0)"
            self._line(depth, f"*({target} + {i}) = {element};")

    def _clamped(self, valid: Rvalue, count: int) -> str:
        kind = Type(Elem.I64, 0)
        low = f"{self.target.helper('max', kind)}({self.expr(valid)}, 0)"
        return f"{self.target.helper('min', kind)}({low}, {count})"

    def _subgroup_xor(self, e: SubgroupXor) -> str:
        return self.target.use(self._dialect.subgroup_xor.format(v=self.expr(e.value), mask=e.mask))
