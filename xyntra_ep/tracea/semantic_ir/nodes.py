"""Semantic IR: how an op is computed. Loop nests over typed scalars and vectors, printed as C-family text by the emitters.

    kernel    = name, buffers, params, functions, body          body runs units [begin, end)
    function  = name, arguments, result type or none, body      static, called from the kernel or another function
    statement = Let | Assign | Store | For | If | Prefetch | Array | CallStatement | Return | Comment
    rvalue    = Const | Var | Unary | Binary | Fma | Select | Convert | Bitcast | Splat | Iota | Load | Gather
              | Shuffle | Reduce | CallValue | Offset

    type      = elem with lanes; lanes 0 is an index scalar (i64), lanes 1 a single data element, lanes n a vector
              | pointer to a storage type

Products of bfloat16 pairs and of tiles: `matrix_nodes.py`; 4-bit integers: `nibble_nodes.py`; tables: `table_nodes.py`. A
kernel with ``threads`` is one for a GPU: its body is what one thread of a block does, ``block`` and ``thread`` stand where a CPU
kernel has ``begin`` and ``end``; see `gpu/nodes.py`.

Data values are f32, i64, i32 or masks (i32 lanes of 0 / -1). ``Load`` widens the storage type to its compute type (f16 and
bf16 to f32, integers to i64, bool to a mask) and ``Store`` narrows, so bodies never see storage types.
Operators on rvalues build Binary nodes: ``a + b``, ``a * b``, ``a // b`` (index division), ``a < b`` by ``lt``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.given_size import GivenSize, parameter_name


class Elem(StrEnum):
    F32 = "f32"
    I32 = "i32"
    I64 = "i64"


@dataclass(frozen=True, slots=True)
class Type:
    """``lanes`` 0: index scalar."""

    elem: Elem
    lanes: int

    def with_lanes(self, lanes: int) -> Type:
        return Type(self.elem, lanes)


class Space(StrEnum):
    """Whose memory it is. A CPU kernel knows one kind."""

    GLOBAL = "global"
    SHARED = "shared"  # of the threads of a block
    PRIVATE = "private"  # of one thread


@dataclass(frozen=True, slots=True)
class PointerType:
    dtype: DType
    writable: bool = False
    space: Space = Space.GLOBAL


INDEX = Type(Elem.I64, 0)


def f32(lanes: int) -> Type:
    return Type(Elem.F32, lanes)


def i32(lanes: int) -> Type:
    return Type(Elem.I32, lanes)


def i64(lanes: int) -> Type:
    return Type(Elem.I64, lanes)


class Rvalue:
    """Base of everything with a value; ``type`` is fixed at construction."""

    __slots__ = ()

    @property
    def type(self) -> Type:
        raise NotImplementedError

    def __add__(self, other: Rvalue | int | float) -> Rvalue:
        return binary("add", self, other)

    def __radd__(self, other: int | float) -> Rvalue:
        return binary("add", other, self)

    def __sub__(self, other: Rvalue | int | float) -> Rvalue:
        return binary("sub", self, other)

    def __rsub__(self, other: int | float) -> Rvalue:
        return binary("sub", other, self)

    def __mul__(self, other: Rvalue | int | float) -> Rvalue:
        return binary("mul", self, other)

    def __rmul__(self, other: int | float) -> Rvalue:
        return binary("mul", other, self)

    def __truediv__(self, other: Rvalue | int | float) -> Rvalue:
        return binary("div", self, other)

    def __rtruediv__(self, other: int | float) -> Rvalue:
        return binary("div", other, self)

    def __floordiv__(self, other: Rvalue | int) -> Rvalue:
        return binary("div", self, other)

    def __mod__(self, other: Rvalue | int) -> Rvalue:
        return binary("mod", self, other)

    def __and__(self, other: Rvalue | int) -> Rvalue:
        return binary("and", self, other)

    def __or__(self, other: Rvalue | int) -> Rvalue:
        return binary("or", self, other)

    def __xor__(self, other: Rvalue | int) -> Rvalue:
        return binary("xor", self, other)

    def __neg__(self) -> Rvalue:
        return Unary("neg", self)


@dataclass(frozen=True, slots=True)
class Const(Rvalue):
    ctype: Type
    value: float | int

    @property
    def type(self) -> Type:
        return self.ctype


@dataclass(frozen=True, slots=True)
class Var(Rvalue):
    vtype: Type | PointerType
    name: str

    @property
    def type(self) -> Type:
        assert isinstance(self.vtype, Type), f"{self.name} is a pointer"
        return self.vtype


@dataclass(frozen=True, slots=True)
class Offset(Rvalue):
    """A pointer moved by ``index`` elements; only where a pointer is taken."""

    pointer: Var | Offset
    index: Rvalue

    @property
    def vtype(self) -> PointerType:
        kind = self.pointer.vtype
        assert isinstance(kind, PointerType)
        return kind


Pointer = Var | Offset

# neg, not (bitwise), abs, sqrt, floor, ceil, rint (half to even); and libm names for what we do not approximate ourselves
UNARY = frozenset({"neg", "not", "abs", "sqrt", "floor", "ceil", "rint", "opaque"})
LIBM = frozenset({"sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "log", "exp"})


@dataclass(frozen=True, slots=True)
class Unary(Rvalue):
    """Also libm functions (per lane): ``Unary("sin", x)``. ``opaque`` is the vector itself, in a register, of which a compiler
    knows nothing more."""

    op: str
    a: Rvalue

    @property
    def type(self) -> Type:
        return self.a.type


# max(a, b) is a > b ? a : b, min(a, b) is a < b ? a : b: with a NaN the result is b (the hardware's rule).
# div and mod truncate on integers. shr is arithmetic. lt, le, eq, ne give masks (for index scalars 0 or 1). pow, fmod: libm.
ARITHMETIC = frozenset({"add", "sub", "mul", "div", "mod", "and", "or", "xor", "shl", "shr", "min", "max", "pow", "fmod"})
COMPARE = frozenset({"lt", "le", "eq", "ne"})


@dataclass(frozen=True, slots=True)
class Binary(Rvalue):
    op: str
    a: Rvalue
    b: Rvalue

    @property
    def type(self) -> Type:
        kind = self.a.type
        return Type(Elem.I32, kind.lanes) if self.op in COMPARE and kind.lanes else kind


@dataclass(frozen=True, slots=True)
class Fma(Rvalue):
    """a * b + c, contracted where the target can."""

    a: Rvalue
    b: Rvalue
    c: Rvalue

    @property
    def type(self) -> Type:
        return self.c.type


@dataclass(frozen=True, slots=True)
class Select(Rvalue):
    """mask ? a : b per lane (index scalars: any non-zero)."""

    mask: Rvalue
    a: Rvalue
    b: Rvalue

    @property
    def type(self) -> Type:
        return self.a.type


@dataclass(frozen=True, slots=True)
class Convert(Rvalue):
    """Value conversion between elems of equal lanes (float to integer truncates; mask is i32)."""

    to: Type
    a: Rvalue

    @property
    def type(self) -> Type:
        return self.to


@dataclass(frozen=True, slots=True)
class Bitcast(Rvalue):
    """Same bits, other elem (f32 <-> i32)."""

    to: Type
    a: Rvalue

    @property
    def type(self) -> Type:
        return self.to


@dataclass(frozen=True, slots=True)
class Splat(Rvalue):
    """One scalar (lanes 0 or 1) in every lane."""

    to: Type
    a: Rvalue

    @property
    def type(self) -> Type:
        return self.to


@dataclass(frozen=True, slots=True)
class Iota(Rvalue):
    """0, 1, 2 ... as lanes."""

    to: Type

    @property
    def type(self) -> Type:
        return self.to


@dataclass(frozen=True, slots=True)
class Load(Rvalue):
    """``lanes`` consecutive elements at pointer + index, widened. ``count``: only lanes below it are read, the others are 0."""

    pointer: Pointer
    index: Rvalue
    lanes: int
    count: Rvalue | None = None

    @property
    def type(self) -> Type:
        kind = self.pointer.vtype
        assert isinstance(kind, PointerType)
        return loaded_type(kind.dtype, self.lanes)


@dataclass(frozen=True, slots=True)
class Gather(Rvalue):
    """Elements at pointer + index[lane] (index: i64 lanes), widened."""

    pointer: Pointer
    index: Rvalue

    @property
    def type(self) -> Type:
        kind = self.pointer.vtype
        assert isinstance(kind, PointerType)
        return loaded_type(kind.dtype, self.index.type.lanes)


@dataclass(frozen=True, slots=True)
class Shuffle(Rvalue):
    """Lanes picked from the concatenation of a and b."""

    a: Rvalue
    b: Rvalue
    lanes: tuple[int, ...]

    @property
    def type(self) -> Type:
        return self.a.type.with_lanes(len(self.lanes))


@dataclass(frozen=True, slots=True)
class Reduce(Rvalue):
    """add, max, min, mul or or over the lanes, as a tree of halves (the order is part of the meaning)."""

    op: str
    a: Rvalue

    @property
    def type(self) -> Type:
        return self.a.type.with_lanes(1)


@dataclass(frozen=True, slots=True)
class CallValue(Rvalue):
    function: Function
    args: tuple[Rvalue, ...]

    @property
    def type(self) -> Type:
        assert self.function.result is not None
        return self.function.result


class Statement:
    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Let(Statement):
    """Declare ``var``; ``mutable`` when an Assign follows."""

    var: Var
    value: Rvalue
    mutable: bool = False


@dataclass(frozen=True, slots=True)
class Assign(Statement):
    var: Var
    value: Rvalue


@dataclass(frozen=True, slots=True)
class Store(Statement):
    """Narrow ``value`` to the storage type and store its lanes (those below ``count``) at pointer + index."""

    pointer: Pointer
    index: Rvalue
    value: Rvalue
    count: Rvalue | None = None


@dataclass(frozen=True, slots=True)
class For(Statement):
    """for (var = begin; var < end; var += step)."""

    var: Var
    begin: Rvalue
    end: Rvalue
    step: Rvalue
    body: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class If(Statement):
    condition: Rvalue  # index scalar, non-zero is true
    then: tuple[Statement, ...]
    otherwise: tuple[Statement, ...] = ()


@dataclass(frozen=True, slots=True)
class Prefetch(Statement):
    """Hint that the cache line at pointer + index will be read (or written); locality 3 = L1 ... 0 = none."""

    pointer: Pointer
    index: Rvalue
    locality: int = 2
    write: bool = False


@dataclass(frozen=True, slots=True)
class Array(Statement):
    """A 64-byte aligned local array of ``count`` elements (a literal), uninitialised."""

    var: Var
    dtype: DType
    count: int


@dataclass(frozen=True, slots=True)
class CallStatement(Statement):
    function: Function
    args: tuple[Rvalue, ...]


@dataclass(frozen=True, slots=True)
class Return(Statement):
    value: Rvalue


@dataclass(frozen=True, slots=True)
class Comment(Statement):
    text: str


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Function:
    """``inline`` false keeps the function out of line (register-blocked tiles want their own register allocation)."""

    name: str
    arguments: tuple[Var, ...]
    body: tuple[Statement, ...]
    result: Type | None = None
    inline: bool = False


@dataclass(frozen=True, slots=True)
class Buffer:
    name: str
    dtype: DType
    writable: bool = False


@dataclass(frozen=True, slots=True)
class TensorMap:
    """A tensor that a kernel copies in boxes of these extents, the contiguous axis first (`warpgroup_nodes.py`). Where it lies is
    said at the launch."""

    name: str
    dtype: DType
    box: tuple[int, ...]

    @property
    def bytes(self) -> int:
        return math.prod(self.box) * self.dtype.bytes


@dataclass(frozen=True, slots=True)
class Kernel:
    """``functions`` in definition order (callees first). ``var`` names b_* (buffers), m_* (tensor maps) and p_* (params) are
    taken. ``threads`` of a block, for a GPU; 0: a CPU kernel. ``cluster``: how many blocks, one after the other, run at the same
    time and reach each other's shared memory (compute capability 9.0); launches are of whole clusters."""

    name: str
    buffers: tuple[Buffer, ...]
    params: tuple[str, ...]
    functions: tuple[Function, ...]
    body: tuple[Statement, ...]
    notes: tuple[str, ...] = field(default=())
    threads: int = 0
    maps: tuple[TensorMap, ...] = ()
    cluster: int = 1


