"""Core IR: what is computed, in a few big ops over strided operands.

    Program = values, ops in execution order, symbol bindings, guards, checks
    op      = Pointwise | RowReduce | Gemm | Conv | Attention | Scan | TopK | Recurrence

An ``Operand`` is a strided view of a value, so transposes, slices, broadcasts (stride 0) and most reshapes cost nothing; every
kernel states which strides it takes. Inputs are numbered per op: ``Load(j, ...)`` in an expression reads ``op.inputs[j]``.
The meaning of each op is `interpreter.py`, in float64.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from xyntra_ep.tracea.core_ir.dims import Size, evaluate, product, symbols_of
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr


class ValueKind(StrEnum):
    INPUT = "input"  # index = position among the island's inputs
    OUTPUT = "output"  # index = position among the island's outputs; may be read after it was written
    CONST = "const"  # index = position in Program.constants
    LITERAL = "literal"  # bytes in the plan
    TEMP = "temp"


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A buffer: ``shape`` elements of ``dtype``, contiguous row-major in ``shape`` (operands may view it otherwise)."""

    kind: ValueKind
    dtype: DType
    shape: tuple[Size, ...]
    index: int = 0
    literal: bytes = b""
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operand:
    """A view of ``Program.values[value]``: element (i, j, ...) is at offset + i*strides[0] + j*strides[1] ... (in elements)."""

    value: int
    dtype: DType
    shape: tuple[Size, ...]
    strides: tuple[Size, ...]
    offset: Size = 0


