"""Convolutions to test with: one op in a program, in NCHW or NHWC memory, sizes fixed or symbolic."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xyntra_ep.tracea.core_ir.dims import Size, evaluate, symbol
from xyntra_ep.tracea.core_ir.dtypes import BYTES, DType, from_float64
from xyntra_ep.tracea.core_ir.expr import Expr, acc, acc_int, axis, call, const, load
from xyntra_ep.tracea.core_ir.ops import (
    Binding,
    Conv,
    Operand,
    Product,
    Program,
    SymbolKind,
    Value,
    ValueKind,
    contiguous_strides,
)

Array = NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvCase:
    """``symbolic``: which of n, h, w are named in the program. ``tail``: what follows the convolution: bias,
    residual, or the name of a scalar function."""

    x: tuple[int, ...]  # N, C, spatial...
    w: tuple[int, ...]  # M, C/group, kernel...
    strides: tuple[int, ...] = ()
    dilations: tuple[int, ...] = ()
    pads: tuple[int, ...] = ()  # begins, then ends
    group: int = 1
    tail: tuple[str, ...] = ("bias",)
    symbolic: str = ""
    channels_last: bool = True
    constant_w: bool = True
    dtype: DType = DType.F32
    w_dtype: DType = DType.F32
    out_dtype: DType | None = None  # of the output and the residual, where it is not x's
    product: Product = Product.F32
    zero: float = 0.0  # the zero point of what is quantised
    slice_of: int = 0  # x is the first channels of a tensor with that many
    arrays: dict[str, Array] = field(default_factory=dict)

    @property
    def rank(self) -> int:
        return len(self.x) - 2

    def name(self) -> str:
        parts = ["x".join(map(str, self.x)), "x".join(map(str, self.w))]
        parts += [f"s{self.strides}"] * bool(self.strides) + [f"d{self.dilations}"] * bool(self.dilations)
        parts += [f"p{self.pads}"] * bool(self.pads) + [f"g{self.group}"] * (self.group > 1)
        parts += [*self.tail, self.symbolic] + [str(self.dtype)] * (self.dtype is not DType.F32)
        parts += [f"c{self.slice_of}"] * bool(self.slice_of)
        return " ".join(p for p in parts if p).replace(", ", ",")


# Biases that leave sums exact, and what a store must bring to the ends of its type.
SPECIAL = np.array([0.125, -3.5, 20.0, -41.25, 3e38, -3e38, 1e12, -1e12, math.inf, -math.inf, math.nan], np.float32)


def quantised(x: Expr, scale: float, case: ConvCase) -> Expr:
    """``x`` in the bytes that ``case`` has for its result."""
    limits = np.iinfo((case.out_dtype or case.dtype).numpy)
    return call("to_i", call("quantise", x, *map(const, (scale, case.zero, float(limits.min), float(limits.max)))))


def meant(level: Expr, scale: float, case: ConvCase) -> Expr:
    """What a level stands for."""
    return call("mul", call("to_f", call("wrap_i32", call("sub", level, const(int(case.zero))))), const(scale))


def conv_program(case: ConvCase, seed: int = 0) -> tuple[Program, list[Array], list[Array]]:
    """(program, inputs, constants) for ``case``."""
    rng = np.random.default_rng(seed)
    rank = case.rank
    strides, dilations = case.strides or (1,) * rank, case.dilations or (1,) * rank
    pads = case.pads or (0,) * (2 * rank)
    kernel = case.w[2:]
    sizes: list[Size] = list(case.x)
    bindings = []
    for letter, at in (("n", 0), ("h", 2), ("w", rank + 1)):
        if letter in case.symbolic:
            sizes[at] = symbol(letter)
            physical = at if not case.channels_last else 0 if at == 0 else at - 1
            bindings.append(Binding(name=letter, kind=SymbolKind.DIM, input=0, index=physical))
    out: list[Size] = [sizes[0], case.w[0]]
    for i in range(rank):
        span = (kernel[i] - 1) * dilations[i] + 1
        out.append((sizes[2 + i] + (pads[i] + pads[rank + i] - span)) // strides[i] + 1)

    program = Program(bindings=bindings)
    inputs: list[Array] = []
    constants: list[Array] = []

    def add(kind: ValueKind, shape: Sequence[Size], dtype: DType = DType.F32, index: int = 0) -> int:
        program.values.append(Value(kind=kind, dtype=dtype, shape=tuple(shape), index=index))
        return len(program.values) - 1

    result_dtype = case.out_dtype or case.dtype

    def image(kind: ValueKind, shape: Sequence[Size], dtype: DType, index: int = 0, channels: int = 0) -> Operand:
        """A logical NCHW view of a value in the case's layout."""
        n, c, *spatial = shape
        stored = [n, *spatial, channels or c] if case.channels_last else [n, channels or c, *spatial]
        value = add(kind, stored, dtype, index)
        steps = contiguous_strides(stored)
        view = (steps[0], steps[-1], *steps[1:-1]) if case.channels_last else steps
        return Operand(value=value, dtype=dtype, shape=tuple(shape), strides=view)

    def feed(operand: Operand) -> Array:
        shape = [evaluate(s, dict(zip("nhw", (case.x[0], case.x[2], case.x[-1]), strict=True)))
                 for s in program.values[operand.value].shape]  # fmt: skip
        if operand.dtype in BYTES:
            limits = np.iinfo(operand.dtype.numpy)
            return rng.integers(limits.min, limits.max + 1, shape).astype(operand.dtype.numpy)
        return from_float64(rng.standard_normal(shape), operand.dtype)

    x = image(ValueKind.INPUT, sizes, case.dtype, 0, case.slice_of)
    inputs.append(case.arrays.get("x", feed(x)))
    w_kind = ValueKind.CONST if case.constant_w else ValueKind.INPUT
    w = Operand(
        value=add(w_kind, case.w, case.w_dtype, 0 if case.constant_w else 1),
        dtype=case.w_dtype, shape=case.w, strides=contiguous_strides(case.w),
    )  # fmt: skip
    (constants if case.constant_w else inputs).append(case.arrays.get("w", feed(w)))
    operands, body = [x, w], acc(0) if case.dtype.is_float else acc_int(0)
    point = [axis(i) for i in range(rank + 2)]
    for step in case.tail:
        if step == "bias":
            value = add(ValueKind.CONST, (case.w[0],), DType.F32, len(constants))
            bias = Operand(value=value, dtype=DType.F32, shape=(case.w[0],), strides=(1,))
            operands.append(bias)
            constants.append(feed(bias))
            body = call("add", body, load(len(operands) - 1, axis(1), dtype=DType.F32))
        elif step == "residual":
            operands.append(image(ValueKind.INPUT, out, result_dtype, len(inputs)))
            inputs.append(feed(operands[-1]))
            body = call("add", body, load(len(operands) - 1, *point, dtype=result_dtype))
        elif step == "requantised":  # of integers
            level = call("round", call("mul", call("to_f", body), const(2.0**-9)))
            body = call("to_i", call("min", call("max", level, const(0.0)), const(255.0)))
        elif step in ("quantised", "level"):  # of integers and a bias; what that stands for
            value = add(ValueKind.CONST, (case.w[0],), DType.F32, len(constants))
            operands.append(Operand(value=value, dtype=DType.F32, shape=(case.w[0],), strides=(1,)))
            constants.append(np.resize(SPECIAL, case.w[0]))
            scaled = call("mul", call("to_f", body), const(2.0**-11))
            body = quantised(call("add", scaled, load(len(operands) - 1, axis(1), dtype=DType.F32)), 0.375, case)
            if step == "level":
                body = meant(body, 3 / 64, case)
        elif step == "added_level":  # another one, and what both together are quantised to
            operands.append(image(ValueKind.INPUT, out, result_dtype, len(inputs)))
            inputs.append(feed(operands[-1]))
            other = call("sub", load(len(operands) - 1, *point, dtype=result_dtype), const(int(case.zero) + 3))
            body = quantised(call("add", body, call("mul", call("to_f", call("wrap_i32", other)), const(5 / 128))), 0.11, case)
        elif step == "wrapped":
            body = call("wrap_i32", call("sub", body, const(70_000)))
        else:
            body = call(step, body)
    output = image(ValueKind.OUTPUT, out, result_dtype)
    program.constants = [f"c{i}" for i in range(len(constants))]
    program.ops.append(
        Conv(
            inputs=tuple(operands), strides=strides, dilations=dilations, pads=pads[:rank], group=case.group,
            epilogue=body, output=output, product=case.product,
        )
    )  # fmt: skip
    program.sources.append(())
    return program, inputs, constants
