"""Whether a kernel is legal semantic IR. Run on every kernel when it is made: it is the cheapest place to find our own mistakes.

names      defined once, before use, in a block that is still open; assigned to only when mutable
types      operands agree in element and lanes (an index scalar may meet a single i64)
memory     stores go to writable pointers, in the pointer's compute type; local arrays fit a thread's stack
loops      steps are positive literals or names that do not change
functions  defined before their callers, called with what they declare; a result is returned
GPU        see `proofs/check.py`
supersteps counted in i64 that may be written
tiles      used between their configuration and their release, which a block does not leave to others
words      of 16-bit elements or bytes
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from weakref import WeakValueDictionary

from xyntra_ep.errors import InvariantError
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.semantic_ir.matrix_nodes import (
    TILES,
    ClampedQuadDot,
    LoadWords,
    PackPairs,
    PairDot,
    QuadDot,
    ShortDot,
    StoreBytes,
    StoreWords,
    TileConfigure,
    TileDot,
    TileLoad,
    TileRelease,
    TileStatement,
    TileStore,
    TileZero,
)
from xyntra_ep.tracea.semantic_ir.nibble_nodes import NIBBLES, Nibble
from xyntra_ep.tracea.semantic_ir.nodes import (
    ARITHMETIC,
    BEGIN,
    COMPARE,
    END,
    INDEX,
    LIBM,
    UNARY,
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
    Space,
    Splat,
    Statement,
    Store,
    Type,
    Unary,
    Var,
    i32,
    loaded_type,
)
from xyntra_ep.tracea.semantic_ir.superstep_nodes import Arrive, Await, Claim, Reached
from xyntra_ep.tracea.semantic_ir.table_nodes import ENTRIES, ByteLookup, Lookup, LookupIn

ARRAY_BYTES = 192 << 10  # of the 256 KiB that the smallest common thread stack leaves us
_REDUCE = frozenset({"add", "mul", "max", "min", "or", "and"})
_FLOAT_ONLY = frozenset({"sqrt", "floor", "ceil", "rint", "opaque", "round_f16", "pow", "fmod"}) | LIBM
_BITS_ONLY = frozenset({"not", "and", "or", "xor", "shl", "shr"})
_IN_WORDS = frozenset({DType.BF16, DType.I16, DType.I8, DType.U8})
_SUMS, _FACTORS = (DType.F32, DType.I32), (DType.BF16, DType.U8, DType.I8)  # what tiles hold
_SHORT = 400  # characters of a statement in a message

# Functions that are legal whatever kernel has them, by id: the tiles of matrix products are in many.
_legal_alone: WeakValueDictionary[int, Function] = WeakValueDictionary()


def check_kernel(kernel: Kernel) -> None:
    """Raise InvariantError, naming the kernel, the rule and the statement, unless ``kernel`` is legal."""
    try:
        _checker(kernel).kernel(kernel)
    except Broken as problem:
        text = repr(problem.statement)
        shown = text if len(text) <= _SHORT else text[:_SHORT] + " ..."
        raise InvariantError(
            f"{problem.rule}, in {shown}", where=f"kernel {kernel.name}", pass_name="semantic IR check", ir=text
        ) from None


def _checker(kernel: Kernel) -> Checker:
    if not kernel.threads:
        return Checker()
    from xyntra_ep.tracea.semantic_ir.gpu.proofs.check import GpuChecker  # which builds on this module

    return GpuChecker()


class Broken(Exception):
    """A rule that does not hold, and the statement that breaks it."""

    def __init__(self, rule: str) -> None:
        super().__init__(rule)
        self.rule = rule
        self.statement: object = None


def require(holds: bool, rule: str, *named: object) -> None:
    """Raise Broken with the rule, filled with what it names, unless it holds."""
    if not holds:
        raise Broken(rule.format(*named))


def _scalar(kind: Type) -> bool:
    return kind.lanes <= 1


def _same(a: Type, b: Type) -> bool:
    return a == b or (a.elem is b.elem and _scalar(a) and _scalar(b))


def _is_index(kind: Type) -> bool:
    return kind.elem is Elem.I64 and _scalar(kind)


class Checker:
    """Walks statements in order, with the names that are visible and those that were ever taken."""

    positions: tuple[Var, ...] = (BEGIN, END)  # what a kernel's body knows beside buffers and params
    arrays_in = Space.GLOBAL

    def __init__(self) -> None:
        self._visible: dict[str, Var] = {}
        self._names: list[str] = []  # the visible ones, as they came
        self._legal: set[int] = set()  # values checked where all that is visible now was: they are shared a lot
        self._values: list[int] = []  # the same, as they came
        self._taken: set[str] = set()
        self._mutable: set[str] = set()
        self._functions: dict[str, Function] = {}
        self._calls = False  # whether the function that is checked calls another
        self._result: Type | None = None
        self._array_bytes = 0
        self._with_tiles: set[str] = set()  # functions that use the tiles of their callers
        self._tiles_ready = False
        self._rules: dict[type, Callable[..., None]] = {
            Const: lambda e: None,
            Var: self._variable,
            Unary: self._unary,
            Binary: self._binary,
            Fma: self._fma,
            Select: self._select,
            Convert: self._convert,
            Bitcast: self._bitcast,
            Splat: self._splat,
            Iota: lambda e: None,
            Load: self._load,
            Gather: self._gather,
            Shuffle: self._shuffle,
            Reduce: self._reduce,
            CallValue: self._call_value,
            LoadWords: self._load_words,
            PackPairs: self._pack_pairs,
            PairDot: self._word_dot,
            ShortDot: self._word_dot,
            QuadDot: self._word_dot,
            ClampedQuadDot: self._word_dot,
            Nibble: self._nibble,
            Lookup: self._lookup,
            LookupIn: self._lookup_in,
            ByteLookup: self._byte_lookup,
            Claim: lambda e: self._count_at(e.pointer, e.index, e.superstep),
            Reached: lambda e: self._count_at(e.pointer, e.index),
            Offset: lambda e: require(False, "a pointer is used as a value"),
        }

    # -- kernel and functions

    def kernel(self, kernel: Kernel) -> None:
        for function in kernel.functions:
            self._function(function)
        buffers = [Var(PointerType(b.dtype, b.writable), b.name) for b in kernel.buffers]
        self._enter([*buffers, *(Var(INDEX, name) for name in kernel.params), *self.positions], None)
        self._tiles_ready = False
        self._block(kernel.body)

    def _function(self, function: Function) -> None:
        require(function.name not in self._functions, "function {} is defined twice", function.name)
        if _legal_alone.get(id(function)) is function:
            self._functions[function.name] = function
            return
        self._calls = False
        self._enter(function.arguments, function.result)
        self._tiles_ready = self._takes_tiles(function.body)
        if self._tiles_ready:
            self._with_tiles.add(function.name)
        self._block(function.body)
        returns = [s for s in function.body if isinstance(s, Return)]
        require(
            len(returns) == (function.result is not None) and (not returns or function.body[-1] is returns[0]),
            "function {} must return once, at its end, exactly if it has a result",
            function.name,
        )
        self._functions[function.name] = function
        if not self._calls and not self._tiles_ready and type(self) is Checker:
            _legal_alone[id(function)] = function

    def _enter(self, known: Sequence[Var], result: Type | None) -> None:
        self._visible, self._taken, self._mutable = {}, set(), set()
        self._names, self._values, self._legal = [], [], set()
        self._result = result
        for var in known:
            self._define(var)

    def _define(self, var: Var) -> None:
        require(var.name not in self._taken, "{} is defined twice", var.name)
        self._taken.add(var.name)
        self._visible[var.name] = var
        self._names.append(var.name)

    # -- statements

    def _block(self, statements: Sequence[Statement]) -> None:
        names, values, tiles_ready = len(self._names), len(self._values), self._tiles_ready
        for statement in statements:
            try:
                self._statement(statement)
            except Broken as problem:
                if problem.statement is None:
                    problem.statement = statement
                raise
        for name in self._names[names:]:
            del self._visible[name]
        self._legal.difference_update(self._values[values:])
        del self._names[names:], self._values[values:]
        require(self._tiles_ready == tiles_ready, "a block must leave tiles as it found them")

    def _statement(self, s: Statement) -> None:
        match s:
            case Let():
                self._value(s.value)
                require(_same(s.var.type, s.value.type), "{} is declared, {} given", s.var.type, s.value.type)
                self._define(s.var)
                if s.mutable:
                    self._mutable.add(s.var.name)
            case Assign():
                self._value(s.var)
                self._value(s.value)
                require(s.var.name in self._mutable, "{} is not mutable", s.var.name)
                require(_same(s.var.type, s.value.type), "{} is assigned to {}", s.value.type, s.var.type)
            case Store():
                self._store(s)
            case For():
                for bound in (s.begin, s.end, s.step):
                    self._index(bound, "a loop bound")
                literal = isinstance(s.step, Const) and s.step.value > 0
                fixed = isinstance(s.step, Var) and s.step.name not in self._mutable
                require(literal or fixed, "a loop's step must be a positive literal or a name that does not change")
                self._loop_body(s)
            case If():
                self._value(s.condition)
                condition = s.condition.type
                require(condition.elem is not Elem.F32 and _scalar(condition), "a condition must be one integer")
                self._block(s.then)
                self._block(s.otherwise)
            case Prefetch():
                self._pointer(s.pointer)
                self._index(s.index, "an address")
            case Array():
                self._array(s)
            case CallStatement():
                self._call(s.function, s.args)
            case Return():
                self._value(s.value)
                require(self._result is not None and _same(self._result, s.value.type), "the result has another type")
            case Comment():
                pass
            case StoreWords():
                self._words_at(s.pointer, s.index, s.count, writable=True)
                self._value(s.value)
                require(s.value.type.elem is Elem.I32, "{} is stored as words", s.value.type)
            case StoreBytes():
                self._store_bytes(s)
            case Arrive() | Await():
                self._count_at(s.pointer, s.index, s.number)
            case TileConfigure() | TileZero() | TileLoad() | TileDot() | TileStore() | TileRelease():
                self._tile_statement(s)
            case _:
                require(False, "there is no such statement")

    def _loop_body(self, s: For) -> None:
        self._define(s.var)
        self._block(s.body)
        del self._visible[self._names.pop()]

    def _store(self, s: Store) -> None:
        kind = self._pointer(s.pointer)
        require(kind.writable, "a store needs a writable pointer")
        self._index(s.index, "an address")
        self._value(s.value)
        got, want = s.value.type, loaded_type(kind.dtype, s.value.type.lanes)
        integers = Elem.F32 not in (got.elem, want.elem)  # narrower integers may be stored as they are
        require(got.elem is want.elem or integers, "{} is stored as {}", got.elem, kind.dtype)
        if s.count is not None:
            self._index(s.count, "a count")

    def _store_bytes(self, s: StoreBytes) -> None:
        kind = self._pointer(s.pointer)
        require(kind.writable and kind.dtype in (DType.I8, DType.U8), "bytes need a writable pointer to such")
        self._index(s.index, "an address")
        for value in s.values:
            self._value(value)
        fits = 2 <= len(s.values) <= 4 and {value.type for value in s.values} == {i32(16)}
        require(fits, "{} vectors of {} are stored as bytes", len(s.values), s.values[0].type if s.values else "none")

    def _array(self, s: Array) -> None:
        require(s.count > 0, "an array must have elements")
        kind = PointerType(s.dtype, writable=True, space=self.arrays_in)
        require(s.var.vtype == kind, "an array's name must be a writable pointer to its type")
        self._array_bytes += s.count * s.dtype.bytes
        require(self._array_bytes < ARRAY_BYTES, "local arrays take {} bytes", self._array_bytes)
        self._define(s.var)

    def _call(self, function: Function, args: Sequence[Rvalue]) -> None:
        self._calls = True
        require(self._tiles_ready or function.name not in self._with_tiles, "{} is called without tiles", function.name)
        require(self._known(function), "function {} is not defined before its caller", function.name)
        require(len(args) == len(function.arguments), "{} takes {} arguments", function.name, len(function.arguments))
        for arg, declared in zip(args, function.arguments, strict=True):
            if isinstance(declared.vtype, PointerType):
                require(isinstance(arg, (Var, Offset)), "{}: {} is a pointer", function.name, declared.name)
                assert isinstance(arg, (Var, Offset))
                given = self._pointer(arg)
                wanted = declared.vtype
                fits = (given.dtype, given.space) == (wanted.dtype, wanted.space) and (given.writable or not wanted.writable)
                require(fits, "{}: {} is given for {}", function.name, given, wanted)
            else:
                self._value(arg)
                require(_same(arg.type, declared.vtype), "{}: {} is given for {}", function.name, arg.type, declared.vtype)

    # -- tiles and pairs

    def _takes_tiles(self, body: Sequence[Statement]) -> bool:
        """Whether a function works on the tiles of its caller: it uses some and configures none."""
        used = False
        waiting = list(body)
        while waiting:
            match waiting.pop():
                case TileConfigure():
                    return False
                case TileZero() | TileLoad() | TileDot() | TileStore():
                    used = True
                case CallStatement(function=function):
                    used = used or function.name in self._with_tiles
                case For(body=inner):
                    waiting.extend(inner)
                case If(then=then, otherwise=otherwise):
                    waiting.extend((*then, *otherwise))
        return used

    def _tile_statement(self, s: TileStatement) -> None:
        if isinstance(s, TileConfigure):
            require(0 < len(s.shapes) <= TILES, "there are {} tiles", TILES)
            for shape in s.shapes:
                self._index(shape.rows, "the rows of a tile")
                self._index(shape.row_bytes, "the width of a tile")
            self._tiles_ready = True
            return
        require(self._tiles_ready, "tiles are used before they are configured")
        if isinstance(s, TileRelease):
            self._tiles_ready = False
            return
        numbers = (s.c, s.a, s.b) if isinstance(s, TileDot) else (s.tile,)
        require(all(0 <= n < TILES for n in numbers), "there are {} tiles", TILES)
        require(len(set(numbers)) == len(numbers), "a product needs three different tiles")
        if isinstance(s, TileLoad | TileStore):
            kind = self._pointer(s.pointer)
            self._index(s.index, "an address")
            self._index(s.stride, "a stride")
            stored = isinstance(s, TileStore)
            require(not stored or kind.writable, "a store needs a writable pointer")
            require(kind.dtype in _SUMS or (kind.dtype in _FACTORS and not stored), "a tile of {}", kind.dtype)

    def _count_at(self, pointer: Pointer, at: Rvalue, *numbers: Rvalue) -> None:
        kind = self._pointer(pointer)
        require(kind.dtype is DType.I64 and kind.writable, "supersteps are counted in {}", kind)
        self._index(at, "an address")
        for number in numbers:
            self._index(number, "a number of supersteps")

    def _words_at(self, pointer: Pointer, at: Rvalue, count: Rvalue | None, writable: bool = False) -> None:
        kind = self._pointer(pointer)
        require(kind.dtype in _IN_WORDS, "words of {}", kind.dtype)
        require(kind.writable or not writable, "a store needs a writable pointer")
        self._index(at, "an address")
        if count is not None:
            self._index(count, "a count")

    def _load_words(self, e: LoadWords) -> None:
        self._words_at(e.pointer, e.index, e.count)
        require(e.lanes >= 1, "a load of {} lanes", e.lanes)

    def _pack_pairs(self, e: PackPairs) -> None:
        self._value(e.low)
        self._value(e.high)
        require(_same(e.low.type, e.high.type) and e.low.type.elem is Elem.F32, "pairs of {}, {}", e.low.type, e.high.type)

    def _word_dot(self, e: PairDot | ShortDot | QuadDot | ClampedQuadDot) -> None:
        for part in (e.a, e.b, e.c):
            self._value(part)
        a, b, c = e.a.type, e.b.type, e.c.type
        sums = Elem.F32 if isinstance(e, PairDot) else Elem.I32
        fits = _same(a, b) and a.elem is Elem.I32 and c.elem is sums and a.lanes == c.lanes
        require(fits, "products of words {}, {} to {}", a, b, c)

    def _nibble(self, e: Nibble) -> None:
        self._value(e.words)
        require(e.words.type.elem is Elem.I32 and 0 <= e.position < NIBBLES, "4-bit integer {} of {}", e.position, e.words.type)

    def _lookup(self, e: Lookup) -> None:
        self._value(e.index)
        fits = e.index.type.elem is Elem.I32 and 0 < len(e.table) <= ENTRIES
        require(fits, "a lookup at {} in a table of {}", e.index.type, len(e.table))
        whole = e.elem is Elem.F32 or (e.elem is Elem.I32 and all(entry == int(entry) for entry in e.table))
        require(whole, "a table of {} has other entries", e.elem)

    def _lookup_in(self, e: LookupIn) -> None:
        kind = self._pointer(e.pointer)
        self._index(e.first, "an address")
        self._value(e.index)
        fits = e.index.type.elem is Elem.I32 and kind.dtype is DType.F32 and e.elem is not Elem.I64
        require(fits, "a lookup at {} of {} among {}", e.index.type, e.elem, kind.dtype)

    def _byte_lookup(self, e: ByteLookup) -> None:
        for part in (*e.table, e.index):
            self._value(part)
        fits = len(e.table) in (2, 4) and {part.type for part in (*e.table, e.index)} == {i32(16)}
        require(fits, "a lookup of bytes in {} vectors at {}", len(e.table), e.index.type)

    def _known(self, function: Function) -> bool:
        found = self._functions.get(function.name)
        return found is function or found == function

    # -- values

    def _value(self, e: Rvalue) -> None:
        if id(e) not in self._legal:
            self._rules[type(e)](e)
            self._legal.add(id(e))
            self._values.append(id(e))

    def _index(self, e: Rvalue, what: str) -> None:
        self._value(e)
        require(_is_index(e.type), "{} must be an index, not {}", what, e.type)

    def _pointer(self, pointer: Pointer) -> PointerType:
        while isinstance(pointer, Offset):
            self._index(pointer.index, "an offset")
            pointer = pointer.pointer
        require(self._visible.get(pointer.name) == pointer, "{} is not defined here", pointer.name)
        kind = pointer.vtype
        if not isinstance(kind, PointerType):
            raise Broken(f"{pointer.name} is no pointer")
        return kind

    def _variable(self, e: Var) -> None:
        found = self._visible.get(e.name)
        require(found is e or found == e, "{} is not defined here", e.name)
        require(isinstance(e.vtype, Type), "a pointer is used as a value")

    def _unary(self, e: Unary) -> None:
        require(e.op in UNARY or e.op in LIBM or e.op == "round_f16", "there is no operation {}", e.op)
        self._value(e.a)
        self._suits(e.op, e.a.type)

    def _binary(self, e: Binary) -> None:
        require(e.op in ARITHMETIC or e.op in COMPARE, "there is no operation {}", e.op)
        self._value(e.a)
        self._value(e.b)
        require(_same(e.a.type, e.b.type), "{} of {} and {}", e.op, e.a.type, e.b.type)
        self._suits(e.op, e.a.type)

    def _suits(self, op: str, kind: Type) -> None:
        require(op not in _FLOAT_ONLY or kind.elem is Elem.F32, "{} of {}", op, kind)
        require(op not in _BITS_ONLY or kind.elem is not Elem.F32, "{} of {}", op, kind)

    def _fma(self, e: Fma) -> None:
        for part in (e.a, e.b, e.c):
            self._value(part)
        require(_same(e.a.type, e.b.type) and _same(e.b.type, e.c.type), "fma of {}, {}, {}", e.a.type, e.b.type, e.c.type)

    def _select(self, e: Select) -> None:
        for part in (e.mask, e.a, e.b):
            self._value(part)
        mask, kind = e.mask.type, e.a.type
        require(_same(kind, e.b.type), "select between {} and {}", kind, e.b.type)
        fits = mask == Type(Elem.I32, kind.lanes) or (_scalar(kind) and _scalar(mask) and mask.elem is not Elem.F32)
        require(fits, "select of {} by {}", kind, mask)

    def _convert(self, e: Convert) -> None:
        self._value(e.a)
        fits = e.to.lanes == e.a.type.lanes or (_scalar(e.to) and _scalar(e.a.type))
        require(fits, "conversion of {} to {}", e.a.type, e.to)

    def _bitcast(self, e: Bitcast) -> None:
        self._value(e.a)
        fits = e.to.lanes == e.a.type.lanes and Elem.I64 not in (e.to.elem, e.a.type.elem)
        require(fits, "bits of {} as {}", e.a.type, e.to)

    def _splat(self, e: Splat) -> None:
        self._value(e.a)
        fits = _scalar(e.a.type) and e.a.type.elem is e.to.elem and e.to.lanes > 1
        require(fits, "splat of {} as {}", e.a.type, e.to)

    def _load(self, e: Load) -> None:
        self._pointer(e.pointer)
        self._index(e.index, "an address")
        if e.count is not None:
            self._index(e.count, "a count")
        require(e.lanes >= 1, "a load of {} lanes", e.lanes)

    def _gather(self, e: Gather) -> None:
        self._pointer(e.pointer)
        self._value(e.index)
        require(e.index.type.elem is Elem.I64, "gather at {}", e.index.type)

    def _shuffle(self, e: Shuffle) -> None:
        self._value(e.a)
        self._value(e.b)
        require(_same(e.a.type, e.b.type), "shuffle of {} and {}", e.a.type, e.b.type)
        require(all(0 <= lane < 2 * e.a.type.lanes for lane in e.lanes), "a shuffle takes a lane that is not there")

    def _reduce(self, e: Reduce) -> None:
        require(e.op in _REDUCE, "there is no reduction by {}", e.op)
        self._value(e.a)
        require(e.op not in ("or", "and") or e.a.type.elem is not Elem.F32, "reduction of {} by {}", e.a.type, e.op)

    def _call_value(self, e: CallValue) -> None:
        require(e.function.result is not None, "{} has no result", e.function.name)
        self._call(e.function, e.args)
