"""From core-IR scalar expressions to semantic-IR values at a given lane count.

``ScalarCode`` walks an ``Expr`` once per distinct node, names what is used more than once, and asks a callback for the leaves
(loads, axes, accumulators), which depend on the kernel around it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Sequence

import numpy as np

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr, call, walk
from xyntra_ep.tracea.semantic_ir.builder import BlockBuilder, KernelBuilder
from xyntra_ep.tracea.semantic_ir.level_sums import LevelSum, level_sums
from xyntra_ep.tracea.semantic_ir.level_tables import LevelTable, ends_of, level_tables
from xyntra_ep.tracea.semantic_ir.math_library import (
    convert_mask_to_float,
    has_math_function,
    math_dependencies,
    math_function,
    rough_function,
)
from xyntra_ep.tracea.semantic_ir.nodes import (
    LIBM,
    CallValue,
    Const,
    Convert,
    Elem,
    Fma,
    Rvalue,
    Select,
    Type,
    Unary,
    binary,
    f32,
    i32,
    i64,
    splat,
    vmax,
    vmin,
)
from xyntra_ep.tracea.semantic_ir.reciprocal import is_usual, reciprocal
from xyntra_ep.tracea.semantic_ir.table_nodes import Lookup

Leaf = Callable[[Expr, int], Rvalue]
_RING = frozenset({"add", "sub", "mul", "neg"})  # modulo 2^32 they need their operands modulo 2^32 only
_BYTES = {DType.I8: (-128, 127), DType.U8: (0, 255)}
_ELEM = {DType.F32: Elem.F32, DType.I64: Elem.I64, DType.BOOL: Elem.I32}


def _walk_to_loads(known: Container[int], *roots: Expr) -> list[Expr]:
    """The nodes of ``roots``, operands before users, without what is only an index of a load or below a node that is ``known``
    (by its id)."""
    reached: set[int] = set()
    stack = list(roots)
    while stack:
        e = stack.pop()
        if id(e) not in reached:
            reached.add(id(e))
            stack.extend(e.args if e.kind != "load" and id(e) not in known else ())
    return [e for e in walk(*roots) if id(e) in reached]


def value_type(dtype: DType, lanes: int) -> Type:
    """The semantic type of an expression's compute type; booleans are masks."""
    return Type(_ELEM[dtype], lanes)


def _extreme(e: Expr) -> tuple[str, Expr, Expr] | None:
    """(max, q, p) for p < q ? q : p and (min, p, q) for p < q ? p : q of floats, each one instruction; None for other choices."""
    condition, a, b = e.args
    if condition.kind != "call" or condition.attr != "lt" or a.dtype is not DType.F32:
        return None
    p, q = condition.args
    if a is q and b is p:
        return "max", q, p
    return ("min", p, q) if a is p and b is q else None


def _is_clamped(e: Expr) -> bool:
    """Whether the float ``e`` is NaN or between two constants that 32 bits hold: a min of a max, or the other way round, or the
    choices that these are, or what stands for a float."""
    if e.kind == "call" and e.attr == "quantise":
        return True
    bounds: set[str] = set()
    while (side := _side(e)) is not None and side[0] not in bounds:
        bounds.add(side[0])
        e = side[1]
    return len(bounds) == 2


def _side(e: Expr) -> tuple[str, Expr] | None:
    """("max", x) where ``e`` is the larger of x and a constant, ("min", x) where it is the lesser one; else None."""
    if e.kind != "call":
        return None
    pair, name = e.args, str(e.attr)
    if e.attr == "where" and e.args[0].kind == "call" and e.args[0].attr == "lt" and set(e.args[0].args) == set(e.args[1:]):
        pair = e.args[0].args
        name = "max" if e.args[1] is pair[1] else "min"
    numbers = [a for a in pair if a.kind == "const" and abs(a.attr) < 2**31]
    if name not in ("min", "max") or len(pair) != 2 or len(numbers) != 1:
        return None
    return name, next(a for a in pair if a is not numbers[0])


def _ends(zero: Rvalue, low: Rvalue, high: Rvalue) -> tuple[int, int] | None:
    """What is quantised lies between so many scales, where that is known."""
    if not (isinstance(zero, Const) and isinstance(low, Const) and isinstance(high, Const)):
        return None
    return int(low.value - zero.value), int(high.value - zero.value)


