"""The size table of a plan, evaluated as native code does it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xyntra_ep.tracea.core_ir.dims import DimOp
from xyntra_ep.tracea.planning.size_table import Row

_MEANING: dict[DimOp, Callable[[int, int, int], int]] = {
    DimOp.ADD: lambda a, b, c: a + b,
    DimOp.SUB: lambda a, b, c: a - b,
    DimOp.MUL: lambda a, b, c: a * b,
    DimOp.FLOORDIV: lambda a, b, c: a // b if b else 0,
    DimOp.CEILDIV: lambda a, b, c: -(-a // b) if b else 0,
    DimOp.MOD: lambda a, b, c: a % b if b else 0,
    DimOp.MIN: lambda a, b, c: min(a, b),
    DimOp.MAX: lambda a, b, c: max(a, b),
    DimOp.EQ: lambda a, b, c: int(a == b),
    DimOp.NE: lambda a, b, c: int(a != b),
    DimOp.LT: lambda a, b, c: int(a < b),
    DimOp.LE: lambda a, b, c: int(a <= b),
    DimOp.AND: lambda a, b, c: int(bool(a and b)),
    DimOp.OR: lambda a, b, c: int(bool(a or b)),
    DimOp.NOT: lambda a, b, c: int(not a),
    DimOp.SELECT: lambda a, b, c: b if a else c,
}


def evaluate_rows(rows: Sequence[Row], symbols: Sequence[int]) -> list[int]:
    """The value of every row."""
    values: list[int] = []
    for op, a, b, c in rows:
        if op == DimOp.CONST:
            values.append(a)
        elif op == DimOp.SYMBOL:
            values.append(symbols[a])
        else:
            values.append(_MEANING[DimOp(op)](values[a], values[b], values[c]))
    return values
