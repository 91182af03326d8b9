"""Reads a kernel: its statements are carried out once, on blocks that stand for all programs, lanes and iterations.

    kernel = read(add_kernel, grid=(64,), arguments)     # -> stores, reductions, axes

A loop's body is carried out twice: first to see how each name is carried from one iteration to the next (a step of a number or
pointer, a sum, a maximum), then for what it computes. Everything else is refused with its line.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from xyntra_ep.frameworks.triton.reading.calls import call, compare, operate, unwrapped
from xyntra_ep.frameworks.triton.reading.carried import accumulated, as_value, is_made_anew, marked, moved, step_of
from xyntra_ep.frameworks.triton.reading.source import LibraryName, Source, is_own, library_name, source_of
from xyntra_ep.frameworks.triton.reading.values import Axis, AxisKind, Block, Kernel, Place, Pointer
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dtypes import DType

_MOST_ITERATIONS = 64  # of a static_range


@dataclass(frozen=True, slots=True)
class TensorArgument:
    dtype: DType


def read(kernel: Any, grid: tuple[int, ...], arguments: Mapping[str, Any]) -> Kernel:
    """``arguments`` by name: numbers, flags, types and `TensorArgument`. Raises UnsupportedError with file and line."""
    source = source_of(kernel)
    made = Kernel(where=source.file, grid=grid)
    names: dict[str, Any] = {}
    for name, value in arguments.items():
        if isinstance(value, TensorArgument):
            names[name] = Pointer(parameter=len(made.dtypes), at=Block(expr=E.const(0)))
            made.dtypes.append(value.dtype)
            made.names.append(name)
        else:
            names[name] = value
    with contextlib.suppress(_Returned):  # the kernel's own end
        _Reader(made, source, names).body(source.function.body)
    return made


class _Returned(Exception):
    def __init__(self, value: Any) -> None:
        self.value = value


class _Reader:
    """Of one function; a function that it calls has one of its own."""

    def __init__(self, kernel: Kernel, source: Source, names: dict[str, Any], loops: frozenset[int] = frozenset()) -> None:
        self.kernel, self.source, self.names, self.loops = kernel, source, names, loops

    def place(self, node: ast.AST) -> Place:
        return Place(self.kernel, node, self.source.first, self.source.file)

    # -- statements

    def body(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            self.statement(statement)

    def statement(self, s: ast.stmt) -> None:
        match s:
            case ast.Assign(targets=[target]):
                self.assign(target, self.value(s.value))
            case ast.AnnAssign(value=ast.expr() as value):
                self.assign(s.target, self.value(value))
            case ast.AugAssign(target=ast.Name() as target):
                found = self.value(ast.copy_location(ast.Name(target.id, ast.Load()), s))
                self.assign(target, operate(self.place(s), type(s.op).__name__, found, self.value(s.value)))
            case ast.Expr(value=ast.Constant()) | ast.Pass() | ast.Assert():
                pass
            case ast.Expr():
                self.value(s.value)
            case ast.If():
                self.body(s.body if self.known(s.test) else s.orelse)
            case ast.For(target=ast.Name(), orelse=[]):
                self.loop(s)
            case ast.Return():
                raise _Returned(self.value(s.value) if s.value is not None else None)
            case _:
                self.place(s).refuse(f"a statement of the kind {type(s).__name__}")

    def known(self, test: ast.expr) -> bool:
        condition = unwrapped(self.value(test))
        if isinstance(condition, Block):
            if condition.expr.kind != "const":
                self.place(test).refuse("an `if` about what only a run knows")
            condition = condition.expr.attr
        return bool(condition)

    def assign(self, target: ast.expr, value: Any) -> None:
        if isinstance(target, ast.Tuple) and isinstance(value, tuple) and len(value) == len(target.elts):
            for part, of in zip(target.elts, value, strict=True):
                self.assign(part, of)
        elif isinstance(target, ast.Name):
            self.names[target.id] = self._settled(value)
        else:
            self.place(target).refuse("an assignment to something that is no name")

    def _settled(self, value: Any) -> Any:
        """A number that the programs differ in is an axis of its own, unless it steps evenly along one."""
        if isinstance(value, Block) and value.is_scalar and value.expr.dtype is DType.I64 and value.expr.kind == "call":
            axes = [x for x in E.walk(value.expr) if x.kind == "axis"]
            if len(axes) > 1 and (places := self.kernel.places(value.expr)) is not None:
                return Block(expr=self.kernel.grid_axis(places))
        return value

    # -- loops

    def loop(self, s: ast.For) -> None:
        assert isinstance(s.target, ast.Name)
        start, stop, step, unrolled = self._range(s)
        if step == 0:
            self.place(s).refuse("a range with a step of 0")
        count = max(0, -(-(stop - start) // step))
        if unrolled:
            if count > _MOST_ITERATIONS:
                self.place(s).refuse(f"a static_range of {count} iterations, of which at most {_MOST_ITERATIONS} are read")
            for i in range(count):
                self.names[s.target.id] = start + i * step
                self.iteration(s)
            return
        if count == 0:
            return
        number = self.kernel.axis(Axis(kind=AxisKind.LOOP, extent=count))
        counter = E.call("add", E.const(start), E.call("mul", E.axis(number), E.const(step)))
        carried = sorted(_assigned(s.body) & self.names.keys() - {s.target.id})
        before = {name: as_value(self.names[name]) for name in carried}
        outer, outer_loops = self.names, self.loops
        reader = _Reader(self.kernel, self.source, {**outer, s.target.id: Block(expr=counter)}, outer_loops | {number})

        marks = {name: marked(name, value) for name, value in before.items()}
        kept = len(self.kernel.stores)
        reader.names |= marks
        reader.iteration(s)
        earlier = {stored.parameter for stored in self.kernel.stores[kept:]}
        del self.kernel.stores[kept:]
        outer |= {name: marks[name] for name in carried if is_made_anew(marks[name], reader.names[name])}  # unknown from here on
        carried = [name for name in carried if outer[name] is not marks[name]]
        steps = {name: step_of(self.place(s), before[name], marks[name], reader.names[name]) for name in carried}

        now = {name: moved(before[name], E.axis(number), step) for name, step in steps.items() if step is not None}
        reader.names = {**outer, **marks, **now, s.target.id: Block(expr=counter)}
        around, self.kernel.stored_before = self.kernel.stored_before, self.kernel.stored_before | earlier
        reader.iteration(s)
        self.kernel.stored_before = around
        for name in carried:
            by = steps[name]
            if by is not None:
                outer[name] = moved(before[name], E.const(count), by)
            else:
                outer[name] = accumulated(self.place(s), name, before[name], marks[name], reader.names[name], number)

    def iteration(self, s: ast.For) -> None:
        try:
            self.body(s.body)
        except _Returned:
            self.place(s).refuse("a `return` in a loop")

    def _range(self, s: ast.For) -> tuple[int, int, int, bool]:
        found = self.value(s.iter.func) if isinstance(s.iter, ast.Call) else None
        name = found.name if isinstance(found, LibraryName) else getattr(found, "__name__", "")
        if not isinstance(s.iter, ast.Call) or name not in ("range", "static_range"):
            self.place(s).refuse("a loop over something else than a range")
        bounds = []
        for argument in s.iter.args:
            value = unwrapped(self.value(argument))
            if isinstance(value, Block) and value.expr.kind == "const":
                value = value.expr.attr
            if not isinstance(value, int):
                self.place(s).refuse("a range whose bounds differ from program to program")
            bounds.append(value)
        start, stop, step = (0, *bounds, 1) if len(bounds) == 1 else (*bounds, 1)[:3]
        return start, stop, step, name == "static_range"

    # -- expressions

    def value(self, e: ast.expr) -> Any:
        match e:
            case ast.Constant():
                return e.value
            case ast.Name():
                return self._named(e)
            case ast.Attribute():
                return self._attribute(e)
            case ast.Tuple() | ast.List():
                return tuple(self.value(x) for x in e.elts)
            case ast.BinOp():
                return self._settled_part(operate(self.place(e), type(e.op).__name__, self.value(e.left), self.value(e.right)))
            case ast.UnaryOp():
                return operate(self.place(e), type(e.op).__name__, self.value(e.operand))
            case ast.Compare(ops=[op], comparators=[right]):
                return compare(self.place(e), type(op).__name__, self.value(e.left), self.value(right))
            case ast.BoolOp():
                for x in e.values:
                    value = unwrapped(self.value(x))
                    if isinstance(value, Block):
                        self.place(e).refuse("`and` and `or` of blocks; & and | are read")
                    if bool(value) is isinstance(e.op, ast.Or):
                        break
                return value
            case ast.IfExp():
                return self.value(e.body if self.known(e.test) else e.orelse)
            case ast.Subscript():
                return self._subscript(e)
            case ast.Call():
                return self._call(e)
        self.place(e).refuse(f"an expression of the kind {type(e).__name__}")

    def _settled_part(self, value: Any) -> Any:
        """Quotients and remainders of programs' numbers are axes of their own."""
        if not isinstance(value, Block) or value.shape or value.expr.dtype is not DType.I64 or value.expr.kind != "call":
            return value
        jumps = value.expr.attr in ("div", "mod", "fmod", "min", "max")
        places = self.kernel.places(value.expr) if jumps else None
        return value if places is None else Block(expr=self.kernel.grid_axis(places))

    def _named(self, e: ast.Name) -> Any:
        if e.id in self.names:
            return self.names[e.id]
        if e.id in self.source.scope:
            return library_name(unwrapped(self.source.scope[e.id]), e.id)
        if e.id in ("range", "min", "max", "float", "int", "abs", "len", "tuple"):
            return LibraryName({"min": "minimum", "max": "maximum"}.get(e.id, e.id))
        self.place(e).refuse(f"the name {e.id}, which is nothing here")

    def _attribute(self, e: ast.Attribute) -> Any:
        base = self.value(e.value)
        if isinstance(base, Block | Pointer) and e.attr in ("dtype", "shape", "T"):
            if e.attr == "dtype" and isinstance(base, Pointer):
                return _ElementType(self.kernel.dtypes[base.parameter])
            self.place(e).refuse(f".{e.attr} of a block")
        if isinstance(base, _ElementType):
            if e.attr == "element_ty":
                return base.dtype
            self.place(e).refuse(f".{e.attr} of a pointer's type")
        if isinstance(base, Block | Pointer | int | float):
            return _Method(base, e.attr)
        if isinstance(base, LibraryName):
            return LibraryName(e.attr)
        if not hasattr(base, e.attr):
            self.place(e).refuse(f"the name {ast.unparse(e)}, which is nothing here")
        found = getattr(base, e.attr)
        if inspect.ismodule(base) and base.__name__.startswith("triton") and not inspect.ismodule(found) and not is_own(found):
            return LibraryName(e.attr)
        return library_name(unwrapped(found), e.attr)

    def _subscript(self, e: ast.Subscript) -> Any:
        base = self.value(e.value)
        if isinstance(base, tuple):
            return base[unwrapped(self.value(e.slice))]
        parts = e.slice.elts if isinstance(e.slice, ast.Tuple) else [e.slice]
        at = base.at if isinstance(base, Pointer) else base
        if not isinstance(at, Block):
            self.place(e).refuse("an index of something that is no block")
        shape: list[int | None] = []
        given = list(at.shape)
        for part in parts:
            if isinstance(part, ast.Constant) and part.value is None:
                shape.append(None)
            elif isinstance(part, ast.Slice) and part.lower is part.upper is part.step is None and given:
                shape.append(given.pop(0))
            else:
                self.place(e).refuse("an index that is neither `:` nor `None`")
        found = Block(expr=at.expr, shape=(*shape, *given))
        return replace(base, at=found) if isinstance(base, Pointer) else found

    def _call(self, e: ast.Call) -> Any:
        function = self.value(e.func)
        arguments = [self.value(a) for a in e.args]
        keywords = {k.arg: self.value(k.value) for k in e.keywords if k.arg is not None}
        if isinstance(function, _Method):
            arguments, function = [function.of, *arguments], LibraryName(function.name)
        if is_own(function):
            return self._inlined(e, function, arguments, keywords)
        if isinstance(function, LibraryName):
            return self._settled_part(call(self.place(e), function.name, arguments, keywords, self.loops))
        name = getattr(function, "__name__", "")
        if name == "constexpr" or function in (float, int, min, max, abs):
            return call(self.place(e), name, arguments, keywords, self.loops)
        self.place(e).refuse(f"a call of {ast.unparse(e.func)}")

    def _inlined(self, e: ast.Call, function: Any, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        source = source_of(function)
        names = dict(source.defaults) | dict(zip(source.parameters, arguments, strict=False)) | keywords
        try:
            _Reader(self.kernel, source, names, self.loops).body(source.function.body)
        except _Returned as returned:
            return returned.value
        return None


@dataclass(frozen=True, slots=True)
class _Method:
    of: Any
    name: str


@dataclass(frozen=True, slots=True)
class _ElementType:
    dtype: DType


def _assigned(body: Sequence[ast.stmt]) -> set[str]:
    stores = (x for s in body for x in ast.walk(s) if isinstance(x, ast.Name) and isinstance(x.ctx, ast.Store))
    return {x.id for x in stores}
