"""What products multiply in and temporaries are stored in: as the option asks, as the model's own types allow.

    program -> widen what nobody multiplies in -> mark Gemm, Conv, Attention -> store narrow what only feeds these -> program

    bf16    h = Gemm(x, w) -> f32;  y = rows(h) -> f32;  z = Gemm(y, v) + y
            h = Gemm(x, w) -> f32;  y, y' = rows(h) -> f32, bf16;  z = Gemm(y', v, product=bf16) + y

Sums, normalisations, softmax and the residual stream of a transformer stay f32; a temporary becomes narrow (bfloat16 or float16,
as the products are) where it is only an operand of such products, or is moved to where it is one. Between convolutions the
residual is narrow too: it is read once by a sum of the same size, and its traffic is what bounds the layer.

tf32 is what the products make of f32, so nothing is stored otherwise.

A model in half precision stays as it is where the machine multiplies in its type (``halves``: none on most CPUs, both on CUDA).
Else it is computed in f32: operands would be widened element by element in the inner loops, so its temporaries are f32 and its
inputs are widened once.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from xyntra_ep.fusion.passes._pass import Draft, Fact, Pass
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import axis, load
from xyntra_ep.tracea.core_ir.ops import (
    PRODUCT_OF,
    BlockGemm,
    Conv,
    CoreOp,
    Gemm,
    Operand,
    Pointwise,
    Product,
    ProductOp,
    Program,
    ReduceKind,
    RowReduce,
    Value,
    ValueKind,
    contiguous_strides,
)

LEAST_DEPTH = 16  # a product of fewer terms costs its epilogue, whatever it multiplies in


def choose_precision(
    program: Program, product: Product, *, halves: Collection[DType], in_bytes: bool = False, strict: bool = False
) -> None:
    """Change ``program`` in place so that its products are in ``product``. ``halves``: the 16-bit floats that the machine
    multiplies in, ``product``'s among them; ``in_bytes``: whether it has fast products of bytes and weights in blocks.
    ``strict``: also where the model itself allows to round.

    With F32 only what costs no digit is done: products of what the model itself stores in one of ``halves``, and f32 in place
    of narrower temporaries that are not.
    """
    half = product.half
    assert half is None or half in halves
    widen = {DType.F16, DType.BF16}.difference(halves)
    _widen_temporaries(program, widen)
    _widen_operands(program, widen)
    constants = _constants(program)
    for i, op in enumerate(program.ops):
        program.ops[i] = _marked(op, product, constants, halves, in_bytes, strict)
    if half is not None:
        _Storage(program, half).narrow()


def _constants(program: Program) -> set[int]:
    """Values that follow from the model alone."""
    known = {i for i, v in enumerate(program.values) if v.kind in (ValueKind.CONST, ValueKind.LITERAL)}
    for op in program.ops:
        if all(o.value in known for o in op.inputs):
            known |= {o.value for o in op.written}
    return known


def _widen_temporaries(program: Program, narrow: set[DType]) -> None:
    wide = {
        i for i, v in enumerate(program.values) if v.kind is ValueKind.TEMP and v.dtype in narrow and _is_typed_freely(program, i)
    }
    if not wide:
        return
    for i in wide:
        program.values[i] = replace(program.values[i], dtype=DType.F32)
    program.ops = [_with_dtype(op, wide, DType.F32) for op in program.ops]


def _is_typed_freely(program: Program, value: int) -> bool:
    """Whether nothing but stores that narrow, or widen, touches ``value``."""
    return not any(o.value == value for op in program.ops if not op.narrows for o in op.operands)


def _widen_operands(program: Program, narrow: set[DType]) -> None:
    """What products read of inputs and constants: widened by an op of its own. Weights of matrix products are packed anyway."""
    ops: list[CoreOp] = []
    sources: list[tuple[int, ...]] = []
    for op, source in zip(program.ops, program.sources, strict=True):
        if isinstance(op, ProductOp):
            inputs = list(op.inputs)
            for place in range(op.reads_directly):
                if inputs[place].dtype in narrow and not (isinstance(op, (Gemm, BlockGemm)) and place > 0):
                    cast, inputs[place] = _cast(program, inputs[place])
                    ops.append(cast)
                    sources.append(source)
            op = replace(op, inputs=tuple(inputs))
        ops.append(op)
        sources.append(source)
    program.ops, program.sources = ops, sources


def _cast(program: Program, operand: Operand) -> tuple[Pointwise, Operand]:
    """The op that widens ``operand``, and the result; axes along which it does not move are stored once."""
    stored = tuple(1 if stride == 0 else extent for extent, stride in zip(operand.shape, operand.strides, strict=True))
    program.values.append(Value(kind=ValueKind.TEMP, dtype=DType.F32, shape=stored))
    full = contiguous_strides(stored)
    strides = tuple(0 if old == 0 else new for old, new in zip(operand.strides, full, strict=True))
    number = len(program.values) - 1
    body = load(0, *(axis(i) for i in range(len(stored))), dtype=DType.F32)
    op = Pointwise(
        domain=stored,
        inputs=(replace(operand, shape=stored),),
        bodies=(body,),
        outputs=(Operand(value=number, dtype=DType.F32, shape=stored, strides=full),),
        label="widen",
    )
    return op, Operand(value=number, dtype=DType.F32, shape=operand.shape, strides=strides)


def _marked(op: CoreOp, product: Product, constants: set[int], halves: Collection[DType], in_bytes: bool, strict: bool) -> CoreOp:
    if not isinstance(op, ProductOp):
        return op
    if isinstance(op, BlockGemm):
        return replace(op, product=_of_blocks(op, product, halves, in_bytes, strict))
    operands = op.inputs[: op.reads_directly]
    if not all(o.dtype.is_float for o in operands):
        return op
    stored = operands[0].dtype
    if stored in halves and all(o.dtype is stored for o in operands):
        return replace(op, product=PRODUCT_OF[stored])
    if product.matrix is not None:
        return replace(op, product=product) if _is_worth_it(op) else op
    if product is Product.INT8W and isinstance(op, Gemm) and op.inputs[1].value in constants and _is_worth_it(op):
        return replace(op, product=Product.INT8W)
    return op


def _of_blocks(op: BlockGemm, product: Product, halves: Collection[DType], in_bytes: bool, strict: bool) -> Product:
    """As asked for, or the narrowest that the model allows and the machine is fast at."""
    if product.matrix is not None or strict:
        return product if product.matrix is not None else op.product
    if op.allows is Product.INT8 and in_bytes:
        return Product.INT8
    return Product.BF16 if op.allows is not Product.F32 and DType.BF16 in halves else op.product


def _is_worth_it(op: ProductOp) -> bool:
    match op:
        case Gemm():
            depth = op.inputs[0].shape[-1]
            return not isinstance(depth, int) or depth >= LEAST_DEPTH
        case Conv():
            return op.group == 1  # of grouped ones a channel's sum is short; they are bound by their loads
        case _:
            return True


@dataclass(frozen=True, slots=True)
class _Use:
    """``ops[op].inputs[place]`` reads a value."""

    op: int
    place: int


class _Storage:
    """Which temporaries may be stored as ``half``, decided by their readers."""

    def __init__(self, program: Program, half: DType) -> None:
        self.program = program
        self.half = half
        self.uses: dict[int, list[_Use]] = {}
        self.writers: dict[int, list[int]] = {}
        for i, op in enumerate(program.ops):
            for place, operand in enumerate(op.inputs):
                self.uses.setdefault(operand.value, []).append(_Use(i, place))
            for operand in op.written:
                self.writers.setdefault(operand.value, []).append(i)
        self.narrowed: set[int] = set()
        self.from_convolution = self._from_convolution()

    def narrow(self) -> None:
        """Readers come after writers, so going backwards every reader's own result has been decided."""
        for value in sorted(self.writers, key=lambda v: self.writers[v][0], reverse=True):
            if self.program.values[value].dtype is not DType.F32 or not self._writers_can(value):
                continue
            narrow = [use for use in self.uses.get(value, ()) if self._is_content(use)]
            wide = [use for use in self.uses.get(value, ()) if use not in narrow]
            if not narrow:
                continue
            if not wide and self.program.values[value].kind is ValueKind.TEMP:
                self._retype(value)
            elif any(self._multiplies(use) for use in narrow):
                self._twice(value, narrow)

    def _writers_can(self, value: int) -> bool:
        return all(self.program.ops[i].narrows for i in self.writers[value])

    # -- what a reader wants

    def _is_content(self, use: _Use) -> bool:
        """Whether this reader is as well served by the narrow type."""
        return self._multiplies(use) or self._moves(use) or self._adds_to_convolution(use)

    def _multiplies(self, use: _Use) -> bool:
        op = self.program.ops[use.op]
        return isinstance(op, ProductOp) and op.product.half is self.half and use.place < op.reads_directly

    def _moves(self, use: _Use) -> bool:
        """Elements only change their place, and where they go is narrow; or the largest of some is taken."""
        op = self.program.ops[use.op]
        written = {o.value for o in op.written}
        if not written <= self.narrowed:
            return False
        if isinstance(op, Pointwise):
            return all(body.kind == "load" for body in op.bodies)
        return isinstance(op, RowReduce) and all(s.kind in (ReduceKind.MAX, ReduceKind.ANY_NAN_MAX) for s in op.stages)

    def _adds_to_convolution(self, use: _Use) -> bool:
        """The residual of a convolution, and what pools its result: narrow when the value comes from a convolution."""
        op = self.program.ops[use.op]
        value = op.inputs[use.place].value
        if value not in self.from_convolution:
            return False
        if isinstance(op, Conv):
            return op.product.half is self.half
        return isinstance(op, RowReduce) and len(op.stages) == 1 and all(o.per_row for o in op.outputs)

    def _from_convolution(self) -> set[int]:
        """Results of narrow convolutions, and of what only adds to them, moves them or pools them."""
        found: set[int] = set()
        for op in self.program.ops:
            written = {o.value for o in op.written}
            if isinstance(op, Conv):
                if op.product.half is self.half:
                    found |= written
            elif isinstance(op, (Pointwise, RowReduce)):
                floats = {o.value for o in op.inputs if o.dtype.is_float}
                if floats and floats <= found:
                    found |= written
        return found

    # -- changes

    def _retype(self, value: int) -> None:
        """Store ``value`` narrow."""
        self.narrowed.add(value)
        self.program.values[value] = replace(self.program.values[value], dtype=self.half)
        places = {use.op for use in self.uses.get(value, ())} | set(self.writers[value])
        for i in places:
            self.program.ops[i] = _with_dtype(self.program.ops[i], (value,), self.half)

    def _twice(self, value: int, readers: Sequence[_Use]) -> None:
        """Let the only writer of all of ``value`` store it a second time, narrow, for ``readers``."""
        if len(self.writers[value]) != 1:
            return
        i = self.writers[value][0]
        op, old = self.program.ops[i], self.program.values[value]
        copy = Value(kind=ValueKind.TEMP, dtype=self.half, shape=old.shape)
        number = len(self.program.values)
        match op:
            case RowReduce():
                at = next(k for k, o in enumerate(op.outputs) if o.operand.value == value)
                extra = replace(op.outputs[at], operand=replace(op.outputs[at].operand, value=number, dtype=self.half))
                self.program.ops[i] = replace(op, outputs=(*op.outputs, extra))
            case Pointwise():
                at = next(k for k, o in enumerate(op.outputs) if o.value == value)
                target = replace(op.outputs[at], value=number, dtype=self.half)
                self.program.ops[i] = replace(op, bodies=(*op.bodies, op.bodies[at]), outputs=(*op.outputs, target))
            case _:
                return  # an epilogue stores once: the product rounds as it packs
        self.program.values.append(copy)
        self.narrowed.add(number)
        for use in readers:
            reader = self.program.ops[use.op]
            inputs = list(reader.inputs)
            inputs[use.place] = replace(inputs[use.place], value=number, dtype=self.half)
            self.program.ops[use.op] = replace(reader, inputs=tuple(inputs))


def _with_dtype(op: CoreOp, values: Collection[int], dtype: DType) -> CoreOp:
    """``op`` with its operands over ``values`` of another type."""

    def typed(operand: Operand) -> Operand:
        return replace(operand, dtype=dtype) if operand.value in values else operand

    return op.with_operands(tuple(map(typed, op.inputs)), [typed(o) for o in op.written])


def _run(draft: Draft) -> None:
    if draft.target is not None:
        target = draft.target
        choose_precision(draft.program, target.product, halves=target.halves, in_bytes=target.in_bytes, strict=target.strict)


PASS = Pass(
    name="choose_precision",
    doc="it is decided what products multiply in and temporaries are stored in",
    requires=(Fact.OPS,),
    establishes=(Fact.PRECISION,),
    run=_run,
)
