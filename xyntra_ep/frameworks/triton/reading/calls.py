"""What the operators and functions of a kernel make of blocks, pointers and numbers."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from xyntra_ep.frameworks.triton.reading.functions import (
    ARITHMETIC,
    COMPARISONS,
    LOGICAL,
    OF_ONE,
    OF_TWO,
    REDUCTIONS,
    UNCHANGED,
    WRITTEN_OUT,
    alike,
    cast,
    type_named,
)
from xyntra_ep.frameworks.triton.reading.source import LibraryName
from xyntra_ep.frameworks.triton.reading.values import (
    Axis,
    AxisKind,
    Block,
    Found,
    Place,
    Pointer,
    Stored,
    joined,
    renamed,
    unified,
)
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import ReduceKind

_PYTHON: Mapping[str, Callable[..., Any]] = {
    "Add": operator.add, "Sub": operator.sub, "Mult": operator.mul, "Div": operator.truediv, "FloorDiv": operator.floordiv,
    "Mod": operator.mod, "Pow": operator.pow, "BitAnd": operator.and_, "BitOr": operator.or_, "BitXor": operator.xor,
    "LShift": operator.lshift, "RShift": operator.rshift, "Lt": operator.lt, "LtE": operator.le, "Gt": operator.gt,
    "GtE": operator.ge, "Eq": operator.eq, "NotEq": operator.ne, "Is": operator.is_, "IsNot": operator.is_not,
    "USub": operator.neg, "UAdd": operator.pos, "Not": operator.not_, "Invert": operator.invert, "maximum": max, "minimum": min,
    "cdiv": lambda a, b: -(-a // b), "abs": abs, "float": float, "int": int,
}  # fmt: skip
_IGNORED = ("static_assert", "static_print", "device_print", "device_assert", "debug_barrier", "assume")


def unwrapped(value: Any) -> Any:
    """A `tl.constexpr` is what it holds."""
    while type(value).__name__ == "constexpr":
        value = value.value
    return value


def block_of(place: Place, value: Any) -> Block:
    value = unwrapped(value)
    if isinstance(value, Block):
        return value
    if isinstance(value, bool | int | float | np.integer | np.floating):
        return Block(expr=E.const(value.item() if isinstance(value, np.generic) else value))
    place.refuse(f"{type(value).__name__} where a number or a block is expected")


def operate(place: Place, name: str, *values: Any) -> Any:
    """An operator, by the name of its class in `ast`."""
    values = tuple(unwrapped(v) for v in values)
    if any(isinstance(v, Pointer) for v in values):
        return _moved(place, name, *values)
    if not any(isinstance(v, Block) for v in values):
        if any(isinstance(v, LibraryName | DType) for v in values):
            place.refuse("an operator between types")
        return _PYTHON[name](*values)
    blocks = [block_of(place, v) for v in values]
    exprs, shape = unified(place, place.kernel, blocks)
    exprs = alike(exprs)
    kind = exprs[0].dtype
    if len(exprs) == 1:
        op = {"USub": "neg", "Invert": "not" if kind is DType.BOOL else "bitnot", "Not": "not"}.get(name)
        if op is None or (op == "not") != (kind is DType.BOOL):
            place.refuse(f"the operator {name} of a block")
        return Block(expr=E.call(op, exprs[0]), shape=shape)
    if name == "Div" and kind is not DType.F32:
        exprs, kind = [E.call("to_f", x) for x in exprs], DType.F32
    if kind is DType.BOOL and name not in LOGICAL:
        exprs, kind = [E.call("to_i", x) for x in exprs], DType.I64
    table = LOGICAL if kind is DType.BOOL else ARITHMETIC
    if name not in table or (kind is DType.F32 and name in ("FloorDiv", "BitAnd", "BitOr", "BitXor")):
        place.refuse(f"the operator {name} of blocks of {kind}")
    return Block(expr=E.call(table[name], *exprs), shape=shape)


def _moved(place: Place, name: str, a: Any, b: Any = None) -> Pointer:
    if isinstance(b, Pointer) and name == "Add":
        a, b = b, a
    if not isinstance(a, Pointer) or name not in ("Add", "Sub") or isinstance(b, Pointer):
        place.refuse(f"the operator {name} of a pointer")
    found = operate(place, name, a.at, block_of(place, b))
    return replace(a, at=found)


def compare(place: Place, name: str, a: Any, b: Any) -> Any:
    a, b = unwrapped(a), unwrapped(b)
    if not isinstance(a, Block) and not isinstance(b, Block):
        return _PYTHON[name](a, b)
    if name not in COMPARISONS:
        place.refuse(f"the comparison {name} of blocks")
    exprs, shape = unified(place, place.kernel, [block_of(place, a), block_of(place, b)])
    op, swapped, negated = COMPARISONS[name]
    exprs = alike(exprs)
    if exprs[0].dtype is DType.BOOL and op != "eq":
        exprs = [E.call("to_i", x) for x in exprs]
    found = E.call(op, *(exprs[::-1] if swapped else exprs))
    return Block(expr=E.call("not", found) if negated else found, shape=shape)


def call(place: Place, name: str, arguments: list[Any], keywords: dict[str, Any], loops: frozenset[int]) -> Any:
    """A function of `triton.language` or a method of a block, by name."""
    arguments = [unwrapped(a) for a in arguments]
    keywords = {k: unwrapped(v) for k, v in keywords.items()}
    if name in _IGNORED:
        return None
    if name in UNCHANGED or name == "constexpr":
        return arguments[0]
    if name in _SPECIAL:
        return _SPECIAL[name](_Call(place, loops), *arguments, **keywords)
    numbers = [a for a in arguments if isinstance(a, int | float | str)]
    if name in _PYTHON and len(numbers) == len(arguments):
        return _PYTHON[name](*arguments)
    if name in REDUCTIONS:
        return _reduced(place, name, *arguments, **keywords)
    if name == "cdiv":
        a, b = arguments
        return operate(place, "FloorDiv", operate(place, "Sub", operate(place, "Add", a, b), 1), b)
    known = name in OF_ONE or name in OF_TWO or name in WRITTEN_OUT
    if not known or keywords.keys() - {"propagate_nan"}:
        unknown = [f"{k}=" for k in keywords if known and k != "propagate_nan"]
        place.refuse(f"the function {name}{' with ' + ', '.join(unknown) if unknown else ''}")
    exprs, shape = unified(place, place.kernel, [block_of(place, a) for a in arguments])
    exprs = alike(exprs)
    takes_any = name in ("maximum", "minimum", "abs", "fmod")
    if not takes_any:
        exprs = [E.call("to_f", x) for x in exprs]
    made = WRITTEN_OUT[name](*exprs) if name in WRITTEN_OUT else E.call(OF_ONE.get(name) or OF_TWO[name], *exprs)
    return Block(expr=made, shape=shape)


def _reduced(place: Place, name: str, x: Any, axis: Any = None, keep_dims: bool = False, **more: Any) -> Block:
    if more:
        place.refuse(f"{name} with {', '.join(f'{k}=' for k in more)}")
    block = block_of(place, x)
    rank = len(block.shape)
    if axis is not None and not -rank <= axis < rank:
        place.refuse(f"{name} along axis {axis} of a block of {rank} dimensions")
    places = range(rank) if axis is None else [axis % rank]
    axes = frozenset(number for i in places if (number := block.shape[i]) is not None)
    kept = [None if i in places else number for i, number in enumerate(block.shape) if keep_dims or i not in places]
    body = E.call("to_i", block.expr) if block.expr.dtype is DType.BOOL else block.expr
    if not axes:
        return Block(expr=body, shape=tuple(kept))
    own = {number: place.kernel.axis(place.kernel.axes[number]) for number in sorted(axes)}  # the lanes may be used again
    body = renamed(place.kernel, body, own)
    found = joined(place.kernel, REDUCTIONS[name], body, frozenset(own.values()), place.line)
    return Block(expr=found, shape=tuple(kept))


class _Call:
    """The functions that are no arithmetic."""

    def __init__(self, place: Place, loops: frozenset[int]) -> None:
        self.place, self.kernel, self.loops = place, place.kernel, loops

    def program_id(self, axis: int) -> Block:
        grid = self.kernel.grid
        if axis >= len(grid):
            return Block(expr=E.const(0))
        return Block(expr=self.kernel.grid_axis(np.indices(grid)[axis].reshape(-1)))

    def num_programs(self, axis: int) -> int:
        return self.kernel.grid[axis] if axis < len(self.kernel.grid) else 1

    def arange(self, start: Any, end: Any) -> Block:
        if not isinstance(start, int) or not isinstance(end, int):
            self.place.refuse("tl.arange between bounds that are not constants")
        number = self._lane(end - start)
        return Block(expr=E.call("add", E.axis(number), E.const(start)), shape=(number,))

    def _lane(self, extent: int) -> int:
        return self.kernel.axis(Axis(kind=AxisKind.LANE, extent=extent))

    def zeros(self, shape: Any, dtype: Any = DType.F32) -> Block:
        return self.full(shape, 0, dtype)

    def full(self, shape: Any, value: Any, dtype: Any = DType.F32) -> Block:
        sizes = [unwrapped(n) for n in (shape if isinstance(shape, tuple) else (shape,))]
        if not all(isinstance(n, int) for n in sizes):
            self.place.refuse("a block of a shape that is not constant")
        to = self._type(dtype)
        expr = cast(block_of(self.place, value).expr, DType.F32 if to.is_float else to)
        return Block(expr=expr, shape=tuple(self._lane(n) for n in sizes))

    def zeros_like(self, x: Block) -> Block:
        return replace(x, expr=cast(E.const(0), x.expr.dtype))

    def load(self, pointer: Any, mask: Any = None, other: Any = None, **_: Any) -> Block:
        """How the memory is cached changes nothing."""
        if not isinstance(pointer, Pointer):
            self.place.refuse("a load from something that is no pointer")
        stored_to = self.kernel.stored_before.union(stored.parameter for stored in self.kernel.stores)
        if pointer.parameter in stored_to:
            self.place.refuse("a load from what the kernel has stored to")
        parts = [pointer.at, *(block_of(self.place, x) for x in (mask, other) if x is not None)]
        exprs, shape = unified(self.place, self.kernel, parts)
        found = E.load(pointer.parameter, exprs[0], dtype=self.kernel.dtypes[pointer.parameter])
        if mask is not None:
            instead = exprs[2] if other is not None else cast(E.const(0), found.dtype)
            found = E.call("where", E.call("to_b", exprs[1]), *alike([found, instead]))
        return Block(expr=found, shape=shape)

    def store(self, pointer: Any, value: Any, mask: Any = None, **_: Any) -> None:
        if not isinstance(pointer, Pointer):
            self.place.refuse("a store to something that is no pointer")
        parts = [pointer.at, block_of(self.place, value), *([block_of(self.place, mask)] if mask is not None else [])]
        exprs, shape = unified(self.place, self.kernel, parts)
        lanes = {number for number in shape if number is not None}
        known = not any(x.kind == "acc" for x in E.walk(exprs[0]))  # else how a loop moves it is not known yet
        if known and not lanes <= {x.attr for x in E.walk(exprs[0]) if x.kind == "axis"}:
            self.place.refuse("a store of several elements to one place")
        self.kernel.stores.append(
            Stored(
                parameter=pointer.parameter,
                at=exprs[0],
                value=exprs[1],
                mask=exprs[2] if mask is not None else None,
                axes=self.loops,
                line=self.place.line,
            )
        )

    def where(self, condition: Any, yes: Any, no: Any) -> Block:
        exprs, shape = unified(self.place, self.kernel, [block_of(self.place, x) for x in (condition, yes, no)])
        return Block(expr=E.call("where", E.call("to_b", exprs[0]), *alike(exprs[1:])), shape=shape)

    def dot(self, a: Any, b: Any, acc: Any = None, **_: Any) -> Block:
        """In f32; in what the factors are rounded, and TF32 where it is allowed, is a request for speed."""
        a, b = block_of(self.place, a), block_of(self.place, b)
        if len(a.shape) != 2 or len(b.shape) != 2 or a.shape[1] is None or b.shape[0] is None:
            self.place.refuse("a product of something else than two blocks of two dimensions")
        if self.kernel.axes[a.shape[1]].extent != self.kernel.axes[b.shape[0]].extent:
            self.place.refuse("a product of blocks that do not fit")
        k = self.kernel.axis(self.kernel.axes[a.shape[1]])  # new ones: both factors may have been made of the same lanes
        n = b.shape[1] if b.shape[1] is None else self.kernel.axis(self.kernel.axes[b.shape[1]])
        right_names = {b.shape[0]: k} if b.shape[1] is None or n is None else {b.shape[0]: k, b.shape[1]: n}
        left = E.call("to_f", renamed(self.kernel, a.expr, {a.shape[1]: k}))
        right = E.call("to_f", renamed(self.kernel, b.expr, right_names))
        found = Found(
            kind=ReduceKind.SUM, body=E.call("mul", left, right), axes=frozenset([k]), line=self.place.line, factors=(left, right)
        )
        self.kernel.found.append(found)
        made = Block(expr=E.node("acc", (), len(self.kernel.found) - 1, DType.F32), shape=(a.shape[0], n))
        return made if acc is None else operate(self.place, "Add", acc, made)

    def to(self, x: Any, dtype: Any, **more: Any) -> Block:
        if more.keys() - {"fp_downcast_rounding"}:
            self.place.refuse("a cast of bits")
        block = block_of(self.place, x)
        return replace(block, expr=cast(block.expr, self._type(dtype)))

    def _type(self, dtype: Any) -> DType:
        found = dtype if isinstance(dtype, DType) else type_named(dtype.name) if isinstance(dtype, LibraryName) else None
        if found is None:
            self.place.refuse(f"the type {getattr(dtype, 'name', dtype)}")
        return found

    def expand_dims(self, x: Any, axis: int) -> Block:
        block = block_of(self.place, x)
        shape = list(block.shape)
        shape.insert(axis % (len(shape) + 1), None)
        return replace(block, shape=tuple(shape))

    def trans(self, x: Any) -> Block:
        block = block_of(self.place, x)
        return replace(block, shape=block.shape[::-1])


_SPECIAL: Mapping[str, Callable[..., Any]] = {
    name: getattr(_Call, name)
    for name in (
        "program_id", "num_programs", "arange", "zeros", "full", "zeros_like", "load", "store", "where", "dot", "to",
        "expand_dims", "trans",
    )
} | {"cast": _Call.to}  # fmt: skip