BEGIN = Var(INDEX, "begin")
END = Var(INDEX, "end")
BLOCK = Var(INDEX, "block")
THREAD = Var(INDEX, "thread")


def loaded_type(dtype: DType, lanes: int) -> Type:
    """The compute type of a stored element."""
    if dtype.is_float:
        return Type(Elem.F32, lanes)
    return Type(Elem.I32 if dtype is DType.BOOL else Elem.I64, lanes)


def index(value: int) -> Rvalue:
    return _number(value if type(value) is GivenSize else int(value), INDEX)


def _number(value: float | int, like: Type) -> Rvalue:
    """A number as a constant, or as a parameter of the kernel."""
    if type(value) is not GivenSize:
        return Const(like, value)
    if like == INDEX:
        return Var(INDEX, parameter_name(value))
    return Splat(like, Var(INDEX, parameter_name(value))) if like.elem is Elem.I64 and like.lanes > 1 else Const(like, int(value))


def as_rvalue(value: Rvalue | int | float, like: Type) -> Rvalue:
    """A Python number as a constant of type ``like``; scalars meeting vectors are splat by ``binary``."""
    return value if isinstance(value, Rvalue) else _number(value, like)


def binary(op: str, a: Rvalue | int | float, b: Rvalue | int | float) -> Rvalue:
    """Build a Binary: numbers take the other side's type, a single element meets a vector as a splat, constants fold."""
    if not isinstance(a, Rvalue):
        assert isinstance(b, Rvalue)
        a = _number(a, b.type)
    b = as_rvalue(b, a.type)
    if a.type.lanes > 1 and b.type.lanes <= 1:
        b = Splat(b.type.with_lanes(a.type.lanes), b) if not isinstance(b, Const) else Const(a.type, b.value)
    elif b.type.lanes > 1 and a.type.lanes <= 1:
        a = Splat(a.type.with_lanes(b.type.lanes), a) if not isinstance(a, Const) else Const(b.type, a.value)
    if a.type == INDEX and b.type == INDEX:
        folded = _fold_index(op, a, b)
        if folded is not None:
            return folded
    return Binary(op, a, b)


