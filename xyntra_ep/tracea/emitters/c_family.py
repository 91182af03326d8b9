"""Printing semantic IR as C-family text. A target supplies the spelling of types, helpers and qualifiers; the walk is common.

Helpers (partial loads, shuffles, half floats, select ...) are asked for by name while printing and defined once at the top, so a
kernel carries only what it uses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.semantic_ir.matrix_nodes import (
    LoadPairs,
    PackPairs,
    PairDot,
    StorePairs,
    TileConfigure,
    TileDot,
    TileLoad,
    TileRelease,
    TileStatement,
    TileStore,
    TileZero,
)
from xyntra_ep.tracea.semantic_ir.nodes import (
    COMPARE,
    LIBM,
    Array,
    Assign,
    Binary,
    Bitcast,
    CallStatement,
    CallValue,
    Comment,
    Const,
    Convert,
    Elem,
    Fma,
    For,
    Function,
    Gather,
    If,
    Iota,
    Kernel,
    Let,
    Load,
    Offset,
    Pointer,
    PointerType,
    Prefetch,
    Reduce,
    Return,
    Rvalue,
    Select,
    Shuffle,
    Splat,
    Statement,
    Store,
    Type,
    Unary,
    Var,
)


class Target(Protocol):
    """What differs between C-family targets."""

    def type(self, kind: Type) -> str: ...
    def storage(self, dtype: DType) -> str: ...
    def pointer(self, kind: PointerType) -> str: ...
    def helper(self, name: str, kind: Type, dtype: DType | None = None) -> str:
        """Name of the helper function for this type; remembers that its definition is needed."""
        ...

    def prelude(self) -> str: ...
    def function_head(self, function: Function) -> str: ...
    def kernel_head(self, kernel: Kernel) -> list[str]: ...
    def array(self, var: Var, dtype: DType, count: int) -> str: ...
    def prefetch(self, address: str, locality: int, write: bool) -> str: ...
    def float_literal(self, value: float) -> str: ...
    def tile_configure(self, shapes: Sequence[tuple[str, str]]) -> str:
        """Rows and bytes of a row of each tile register, as text."""
        ...

    def tile_operation(self, name: str, tiles: Sequence[int], address: str = "", stride_bytes: str = "") -> str:
        """``name``: zero, load, dot (c, a, b), store, release."""
        ...


_INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/", "mod": "%", "and": "&", "or": "|", "xor": "^", "shl": "<<", "shr": ">>"}
_RELATION = {"lt": "<", "le": "<=", "eq": "==", "ne": "!="}


class CPrinter:
    """One kernel's text."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.lines: list[str] = []
        self._visit: dict[type, Callable[..., str]] = {
            Const: self._const,
            Var: lambda e: e.name,
            Unary: self._unary,
            Binary: self._binary,
            Fma: self._fma,
            Select: self._select,
            Convert: self._convert,
            Bitcast: self._bitcast,
            Splat: self._splat,
            Iota: lambda e: f"({self.target.type(e.to)}){{{', '.join(str(i) for i in range(max(1, e.to.lanes)))}}}",
            Load: self._load,
            Gather: lambda e: (
                f"{self._helper('gather', e.type, self._dtype(e.pointer))}({self.address(e.pointer)}, {self.expr(e.index)})"
            ),
            Shuffle: self._shuffle,
            Reduce: lambda e: (
                self.expr(e.a) if e.a.type.lanes <= 1 else f"{self._helper('reduce_' + e.op, e.a.type)}({self.expr(e.a)})"
            ),
            CallValue: lambda e: f"{e.function.name}({self._arguments(e.args)})",
            LoadPairs: self._load_pairs,
            PackPairs: lambda e: f"{self._helper('pack_pairs', e.type)}({self.expr(e.low)}, {self.expr(e.high)})",
            PairDot: lambda e: f"{self._helper('pair_dot', e.type)}({self.expr(e.a)}, {self.expr(e.b)}, {self.expr(e.c)})",
        }

    def kernel(self, kernel: Kernel) -> str:
        for function in kernel.functions:
            self.lines.append(self.target.function_head(function) + " {")
            self.block(function.body, 1)
            self.lines.append("}")
        head = self.target.kernel_head(kernel)
        self.lines.extend(head)
        self.block(kernel.body, 1)
        self.lines.append("}")
        notes = "".join(f"// {note}\n" for note in kernel.notes)
        return notes + self.target.prelude() + "\n".join(self.lines) + "\n"

    # -- statements

    def block(self, statements: tuple[Statement, ...], depth: int) -> None:
        for statement in statements:
            self._statement(statement, depth)

    def _line(self, depth: int, text: str) -> None:
        self.lines.append("  " * depth + text)

    def _statement(self, s: Statement, depth: int) -> None:
        match s:
            case Let():
                const = "" if s.mutable else "const "
                self._line(depth, f"{const}{self.target.type(s.var.type)} {s.var.name} = {self.expr(s.value)};")
            case Assign():
                self._line(depth, f"{s.var.name} = {self.expr(s.value)};")
            case Store():
                self._line(depth, self._store(s))
            case For():
                v = s.var.name
                begin = f"{self.target.type(s.var.type)} {v} = {self.expr(s.begin)}"
                self._line(depth, f"for ({begin}; {v} < {self.expr(s.end)}; {v} += {self.expr(s.step)}) {{")
                self.block(s.body, depth + 1)
                self._line(depth, "}")
            case If():
                self._if(s, depth, "if")
            case Prefetch():
                self._line(depth, self.target.prefetch(self.address(s.pointer, s.index), s.locality, s.write))
            case Array():
                self._line(depth, self.target.array(s.var, s.dtype, s.count))
            case CallStatement():
                self._line(depth, f"{s.function.name}({self._arguments(s.args)});")
            case Return():
                self._line(depth, f"return {self.expr(s.value)};")
            case Comment():
                self._line(depth, f"// {s.text}")
            case StorePairs():
                self._line(depth, self._store_pairs(s))
            case TileConfigure() | TileZero() | TileLoad() | TileDot() | TileStore() | TileRelease():
                self._line(depth, self._tile(s))
            case _:
                raise AssertionError(f"no printing for {s}")

    def _if(self, s: If, depth: int, word: str) -> None:
        self._line(depth, f"{word} ({self.expr(s.condition)}) {{")
        self.block(s.then, depth + 1)
        if len(s.otherwise) == 1 and isinstance(s.otherwise[0], If):
            self._if(s.otherwise[0], depth, "} else if")
            return
        if s.otherwise:
            self._line(depth, "} else {")
            self.block(s.otherwise, depth + 1)
        self._line(depth, "}")

    def _arguments(self, args: tuple[Rvalue, ...]) -> str:
        return ", ".join(
            self.address(a) if isinstance(a, (Var, Offset)) and isinstance(a.vtype, PointerType) else self.expr(a) for a in args
        )

    # -- pointers

    def address(self, pointer: Pointer, at: Rvalue | None = None) -> str:
        parts: list[str] = []
        while isinstance(pointer, Offset):
            parts.append(self.expr(pointer.index))
            pointer = pointer.pointer
        if at is not None:
            parts.append(self.expr(at))
        kept = [p for p in parts if p != "0"]
        return " + ".join([pointer.name, *kept])

    def _dtype(self, pointer: Pointer) -> DType:
        kind = pointer.vtype
        assert isinstance(kind, PointerType)
        return kind.dtype

    def _load(self, e: Load) -> str:
        dtype, kind = self._dtype(e.pointer), e.type
        address = self.address(e.pointer, e.index)
        if e.count is not None:
            return f"{self._helper('load_n', kind, dtype)}({address}, {self.expr(e.count)})"
        if e.lanes <= 1 and dtype in (DType.F32, DType.I64, DType.I32, DType.I8, DType.U8):
            return f"(({self.target.type(kind)})*({address}))"
        if dtype is DType.F32:
            return f"(*(const {self.target.type(kind)} *)({address}))"
        return f"{self._helper('load', kind, dtype)}({address})"

    def _store(self, s: Store) -> str:
        dtype, kind = self._dtype(s.pointer), s.value.type
        address, value = self.address(s.pointer, s.index), self.expr(s.value)
        if s.count is not None:
            return f"{self._helper('store_n', kind, dtype)}({address}, {value}, {self.expr(s.count)});"
        if kind.lanes <= 1 and dtype in (DType.F32, DType.I64, DType.I32, DType.I8, DType.U8):
            return f"*({address}) = ({self.target.storage(dtype)}){value};"
        if dtype is DType.F32:
            return f"*({self.target.type(kind)} *)({address}) = {value};"
        return f"{self._helper('store', kind, dtype)}({address}, {value});"

    def _load_pairs(self, e: LoadPairs) -> str:
        address = self.address(e.pointer, e.index)
        if e.count is not None:
            return f"{self._helper('load_pairs_n', e.type)}({address}, {self.expr(e.count)})"
        return f"{self._helper('load_pairs', e.type)}({address})"

    def _store_pairs(self, s: StorePairs) -> str:
        address, value, kind = self.address(s.pointer, s.index), self.expr(s.value), s.value.type
        if s.count is not None:
            return f"{self._helper('store_pairs_n', kind)}({address}, {value}, {self.expr(s.count)});"
        return f"{self._helper('store_pairs', kind)}({address}, {value});"

    # -- tiles

    def _tile(self, s: TileStatement) -> str:
        match s:
            case TileConfigure():
                return self.target.tile_configure([(self.expr(t.rows), self.expr(t.row_bytes)) for t in s.shapes])
            case TileZero():
                return self.target.tile_operation("zero", (s.tile,))
            case TileDot():
                return self.target.tile_operation("dot", (s.c, s.a, s.b))
            case TileRelease():
                return self.target.tile_operation("release", ())
            case TileLoad() | TileStore():
                name = "load" if isinstance(s, TileLoad) else "store"
                stride = self.expr(s.stride * self._dtype(s.pointer).bytes)
                return self.target.tile_operation(name, (s.tile,), self.address(s.pointer, s.index), stride)

    # -- rvalues

    def expr(self, e: Rvalue) -> str:
        return self._visit[type(e)](e)

    def _helper(self, name: str, kind: Type, dtype: DType | None = None) -> str:
        return self.target.helper(name, kind, dtype)

    def _const(self, e: Const) -> str:
        literal = self.target.float_literal(float(e.value)) if e.ctype.elem is Elem.F32 else self._integer(int(e.value), e.ctype)
        if e.ctype.lanes <= 1:
            return literal
        if float(e.value) == 0.0 and not literal.startswith("(-"):
            return f"({self.target.type(e.ctype)}){{0}}"
        return f"({self.target.type(e.ctype)}){{{', '.join([literal] * e.ctype.lanes)}}}"

    def _integer(self, value: int, kind: Type) -> str:
        if kind.elem is Elem.I32:
            return str(value) if value > -(2**31) else "(-2147483647 - 1)"
        if kind.lanes == 0:
            return str(value)
        return f"{value}ll" if value > -(2**63) else "(-9223372036854775807ll - 1)"

    def _unary(self, e: Unary) -> str:
        if e.op == "neg":
            return f"(-{self.expr(e.a)})"
        if e.op == "not":
            return f"(~{self.expr(e.a)})"
        name = e.op if e.op not in LIBM else f"libm_{e.op}"
        return f"{self._helper(name, e.a.type)}({self.expr(e.a)})"

    def _binary(self, e: Binary) -> str:
        a, b, kind = self.expr(e.a), self.expr(e.b), e.a.type
        if e.op in COMPARE:
            if kind.elem is Elem.I64 and kind.lanes > 1:
                return f"{self._helper(e.op, kind)}({a}, {b})"
            relation = f"({a} {_RELATION[e.op]} {b})"
            if kind.lanes == 0:
                return relation
            if kind.lanes == 1:
                return f"(-{relation})"
            return f"(({self.target.type(e.type)}){relation})"
        if kind.lanes == 0 and e.op in ("min", "max"):
            return f"{self._helper(e.op, kind)}({a}, {b})"
        if e.op in ("min", "max", "pow", "fmod") or (kind.elem is Elem.I64 and kind.lanes and e.op in ("div", "mod")):
            return f"{self._helper(e.op, kind)}({a}, {b})"
        return f"({a} {_INFIX[e.op]} {b})"

    def _fma(self, e: Fma) -> str:
        return f"({self.expr(e.a)} * {self.expr(e.b)} + {self.expr(e.c)})"

    def _select(self, e: Select) -> str:
        mask, a, b = self.expr(e.mask), self.expr(e.a), self.expr(e.b)
        if e.a.type.lanes <= 1:
            return f"({mask} ? {a} : {b})"
        return f"{self._helper('select', e.a.type)}({mask}, {a}, {b})"

    def _convert(self, e: Convert) -> str:
        if e.to.lanes <= 1:
            return f"(({self.target.type(e.to)}){self.expr(e.a)})"
        if isinstance(e.a, Load) and e.a.count is None and (dtype := self._dtype(e.a.pointer)) in (DType.I8, DType.U8):
            # One step to the wanted type: as i64, what it is loaded as, a vector of bytes would take eight registers.
            return f"{self._helper('load', e.to, dtype)}({self.address(e.a.pointer, e.a.index)})"
        return f"__builtin_convertvector({self.expr(e.a)}, {self.target.type(e.to)})"

    def _bitcast(self, e: Bitcast) -> str:
        if e.to.lanes <= 1:
            return f"{self._helper('bits', e.to)}({self.expr(e.a)})"
        return f"(({self.target.type(e.to)}){self.expr(e.a)})"

    def _splat(self, e: Splat) -> str:
        if isinstance(e.a, (Var, Const)):
            text = self.expr(e.a)
            return f"({self.target.type(e.to)}){{{', '.join([text] * e.to.lanes)}}}"
        return f"{self._helper('splat', e.to)}({self.expr(e.a)})"

    def _shuffle(self, e: Shuffle) -> str:
        return f"__builtin_shufflevector({self.expr(e.a)}, {self.expr(e.b)}, {', '.join(map(str, e.lanes))})"
