"""Element by element: arithmetic, activations, logic, conversion."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.hunt.generation.builder import Builder
from tests.hunt.generation.feeds import Fill, Kind
from tests.hunt.recipes._row import FLOATS, Build, Recipe, dtypes_of, first_of, maybe

POSITIVE, UNIT = Fill(Kind.POSITIVE), Fill(Kind.UNIT)
# What the domain of the function asks for; all others take anything.
_FILLS = {"Sqrt": POSITIVE, "Log": POSITIVE, "Asin": UNIT, "Acos": UNIT, "Atanh": UNIT, "Acosh": POSITIVE, "Reciprocal": POSITIVE}
_SINCE = {
    "Erf": 9,
    "Sinh": 9,
    "Cosh": 9,
    "Asinh": 9,
    "Acosh": 9,
    "Atanh": 9,
    "Sign": 9,
    "IsNaN": 9,
    "Round": 11,
    "BitwiseNot": 18,
}
_UNARY = (
    "Relu", "Sqrt", "Exp", "Log", "Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Tanh", "Asinh", "Acosh", "Atanh",
    "Erf", "Sigmoid", "Softplus", "Floor", "Ceil", "Round", "Neg", "Abs", "Sign", "Reciprocal", "Softsign", "IsNaN", "Not",
    "Identity", "BitwiseNot",
)  # fmt: skip


def _unary(op: str) -> Build:
    return lambda b: b.one(op, [first_of(b, op, fill=_FILLS.get(op, Fill()))])


# attribute: what it may be; None: the schema's default
_ATTRIBUTES: dict[str, tuple[int, dict[str, tuple[Any, ...]]]] = {
    "LeakyRelu": (7, {"alpha": (None, 0.1, -0.5, 2.0, 0.0)}),
    "HardSigmoid": (7, {"alpha": (None, 0.1, 0.5, -0.2), "beta": (None, 0.2, 0.0)}),
    "HardSwish": (14, {}),
    "Elu": (7, {"alpha": (None, 0.5, 2.0)}),
    "Selu": (7, {"alpha": (None, 1.5), "gamma": (None, 0.5)}),
    "Celu": (12, {"alpha": (None, 0.5, 2.0)}),
    "Shrink": (9, {"bias": (None, 0.25), "lambd": (None, 0.1, 1.0)}),
    "ThresholdedRelu": (10, {"alpha": (None, 0.0, 0.5)}),
    "Gelu": (20, {"approximate": (None, "tanh", "none")}),
    "Mish": (18, {}),
    "Swish": (24, {"alpha": (None, 0.5, 1.702)}),
    "IsInf": (10, {"detect_positive": (None, 0, 1), "detect_negative": (None, 0, 1)}),
}


def _activation(op: str) -> Build:
    def build(b: Builder) -> None:
        choices = _ATTRIBUTES[op][1]
        b.one(op, [first_of(b, op)], **{name: b.pick(values) for name, values in choices.items()})

    return build


def _prelu(b: Builder) -> None:
    x = first_of(b, "PRelu")
    b.one("PRelu", [x, b.partner(x, wider=0)])


def _binary(op: str) -> Build:
    def build(b: Builder) -> None:
        attrs: dict[str, Any] = {}
        kind = dtypes_of(b, op)
        divides = op in ("Div", "Mod")
        x = b.any(kind, fill=Fill())
        if op == "Mod":
            attrs["fmod"] = 1 if x.dtype.kind == "f" else b.pick((None, 0, 1))
        if op == "BitShift":
            attrs["direction"] = b.pick(("LEFT", "RIGHT"))
        y = b.partner(x, fill=POSITIVE if divides and not b.chance(0.1) else Fill())
        pair = [x, y] if divides or b.chance(0.7) else [y, x]
        b.one(op, pair, **attrs)

    return build


def _pow(b: Builder) -> None:
    x = first_of(b, "Pow", fill=POSITIVE if b.chance(0.6) else Fill())
    if b.chance(0.6):
        y = b.constant(np.asarray(b.pick((2.0, 3.0, 0.5, -1.0, 0.0, 1.0, 2.5, 4.0)), x.dtype))
    else:
        y = b.partner(x, b.pick((x.dtype, x.dtype, np.dtype(np.int64), np.dtype(np.float32))) if b.opset >= 12 else x.dtype)
    b.one("Pow", [x, y])


def _variadic(op: str) -> Build:
    def build(b: Builder) -> None:
        x = first_of(b, op)
        b.one(op, [x, *(b.partner(x) for _ in range(b.whole(0, 2)))])

    return build


def _clip(b: Builder) -> None:
    x = first_of(b, "Clip")
    low, high = b.pick(((-1, 1), (0, 6), (-0.5, 0.5), (1, -1), (None, 1), (-1, None), (None, None), (0, 3)))
    if x.dtype.kind in "iu":
        low, high = (None if v is None else max(int(v), 0 if x.dtype.kind == "u" else -9) for v in (low, high))
    if b.since("Clip") < 11:
        b.one("Clip", [x], min=None if low is None else float(low), max=None if high is None else float(high))
        return
    bounds = [None if v is None else b.constant(v, x.dtype) if b.chance(0.7) else b.input([], x.dtype) for v in (low, high)]
    b.one("Clip", [x, *bounds])


def _logical(op: str) -> Build:
    def build(b: Builder) -> None:
        x = b.any((np.bool_,))
        b.one(op, [x, b.partner(x)])

    return build


def _where(b: Builder) -> None:
    x = first_of(b, "Where")
    if b.chance(0.3):
        condition = b.any((np.bool_,), most=3)
        b.one("Where", [condition, b.partner(condition, x.dtype), b.partner(condition, x.dtype)])
        return
    values = [x, b.partner(x)]
    b.rng.shuffle(values)
    b.one("Where", [b.partner(x, np.bool_), *values])


_TO = {"float32": 1, "uint8": 2, "int8": 3, "int32": 6, "int64": 7, "bool": 9, "float16": 10, "float64": 11}


def _cast(b: Builder) -> None:
    b.one("Cast", [first_of(b, "Cast")], to=b.pick(list(_TO.values())))


def _cast_like(b: Builder) -> None:
    other = b.any((np.float32, np.float16, np.int64, np.int32, np.bool_), most=2)
    b.one("CastLike", [first_of(b, "CastLike"), other])


def _dropout(b: Builder) -> None:
    x = b.any(FLOATS)
    if b.since("Dropout") < 12:
        b.node("Dropout", [x], outputs=b.pick((1, 1, 2)), ratio=maybe(b, 0.3))
        return
    ratio = maybe(b, b.constant(0.3, np.float32))
    training = maybe(b, b.constant(False), 0.4)
    b.node("Dropout", [x, ratio, training], outputs=b.pick((1, 1, 2)))


_COMPARED = {"Equal": 7, "Less": 7, "Greater": 7, "LessOrEqual": 12, "GreaterOrEqual": 12}
_BITS = {"BitwiseAnd": 18, "BitwiseOr": 18, "BitwiseXor": 18}

ROWS = [
    *(Recipe(name=op, build=_unary(op), since=_SINCE.get(op, 7)) for op in _UNARY),
    *(Recipe(name=op, build=_activation(op), since=since) for op, (since, _) in _ATTRIBUTES.items()),
    *(Recipe(name=op, build=_binary(op), weight=2) for op in ("Add", "Sub", "Mul", "Div")),
    *(Recipe(name=op, build=_binary(op), since=since) for op, since in (_COMPARED | _BITS).items()),
    *(Recipe(name=op, build=_variadic(op), since=8) for op in ("Max", "Min", "Sum", "Mean")),
    *(Recipe(name=op, build=_logical(op)) for op in ("And", "Or", "Xor")),
    Recipe(name="Mod", build=_binary("Mod"), since=10, weight=2),
    Recipe(name="Pow", build=_pow),
    Recipe(name="PRelu", build=_prelu),
    Recipe(name="Clip", build=_clip),
    Recipe(name="Where", build=_where, since=9),
    Recipe(name="Cast", build=_cast),
    Recipe(name="CastLike", build=_cast_like, since=15),
    Recipe(name="Dropout", build=_dropout),
]