def fills_bytes(root: Expr, dtype: DType) -> bool:
    """Whether ``root`` quantises to all of ``dtype``, bytes, so that clamping what is too low, where the zero point is 0 or more,
    and what is too high is no different from taking the type's nearest."""
    if dtype not in _BYTES or root.attr != "to_i" or root.args[0].attr != "quantise":
        return False
    zero = root.args[0].args[2]
    return ends_of(root.args[0]) == _BYTES[dtype] and zero.kind == "const" and zero.attr >= 0


def _is_number(a: Rvalue) -> bool:
    """Whether ``a`` is a constant and not NaN."""
    return isinstance(a, Const) and a.value == a.value


class ScalarCode:
    """Emits expressions into ``block``; functions they need go to ``kernel``. ``leaf(e, lanes)`` gives a load, axis or acc
    with ``lanes`` lanes (or 1, it is splat as needed); it may return the same value for the whole walk. ``rough``: elementary
    functions need not be more exact than bfloat16, which their result becomes. ``dtype_of``: as what a load finds its operand.
    The indices of a load are the leaf's business: most are plain axes, an address without code of their own.

    An integer that fits in 32 bits is a *word*, in i32 lanes: twice as many to a vector as in i64, with a multiplication and a
    conversion to f32 that every instruction set has. Loads of narrow integers and sums of products come as words, and what is
    wrapped to 32 bits is computed in them; whoever wants the integer in i64 gets it converted."""

    def __init__(
        self,
        kernel: KernelBuilder,
        block: BlockBuilder,
        lanes: int,
        leaf: Leaf,
        dtype_of: Callable[[int], DType],
        rough: bool = False,
    ) -> None:
        self._kernel = kernel
        self._rough = rough
        self._block = block
        self._lanes = lanes
        self._leaf = leaf
        self._dtype_of = dtype_of
        self._done: dict[int, Rvalue] = {}
        self._words: dict[int, Rvalue] = {}  # integers in i32 lanes, some of which are in ``_done`` as well
        self._low: dict[int, Rvalue] = {}  # integers modulo 2^32
        self._open: Expr | None = None  # what a store clamps
        self._keep: list[Expr] = []  # ids stay valid while the expressions live

    def fork(self, lanes: int, leaf: Leaf) -> ScalarCode:
        """Code for an inner block: knows all values that this one has by now, and keeps its own to itself."""
        inner = ScalarCode(self._kernel, self._block, lanes, leaf, self._dtype_of, self._rough)
        inner._done = dict(self._done)
        inner._words = dict(self._words)
        inner._low = dict(self._low)
        inner._keep = list(self._keep)
        return inner

    def knows(self, e: Expr) -> bool:
        return id(e) in self._done or id(e) in self._words

    def define(self, e: Expr, value: Rvalue) -> None:
        """``value`` stands for ``e`` from now on."""
        self._note(e, value)

    def emit(self, *roots: Expr) -> list[Rvalue]:
        """The values of ``roots``; nodes shared with earlier calls are reused."""
        self._compute(*roots)
        return [self._full(self._value(r)) for r in roots]

    def emit_stored(self, root: Expr, is_clamped: bool = False) -> Rvalue:
        """The value of ``root`` for a store, which takes an integer as a word too. ``is_clamped``: the store brings what
        `fills_bytes` between the ends of its type."""
        self._open = root if is_clamped else None
        self._compute(root)
        self._open = None
        return self._full(self._words.get(id(root)) or self._value(root))

    def _compute(self, *roots: Expr) -> None:
        nodes = self._to_compute(roots)
        if self._lanes > 1:
            for found in level_tables(nodes, roots, self._bytes_of):
                self._look_up(found)
                nodes = self._to_compute(roots)
            for e, made in level_sums(nodes, self._bytes_of):
                self._add_levels(e, made, nodes, roots)
                nodes = self._to_compute(roots)
        uses = Counter(id(a) for e in nodes if e.kind != "load" for a in e.args)
        inside = self._inside_words(nodes, roots)
        for e in nodes:
            if not self.knows(e) and id(e) not in inside:
                value = self._node(e)
                if uses[id(e)] > 1 or e.kind == "load" or value.type.lanes > 1:
                    value = self._block.let("v", value)
                self._note(e, value)

    def _to_compute(self, roots: tuple[Expr, ...]) -> list[Expr]:
        return _walk_to_loads(self._done.keys() | self._words.keys(), *roots)

    def _look_up(self, found: LevelTable) -> None:
        self._compute(found.level)
        level = self._words.get(id(found.level)) or self._value(found.level)
        place = level if level.type.elem is Elem.I32 else Convert(i32(level.type.lanes), level)
        place = place - found.low if found.low else place
        self._note(found.result, self._block.let("v", Lookup(found.table, self._block.let("place", place), found.elem)))

    def _bytes_of(self, load: Expr) -> tuple[int, int] | None:
        return _BYTES.get(self._dtype_of(load.attr))

    def _add_levels(self, e: Expr, found: LevelSum, nodes: Sequence[Expr], roots: tuple[Expr, ...]) -> None:
        """``e``, and the integer of it where one is wanted, as a sum of two levels."""
        as_floats = [level if level.dtype is DType.F32 else call("to_f", level) for level in (found.first, found.second)]
        self._compute(*as_floats)
        first, second = (self._full(self._value(level)) for level in as_floats)
        a, b, constant, low, high = (Const(first.type, n) for n in (found.a, found.b, found.constant, found.low, found.high))
        total: Rvalue = Fma(
            first, a, Fma(second, b, constant) if found.constant else self._block.let("x", Unary("opaque", second * b))
        )
        users = [n for n in nodes if e in n.args]
        if self._open is None or users != [self._open] or e in roots:
            total = vmin(vmax(total, low), high)
        total = self._block.let("sum", total)
        integers = [n for n in users if n.attr == "to_i"]
        for n in integers:
            self._note(n, self._block.let("level", Convert(i32(first.type.lanes), Unary("rint", total))))
        if e in roots or len(users) > len(integers):
            self._note(e, self._block.let("level", Unary("rint", total)))

    def _note(self, e: Expr, value: Rvalue) -> None:
        is_word = e.dtype is DType.I64 and value.type.elem is Elem.I32
        (self._words if is_word else self._done)[id(e)] = value
        self._keep.append(e)

    def _value(self, e: Expr) -> Rvalue:
        """``e``, which has been computed, in its compute type."""
        found = self._done.get(id(e))
        if found is None:
            word = self._words[id(e)]
            found = self._done[id(e)] = self._block.let("v", Convert(i64(word.type.lanes), word))
        return found

    def _full(self, value: Rvalue) -> Rvalue:
        return splat(value, self._lanes) if value.type.lanes <= 1 < self._lanes else value

    # -- words

    def _inside_words(self, nodes: list[Expr], roots: tuple[Expr, ...]) -> set[int]:
        """What only words are made of: sums and products that are wanted modulo 2^32 and nowhere else."""
        elsewhere = {id(r) for r in roots}
        inside: set[int] = set()
        for e in reversed(nodes):  # users first
            is_low = e.kind == "call" and (e.attr == "wrap_i32" or (id(e) in inside and id(e) not in elsewhere))
            for a in e.args if e.kind != "load" else ():
                may_be = is_low and a.kind == "call" and a.attr in _RING
                (inside if may_be else elsewhere).add(id(a))
        return inside - elsewhere

    def _modulo(self, e: Expr) -> Rvalue:
        """``e`` modulo 2^32, in i32 lanes."""
        found = self._low.get(id(e)) or self._words.get(id(e))
        if found is not None:
            return found
        if e.kind == "const":
            return Const(i32(1), (int(e.attr) + (1 << 31)) % (1 << 32) - (1 << 31))
        if e.kind == "call" and e.attr in _RING and id(e) not in self._done:
            args = [self._modulo(a) for a in e.args]
            lanes = max(a.type.lanes for a in args)
            args = [splat(a, lanes) if a.type.lanes < lanes else a for a in args]
            found = -args[0] if e.attr == "neg" else binary(e.attr, args[0], args[1])
        else:
            wide = self._value(e)
            found = Convert(i32(wide.type.lanes), wide)
        found = self._low[id(e)] = self._block.let("w", found)
        self._keep.append(e)
        return found

    def _as_word(self, e: Expr) -> Rvalue | None:
        """The call ``e`` as a word where it is one: None where it is no integer, or may be a long one."""
        match e.attr:
            case "wrap_i32":
                return self._modulo(e.args[0])
            case "wrap_u8" | "wrap_u16" if id(e.args[0]) in self._words:
                return self._wrap(e.attr, self._words[id(e.args[0])])
            case "to_i" if e.args[0].dtype is DType.F32 and _is_clamped(e.args[0]):
                if (level := self._level(e.args[0], is_open=e is self._open)) is not None:
                    return level
                value = self._value(e.args[0])
                return Convert(i32(value.type.lanes), value)
            case _:
                return None

    def _level(self, e: Expr, is_open: bool) -> Rvalue | None:
        """What ``e`` quantises, as a word, where the ends are known: one instruction rounds and converts what is divided.
        ``is_open``: a lower one than the lowest does."""
        if e.kind != "call" or e.attr != "quantise":
            return None
        x, scale, zero, low, high = self._alike([self._value(a) for a in e.args])
        quotient = self._bounded_quotient(x, scale, zero, low, high, is_open)
        if quotient is None:
            return None
        level = Convert(i32(x.type.lanes), Unary("rint", quotient))
        offset = int(zero.value) if isinstance(zero, Const) else 0
        return level + offset if offset else level

    def _node(self, e: Expr) -> Rvalue:
        if e.kind in ("axis", "acc"):
            return self._leaf(e, self._lanes)
        if e.kind == "load":
            return self._leaf(e, self._lanes)
        if e.kind == "const":
            value = -int(e.attr) if e.dtype is DType.BOOL else e.attr
            return Const(value_type(e.dtype, 1), value)
        if e.kind == "size":
            return Convert(i64(1), self._kernel.param(e.attr))
        word = self._as_word(e)
        if word is not None:
            return word
        if e.attr == "to_f" and id(e.args[0]) in self._words:
            return Convert(f32(self._words[id(e.args[0])].type.lanes), self._words[id(e.args[0])])
        found = _extreme(e) if e.attr == "where" else None
        if found is not None:
            name, p, q = found[0], *(self._value(a) for a in found[1:])
            lanes = max(p.type.lanes, q.type.lanes)
            p, q = (splat(v, lanes) if v.type.lanes < lanes else v for v in (p, q))
            return vmax(p, q) if name == "max" else vmin(p, q)
        args = self._alike([self._value(a) for a in e.args])
        return self._call(e.attr, args, args[0].type.lanes)

    def _alike(self, values: Sequence[Rvalue]) -> list[Rvalue]:
        """``values`` of as many lanes each as the widest has."""
        lanes = max(a.type.lanes for a in values)
        return [splat(a, lanes) if a.type.lanes < lanes else a for a in values]

    def _math(self, name: str, x: Rvalue, lanes: int) -> Rvalue:
        name = rough_function(name) if self._rough else name
        for function in math_dependencies(name, lanes):
            self._kernel.function(function)
        return CallValue(math_function(name, lanes), (x,))

    def _call(self, op: str, args: list[Rvalue], lanes: int) -> Rvalue:
        a = args[0]
        is_float = a.type.elem is Elem.F32
        if op in ("add", "sub", "mul") or (op in ("pow", "fmod") and is_float):
            return binary(op, a, args[1])
        if op == "div":
            return binary("div", a, args[1])
        if op == "fmod":
            return binary("mod", a, args[1])
        if op == "mod":
            return self._floor_mod(a, args[1])
        if op in ("min", "max"):
            b = args[1]
            if _is_number(b):
                a, b = b, a
            raw = (vmin if op == "min" else vmax)(a, b)  # a NaN in b is the result already
            return Select(binary("eq", a, a), raw, a) if is_float and not _is_number(a) else raw
        if op == "neg":
            return -a
        if op in ("abs", "sqrt", "floor", "ceil"):
            return Unary(op, a)
        if op == "round":
            return Unary("rint", a)
        if op == "quantise":
            return self._quantise(*args)
        if op == "relu":
            return vmax(0.0, a)
        if op == "sign":
            zero, one = Const(a.type, 0), Const(a.type, 1)
            signed = Select(binary("lt", zero, a), one, Select(binary("lt", a, zero), Const(a.type, -1), a))
            return signed
        if has_math_function(op):
            return self._math(op, a, lanes)
        if op in LIBM:
            return Unary(op, a)
        if op == "isnan":
            return binary("ne", a, a)
        if op == "isinf":
            return binary("eq", Unary("abs", a), float("inf"))
        if op in ("eq", "lt", "le"):
            return binary(op, a, args[1])
        if op in ("and", "or", "xor"):
            return binary(op, a, args[1])
        if op == "not":
            return Unary("not", a)
        if op in ("bitand", "bitor", "bitxor"):
            return binary(op.removeprefix("bit"), a, args[1])
        if op == "bitnot":
            return Unary("not", a)
        if op == "where":
            return Select(a, args[1], args[2])
        return self._convert(op, a, lanes)

    def _quantise(self, x: Rvalue, scale: Rvalue, zero: Rvalue, low: Rvalue, high: Rvalue) -> Rvalue:
        quotient = self._bounded_quotient(x, scale, zero, low, high)
        if quotient is None:
            level = Unary("rint", binary("div", x, scale)) + zero
            return vmin(vmax(level, low), high)  # NaN becomes low: vmax(a, b) is b unless a is larger
        level = Unary("rint", quotient)
        return level if isinstance(zero, Const) and zero.value == 0 else level + zero

    def _bounded_quotient(
        self, x: Rvalue, scale: Rvalue, zero: Rvalue, low: Rvalue, high: Rvalue, is_open: bool = False
    ) -> Rvalue | None:
        """``x`` by a known scale, from ``low`` to ``high`` when the zero point is added: what is out of range is brought to its
        ends first, so that all is finite, and then divided. None where one of them is not known. ``is_open``: what is too low
        and what is NaN may stay so, for whoever makes the lowest integer of 32 bits of it."""
        ends = _ends(zero, low, high)
        if ends is None or not isinstance(scale, Const) or not is_usual(float(scale.value), *ends):
            return None
        lowest, highest = (Const(x.type, float(np.float32(scale.value) * np.float32(end))) for end in ends)
        # NaN becomes the lowest, or stays: each of the two is its second operand unless the first is larger, or smaller.
        x = self._block.let("x", vmin(highest, x) if is_open else vmin(vmax(x, lowest), highest))
        return self._quotient(x, scale, *ends)

    def _quotient(self, x: Rvalue, scale: Const, first: int, last: int) -> Rvalue:
        """``x`` divided by the scale, as it is rounded to an integer from ``first`` to ``last``."""
        if scale.value == 1.0:
            return x
        factors = reciprocal(float(scale.value), first, last) if x.type.lanes > 1 else None  # vectors have fused products
        if factors is None:
            return binary("div", x, scale)
        high, low = (Const(scale.ctype, factor) for factor in factors)
        # A compiler may fuse either product with the sum: this one is rounded before.
        return Fma(x, high, self._block.let("rest", Unary("opaque", x * low)))

    def _floor_mod(self, a: Rvalue, b: Rvalue) -> Rvalue:
        """The remainder with the divisor's sign (0 for a zero integer divisor)."""
        op = "fmod" if a.type.elem is Elem.F32 else "mod"
        r = self._block.let("r", binary(op, a, b))
        zero = Const(r.type, 0)
        differs = binary("and", binary("ne", r, zero), binary("xor", binary("lt", r, zero), binary("lt", b, zero)))
        return Select(differs, r + b, r)

    def _convert(self, op: str, a: Rvalue, lanes: int) -> Rvalue:
        elem = a.type.elem
        match op:
            case "to_f":
                return convert_mask_to_float(a) if elem is Elem.I32 else Convert(f32(lanes), a)
            case "to_i":
                return Convert(i64(lanes), binary("and", a, Const(i32(lanes), 1)) if elem is Elem.I32 else a)
            case "to_b":
                return binary("ne", a, Const(a.type, 0))
            case "wrap_i32" | "wrap_i16" | "wrap_u16" | "wrap_i8" | "wrap_u8":
                return self._wrap(op, a)
            case "round_f32":
                return a
            case "round_f16":
                return Unary("round_f16", a)
            case _:
                raise AssertionError(f"no code for scalar op {op}")

    def _wrap(self, op: str, a: Rvalue) -> Rvalue:
        sign, bits = op[len("wrap_")], int(op[len("wrap_") + 1 :])
        if sign == "u":
            return binary("and", a, Const(a.type, (1 << bits) - 1))
        shift = Const(a.type, 64 - bits)
        return binary("shr", binary("shl", a, shift), shift)