def contiguous_strides(shape: Sequence[Size]) -> tuple[Size, ...]:
    """Row-major strides in elements."""
    return tuple(product(shape[i + 1 :]) for i in range(len(shape)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Pointwise:
    """outputs[k][i...] = bodies[k] for every index of ``domain``; operands may be indexed at will (gathers, pads, windows)."""

    domain: tuple[Size, ...]
    inputs: tuple[Operand, ...]
    bodies: tuple[Expr, ...]
    outputs: tuple[Operand, ...]  # shape == domain
    label: str = ""


class ReduceKind(StrEnum):
    SUM = "sum"
    PROD = "prod"
    MAX = "max"  # of those that are no NaN; NaN where the first one is, as a loop has it that asks whether the next is larger
    MIN = "min"
    ARGMAX = "argmax"  # first index among equals (0 where the first is NaN); it counts the inner domain row-major
    ARGMIN = "argmin"
    ARGMAX_LAST = "argmax_last"  # last index among equals
    ARGMIN_LAST = "argmin_last"
    ANY_NAN_MAX = "max_ignore_nan"  # max as pooling does it: NaN loses unless alone


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One reduction over the inner domain; ``body`` may read acc(j) of earlier stages. ``dtype``: F32, I64 or BOOL."""

    kind: ReduceKind
    body: Expr
    dtype: DType = DType.F32


@dataclass(frozen=True, slots=True, kw_only=True)
class RowOutput:
    """A result of a RowReduce: per element of outer x inner (``per_row`` false), or one per row (``per_row``: no inner axes)."""

    body: Expr
    operand: Operand
    per_row: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RowReduce:
    """For each index of ``outer``: run the ``stages`` over ``inner`` in order, then write the outputs.

    Axis numbering: 0..len(outer)-1 are the outer axes, then the inner ones. LayerNorm is sum, sum of squared deviations and a
    body; Softmax is max, sum of exp and a body; pooling has the window as inner domain.
    """

    outer: tuple[Size, ...]
    inner: tuple[Size, ...]
    inputs: tuple[Operand, ...]
    stages: tuple[Stage, ...]
    outputs: tuple[RowOutput, ...]
    label: str = ""


class Product(StrEnum):
    """In what the operands of a matrix product are multiplied; the sums are f32 in every case.

    A request for speed, not a promise of loss: a variant that keeps more digits than asked for is as legal.
    """

    F32 = "f32"
    BF16 = "bf16"  # both operands rounded to bfloat16 (nearest even)
    F16 = "f16"  # the same to float16
    TF32 = "tf32"  # both rounded to 10 bits behind the leading one (nearest, ties away from zero), with the exponents of f32
    INT8W = "int8w"  # b rounded to 8 bits, symmetric, with one f32 scale for each column (max |b[:, n]| / 127)

    @property
    def half(self) -> DType | None:
        """The 16-bit float that both operands are rounded to."""
        return _HALF_OF.get(self)

    @property
    def matrix(self) -> DType | None:
        """What matrix units are given of both operands, None where they are not meant; as tf32, the upper bits of an f32."""
        return DType.F32 if self is Product.TF32 else self.half


_HALF_OF = {Product.BF16: DType.BF16, Product.F16: DType.F16}
PRODUCT_OF = {half: product for product, half in _HALF_OF.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Gemm:
    """out[..., m, n] = epilogue(acc = sum_k a[..., m, k] * b[..., k, n]).

    ``inputs[0]`` is a, ``inputs[1]`` is b, both with the full batch shape of ``out`` (stride 0 where broadcast); further inputs
    feed the epilogue, which is over the domain of ``out`` (axes: batch..., m, n) and reads acc(0).
    """

    inputs: tuple[Operand, ...]
    epilogue: Expr
    output: Operand
    product: Product = Product.F32
    label: str = ""

    @property
    def domain(self) -> tuple[Size, ...]:
        return self.output.shape


@dataclass(frozen=True, slots=True, kw_only=True)
class Conv:
    """out[n, m, o...] = epilogue(acc = sum over (c, k...) of x[n, g*C/G + c, o*stride + k*dilation - pad] * w[m, c, k...]).

    ``inputs[0]`` is x [N, C, spatial...], ``inputs[1]`` is w [M, C/group, kernel...]; out is [N, M, out spatial...] (logical
    order; strides say the layout). Outside x is zero. Further inputs feed the epilogue over out's domain.
    """

    inputs: tuple[Operand, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[Size, ...]  # begin of each spatial axis (the end follows from out's shape)
    group: int
    epilogue: Expr
    output: Operand
    product: Product = Product.F32  # not INT8W
    label: str = ""

    @property
    def domain(self) -> tuple[Size, ...]:
        return self.output.shape


class NoSoftmax(StrEnum):
    """What attention gives for a row whose scores have no softmax: all of them are -inf, or one is NaN or inf."""

    NAN = "nan"
    UNSEEN_ZERO = "unseen_zero"  # zeros where all are -inf, as ONNX's Attention with a mask
    ZERO = "zero"  # zeros in any case: where(isnan(p), 0, p), which PyTorch writes


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention:
    """out[b, h, s, e] = sum_t softmax_t(score)[t] * v[b, h, t, e], score = score(acc = sum_d q[b, h, s, d] * k[b, h, t, d]).

    inputs: q [B,H,S,D], k [B,H,T,D], v [B,H,T,E] (grouped-query heads by stride tricks are the lowering's business), then what
    ``score`` reads; its domain is (b, h, s, t).
    """

    inputs: tuple[Operand, ...]
    score: Expr
    no_softmax: NoSoftmax
    output: Operand
    product: Product = Product.F32  # not INT8W; of BF16 and F16 the softmax weights are rounded, too
    label: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """Cumulative sum (or product) along the last axis of ``output``; body over output's domain."""

    inputs: tuple[Operand, ...]
    body: Expr
    kind: ReduceKind
    exclusive: bool
    reverse: bool
    output: Operand
    label: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopK:
    """The k largest (or smallest) along the last axis of ``inputs[0]``, sorted, ties by lower index; values and int64 indices."""

    inputs: tuple[Operand, ...]
    k: int
    largest: bool
    values: Operand
    indices: Operand
    label: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecurrentStage:
    """A part of a time step: products of one vector with the next ``gates`` matrices of a Recurrence, and what follows of them.

    ``factor`` numbers the vector: the states at the step's begin come first, then the results of earlier stages of the step. A
    body reads acc(g), the product with gate g, and acc(gates + v), the element of vector v.
    """

    gates: int
    factor: int
    bodies: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recurrence:
    """For each direction d and row b of a batch, states of n elements that each step of time makes anew of the last ones:

        vectors = initial
        for time of d:  for stage:  acc(g)[j] = sum_k vectors[factor][k] * r[d, g, k, j];  vectors += bodies
                        the results of the last stage are the states from here on

    ``inputs[0]`` is r [D, G, n, n]. With ``has_lengths``, ``inputs[1]`` is an integer for each row: how many steps of time it
    has, taken as the nearest one in [0, T]. Further inputs feed the bodies, whose axes are (d, time, b, j), and ``initial``,
    which does not know the time. Where ``reverse[d]``, time runs from a row's last step to its first. State 0 is what the first
    stage multiplies; a stage may multiply the results of those before it, and no other state.

    ``output`` [D, T, B, n] is state 0 after each step, 0 where a row has no such step; ``finals`` [D, B, n] are the states after
    the last one, 0 for a row of no steps.
    """

    domain: tuple[Size, ...]  # D, T, B, n: D and n are numbers
    inputs: tuple[Operand, ...]
    has_lengths: bool
    reverse: tuple[bool, ...]
    initial: tuple[Expr, ...]
    stages: tuple[RecurrentStage, ...]
    output: Operand | None
    finals: tuple[Operand | None, ...]
    label: str = ""

    @property
    def gates(self) -> int:
        return sum(stage.gates for stage in self.stages)


CoreOp = Pointwise | RowReduce | Gemm | Conv | Attention | Scan | TopK | Recurrence


def outputs_of(op: CoreOp) -> tuple[Operand, ...]:
    """Every operand that ``op`` writes."""
    match op:
        case Pointwise():
            return op.outputs
        case RowReduce():
            return tuple(o.operand for o in op.outputs)
        case TopK():
            return (op.values, op.indices)
        case Recurrence():
            return tuple(o for o in (op.output, *op.finals) if o is not None)
        case _:
            return (op.output,)


class SymbolKind(StrEnum):
    DIM = "dim"
    ELEMENT = "element"


class Range(NamedTuple):
    """Sizes that a symbol is expected to have: a small one, the usual one, a large one."""

    small: int
    usual: int
    large: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """Where a symbol's value comes from: a dimension of an input, or an element of an integer input tensor. ``plausible``: what
    estimates take it for; None where nobody knows."""

    name: str
    kind: SymbolKind
    input: int
    index: int
    plausible: Range | None = None


@dataclass(slots=True, kw_only=True)
class Program:
    """One island (one of its alternatives). ``sources[i]``: which graph nodes op i came from (for reasons and labels)."""

    values: list[Value] = field(default_factory=list)
    ops: list[CoreOp] = field(default_factory=list)
    sources: list[tuple[int, ...]] = field(default_factory=list)
    bindings: list[Binding] = field(default_factory=list)
    definitions: list[tuple[str, Size]] = field(default_factory=list)  # symbols computed from earlier ones, in order
    guards: list[Size] = field(default_factory=list)  # the alternative applies when all are non-zero
    checks: list[tuple[Size, str]] = field(default_factory=list)  # zero: the run fails with the message
    faults: list[tuple[int, str]] = field(
        default_factory=list
    )  # values of bools: one true after a run, it fails with the message
    constants: list[str] = field(default_factory=list)  # graph names of CONST values

    def with_definitions(self, bound: Mapping[str, int]) -> dict[str, int]:
        """The values of all symbols, from those of the bound ones."""
        symbols = dict(bound)
        for name, size in self.definitions:
            symbols[name] = evaluate(size, symbols)
        return symbols

    @property
    def assumed(self) -> tuple[dict[str, int], ...]:
        """What symbols may be, small, usual and large: those of which something is known."""
        return tuple(self._assumed(k) for k in range(len(Range._fields)))

    def _assumed(self, k: int) -> dict[str, int]:
        symbols = {b.name: b.plausible[k] for b in self.bindings if b.plausible is not None}
        for name, size in self.definitions:
            if symbols_of(size) <= symbols.keys():
                symbols[name] = evaluate(size, symbols)
        return symbols

    def operand(self, value: int) -> Operand:
        """The plain contiguous view of a value."""
        v = self.values[value]
        return Operand(value=value, dtype=v.dtype, shape=v.shape, strides=contiguous_strides(v.shape))
