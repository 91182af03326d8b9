"""Printing semantic IR as C-family text, definition by definition. A target supplies the spelling of types, helpers and
qualifiers; the walk is common.

Helpers (partial loads, shuffles, half floats, select ...) are requested by name while printing and defined once at the top, so a
kernel contains only what it uses. The subclasses in `vector_c.py` and `gpu_c.py` print what only some targets have: vectors and
matrix tiles, or blocks of threads.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Protocol

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.runtime.kernel_source import SYMBOL, Definition, Definitions
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
    If,
    Kernel,
    Let,
    Load,
    Offset,
    Pointer,
    PointerType,
    Return,
    Rvalue,
    Select,
    Statement,
    Store,
    Type,
    Unary,
    Var,
    i32,
)


class Target(Protocol):
    """What differs between C-family targets. ``out_of_line``: functions stay calls unless they say otherwise."""

    out_of_line: bool

    def type(self, kind: Type) -> str: ...
    def helper(self, name: str, kind: Type, dtype: DType | None = None) -> str:
        """Name of the helper function for this type; remembers that its definition is needed."""
        ...

    def definitions(self) -> list[Definition]:
        """Types and helpers that were asked for."""
        ...

    def qualifiers(self, function: Function) -> str: ...
    def signature(self, function: Function) -> str: ...
    def kernel_head(self, kernel: Kernel) -> list[str]: ...
    def array(self, var: Var, dtype: DType, count: int) -> str: ...
    def float_literal(self, value: float) -> str: ...
    def bits(self, kind: Type, value: str) -> str:
        """``value`` (one float or i32) as the same bits of the other type, ``kind``."""
        ...


_INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/", "mod": "%", "and": "&", "or": "|", "xor": "^", "shl": "<<", "shr": ">>"}
_RELATION = {"lt": "<", "le": "<=", "eq": "==", "ne": "!="}


class CPrinter:
    """One kernel's text; values of one element."""

    long_suffix = "ll"  # of 64-bit literals

    def __init__(self, target: Target) -> None:
        self._target = target
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
            Load: self._load,
            CallValue: lambda e: f"{e.function.name}({self._arguments(e.args)})",
        }

    def kernel(self, kernel: Kernel) -> Definitions:
        """What it needs and itself, exported under a name that is still to be given."""
        functions = [self.function(function) for function in kernel.functions]
        head = self._target.kernel_head(dataclasses.replace(kernel, name=SYMBOL))
        exported = Definition(text="\n".join([*head, *self._body(kernel.body), "}"]) + "\n")
        notes = [Definition(text=f"// {note}\n") for note in kernel.notes]
        return (*notes, *self._target.definitions(), *functions, exported)

    def function(self, function: Function) -> Definition:
        body = "\n".join([" {", *self._body(function.body), "}"]) + "\n"
        return self._defined(function, body)

    def _defined(self, function: Function, body: str) -> Definition:
        return Definition.function(
            self._target.qualifiers(function),
            self._target.signature(function),
            body,
            name=function.name,
            out_of_line=self._target.out_of_line and not function.inline,
        )

    def _body(self, statements: tuple[Statement, ...]) -> list[str]:
        self.lines = []
        self.block(statements, 1)
        return self.lines

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
                self._line(depth, f"{const}{self._target.type(s.var.type)} {s.var.name} = {self.expr(s.value)};")
            case Assign():
                self._line(depth, f"{s.var.name} = {self.expr(s.value)};")
            case Store():
                self._line(depth, self._store(s))
            case For():
                v = s.var.name
                begin = f"{self._target.type(s.var.type)} {v} = {self.expr(s.begin)}"
                self._line(depth, f"for ({begin}; {v} < {self.expr(s.end)}; {v} += {self.expr(s.step)}) {{")
                self.block(s.body, depth + 1)
                self._line(depth, "}")
            case If():
                self._if(s, depth, "if")
            case Array():
                self._line(depth, self._target.array(s.var, s.dtype, s.count))
            case CallStatement():
                self._line(depth, f"{s.function.name}({self._arguments(s.args)});")
            case Return():
                self._line(depth, f"return {self.expr(s.value)};")
            case Comment():
                self._line(depth, f"// {s.text}")
            case _:
                raise AssertionError(f"no printing for {s}")

    def _if(self, s: If, depth: int, word: str) -> None:
        self._line(depth, f"{word} ({self.condition(s.condition)}) {{")
        self.block(s.then, depth + 1)
        if len(s.otherwise) == 1 and isinstance(s.otherwise[0], If):
            self._if(s.otherwise[0], depth, "} else if")
            return
        if s.otherwise:
            self._line(depth, "} else {")
            self.block(s.otherwise, depth + 1)
        self._line(depth, "}")

    def condition(self, e: Rvalue) -> str:
        """Whether ``e`` is not 0, as an ``if`` wants it."""
        return self.expr(e)

    def _arguments(self, args: tuple[Rvalue, ...]) -> str:
        return ", ".join(
            self.address(a) if isinstance(a, (Var, Offset)) and isinstance(a.vtype, PointerType) else self.expr(a) for a in args
        )

    # -- memory

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
        raise NotImplementedError

    def _store(self, s: Store) -> str:
        raise NotImplementedError

    # -- rvalues

    def expr(self, e: Rvalue) -> str:
        return self._visit[type(e)](e)

    def _helper(self, name: str, kind: Type, dtype: DType | None = None) -> str:
        return self._target.helper(name, kind, dtype)

    def _const(self, e: Const) -> str:
        if e.ctype.elem is Elem.F32:
            return self._target.float_literal(float(e.value))
        value = int(e.value)
        if e.ctype.elem is Elem.I32:
            return str(value) if value > -(2**31) else "(-2147483647 - 1)"
        if e.ctype.lanes == 0:
            return str(value)
        suffix = self.long_suffix
        return f"{value}{suffix}" if value > -(2**63) else f"(-9223372036854775807{suffix} - 1)"

    def _unary(self, e: Unary) -> str:
        if e.op == "neg":
            return f"(-{self.expr(e.a)})"
        if e.op == "not":
            return f"(~{self.expr(e.a)})"
        name = e.op if e.op not in LIBM else f"libm_{e.op}"
        return f"{self._helper(name, e.a.type)}({self.expr(e.a)})"

    def _binary(self, e: Binary) -> str:
        kind = e.a.type
        if e.op in COMPARE:
            return self.relation(e) if kind.lanes == 0 else f"(-{self.relation(e)})"
        a, b = self.expr(e.a), self.expr(e.b)
        if kind.lanes == 0 and e.op in ("min", "max"):
            return f"{self._helper(e.op, kind)}({a}, {b})"
        if e.op in ("min", "max", "pow", "fmod") or (kind.elem is Elem.I64 and kind.lanes and e.op in ("div", "mod")):
            return f"{self._helper(e.op, kind)}({a}, {b})"
        if kind == i32(1) and e.op in ("add", "sub", "mul"):  # words wrap, where C leaves open what a sum of ints does
            return f"((int)((unsigned){a} {_INFIX[e.op]} (unsigned){b}))"
        return f"({a} {_INFIX[e.op]} {b})"

    def relation(self, e: Binary) -> str:
        return f"({self.expr(e.a)} {_RELATION[e.op]} {self.expr(e.b)})"

    def _fma(self, e: Fma) -> str:
        return f"({self.expr(e.a)} * {self.expr(e.b)} + {self.expr(e.c)})"

    def _select(self, e: Select) -> str:
        return f"({self.expr(e.mask)} ? {self.expr(e.a)} : {self.expr(e.b)})"

    def _convert(self, e: Convert) -> str:
        return f"(({self._target.type(e.to)}){self.expr(e.a)})"

    def _bitcast(self, e: Bitcast) -> str:
        return self._target.bits(e.to, self.expr(e.a))
