"""WGSL, the language of WebGPU: one module for a kernel.

Buffers are bindings 0, 1 ... of group 0, all of them writable for WebGPU, so that one kernel can read and write parts of one
buffer. Behind them comes a uniform: the parameters, and the number of blocks. Blocks beyond 65535 go in a second dimension.
"""

from __future__ import annotations

from xyntra_ep.tracea.emitters.webgpu import functions, int64
from xyntra_ep.tracea.emitters.webgpu.memory import WgslMemory, is_long
from xyntra_ep.tracea.runtime.kernel_source import Definition, Definitions
from xyntra_ep.tracea.semantic_ir.gpu.nodes import (
    AsyncCommit,
    AsyncCopy,
    AsyncWait,
    Barrier,
    LoadPacket,
    SharedArray,
    StorePacket,
)
from xyntra_ep.tracea.semantic_ir.nodes import (
    COMPARE,
    LIBM,
    Array,
    Assign,
    Binary,
    Bitcast,
    CallValue,
    Const,
    Convert,
    Elem,
    Fma,
    For,
    Function,
    Kernel,
    Let,
    Rvalue,
    Select,
    Splat,
    Statement,
    Type,
    Unary,
)

_INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/", "mod": "%", "and": "&", "or": "|", "xor": "^"}
_RELATION = {"lt": "<", "le": "<=", "eq": "==", "ne": "!="}


class WgslPrinter(WgslMemory):
    """One kernel's module."""

    def __init__(self) -> None:
        super().__init__()
        self._visit |= {Splat: lambda e: self._as(e.a, e.to), CallValue: self._call}

    def kernel(self, kernel: Kernel) -> Definitions:
        self._atomic = {b.name for b in kernel.buffers if b.writable}
        return super().kernel(kernel)

    def function(self, function: Function) -> Definition:
        body = functions.FUNCTIONS.get(function.name)
        return super().function(function) if body is None else self._defined(function, f" {{ {self.target.use(body)} }}\n")

    # -- statements

    def _statement(self, s: Statement, depth: int) -> None:
        match s:
            case Let():
                kind = f"var {s.var.name}: {self.target.type(s.var.type)}" if s.mutable else f"let {s.var.name}"
                self._line(depth, f"{kind} = {self._as(s.value, s.var.type)};")
            case Assign():
                self._line(depth, f"{s.var.name} = {self._as(s.value, s.var.type)};")
            case For():
                v, end, step = s.var.name, self.expr(s.end), self.expr(s.step)
                self._line(depth, f"for (var {v}: i32 = {self.expr(s.begin)}; {v} < {end}; {v} += {step}) {{")
                self.block(s.body, depth + 1)
                self._line(depth, "}")
            case Array():
                self._line(depth, self.target.array(s.var, s.dtype, s.count))
            case SharedArray():
                self._shared_array(s)
            case Barrier():
                self._line(depth, "workgroupBarrier();")
            case AsyncCopy():
                self._copy(s, depth)
            case AsyncCommit() | AsyncWait():
                pass
            case LoadPacket():
                self._load_packet(s, depth)
            case StorePacket():
                self._store_packet(s, depth)
            case _:
                super()._statement(s, depth)

    def condition(self, e: Rvalue) -> str:
        if isinstance(e, Binary) and e.op in COMPARE:
            return self.relation(e)
        if isinstance(e, Binary) and _is_truth(e):
            return f"({self.condition(e.a)} {'&&' if e.op == 'and' else '||'} {self.condition(e.b)})"
        return f"({self._as(e, Type(Elem.I32, 1))} != 0)"

    # -- values

    def _call(self, e: CallValue) -> str:
        given = [self._as(a, v.type) for a, v in zip(e.args, e.function.arguments, strict=True)]
        return f"{e.function.name}({', '.join(given)})"

    def _const(self, e: Const) -> str:
        if is_long(e.ctype):
            return int64.literal(int(e.value))
        if e.ctype.elem is Elem.F32:
            return super()._const(e)
        return f"i32({int(e.value)})" if int(e.value) < 0 else str(int(e.value))

    def _unary(self, e: Unary) -> str:
        if e.op == "neg" and is_long(e.type):
            return self.target.use(f"xy_neg_long({self.expr(e.a)})")
        if e.op in LIBM or e.op not in ("neg", "not"):
            name = e.op if e.op not in LIBM else f"libm_{e.op}"
            return f"{self.target.helper(name, e.a.type)}({self.expr(e.a)})"
        return super()._unary(e)

    def relation(self, e: Binary) -> str:
        kind = self._common(e)
        if e.a == e.b and e.op in ("eq", "ne") and kind.elem is Elem.F32:  # compilers may think that a float is itself
            return f"{'!' if e.op == 'eq' else ''}{self.target.use(f'xy_is_nan({self.expr(e.a)})')}"
        a, b = self._as(e.a, kind), self._as(e.b, kind)
        return self.target.use(f"xy_{e.op}_long({a}, {b})") if is_long(kind) else f"({a} {_RELATION[e.op]} {b})"

    def _common(self, e: Binary) -> Type:
        return e.a.type if is_long(e.a.type) or not is_long(e.b.type) else e.b.type

    def _binary(self, e: Binary) -> str:
        if e.op in COMPARE:
            return f"select(0, {'1' if e.a.type.lanes == 0 else '-1'}, {self.relation(e)})"
        kind = self._common(e)
        a, b = self._as(e.a, kind), self._as(e.b, kind)
        if e.op in ("min", "max", "pow", "fmod"):
            return f"{self.target.helper(e.op, kind)}({a}, {b})"
        if e.op in ("shl", "shr"):
            if is_long(kind):
                return self.target.use(f"xy_{e.op}_long({a}, {b})")
            by = f"{e.b.value}u" if isinstance(e.b, Const) else f"u32({b})"
            return f"({a} {'<<' if e.op == 'shl' else '>>'} {by})"
        if is_long(kind) and e.op not in ("and", "or", "xor"):
            return self.target.use(f"xy_{e.op}_long({a}, {b})")
        return f"({a} {_INFIX[e.op]} {b})"

    def _fma(self, e: Fma) -> str:
        if is_long(e.type):
            return self._binary(Binary("add", Binary("mul", e.a, e.b), e.c))
        return super()._fma(e)

    def _select(self, e: Select) -> str:
        return f"select({self._as(e.b, e.type)}, {self.expr(e.a)}, {self.condition(e.mask)})"

    def _convert(self, e: Convert) -> str:
        return self._as(e.a, e.to)

    def _bitcast(self, e: Bitcast) -> str:
        return self.target.bits(e.to, self.expr(e.a))


def _is_truth(e: Rvalue) -> bool:
    """Whether it is made of comparisons alone."""
    return isinstance(e, Binary) and (e.op in COMPARE or (e.op in ("and", "or") and _is_truth(e.a) and _is_truth(e.b)))


def emit(kernel: Kernel) -> Definitions:
    """The WGSL module of ``kernel``."""
    return WgslPrinter().kernel(kernel)
