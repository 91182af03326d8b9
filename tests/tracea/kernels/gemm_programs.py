"""Matrix products to test with: one op in a program, with views, broadcasting, epilogues and symbolic sizes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import NDArray

from xyntra_ep.tracea.core_ir.dims import Size, symbol
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr, acc, acc_int, axis, call, const, load, size
from xyntra_ep.tracea.core_ir.interpreter import random_like
from xyntra_ep.tracea.core_ir.ops import (
    Binding,
    Gemm,
    Operand,
    Product,
    Program,
    SymbolKind,
    Value,
    ValueKind,
    contiguous_strides,
)
from xyntra_ep.tracea.core_ir.zeros import Filled

Array = NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class GemmCase:
    """``a_batch``, ``b_batch``: extents that broadcast to ``batch`` (numpy's rule). ``transpose``: operands stored with their
    last two axes swapped. ``symbolic``: of m, k, n and batch axes ("0", "1" ...), those that are named in the program."""

    m: int
    k: int
    n: int
    batch: tuple[int, ...] = ()
    a_batch: tuple[int, ...] | None = None
    b_batch: tuple[int, ...] = ()
    transpose: str = ""
    epilogue: str = "none"
    constant_b: bool = True
    symbolic: str = "m"
    dtypes: tuple[DType, DType, DType] = (DType.F32, DType.F32, DType.F32)
    product: Product = Product.F32
    filled: Filled = ()

    def __str__(self) -> str:
        batch = "x".join(map(str, self.batch))
        product = "" if self.product is Product.F32 else f"{self.product}-"
        types = "" if set(self.dtypes) == {DType.F32} else "-" + "-".join(self.dtypes)
        flags = f"{'-t' + self.transpose if self.transpose else ''}{'' if self.constant_b else '-dynamic'}"
        return f"{batch + '-' if batch else ''}{product}{self.m}x{self.k}x{self.n}-{self.epilogue}{flags}{types}-{self.symbolic}"


def gemm_of(program: Program) -> Gemm:
    [op] = program.ops
    assert isinstance(op, Gemm)
    return op


def build(case: GemmCase, seed: int = 0) -> tuple[Program, list[Array], list[Array]]:
    """(program, its inputs, its constants)."""
    return _Builder(case, seed).build()


class _Builder:
    def __init__(self, case: GemmCase, seed: int) -> None:
        self.case = case
        self.seed = seed
        self.program = Program()
        self.inputs: list[Array] = []
        self.constants: list[Array] = []
        self.bound: set[str] = set()

    def build(self) -> tuple[Program, list[Array], list[Array]]:
        case = self.case
        rank = len(case.batch) + 2
        batch = [self.name(str(i), e) if e != 1 else 1 for i, e in enumerate(case.batch)]
        m, k, n = self.name("m", case.m), self.name("k", case.k), self.name("n", case.n)
        a_batch = case.batch if case.a_batch is None else case.a_batch
        a = self.matrix(a_batch, batch, (m, k), (case.m, case.k), case.dtypes[0], "a" in case.transpose, False)
        b = self.matrix(case.b_batch, batch, (k, n), (case.k, case.n), case.dtypes[1], "b" in case.transpose, case.constant_b)
        out_shape = (*batch, m, n)
        inputs = [a, b]
        root = self.epilogue(inputs, out_shape, rank)
        out = self.value(ValueKind.OUTPUT, case.dtypes[2], out_shape)
        self.program.ops.append(
            Gemm(inputs=tuple(inputs), epilogue=root, output=out, product=case.product, label="gemm", filled=case.filled)
        )
        self.program.sources.append((0,))
        return self.program, self.inputs, self.constants

    # -- sizes and operands

    def name(self, letter: str, extent: int) -> Size:
        return symbol(f"s{letter}") if letter in self.case.symbolic else extent

    def value(self, kind: ValueKind, dtype: DType, shape: tuple[Size, ...], index: int = 0) -> Operand:
        self.program.values.append(Value(kind=kind, dtype=dtype, shape=shape, index=index))
        return self.program.operand(len(self.program.values) - 1)

    def data(self, dtype: DType, shape: tuple[Size, ...], real: tuple[int, ...], constant: bool = False) -> Operand:
        array = random_like(real, dtype, self.seed + len(self.program.values))
        if constant:
            self.constants.append(array)
            self.program.constants.append(f"c{len(self.constants)}")
            return self.value(ValueKind.CONST, dtype, real, len(self.constants) - 1)
        self.inputs.append(array)
        for i, extent in enumerate(shape):
            if not isinstance(extent, int) and str(extent) not in self.bound:
                self.bound.add(str(extent))
                position = len(self.inputs) - 1
                self.program.bindings.append(Binding(name=str(extent), kind=SymbolKind.DIM, input=position, index=i))
        return self.value(ValueKind.INPUT, dtype, shape, len(self.inputs) - 1)

    def matrix(
        self,
        own: tuple[int, ...],
        batch: list[Size],
        sizes: tuple[Size, Size],
        real: tuple[int, int],
        dtype: DType,
        transposed: bool,
        constant: bool,
    ) -> Operand:
        """Stored as [own..., sizes], seen as [batch..., sizes]."""
        padded = (1,) * (len(batch) - len(own)) + own
        kept: list[Size] = [1 if e == 1 else b for e, b in zip(padded, batch, strict=True)]
        if transposed:
            sizes_stored, real_stored = (sizes[1], sizes[0]), (real[1], real[0])
        else:
            sizes_stored, real_stored = sizes, real
        stored = self.data(dtype, (*kept, *sizes_stored), (*padded, *real_stored), constant)
        strides = list(stored.strides)
        if transposed:
            strides[-2:] = strides[:-3:-1]
        for i, extent in enumerate(padded):
            if extent == 1:
                strides[i] = 0
        return Operand(value=stored.value, dtype=dtype, shape=(*batch, *sizes), strides=tuple(strides))

    # -- epilogues

    def epilogue(self, inputs: list[Operand], shape: tuple[Size, ...], rank: int) -> Expr:
        case = self.case
        here = [axis(i) for i in range(rank)]
        real = (*case.batch, case.m, case.n)
        result = acc() if case.dtypes[0].is_float else acc_int(0)

        def more(dtype: DType, sizes: tuple[Size, ...], extents: tuple[int, ...], constant: bool = False) -> int:
            inputs.append(self.data(dtype, sizes, extents, constant))
            return len(inputs) - 1

        def bias() -> Expr:
            return load(more(DType.F32, shape[-1:], real[-1:]), here[-1], dtype=DType.F32)

        match case.epilogue:
            case "none":
                return result
            case "bias":
                return call("add", result, bias())
            case "gelu":
                return call("gelu_erf", call("add", result, bias()))
            case "gelu_tanh":
                return call("gelu_tanh", call("add", result, bias()))
            case "residual":
                j = more(case.dtypes[2], shape, real)
                return call("add", call("add", result, bias()), load(j, *here, dtype=DType.F32))
            case "row":  # one value per row, and a scalar
                j = more(DType.F32, shape[-2:-1], real[-2:-1])
                s = more(DType.F32, (), ())
                scaled = call("mul", result, load(j, here[-2], dtype=DType.F32))
                return call("mul", scaled, load(s, dtype=DType.F32))
            case "swapped":  # a residual stored with its last axes swapped: lanes step by a run-time stride
                j = more(DType.F32, (*shape[:-2], shape[-1], shape[-2]), (*real[:-2], real[-1], real[-2]))
                return call("add", result, load(j, *here[:-2], here[-1], here[-2], dtype=DType.F32))
            case "mask":  # bool and integer operands, and a comparison of axes
                j = more(DType.BOOL, shape[-2:], real[-2:])
                i = more(DType.I64, shape[-1:], real[-1:])
                masked = call("where", load(j, here[-2], here[-1], dtype=DType.BOOL), result, const(-1e4))
                later = call("le", here[-1], call("add", here[-2], load(i, here[-1], dtype=DType.I64)))
                return call("where", later, masked, call("neg", masked))
            case "gather":  # rows chosen by another operand
                ids = more(DType.I64, shape[-2:-1], real[-2:-1])
                table = more(DType.F32, (7, shape[-1]), (7, real[-1]))
                row = load(ids, here[-2], dtype=DType.I64)
                return call("add", result, load(table, row, here[-1], dtype=DType.F32))
            case "lookup":  # columns chosen by another operand: a gather of single elements
                ids = more(DType.I64, shape[-1:], real[-1:])
                table = more(DType.F32, (7,), (7,))
                at = load(ids, here[-1], dtype=DType.I64)
                return call("add", result, load(table, at, dtype=DType.F32))
            case "window":  # reads outside of the operand, whose result is thrown away
                j = more(DType.F32, shape[-1:], real[-1:])
                at = call("sub", here[-1], const(3))
                inside = call("le", const(0), at)
                return call("add", result, call("where", inside, load(j, at, dtype=DType.F32), const(0.5)))
            case "ahead":  # the same past the end, where memory ends too, along rows and columns
                values, rows = more(DType.F32, shape[-1:], real[-1:]), more(DType.F32, shape[-2:-1], real[-2:-1])
                for j, at, extent in ((values, here[-1], shape[-1]), (rows, here[-2], shape[-2])):
                    later = call("add", at, const(900))
                    found = load(j, later, dtype=DType.F32)
                    result = call("add", result, call("where", call("lt", later, size(extent)), found, const(0.5)))
                return result
            case "wrapped":  # a quotient of axes
                j = more(DType.F32, shape[-1:], real[-1:])
                at = call("div", here[-1], const(2))
                return call("add", result, load(j, at, dtype=DType.F32))
            case "sizes":
                return call("add", result, call("to_f", call("mul", size(shape[-2]), here[-1])))
            case "wrapped_sum":
                j = more(DType.I32, shape[-1:], real[-1:])
                moved = call("sub", call("mul", result, const(3)), load(j, here[-1], dtype=DType.I32))
                return call({DType.I8: "wrap_i8", DType.U8: "wrap_u8"}.get(case.dtypes[2], "wrap_i32"), moved)
            case "zero_points" | "requantised" | "gelu_of_int":  # less a zero point times sums of columns; scaled
                zero, sums = more(DType.U8, (), ()), more(DType.I32, shape[-1:], real[-1:])
                moved = call("mul", load(zero, dtype=DType.U8), load(sums, here[-1], dtype=DType.I32))
                scaled = call("mul", call("to_f", call("wrap_i32", call("sub", result, moved))), const(2.0**-12))
                if case.epilogue == "gelu_of_int":
                    return call("gelu_erf", scaled)
                if case.epilogue == "zero_points":
                    return call("add", scaled, bias())
                level = call("add", call("round", scaled), const(128.0))
                return call("to_i", call("min", call("max", level, const(0.0)), const(255.0)))
            case "integer":
                return call("add", result, call("mul", here[-1], const(2)))
            case other:
                raise AssertionError(other)


def swap_output(program: Program) -> None:
    """Let the op write its result with the last two axes swapped (the output's value gets that shape)."""
    op = gemm_of(program)
    value = program.values[op.output.value]
    shape = (*value.shape[:-2], value.shape[-1], value.shape[-2])
    program.values[op.output.value] = Value(kind=value.kind, dtype=value.dtype, shape=shape)
    strides = list(contiguous_strides(shape))
    strides[-2:] = strides[:-3:-1]
    output = Operand(value=op.output.value, dtype=value.dtype, shape=op.output.shape, strides=tuple(strides))
    program.ops[0] = replace(op, output=output)
