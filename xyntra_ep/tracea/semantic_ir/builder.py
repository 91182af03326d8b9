"""Writing semantic IR: a block stack with fresh names, so kernels read like the loop nests they become.

>>> from xyntra_ep.tracea.core_ir.dims import symbol
>>> from xyntra_ep.tracea.core_ir.dtypes import DType
>>> b = KernelBuilder("double")
>>> x, y = b.buffer("x", DType.F32), b.buffer("y", DType.F32, writable=True)
>>> n = b.param(symbol("n"))
>>> with b.units() as u, b.loop("i", 0, n) as i:
...     b.store(y, u * n + i, b.load(x, u * n + i) * 2.0)
>>> kernel, params = b.finish()
>>> params
(n,)
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields

from xyntra_ep.tracea.core_ir.dims import Size
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.given_size import PREFIX, GivenSize, parameter_values
from xyntra_ep.tracea.semantic_ir.matrix_nodes import (
    LoadWords,
    StoreBytes,
    StoreWords,
    TileConfigure,
    TileLoad,
    TileRelease,
    TileShape,
    TileStore,
)
from xyntra_ep.tracea.semantic_ir.nodes import (
    BEGIN,
    END,
    INDEX,
    Array,
    Assign,
    Buffer,
    CallStatement,
    CallValue,
    Comment,
    Const,
    For,
    Function,
    If,
    Kernel,
    Let,
    Load,
    Offset,
    Pointer,
    PointerType,
    Prefetch,
    Return,
    Rvalue,
    Statement,
    Store,
    Type,
    Var,
    as_rvalue,
)
from xyntra_ep.tracea.semantic_ir.superstep_nodes import Arrive, Await, Claim, Reached

_OF_KERNEL = re.compile(rf"b_\w*\d|p_\d+|{PREFIX}\w+")  # how KernelBuilder names buffers and params


_ROOMS = (1 << 10, 1 << 13)
_LARGEST_ROOM_BYTES = 32 << 10

# What holds no variable, by annotation; ``function``: called functions are not looked into.
_PLAIN = frozenset(
    {"str", "int", "bool", "float | int", "Type", "DType", "tuple[int, ...]", "tuple[float, ...]", "Elem", "Function"}
)
_parts: dict[type, tuple[str, ...] | None] = {}


def parts_of(kind: type) -> tuple[str, ...] | None:
    """The fields of a node that may hold variables, last first; None for what is no node."""
    if kind not in _parts:
        is_node = issubclass(kind, (Statement, Rvalue, TileShape))
        _parts[kind] = tuple(f.name for f in reversed(fields(kind)) if f.type not in _PLAIN) if is_node else None
    return _parts[kind]


def variables_in(node: object) -> list[Var]:
    """Every distinct variable in a statement, an rvalue or a tuple of them, in order; not inside called functions."""
    found: dict[Var, None] = {}
    seen: set[int] = set()  # rvalues are shared
    stack: list[object] = [node]
    while stack:
        item = stack.pop()
        kind = type(item)
        if kind is tuple:
            stack.extend(reversed(item))  # type: ignore[call-overload]  # a tuple
        elif (parts := parts_of(kind)) is not None and id(item) not in seen:
            seen.add(id(item))
            if kind is Var:
                found[item] = None  # type: ignore[index]  # a Var
            else:
                stack.extend([getattr(item, name) for name in parts])
    return list(found)


def _room(count: int, dtype: DType) -> int:
    """How many elements an array for ``count`` has: of a given size one of few numbers, so that kernels of other sizes are the
    same one. Nobody reads what is beyond."""
    if type(count) is not GivenSize:
        return count
    return next((room for room in _ROOMS if count <= room and room * dtype.bytes <= _LARGEST_ROOM_BYTES), int(count))


class BlockBuilder:
    """Statements of one body (a kernel's or a function's)."""

    def __init__(self, names: dict[str, int] | None = None) -> None:
        self._names: dict[str, int] = {} if names is None else names
        self._blocks: list[list[Statement]] = [[]]

    def fresh(self, stem: str) -> str:
        """A name no other value of this kernel has; the same sequence of calls gives the same names."""
        n = self._names.get(stem, 0)
        self._names[stem] = n + 1
        return f"{stem}{n}" if n else f"{stem}_"

    def emit(self, statement: Statement) -> None:
        self._blocks[-1].append(statement)

    @property
    def body(self) -> tuple[Statement, ...]:
        assert len(self._blocks) == 1, "a block is still open"
        return tuple(self._blocks[0])

    def let(self, stem: str, value: Rvalue | int) -> Rvalue:
        """A named constant for ``value``; literals and names pass through."""
        value = as_rvalue(value, INDEX)
        if isinstance(value, (Const, Var)):
            return value
        var = Var(value.type, self.fresh(stem))
        self.emit(Let(var, value))
        return var

    def variable(self, stem: str, value: Rvalue) -> Var:
        """A mutable local, see ``assign``."""
        var = Var(value.type, self.fresh(stem))
        self.emit(Let(var, value, mutable=True))
        return var

    def assign(self, var: Var, value: Rvalue | float | int) -> None:
        self.emit(Assign(var, as_rvalue(value, var.type)))

    def load(self, pointer: Pointer, at: Rvalue | int, lanes: int = 1, count: Rvalue | None = None) -> Rvalue:
        return Load(pointer, as_rvalue(at, INDEX), lanes, count)

    def store(self, pointer: Pointer, at: Rvalue | int, value: Rvalue, count: Rvalue | None = None) -> None:
        self.emit(Store(pointer, as_rvalue(at, INDEX), value, count))

    def load_words(self, pointer: Pointer, at: Rvalue | int, lanes: int = 1, count: Rvalue | None = None) -> Rvalue:
        return LoadWords(pointer, as_rvalue(at, INDEX), lanes, count)

    def store_words(self, pointer: Pointer, at: Rvalue | int, value: Rvalue, count: Rvalue | None = None) -> None:
        self.emit(StoreWords(pointer, as_rvalue(at, INDEX), value, count))

    def store_bytes(self, pointer: Pointer, at: Rvalue | int, values: Sequence[Rvalue]) -> None:
        self.emit(StoreBytes(pointer, as_rvalue(at, INDEX), tuple(values)))

    @contextmanager
    def tiles(self, shapes: Sequence[tuple[Rvalue | int, Rvalue | int]]) -> Iterator[None]:
        """Code that uses tile registers; ``shapes``: (rows, bytes of a row) of each."""
        made = (TileShape(as_rvalue(rows, INDEX), as_rvalue(row_bytes, INDEX)) for rows, row_bytes in shapes)
        self.emit(TileConfigure(tuple(made)))
        yield
        self.emit(TileRelease())

    def tile_load(self, tile: int, pointer: Pointer, at: Rvalue | int, stride: Rvalue | int) -> None:
        self.emit(TileLoad(tile, pointer, as_rvalue(at, INDEX), as_rvalue(stride, INDEX)))

    def tile_store(self, tile: int, pointer: Pointer, at: Rvalue | int, stride: Rvalue | int) -> None:
        self.emit(TileStore(tile, pointer, as_rvalue(at, INDEX), as_rvalue(stride, INDEX)))

    def claim(self, pointer: Pointer, at: Rvalue | int, superstep: Rvalue) -> Rvalue:
        return Claim(pointer, as_rvalue(at, INDEX), superstep)

    def reached(self, pointer: Pointer, at: Rvalue | int) -> Rvalue:
        return Reached(pointer, as_rvalue(at, INDEX))

    def announce(self, pointer: Pointer, at: Rvalue | int, number: Rvalue) -> None:
        self.emit(Arrive(pointer, as_rvalue(at, INDEX), number))

    def wait_for(self, pointer: Pointer, at: Rvalue | int, number: Rvalue) -> None:
        self.emit(Await(pointer, as_rvalue(at, INDEX), number))

    def prefetch(self, pointer: Pointer, at: Rvalue | int, locality: int = 2, write: bool = False) -> None:
        self.emit(Prefetch(pointer, as_rvalue(at, INDEX), locality, write))

    def array(self, stem: str, dtype: DType, count: int) -> Var:
        """A local array (on the stack: keep the sum of a kernel's arrays well below 256 KiB)."""
        var = Var(PointerType(dtype, writable=True), self.fresh(stem))
        self.emit(Array(var, dtype, _room(count, dtype)))
        return var

    def pointer(self, stem: str, base: Pointer, at: Rvalue | int) -> Offset:
        """``base`` moved by ``at`` elements, computed once."""
        return Offset(base, self.let(stem, as_rvalue(at, INDEX)))

    def comment(self, text: str) -> None:
        self.emit(Comment(text))

    def call(self, function: Function, *args: Rvalue) -> None:
        self.emit(CallStatement(function, args))

    def value(self, function: Function, *args: Rvalue) -> Rvalue:
        return CallValue(function, args)

    def result(self, value: Rvalue) -> None:
        self.emit(Return(value))

    @contextmanager
    def loop(self, stem: str, begin: Rvalue | int, end: Rvalue | int, step: Rvalue | int = 1) -> Iterator[Var]:
        var = Var(INDEX, self.fresh(stem))
        self._blocks.append([])
        yield var
        body = tuple(self._blocks.pop())
        self.emit(For(var, as_rvalue(begin, INDEX), as_rvalue(end, INDEX), as_rvalue(step, INDEX), body))

    @contextmanager
    def when(self, condition: Rvalue) -> Iterator[None]:
        self._blocks.append([])
        yield
        self.emit(If(condition, tuple(self._blocks.pop())))

    @contextmanager
    def otherwise(self) -> Iterator[None]:
        """The else branch of the ``when`` just before."""
        last = self._blocks[-1].pop()
        assert isinstance(last, If) and not last.otherwise
        self._blocks.append([])
        yield
        self.emit(If(last.condition, last.then, tuple(self._blocks.pop())))


class FunctionBuilder(BlockBuilder):
    """A static function; ``argument`` declares in order, ``finish`` closes it."""

    def __init__(self, name: str, result: Type | None = None, inline: bool = False) -> None:
        super().__init__()
        self._name = name
        self._result = result
        self._inline = inline
        self._arguments: list[Var] = []

    def argument(self, name: str, kind: Type | PointerType) -> Var:
        var = Var(kind, name)
        self._arguments.append(var)
        return var

    def capture(self) -> tuple[Var, ...]:
        """The kernel's buffers and params that the body names, as arguments of the same names: calls pass them on."""
        named = [v for v in variables_in(self.body) if _OF_KERNEL.fullmatch(v.name)]
        captured = tuple(v for v in named if v not in self._arguments)
        self._arguments.extend(captured)
        return captured

    def finish(self) -> Function:
        return Function(self._name, tuple(self._arguments), self.body, self._result, self._inline)


class KernelBuilder(BlockBuilder):
    """A kernel: its buffers, its size parameters, its functions and the body over units."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name
        self._buffers: list[Buffer] = []
        self._params: list[Size] = []
        self._functions: list[Function] = []
        self._notes: list[str] = []

    def buffer(self, stem: str, dtype: DType, writable: bool = False) -> Var:
        """The next buffer of the call, as a pointer to its storage type."""
        name = f"b_{stem}{len(self._buffers)}"
        self._buffers.append(Buffer(name, dtype, writable))
        return Var(PointerType(dtype, writable), name)

    def param(self, value: Size) -> Rvalue:
        """A size as an index: a literal when it is constant, else a run-time parameter (equal sizes share one)."""
        if isinstance(value, int):
            return as_rvalue(value, INDEX)
        if value not in self._params:
            self._params.append(value)
        return Var(INDEX, f"p_{self._params.index(value)}")

    def function(self, function: Function) -> Function:
        """Make ``function`` (and nothing twice) part of the kernel; callees first."""
        known = next((f for f in self._functions if f.name == function.name), None)
        if known is None:
            self._functions.append(function)
        return known or function

    def note(self, text: str) -> None:
        """A line for the comment at the top of the emitted text."""
        self._notes.append(text)

    @contextmanager
    def units(self) -> Iterator[Var]:
        """The loop over this call's work units."""
        with self.loop("unit", BEGIN, END) as unit:
            yield unit

    def finish(self) -> tuple[Kernel, tuple[Size, ...]]:
        """The kernel and the sizes to pass as its params."""
        params: dict[str, Size] = {f"p_{i}": size for i, size in enumerate(self._params)}
        if given := parameter_values():
            params |= {var.name: given[var.name] for var in variables_in(self.body) if var.name in given}
        kernel = Kernel(self._name, tuple(self._buffers), tuple(params), tuple(self._functions), self.body, tuple(self._notes))
        return kernel, tuple(params.values())

    def split(self, linear: Rvalue, extents: Sequence[Size], stem: str = "i") -> list[Rvalue]:
        """Row-major coordinates of ``linear`` in ``extents`` (the first is not reduced modulo its extent)."""
        coordinates: list[Rvalue] = []
        rest = linear
        for extent in reversed(extents[1:]):
            e = self.param(extent)
            coordinates.append(self.let(stem, rest % e))
            rest = self.let(stem, rest // e)
        return [rest, *reversed(coordinates)] if extents else []
