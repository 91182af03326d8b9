"""Integer expressions whose value is known while a kernel is walked."""

from __future__ import annotations

from collections.abc import Mapping

from xyntra_ep.tracea.semantic_ir.nodes import Binary, Const, Convert, Rvalue, Select, Var


def number(e: Rvalue, known: Mapping[str, int]) -> int | None:
    """The value of an integer expression, if it follows from constants and the names that are ``known``."""
    match e:
        case Const():
            return int(e.value) if isinstance(e.value, int) else None
        case Var():
            return known.get(e.name)
        case Convert():
            return number(e.a, known)
        case Select():
            mask = number(e.mask, known)
            return None if mask is None else number(e.a if mask else e.b, known)
        case Binary():
            a, b = number(e.a, known), number(e.b, known)
            return None if a is None or b is None else _binary(e.op, a, b)
    return None


def _binary(op: str, a: int, b: int) -> int | None:
    match op:
        case "add":
            return a + b
        case "sub":
            return a - b
        case "mul":
            return a * b
        case "div" | "mod" if a >= 0 and b > 0:
            return a // b if op == "div" else a % b
        case "and":
            return a & b
        case "min" | "max":
            return min(a, b) if op == "min" else max(a, b)
        case "lt" | "le":
            return int(a < b or (op == "le" and a == b))
        case "eq" | "ne":
            return int((a == b) == (op == "eq"))
    return None
