"""Random elementwise and row-reduction programs: any expression, dtype, stride and kind of index, from a seed.

Only what has one right answer is built: a load that may leave its operand is guarded by a ``where``, floats are compared and
rounded before anything was computed with them, and magnitudes stay small.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from xyntra_ep.tracea.core_ir.dims import Size, select, symbol
from xyntra_ep.tracea.core_ir.dtypes import DType, from_float64
from xyntra_ep.tracea.core_ir.expr import Expr, acc, acc_bool, acc_int, axis, call, const, load, size
from xyntra_ep.tracea.core_ir.ops import (
    Binding,
    Operand,
    Pointwise,
    Program,
    ReduceKind,
    RowOutput,
    RowReduce,
    Stage,
    SymbolKind,
    Value,
    ValueKind,
    contiguous_strides,
)

Array = NDArray[Any]
EXTENTS = (1, 2, 3, 7, 15, 16, 17, 33)
_FLOAT = ("add", "sub", "mul", "min", "max", "neg", "abs", "relu", "tanh", "sigmoid", "where", "from_i", "from_b")
_INT = ("add", "sub", "mul", "div", "mod", "fmod", "min", "max", "neg", "abs", "sign", "bitand", "bitxor", "where", "from_b")
_BOOL = ("and", "or", "xor", "not", "lt_i", "le_i", "eq_i", "eq_b", "lt_f", "isnan")
_REDUCTIONS = {
    DType.F32: (ReduceKind.SUM, ReduceKind.MAX, ReduceKind.MIN, ReduceKind.ARGMAX, ReduceKind.ARGMIN_LAST),
    DType.I64: (ReduceKind.SUM, ReduceKind.PROD, ReduceKind.MAX, ReduceKind.ARGMIN, ReduceKind.ARGMAX_LAST),
    DType.BOOL: (ReduceKind.MAX, ReduceKind.MIN),
}


class RandomProgram:
    """One seed's program and data: ``program``, ``inputs``."""

    def __init__(self, seed: int, rank: int, symbolic: bool, special: bool = False) -> None:
        self.rng = np.random.default_rng(seed)
        self.program = Program()
        self.inputs: list[Array] = []
        self._special = special
        self._views: list[Operand] = []
        self.extents = [int(self.rng.choice(EXTENTS)) for _ in range(rank)]
        while np.prod(self.extents) > 6000:
            self.extents[int(np.argmax(self.extents))] = 2
        self.domain: list[Size] = [self._extent(e, symbolic) for e in self.extents]

    # -- sizes and operands

    def _extent(self, value: int, symbolic: bool) -> Size:
        """A literal, or a symbol bound to the only dimension of an input."""
        if not symbolic or self.rng.random() < 0.4:
            return value
        name = f"d{len(self.program.bindings)}"
        number = self._input(DType.F32, (symbol(name),), np.zeros(value, dtype=np.float32))
        index = self.program.values[number].index
        self.program.bindings.append(Binding(name=name, kind=SymbolKind.DIM, input=index, index=0))
        return symbol(name)

    def _input(self, dtype: DType, shape: tuple[Size, ...], data: Array) -> int:
        index = len(self.inputs)
        self.inputs.append(data)
        self.program.values.append(Value(kind=ValueKind.INPUT, dtype=dtype, shape=shape, index=index))
        return len(self.program.values) - 1

    def _data(self, shape: tuple[int, ...], dtype: DType) -> Array:
        if not dtype.is_float:
            low = 0 if dtype in (DType.U8, DType.BOOL) else -9
            return self.rng.integers(low, 2 if dtype is DType.BOOL else 10, shape).astype(dtype.numpy)
        data = self.rng.standard_normal(shape)
        if self._special and data.size:
            at = self.rng.integers(0, data.size, max(1, data.size // 10))
            data.reshape(-1)[at] = self.rng.choice([np.nan, np.inf, -np.inf, -0.0, 0.0], len(at))
        return from_float64(data, dtype)

    def _operand(self, dtype: DType) -> int:
        """A view over the whole domain: dense, permuted, sliced, reversed or broadcast by literal or run-time strides."""
        rank = len(self.domain)
        order = list(self.rng.permutation(rank)) if self.rng.random() < 0.3 else list(range(rank))
        shape: list[Size] = [1] * rank
        concrete = [1] * rank
        steps, starts, factors = [1] * rank, [0] * rank, [1] * rank
        run_time: list[Size] = [1] * rank
        for i in range(rank):
            kind = self.rng.choice(["plain", "plain", "plain", "slice", "reverse", "zero", "run-time"])
            extent, value = self.domain[i], self.extents[i]
            if kind == "slice":
                starts[i], steps[i] = int(self.rng.integers(0, 3)), int(self.rng.integers(1, 3))
                shape[i], concrete[i] = extent * steps[i] + starts[i], value * steps[i] + starts[i]
            elif kind == "zero":
                factors[i] = 0
            elif kind == "run-time":
                concrete[i] = value if self.rng.random() < 0.5 else 1
                shape[i] = self._extent(concrete[i], symbolic=True)
                run_time[i] = select(shape[i] - 1, 1, 0)
            else:
                shape[i], concrete[i] = extent, value
                steps[i] = -1 if kind == "reverse" else 1
        stored = [shape[i] for i in order]
        strides: list[Size] = [0] * rank
        for i, stride in zip(order, contiguous_strides(stored), strict=True):
            strides[i] = stride
        offset: Size = 0
        for i in range(rank):
            first = (self.domain[i] - 1) if steps[i] < 0 else starts[i]
            offset = offset + strides[i] * first
        data = self._data(tuple(concrete[i] for i in order), dtype)
        value_number = self._input(dtype, tuple(stored), data)
        views = [s * k * f * r for s, k, f, r in zip(strides, steps, factors, run_time, strict=True)]
        self._views.append(
            Operand(value=value_number, dtype=dtype, shape=tuple(self.domain), strides=tuple(views), offset=offset)
        )
        return len(self._views) - 1

    # -- loads

    def _load(self, dtypes: tuple[DType, ...]) -> Expr:
        dtype = dtypes[int(self.rng.integers(len(dtypes)))]
        kind = self.rng.choice(["view", "view", "view", "window", "gather", "tile", "shared"])
        if kind == "shared":
            same = [j for j, o in enumerate(self._views) if o.dtype in dtypes and o.shape == tuple(self.domain)]
            if same:
                return self._at(int(self.rng.choice(same)))
        if kind in ("view", "shared") or not self.domain:
            return self._at(self._operand(dtype))
        return self._indexed(str(kind), dtype)

    def _at(self, j: int) -> Expr:
        here = tuple(axis(i) for i in range(len(self._views[j].shape)))
        return load(j, *here, dtype=self._views[j].dtype)

    def _indexed(self, kind: str, dtype: DType) -> Expr:
        """A load of a small dense operand with one odd index."""
        at = int(self.rng.integers(len(self.domain)))
        extent = int(self.rng.choice([0, 1, 3, 17])) if kind == "window" else int(self.rng.choice([1, 3, 17]))
        shape = (*self.extents[:at], extent)
        sizes = (*self.domain[:at], self._extent(extent, symbolic=True))
        number = self._input(dtype, sizes, self._data(shape, dtype))
        self._views.append(self.program.operand(number))
        j = len(self._views) - 1
        last = sizes[-1]
        if kind == "tile":
            index = call("mod", axis(at), size(last))
        elif kind == "gather":
            inner = self._at(self._operand(DType.I64))
            index = call("mod", inner, size(last))
        else:
            stride, shift = int(self.rng.integers(1, 3)), int(self.rng.integers(-2, 6))
            index = call("sub", call("mul", axis(at), const(stride)), const(shift))
        found = load(j, *(axis(i) for i in range(at)), index, dtype=dtype)
        if kind != "window":
            return found
        inside = call("and", call("le", const(0), index), call("lt", index, size(last)))
        zero = const({DType.F32: 0.5, DType.I64: 3, DType.BOOL: True}[dtype.compute])
        return call("where", inside, found, zero)

    # -- expressions

    def float_(self, depth: int) -> Expr:
        if depth == 0:
            if self.rng.random() < 0.15:
                return const(float(np.float32(self.rng.standard_normal())))
            return self._load((DType.F32, DType.F32, DType.F32, DType.F16, DType.BF16))
        op = str(self.rng.choice(_FLOAT))
        if op == "from_i":
            return call("to_f", call("max", call("min", self.int_(depth - 1), const(9)), const(-9)))
        if op == "from_b":
            return call("to_f", self.bool_(depth - 1))
        if op == "where":
            return call("where", self.bool_(depth - 1), self.float_(depth - 1), self.float_(depth - 1))
        if op in ("add", "sub", "mul", "min", "max"):
            return call(op, self.float_(depth - 1), self.float_(depth - 1))
        return call(op, self.float_(depth - 1))

    def int_(self, depth: int) -> Expr:
        if depth == 0:
            if self.domain and self.rng.random() < 0.3:
                return axis(int(self.rng.integers(len(self.domain))))
            if self.rng.random() < 0.2:
                return const(int(self.rng.integers(-5, 6)))
            return self._load((DType.I64, DType.I32, DType.I8, DType.U8))
        op = str(self.rng.choice(_INT))
        if op == "from_b":
            return call("to_i", self.bool_(depth - 1))
        if op == "where":
            return call("where", self.bool_(depth - 1), self.int_(depth - 1), self.int_(depth - 1))
        if op in ("neg", "abs", "sign"):
            return call(op, self.int_(depth - 1))
        return call(op, self.int_(depth - 1), self.int_(depth - 1))

    def bool_(self, depth: int) -> Expr:
        if depth == 0:
            return self._load((DType.BOOL,))
        op = str(self.rng.choice(_BOOL))
        if op in ("lt_i", "le_i", "eq_i"):
            return call(op[:2], self.int_(depth - 1), self.int_(depth - 1))
        if op == "eq_b":
            return call("eq", self.bool_(depth - 1), self.bool_(depth - 1))
        if op == "lt_f":
            return call("lt", self.float_(0), self.float_(0))
        if op == "isnan":
            return call("isnan", self.float_(0))
        if op == "not":
            return call(op, self.bool_(depth - 1))
        return call(op, self.bool_(depth - 1), self.bool_(depth - 1))

    def _body(self, dtype: DType, depth: int) -> Expr:
        makers = {DType.F32: self.float_, DType.I64: self.int_, DType.BOOL: self.bool_}
        return makers[dtype.compute](depth)

    # -- outputs and ops

    def _output(self, dtype: DType, rank: int) -> Operand:
        """A dense or permuted view of a whole output."""
        order = list(self.rng.permutation(rank)) if self.rng.random() < 0.3 else list(range(rank))
        stored = tuple(self.domain[i] for i in order)
        strides: list[Size] = [0] * rank
        for i, stride in zip(order, contiguous_strides(stored), strict=True):
            strides[i] = stride
        index = sum(v.kind is ValueKind.OUTPUT for v in self.program.values)
        self.program.values.append(Value(kind=ValueKind.OUTPUT, dtype=dtype, shape=stored, index=index))
        number = len(self.program.values) - 1
        return Operand(value=number, dtype=dtype, shape=tuple(self.domain[:rank]), strides=tuple(strides))

    def pointwise(self, depth: int) -> RandomProgram:
        dtypes = [DType(str(d)) for d in self.rng.choice(list(DType), int(self.rng.integers(1, 3)))]
        bodies = [self._body(d, depth) for d in dtypes]
        op = Pointwise(
            domain=tuple(self.domain),
            inputs=tuple(self._views),
            bodies=tuple(bodies),
            outputs=tuple(self._output(d, len(self.domain)) for d in dtypes),
        )
        self.program.ops, self.program.sources = [op], [()]
        return self

    def row_reduce(self, inner: int, depth: int) -> RandomProgram:
        """The last ``inner`` axes are reduced: two stages, the second of which may use the first, and two outputs."""
        outer = len(self.domain) - inner
        stages: list[Stage] = []
        results: list[Expr] = []
        for _ in range(2):
            dtype = DType(str(self.rng.choice(list(_REDUCTIONS))))
            kind = ReduceKind(str(self.rng.choice(list(_REDUCTIONS[dtype]))))
            body = self._body(dtype, depth if dtype is not DType.F32 or "arg" not in kind else 0)
            if kind is ReduceKind.PROD:
                body = call("mod", body, const(3))
            if stages and dtype is DType.F32 and results[0].dtype is DType.F32 and "arg" not in kind:
                body = call("mul", body, call("tanh", results[0]))
            result = DType.I64 if "arg" in kind else dtype
            results.append({DType.F32: acc, DType.I64: acc_int, DType.BOOL: acc_bool}[result](len(stages)))
            stages.append(Stage(kind=kind, body=body, dtype=result))
        per_row = self.rng.random() < 0.5
        outputs = [RowOutput(body=r, operand=self._output(r.dtype, outer), per_row=True) for r in results]
        if not per_row:
            body = self.float_(depth)
            if results[1].dtype is DType.F32:
                body = call("add", body, results[1])
            outputs.append(RowOutput(body=body, operand=self._output(DType.F32, len(self.domain)), per_row=False))
        op = RowReduce(
            outer=tuple(self.domain[:outer]),
            inner=tuple(self.domain[outer:]),
            inputs=tuple(self._views),
            stages=tuple(stages),
            outputs=tuple(outputs),
        )
        self.program.ops, self.program.sources = [op], [()]
        return self