def _fold_index(op: str, a: Rvalue, b: Rvalue) -> Rvalue | None:
    if isinstance(a, Const) and isinstance(b, Const):
        x, y = int(a.value), int(b.value)
        if op in ("div", "mod"):
            return index(x // y if op == "div" else x % y) if y and x >= 0 and y > 0 else None
        table = {"add": x + y, "sub": x - y, "mul": x * y, "min": min(x, y), "max": max(x, y),
                 "lt": int(x < y), "le": int(x <= y), "eq": int(x == y), "ne": int(x != y)}  # fmt: skip
        return index(table[op]) if op in table else None
    left = a.value if isinstance(a, Const) else None
    right = b.value if isinstance(b, Const) else None
    if op == "add" and left == 0:
        return b
    if op in ("add", "sub") and right == 0:
        return a
    if op == "mul" and (left == 0 or right == 0):
        return index(0)
    if op == "mul" and left == 1:
        return b
    if op in ("mul", "div") and right == 1:
        return a
    if op == "mod" and right == 1:
        return index(0)
    return None


def lt(a: Rvalue | int, b: Rvalue | int) -> Rvalue:
    return binary("lt", a, b)


def le(a: Rvalue | int, b: Rvalue | int) -> Rvalue:
    return binary("le", a, b)


def vmin(a: Rvalue | int | float, b: Rvalue | int | float) -> Rvalue:
    return binary("min", a, b)


def vmax(a: Rvalue | int | float, b: Rvalue | int | float) -> Rvalue:
    return binary("max", a, b)


def splat(a: Rvalue, lanes: int) -> Rvalue:
    """``a`` (lanes <= 1) in ``lanes`` lanes; itself when the lanes are equal."""
    if a.type.lanes == lanes:
        return a
    if isinstance(a, Const):
        return Const(a.type.with_lanes(lanes), a.value)
    return Splat(a.type.with_lanes(lanes), a)
