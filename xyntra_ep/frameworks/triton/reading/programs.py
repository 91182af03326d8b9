"""A program of core IR for the stores of a kernel: Pointwise, RowReduce, or Gemm where what is loaded is multiplied and summed.

In the program a tensor is a row of elements, as the kernel's pointers see it. One that is both loaded and stored is an input and
an output, so that what is loaded is what was there before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xyntra_ep.frameworks.triton.reading.functions import cast
from xyntra_ep.frameworks.triton.reading.lifting import Lifted, lift
from xyntra_ep.frameworks.triton.reading.values import Kernel
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dims import known_nonnegative
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr
from xyntra_ep.tracea.core_ir.index_range import affine, exact_interval
from xyntra_ep.tracea.core_ir.ops import (
    PRODUCT_OF,
    CoreOp,
    Gemm,
    Operand,
    Pointwise,
    Product,
    Program,
    RowOutput,
    RowReduce,
    Stage,
    Value,
    ValueKind,
)

_LABEL = "triton"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadProgram:
    """``inputs`` and ``outputs``: the numbers of the kernel's tensors, in the order of the program's."""

    program: Program
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


def program_of(kernel: Kernel, elements: Sequence[int]) -> ReadProgram:
    """``elements``: how many each tensor has, from its pointer on. Raises UnsupportedError with the line."""
    if not kernel.stores:
        kernel.refuse(0, "a kernel that stores nothing")
    lifted = [made for made in (lift(kernel, stored) for stored in kernel.stores) if _has_elements(made)]
    builder = _Builder(kernel, elements)
    for made in lifted:
        builder.add(made)
    return ReadProgram(program=builder.program, inputs=tuple(builder.inputs), outputs=tuple(builder.outputs))


def _has_elements(made: Lifted) -> bool:
    return all(made.extents[x.attr] for x in E.walk(made.at) if x.kind == "axis")


class _Builder:
    def __init__(self, kernel: Kernel, elements: Sequence[int]) -> None:
        self.kernel, self.elements = kernel, elements
        self.program = Program()
        self.inputs: dict[int, int] = {}  # tensor -> value
        self.outputs: dict[int, int] = {}

    def add(self, made: Lifted) -> None:
        self._op_inputs: list[Operand] = []
        self._numbers: dict[int, int] = {}  # tensor -> input of the op
        op = self._gemm(made) or (self._rows(made) if made.found else self._pointwise(made))
        self.program.ops.append(op)
        self.program.sources.append((len(self.program.sources),))

    # -- values

    def _value(self, kind: ValueKind, held: dict[int, int], tensor: int) -> int:
        if tensor not in held:
            name, dtype = self.kernel.names[tensor], self.kernel.dtypes[tensor]
            self.program.values.append(Value(kind=kind, dtype=dtype, shape=(self.elements[tensor],), index=len(held), name=name))
            held[tensor] = len(self.program.values) - 1
        return held[tensor]

    def _flat(self, tensor: int) -> int:
        """The op's input that is this tensor."""
        if tensor not in self._numbers:
            self._numbers[tensor] = len(self._op_inputs)
            self._op_inputs.append(self.program.operand(self._value(ValueKind.INPUT, self.inputs, tensor)))
        return self._numbers[tensor]

    def _out(self, made: Lifted, axes: Sequence[int]) -> Operand:
        parts = affine(made.at)
        tensor = made.stored.parameter
        first, last = exact_interval(made.at, made.extents) or (0, 0)  # places that are computed were refused
        if not known_nonnegative(first) or not known_nonnegative(self.elements[tensor] - 1 - last):
            made.refuse(f"a store to elements {first} to {last} of a tensor that has {self.elements[tensor]}")
        return Operand(
            value=self._value(ValueKind.OUTPUT, self.outputs, tensor),
            dtype=self.kernel.dtypes[tensor],
            shape=tuple(made.extents[i] for i in axes),
            strides=tuple(parts.coefficients.get(i, 0) for i in axes),
            offset=parts.rest.attr,
        )

    def _body(self, e: Expr, axes: Mapping[int, int], acc: Mapping[int, int]) -> Expr:
        """``e`` with the op's axes, inputs and reductions."""

        def leaf(x: Expr) -> Expr | None:
            if x.kind == "axis":
                return E.axis(axes[x.attr]) if x.attr in axes else E.const(0)  # an axis of one element
            if x.kind == "acc":
                return E.node("acc", (), acc[x.attr], x.dtype)
            if x.kind == "load":
                return E.load(self._flat(x.attr), *(self._body(a, axes, acc) for a in x.args), dtype=x.dtype)
            return None

        return E.rewrite(e, leaf)

    def _stored(self, made: Lifted) -> Expr:
        dtype = self.kernel.dtypes[made.stored.parameter]
        return cast(made.value, DType.F32 if dtype.is_float else dtype)

    def _axes(self, made: Lifted) -> list[int]:
        """Of the store, the outermost in memory first."""
        form = {i: c for i, c in affine(made.at).coefficients.items() if isinstance(c, int) and made.extents[i] != 1}
        return sorted(form, key=lambda i: -abs(form[i]))

    # -- ops

    def _pointwise(self, made: Lifted) -> CoreOp:
        axes = self._axes(made)
        numbers = {number: i for i, number in enumerate(axes)}
        self._check_axes(made, [made.value], numbers)
        body = self._body(self._stored(made), numbers, {})
        out = self._out(made, axes)
        return Pointwise(domain=out.shape, inputs=tuple(self._op_inputs), bodies=(body,), outputs=(out,), label=_LABEL)

    def _check_axes(self, made: Lifted, roots: Sequence[Expr], known: Mapping[int, int]) -> None:
        for x in E.walk(*roots):
            if x.kind == "axis" and x.attr not in known and made.extents[x.attr] != 1:
                made.refuse("a store of what differs along an axis that its place does not depend on")

    def _rows(self, made: Lifted) -> CoreOp:
        found = made.found
        bound = [sorted(f.axes, key=lambda i: (-made.extents[i], i)) for f in found.values()]
        sizes = {tuple(made.extents[i] for i in axes) for axes in bound}
        if len(sizes) != 1:
            made.refuse("reductions over rows of different lengths")
        [inner] = sizes
        stored = self._axes(made)
        outside = {x.attr for f in found.values() for x in E.walk(f.body) if x.kind == "axis" and x.attr not in f.axes}
        along = [i for i in stored if i not in outside]
        every = tuple(made.extents[i] for i in along) == inner
        if along and not every:
            made.refuse("a store of rows of another length than what is summed up for them")
        outer = [i for i in stored if not every or i not in along]
        rank = len(outer)
        numbers = {number: i for i, number in enumerate(outer)}
        index = {number: j for j, number in enumerate(found)}
        stages = []
        for f, axes in zip(found.values(), bound, strict=True):
            own = {**numbers, **{axis: rank + i for i, axis in enumerate(axes)}}
            self._check_axes(made, [f.body], own)
            stages.append(Stage(kind=f.kind, body=self._body(f.body, own, index), dtype=f.body.dtype))
        own = {**numbers, **({axis: rank + i for i, axis in enumerate(along)} if every else {})}
        self._check_axes(made, [made.value], own)
        out = self._out(made, [*outer, *along] if every else outer)
        body = self._body(self._stored(made), own, index)
        return RowReduce(
            inputs=tuple(self._op_inputs),
            outer=tuple(made.extents[i] for i in outer),
            inner=inner,
            stages=tuple(stages),
            outputs=(RowOutput(body=body, operand=out, per_row=not every),),
            label=_LABEL,
        )

    def _gemm(self, made: Lifted) -> Gemm | None:
        """A single sum of products of two tensors' elements; None of anything else."""
        if len(made.found) != 1:
            return None
        [(number, found)] = made.found.items()
        if found.factors is None or len(found.axes) != 1:
            return None
        left, right = (_factor(self.kernel, e) for e in found.factors)
        if left is None or right is None or left.product is not right.product:
            return None
        [k] = found.axes
        stored = self._axes(made)
        rows = [i for i in stored if i in left.form and i not in right.form]
        columns = [i for i in stored if i in right.form and i not in left.form]
        if len(rows) != 1 or len(columns) != 1 or {*left.form, *right.form} - {*stored, k} - self._single(made):
            return None
        batch = [i for i in stored if i not in rows and i not in columns]
        sizes = tuple(made.extents[i] for i in batch)
        m, n = made.extents[rows[0]], made.extents[columns[0]]
        numbers = {number: i for i, number in enumerate(batch)}
        numbers |= {axis: len(batch) for axis in rows} | {axis: len(batch) + 1 for axis in columns}
        depth = made.extents[k]
        a = self._matrix(left, (*sizes, m, depth), [*batch, *rows, k])
        b = self._matrix(right, (*sizes, depth, n), [*batch, k, *columns])
        self._op_inputs = [a, b]
        epilogue = self._body(self._stored(made), numbers, {number: 0})
        out = self._out(made, [*batch, *rows, *columns])
        return Gemm(inputs=tuple(self._op_inputs), output=out, epilogue=epilogue, product=left.product, label=_LABEL)

    def _single(self, made: Lifted) -> set[int]:
        return {i for i, extent in enumerate(made.extents) if extent == 1}

    def _matrix(self, factor: _Factor, shape: tuple[int, ...], axes: Sequence[int]) -> Operand:
        return Operand(
            value=self._value(ValueKind.INPUT, self.inputs, factor.tensor),
            dtype=self.kernel.dtypes[factor.tensor],
            shape=shape,
            strides=tuple(factor.form.get(i, 0) for i in axes),
            offset=factor.offset,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Factor:
    tensor: int
    form: Mapping[int, int]
    offset: int
    product: Product


def _factor(kernel: Kernel, e: Expr) -> _Factor | None:
    """The elements of a tensor that are multiplied, where ``e`` is these, perhaps rounded to a narrower type."""
    product = Product.F32
    if e.kind == "call" and e.attr in ("round_bf16", "round_f16"):
        product = PRODUCT_OF[DType(e.attr.removeprefix("round_"))]
        e = e.args[0]
    if e.kind != "load":
        return None
    dtype = kernel.dtypes[e.attr]
    if not dtype.is_float:
        return None
    if dtype in PRODUCT_OF:
        product = PRODUCT_OF[dtype]
    parts = affine(e.args[0])
    if parts.rest.kind != "const" or not all(isinstance(c, int) for c in parts.coefficients.values()):
        return None
    form = {i: c for i, c in parts.coefficients.items() if isinstance(c, int) and c != 0}
    return _Factor(tensor=e.attr, form=form, offset=int(parts.rest.attr), product=product)
