"""What is known of all expressions of a class: the analyses of the e-graph.

dtype         F32, I64 or BOOL
constant      its value, where that is known
low, high     bounds of what is no NaN
per_row       one value for all elements of a row
multiple      a product of a number and something else
terms,        how many operands its longest sum and product have when they are written without brackets
factors
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from xyntra_ep.fusion.egraph.formula import OPERATIONS, ROW_KINDS, SOFTMAX
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr, walk

MOST_OPERANDS = 6  # of a sum or a product that is read in every order and grouping: there are 2^n parts of it
Constant = float | int | bool


@dataclass(frozen=True, slots=True)
class Facts:
    dtype: DType
    constant: Constant | None = None
    low: float = -math.inf
    high: float = math.inf
    per_row: bool = True
    multiple: bool = False
    terms: int = 1
    factors: int = 1

    def joined(self, other: Facts) -> Facts:
        """Of a class that two classes became: what is known of either is true of both."""
        return Facts(
            dtype=self.dtype,
            constant=self.constant if self.constant is not None else other.constant,
            low=max(self.low, other.low),
            high=min(self.high, other.high),
            per_row=self.per_row or other.per_row,
            multiple=self.multiple or other.multiple,
            terms=min(self.terms, other.terms),
            factors=min(self.factors, other.factors),
        )


def of_leaf(e: Expr, inner: frozenset[int]) -> Facts:
    """A load, an axis, a size or a constant; axes of ``inner`` go through a row."""
    if e.kind == "const":
        value = float(e.attr)
        bounds = (-math.inf, math.inf) if math.isnan(value) else (value, value)
        return Facts(dtype=e.dtype, constant=e.attr, low=bounds[0], high=bounds[1])
    return Facts(dtype=e.dtype, per_row=not any(i.kind == "axis" and i.attr in inner for i in walk(e)))


def of_operation(op: str, args: Sequence[Facts]) -> Facts:
    """The result of ``op``, from what is known of its operands."""
    row = OPERATIONS[op]
    letter = row.result
    alike = next((a.dtype for a, of in zip(args, row.args, strict=True) if of in "nt"), DType.F32)
    dtype = {"f": DType.F32, "i": DType.I64, "b": DType.BOOL}.get(letter, alike)
    over_row = op in ROW_KINDS
    low, high = _BOUNDS[op](args) if op in _BOUNDS and dtype is DType.F32 else (-math.inf, math.inf)
    return Facts(
        dtype=dtype,
        constant=None if over_row or op == SOFTMAX else _folded(op, args, dtype),
        low=-math.inf if math.isnan(low) else low,
        high=math.inf if math.isnan(high) else high,
        per_row=over_row or (op != SOFTMAX and all(a.per_row for a in args)),
        multiple=op == "mul" and any(a.constant not in (None, 1) for a in args),
        terms=sum(a.terms for a in args) if op in ("add", "sub") else 1,
        factors=sum(a.factors for a in args) if op == "mul" else 1,
    )


def _folded(op: str, args: Sequence[Facts], dtype: DType) -> Constant | None:
    """The value, where those of the operands are known; floats only, in float64, as numbers of formulas are."""
    values = [a.constant for a in args]
    if dtype is not DType.F32 or op == "pow" or any(not isinstance(v, float) for v in values):
        return None
    with np.errstate(all="ignore"):
        found = float(OPERATIONS[op].reference(*(np.float64(v) for v in values)))
    return None if math.isnan(found) else found


Bounds = Callable[[Sequence[Facts]], tuple[float, float]]


def _products(args: Sequence[Facts]) -> tuple[float, float]:
    a, b = args
    corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    return (-math.inf, math.inf) if any(math.isnan(c) for c in corners) else (min(corners), max(corners))


_BOUNDS: Mapping[str, Bounds] = {
    "add": lambda args: (args[0].low + args[1].low, args[0].high + args[1].high),
    "sub": lambda args: (args[0].low - args[1].high, args[0].high - args[1].low),
    "neg": lambda args: (-args[0].high, -args[0].low),
    "mul": _products,
    "max": lambda args: (max(a.low for a in args), max(a.high for a in args)),
    "min": lambda args: (min(a.low for a in args), min(a.high for a in args)),
    "quantise": lambda args: (args[3].low, args[4].high),
    "sigmoid": lambda args: (0.0, 1.0),
    "logistic": lambda args: (0.0, 1.0),
    "tanh": lambda args: (-1.0, 1.0),
    "erf": lambda args: (-1.0, 1.0),
    SOFTMAX: lambda args: (0.0, 1.0),
    **dict.fromkeys(("exp", "exp_nonpositive", "sqrt", "relu", "abs", "softplus"), lambda args: (0.0, math.inf)),
    "row_sum": lambda args: (0.0 if args[0].low >= 0 else -math.inf, 0.0 if args[0].high <= 0 else math.inf),
    **dict.fromkeys(("row_max", "row_min"), lambda args: (args[0].low, args[0].high)),
}
