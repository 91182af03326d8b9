"""Numbers of a kernel become data that it is given: kernels that differ in them alone are then one.

    y = rint(x * 0x1.99p+4f) + 113.0f        n0 = b_numbers[0]; n1 = b_numbers[1]; y = rint(x * n0) + n1

Layers of a quantised model differ in scales and zero points, and in what is made of them. A number is read once in the body of
the kernel or of a function, outside of its loops, and its vector is made there. What is computed stays the same to the bit, since
literals stay where a compiler may make something else of them: 0, 1, -1 and what is not finite, divisors and factors that are
powers of two, arithmetic of literals alone. So do all integers but those that words are added to or multiplied by, and what is
in functions with a result, which are elementary ones.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.semantic_ir.builder import parts_of
from xyntra_ep.tracea.semantic_ir.capabilities import Capabilities, Isa
from xyntra_ep.tracea.semantic_ir.nodes import (
    Binary,
    Bitcast,
    Buffer,
    CallStatement,
    CallValue,
    Const,
    Elem,
    Fma,
    Function,
    Kernel,
    Let,
    Load,
    PointerType,
    Rvalue,
    Splat,
    Statement,
    Type,
    Var,
    index,
)
from xyntra_ep.tracea.semantic_ir.table_nodes import ByteLookup, Lookup, LookupIn, as_bytes

_NUMBERS = Var(PointerType(DType.F32), "b_numbers")
_OF_WORDS = frozenset({"add", "sub", "mul"})
_HIGHEST = 3.4028234663852886e38  # of a float
_NUMBER_BYTES = DType.F32.bytes
_FORMAT = {Elem.F32: "f", Elem.I32: "i"}
_EXACT: dict[Elem, Callable[[float], float]] = {Elem.F32: float, Elem.I32: int}
_BYTE_LANES = 16  # of the vectors that the instruction finds bytes in


def lifted(kernel: Kernel, caps: Capabilities) -> tuple[Kernel, bytes]:
    """The kernel with a last buffer for its numbers, and what is in that; itself and nothing where it has none."""
    data = _Data()
    functions: dict[str, Function] = {}  # what became of each, by name
    finds_bytes = caps.isa is Isa.AVX512 and caps.avx512_vbmi
    for function in kernel.functions:
        of_function = function
        if function.result is None:
            body = _Body(data, functions, finds_bytes).rewritten(function.body)
            if body is not function.body:
                of_function = replace(function, arguments=(*function.arguments, _NUMBERS), body=body)
        functions[function.name] = of_function
    body = _Body(data, functions, finds_bytes).rewritten(kernel.body)
    if not data.words:
        return kernel, b""
    buffers = (*kernel.buffers, Buffer(_NUMBERS.name, DType.F32))
    made = replace(kernel, buffers=buffers, functions=tuple(functions.values()), body=body)
    return made, data.content


class _Data:
    """What is in the buffer: words, and where which of them begin."""

    def __init__(self) -> None:
        self.words = 0
        self._at: dict[tuple[str, bytes], int] = {}  # by what they are read as, in their order

    @property
    def content(self) -> bytes:
        return b"".join(data for _, data in self._at)

    def place(self, kind: str, data: bytes) -> int:
        at = self._at.setdefault((kind, data), self.words)
        self.words += len(data) // _NUMBER_BYTES if at == self.words else 0
        return at


class _Body:
    """The statements of a kernel or a function with variables in place of numbers. They are read before the first statement that
    needs them, outside of all loops, and so behind the loop whose sums they are for."""

    def __init__(self, data: _Data, functions: dict[str, Function], finds_bytes: bool) -> None:
        self._data = data
        self._functions = functions
        self._finds_bytes = finds_bytes
        self._read: dict[Var, Let] = {}
        self._variables: dict[Const, Var] = {}
        self._done: dict[int, object] = {}  # by id: what is rewritten holds them

    def rewritten(self, statements: tuple[Statement, ...]) -> tuple[Statement, ...]:
        """Themselves where there is nothing to do."""
        made: list[Statement] = []
        for statement in statements:
            known = len(self._read)
            rewritten = self._part(statement)
            if len(self._read) > known:
                made += [*self._read.values()][known:]
            made.append(rewritten)
        return tuple(made) if any(new is not old for new, old in zip(made, statements, strict=False)) else statements

    def _tuple(self, parts: tuple[Any, ...]) -> tuple[Any, ...]:
        made = tuple(map(self._part, parts))
        return parts if all(new is old for new, old in zip(made, parts, strict=True)) else made

    def _part(self, part: Any) -> Any:
        """A node, a tuple of them, or what is neither."""
        kind = type(part)
        if kind is Var:
            return part
        if kind is tuple:
            return self._tuple(part)
        if kind is Const:
            return self._variable(part) if part.ctype.elem is Elem.F32 and _may_move(part) else part
        names = parts_of(kind)
        if not names:
            return part
        found = self._done.get(id(part))
        if found is None:
            found = self._done[id(part)] = self._node(part, names[::-1])
        return found

    def _node(self, node: Any, names: tuple[str, ...]) -> Any:
        if isinstance(node, Binary):
            return self._binary(node)
        if isinstance(node, Lookup):
            return self._lookup(node)
        if isinstance(node, Fma) and isinstance(node.a, Const) and isinstance(node.b, Const):
            return node
        old = [getattr(node, name) for name in names]
        new = [self._part(part) for part in old]
        changed = {name: now for name, now, was in zip(names, new, old, strict=True) if now is not was}
        if isinstance(node, (CallStatement, CallValue)):
            function = self._functions[node.function.name]
            if len(function.arguments) > len(node.args):
                changed |= {"function": function, "args": (*changed.get("args", node.args), _NUMBERS)}
        return replace(node, **changed) if changed else node

    def _binary(self, e: Binary) -> Binary:
        if isinstance(e.a, Const) and isinstance(e.b, Const):
            return e
        a, b = (self._operand(e.op, operand) for operand in (e.a, e.b))
        return e if a is e.a and b is e.b else Binary(e.op, a, b)

    def _operand(self, op: str, a: Rvalue) -> Rvalue:
        if not isinstance(a, Const):
            found: Rvalue = self._part(a)
            return found
        moves = a.ctype.elem is Elem.F32 or (a.ctype.elem is Elem.I32 and op in _OF_WORDS)
        is_shift = op in ("mul", "div") and abs(math.frexp(a.value)[0]) == 0.5
        return self._variable(a) if moves and not is_shift and _may_move(a) else a

    def _lookup(self, e: Lookup) -> Rvalue:
        where: Rvalue = self._part(e.index)
        packed = as_bytes(e.table, e.elem) if self._finds_bytes and e.type.lanes == _BYTE_LANES else None
        if packed is None:
            data = struct.pack(f"<{len(e.table)}{_FORMAT[e.elem]}", *map(_EXACT[e.elem], e.table))
            return LookupIn(_NUMBERS, index(self._data.place(f"{e.elem} table", data)), where, e.elem)
        low, values = packed
        first = self._data.place("bytes", bytes(map(int, values)))
        table = tuple(
            self._let(f"t{first}_{n}", Bitcast(e.type, Load(_NUMBERS, index(first + n * _BYTE_LANES), _BYTE_LANES)))
            for n in range(len(values) // (_BYTE_LANES * _NUMBER_BYTES))
        )
        found = ByteLookup(table, where)
        return found + self._operand("add", Const(e.type, low)) if low else found

    def _variable(self, number: Const) -> Var:
        """What holds it."""
        found = self._variables.get(number)
        if found is None:
            elem, lanes = number.ctype.elem, number.ctype.lanes
            first = self._data.place(str(elem), struct.pack(f"<{_FORMAT[elem]}", number.value))
            read = Load(_NUMBERS, index(first), 1)
            found = self._let(f"n{first}_", read if elem is Elem.F32 else Bitcast(Type(elem, 1), read))
            if lanes > 1:
                found = self._let(f"n{first}_x{lanes}", Splat(number.ctype, found))
            self._variables[number] = found
        return found

    def _let(self, name: str, value: Rvalue) -> Var:
        var = Var(value.type, name)
        if var not in self._read:
            self._read[var] = Let(var, value)
        return var


def _may_move(number: Const) -> bool:
    """Whether it is a number like any other, as far as a compiler is concerned."""
    return 0 < abs(number.value) <= _HIGHEST and abs(number.value) != 1
