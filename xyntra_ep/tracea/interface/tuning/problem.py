"""One op by itself: what tuning asks about, and trials compute."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.options import Precision
from xyntra_ep.tracea.core_ir.dims import evaluate, product, symbol, symbols_of
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.interpreter import random_like
from xyntra_ep.tracea.core_ir.ops import Binding, CoreOp, Product, Program, Range, SymbolKind, Value, ValueKind
from xyntra_ep.tracea.core_ir.ops.memory import Array
from xyntra_ep.tracea.core_ir.work import sized_work
from xyntra_ep.tracea.interface.named_ops import Draft, op_named
from xyntra_ep.tracea.interface.precision import PRODUCTS
from xyntra_ep.tracea.kernels.variant import Axis, Config
from xyntra_ep.tracea.optimizer.cost_model import OpFacts
from xyntra_ep.tracea.optimizer.tuning_cache import signature

_SEED = 17  # of the data; any would do


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """``program`` has one op; ``sizes``: what its symbols are in trials. ``between_bytes``: what the rest of a model reads and
    writes from one run of the op to the next, so that trials find the caches as a model leaves them. ``covers``: by the name of
    an axis of search spaces how much there is for it: a value that is larger than it need be has the tiles of the
    least that covers it."""

    program: Program
    sizes: Mapping[str, int]
    between_bytes: int = 0
    covers: Mapping[str, int] = field(default_factory=dict)

    @property
    def op(self) -> CoreOp:
        return self.program.ops[0]

    @property
    def name(self) -> str:
        return self.op.label or self.op.title()

    @property
    def constants(self) -> frozenset[int]:
        """Values that are known when a session is created."""
        known = (ValueKind.CONST, ValueKind.LITERAL)
        return frozenset(i for i, value in enumerate(self.program.values) if value.kind in known)

    @property
    def product(self) -> Product:
        """What the op multiplies in; F32 where it does not."""
        found: Product = getattr(self.op, "product", Product.F32)
        return found

    @property
    def flops(self) -> int:
        return evaluate(sized_work(self.op).flops, self.sizes)

    @property
    def facts(self) -> OpFacts:
        """As the learned cost model sees the op."""
        work = sized_work(self.op, self.constants)
        flops, size = (evaluate(n, self.sizes) for n in (work.flops, work.bytes))
        return OpFacts(op=signature(self.op, self.constants), flops=flops, bytes=size)

    def more_than_covers(self, axes: Sequence[Axis], config: Config) -> str:
        """Why a configuration has the tiles that another one has, too; empty where none does."""
        for axis in axes:
            enough = [value for value in axis.values if axis.name in self.covers and value >= self.covers[axis.name]]
            if enough and config[axis.name] > min(enough):
                return f"{axis.name}={min(enough)} covers all {self.covers[axis.name]}"
        return ""

    def values(self, kind: ValueKind) -> list[Value]:
        """In the order of a plan's tensors."""
        return sorted((v for v in self.program.values if v.kind is kind), key=lambda v: v.index)

    def extents(self, value: Value) -> tuple[int, ...]:
        return tuple(evaluate(size, self.sizes) for size in value.shape)

    def bytes_of(self, kind: ValueKind) -> list[int]:
        """How large tensors of a kind are."""
        return [math.prod(self.extents(v)) * v.dtype.bytes for v in self.values(kind)]

    def data(self, kind: ValueKind) -> list[Array]:
        """Random inputs, or constants."""
        offset = _SEED if kind is ValueKind.INPUT else 1000 * _SEED
        return [random_like(self.extents(v), v.dtype, offset + i) for i, v in enumerate(self.values(kind))]


def named_problem(op: str, *, precision: str = "fp32", **sizes: int) -> Problem:
    """An op of `plan_kernel`, with usual sizes where none are given. Raises ConfigError for what does not exist.

    >>> named_problem("gemm", m=64, n=32, k=16).op.title()
    'Gemm'
    """
    named = op_named(op)
    draft = Draft(PRODUCTS.get(Precision(precision.lower()), Product.F32))
    program = draft.program
    program.ops.append(named.build(draft, **named.complete(sizes)))
    program.sources.append(())
    program.constants.extend(f"const{i}" for i in range(sum(v.kind is ValueKind.CONST for v in program.values)))
    return Problem(program=program, sizes={})


def problem_of(program: Program, number: int, known: frozenset[int]) -> Problem:
    """Op ``number`` of a program by itself, at the sizes that are assumed. ``known``: values that are when a session is
    created. A size that its inputs only show after arithmetic, as behind a strided convolution, has an input of its own, which
    is not read. Raises UnsupportedError where nothing is assumed of a size, and for an op that needs others: it writes a part of
    a value, or reads what it writes."""
    op = program.ops[number]
    if any(o.value in {i.value for i in op.inputs} for o in op.written):
        raise UnsupportedError("it reads what it writes", where=op.label)
    if any(product(o.shape) != product(program.values[o.value].shape) for o in op.written):
        raise UnsupportedError("it writes a part of a value", where=op.label)
    usual = program.assumed[1]
    wanted = set().union(*(symbols_of(size) for size in op.sizes()))
    written = {o.value for o in op.written}
    used = list(dict.fromkeys(o.value for o in op.operands))
    place = {old: new for new, old in enumerate(used)}
    values: list[Value] = []
    for old in used:
        value = program.values[old]
        wanted.update(*(symbols_of(size) for size in value.shape))
        if value.kind is ValueKind.LITERAL:
            values.append(value)
            continue
        kind = ValueKind.OUTPUT if old in written else ValueKind.CONST if old in known else ValueKind.INPUT
        values.append(replace(value, kind=kind, index=sum(v.kind is kind for v in values)))
    missing = sorted(name for name in wanted if name not in usual)
    if missing:
        raise UnsupportedError(f"nothing is known of the size {', '.join(missing)}", where=op.label)
    for name in sorted(wanted - _dims(values).keys()):
        inputs = sum(v.kind is ValueKind.INPUT for v in values)
        values.append(Value(kind=ValueKind.INPUT, dtype=DType.U8, shape=(symbol(name),), index=inputs))
    alone = Program(
        values=values,
        ops=[_moved(op, place)],
        sources=[()],
        constants=[f"const{i}" for i in range(sum(v.kind is ValueKind.CONST for v in values))],
        bindings=[_binding(name, where, program) for name, where in sorted(_dims(values).items())],
    )
    return Problem(program=alone, sizes={name: usual[name] for name in wanted})


def _moved(op: CoreOp, place: Mapping[int, int]) -> CoreOp:
    """The op on values with other numbers."""
    inputs, written = (tuple(replace(o, value=place[o.value]) for o in side) for side in (op.inputs, op.written))
    return op.with_operands(inputs, written)


def _dims(values: Sequence[Value]) -> dict[str, tuple[int, int]]:
    """Symbols that are dimensions of inputs: of which, and which of them."""
    inputs = [value for value in values if value.kind is ValueKind.INPUT]
    sizes = [(size, (value.index, axis)) for value in inputs for axis, size in enumerate(value.shape)]
    return {name: where for size, where in reversed(sizes) for name in symbols_of(size) if size == symbol(name)}


def _binding(name: str, where: tuple[int, int], program: Program) -> Binding:
    """A symbol of the op by itself."""
    points = [point[name] for point in program.assumed if name in point]
    expected = Range(*points) if len(points) == len(Range._fields) else None
    return Binding(name=name, kind=SymbolKind.DIM, input=where[0], index=where[1], plausible=expected)
