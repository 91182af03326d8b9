"""Elementary functions as semantic-IR functions, for any lane count. Polynomials fitted by weighted least squares to minimax.

Error bounds are against float64 over the stated range, rounding of the fp32 evaluation included. NaN goes through: clamps are
written ``vmin(limit, x)`` / ``vmax(limit, x)``, whose result is x when x is NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

from xyntra_ep.tracea.semantic_ir.builder import FunctionBuilder
from xyntra_ep.tracea.semantic_ir.nodes import (
    Bitcast,
    CallValue,
    Const,
    Convert,
    Fma,
    Function,
    Rvalue,
    Select,
    Unary,
    binary,
    f32,
    i32,
    vmax,
    vmin,
)

_LOG2E = 1.4426950408889634
# 2^f on |f| <= 0.5, degree 6, highest power first: 0.9 ulp
_EXP2 = (0.000153533618, 0.00133988744, 0.00961843736, 0.0555033247, 0.240226479, 0.693147203, 1.0)
# the same, degree 5: 1.7e-7 (fitted with 1 held exact)
_EXP2_SHORT = (0.00132647273, 0.00967151299, 0.0555073358, 0.240222424, 0.693147004, 1.0)
# degree 3: 1.0e-4, a twentieth of what bfloat16 rounds away
_EXP2_BF16 = (0.0550089329, 0.242210969, 0.693282902, 1.0)
# erf(x / sqrt 2) = x P(x^2) / Q(x^2), |x| <= 5.45: 5 ulp
_ERF_P = (4.65166329e-8, 1.26228639e-5, 3.25148635e-4, 9.27960534e-3, 0.0664778553, 0.797884549)
_ERF_Q = (1.20926816e-6, 7.16473133e-5, 1.84929072e-3, 0.0282948824, 0.24998407, 1.0)
# log2 of the normal distribution's lower tail at -a, 0 <= a <= 5.8
_GELU_TAIL = (
    1.76351343e-7, -4.31528999e-6, 4.18729772e-5, -1.75585515e-4, -1.84668005e-4, 7.13589579e-3, -5.25457621e-2,
    -0.459193734, -1.15110652, -1.0,
)  # fmt: skip
# The tail itself for 0 <= a <= 4, exactly 0 at 4: absolute error 2.9e-4 / (0.4 + a), times 0.5 from 0 to 3. Then the same of the
# distribution that the tanh form stands for.
_GELU_TAIL_BF16 = (
    5.7275653e-5, -9.73864417e-4, 6.14938388e-3, -0.015036971, -6.07190954e-3, 0.0815972766, -0.0106498071, -0.396283701,
    0.499874258,
)  # fmt: skip
_GELU_TANH_TAIL_BF16 = (
    4.94932047e-5, -8.34564535e-4, 5.13560225e-3, -0.0112142708, -0.013936967, 0.0901350907, -0.0151112145, -0.395228626,
    0.499816868,
)  # fmt: skip
# tanh(x) = x P(x^2) / Q(x^2), |x| <= 9.02: 4.7 ulp
_TANH_P = (-1.22034128e-11, 3.05849444e-8, 2.80074241e-5, 0.00386832594, 0.136799136, 0.999999999)
_TANH_Q = (1.28736424e-6, 3.93862799e-4, 0.0272458321, 0.470132457, 1.0)
# (log(1 + f) - f + f^2 / 2) / f^3 for 1 + f from sqrt(1/2) to sqrt(2) (Cephes, logf.c)
_LOG = (
    0.070376836292, -0.1151461031, 0.1167699874, -0.12420140846, 0.14249322787, -0.16668057665, 0.20000714765, -0.24999993993,
    0.33333331174,
)  # fmt: skip
_SQRT_HALF_BITS = 0x3F3504F3
_ROUND_MAGIC = 12582912.0  # 1.5 * 2^23: adding it leaves the nearest integer in the low mantissa bits
_MAGIC_BITS = 0x4B400000  # of it as a float: its low 22 bits are 0

Body = Callable[[FunctionBuilder, Rvalue, int], Rvalue]


def horner(x: Rvalue, coefficients: Sequence[float]) -> Rvalue:
    """The polynomial with ``coefficients`` (highest power first) at x."""
    result: Rvalue = Const(x.type, coefficients[0])
    for c in coefficients[1:]:
        result = Fma(result, x, Const(x.type, c))
    return result


def _call(b: FunctionBuilder, name: str, x: Rvalue, lanes: int) -> Rvalue:
    return b.let("t", CallValue(math_function(name, lanes), (x,)))


def _exp2_polynomial(b: FunctionBuilder, x: Rvalue, lanes: int, coefficients: Sequence[float] = _EXP2) -> tuple[Rvalue, Rvalue]:
    """(integer part as i32, plus _MAGIC_BITS; 2^fraction) of x; |x| below 2^22."""
    shifted = b.let("t", x + _ROUND_MAGIC)
    whole = b.let("n", shifted - _ROUND_MAGIC)
    fraction = b.let("f", x - whole)
    return Bitcast(i32(lanes), shifted), b.let("p", horner(fraction, coefficients))


def _without_magic(b: FunctionBuilder, bits: Rvalue, lanes: int) -> Rvalue:
    return b.let("k", binary("sub", bits, Const(i32(lanes), _MAGIC_BITS)))


def _scale(b: FunctionBuilder, p: Rvalue, k: Rvalue, lanes: int) -> Rvalue:
    """p * 2^k for k in [-252, 254], with overflow to infinity and gradual underflow."""
    half = b.let("h", binary("shr", k, 1))
    rest = b.let("r", k - half)
    scales = [Bitcast(f32(lanes), binary("shl", part + 127, 23)) for part in (half, rest)]
    return p * scales[0] * scales[1]


def _exp2(b: FunctionBuilder, x: Rvalue, lanes: int) -> Rvalue:
    bits, p = _exp2_polynomial(b, b.let("y", vmax(-151.0, vmin(130.0, x))), lanes)
    return _scale(b, p, _without_magic(b, bits, lanes), lanes)


def _exp2_nonpositive(b: FunctionBuilder, x: Rvalue, lanes: int, coefficients: Sequence[float] = _EXP2) -> Rvalue:
    """2^x for x <= 0: 0 from -127 down, NaN stays. The clamped argument has no fraction, so its polynomial is exactly 1 and
    the exponent field ends at 0: no denormals, which cost a hundred cycles wherever they are multiplied. The shift drops all bits
    of the magic number."""
    bits, p = _exp2_polynomial(b, b.let("y", vmax(-127.0, x)), lanes, coefficients)
    return Bitcast(f32(lanes), binary("add", Bitcast(i32(lanes), p), binary("shl", bits, 23)))


def _exp2_weight(b: FunctionBuilder, x: Rvalue, lanes: int) -> Rvalue:
    """2^x for x <= 0 as a softmax needs it: relative error 1.7e-7, 0 from -127 down."""
    return _exp2_nonpositive(b, x, lanes, _EXP2_SHORT)


def _exp2_weight_bf16(b: FunctionBuilder, x: Rvalue, lanes: int) -> Rvalue:
    """2^x for x <= 0 that is rounded to bfloat16 next: relative error 1.0e-4, 0 from -127 down."""
    return _exp2_nonpositive(b, x, lanes, _EXP2_BF16)


def _exp_polynomial(b: FunctionBuilder, y: Rvalue, lanes: int) -> tuple[Rvalue, Rvalue]:
    """(k, p) with e^y = p * 2^k; ln 2 in two parts so that large |y| keeps its accuracy."""
    shifted = b.let("t", Fma(y, Const(y.type, _LOG2E), Const(y.type, _ROUND_MAGIC)))
    n = b.let("n", shifted - _ROUND_MAGIC)
    r = b.let("r", Fma(n, Const(y.type, -1.42860677e-6), Fma(n, Const(y.type, -0.693145752), y)))
    k = _without_magic(b, Bitcast(i32(lanes), shifted), lanes)
    return k, b.let("p", horner(b.let("f", r * _LOG2E), _EXP2))


def _exp(b: FunctionBuilder, x: Rvalue, lanes: int) -> Rvalue:
    """1.2 ulp, with overflow to infinity and gradual underflow."""
    k, p = _exp_polynomial(b, b.let("y", vmax(-104.0, vmin(89.0, x))), lanes)
    return _scale(b, p, k, lanes)


def _exp_nonpositive(b: FunctionBuilder, x: Rvalue, lanes: int) -> Rvalue:
    """e^x for x <= 0 as a softmax needs it, in half the time: relative error 3.5e-7 to -3, 2e-6 at -60, 0 from -88 down; NaN
    stays. The weight of what lies far below the maximum matters as little as its error."""
    return _exp2_weight(b, b.let("z", x * _LOG2E), lanes)


def _erf(b: FunctionBuilder, x: Rvalue, lanes: int) -> Rvalue:
    y = b.let("y", vmax(-5.45, vmin(5.45, b.let("s", x * math.sqrt(2)))))
    z = b.let("z", y * y)
    return y * horner(z, _ERF_P) / horner(z, _ERF_Q)


def _gelu_erf(b: FunctionBuilder, x: Rvalue, lanes: int) -> Rvalue:
    """max(x, 0) - a 2^P(a), a = min(|x|, 5.8): 2.1 ulp above 0.01, absolute error 2.4e-7 everywhere, division-free."""
    a = b.let("a", vmin(5.8, Unary("abs", x)))
    tail = _call(b, "exp2_nonpositive", b.let("e", horner(a, _GELU_TAIL)), lanes)
    return _positive_part(x) - a * tail


def _positive_part(x: Rvalue) -> Rvalue:
    """max(x, 0) as (x + |x|) / 2, which is NaN for -inf: there a GELU is -inf times 0."""
    half = Const(x.type, 0.5)
    return Fma(x, half, Unary("abs", x) * half)


def _gelu_tanh(b: FunctionBuilder, x: Rvalue, lanes: int) -> Rvalue:
    """x / (1 + 2^(x (c0 + c1 x^2))): the tanh form rewritten as a logistic; 2.4 ulp for x > 0."""
    z = b.let("z", x * x)
    e = b.let("e", x * Fma(z, Const(z.type, -0.102943242), Const(z.type, -2.30220819)))
    return x / (_call(b, "exp2", e, lanes) + 1.0)


def _gelu_bf16(b: FunctionBuilder, x: Rvalue, tail: Sequence[float]) -> Rvalue:
    """max(x, 0) - a T(a), a = min(|x|, 4): relative error 3.6e-4 above -1, a tenth of what bfloat16 rounds away; 1.4e-4 below."""
    a = b.let("a", vmin(4.0, Unary("abs", x)))
    return _positive_part(x) - a * horner(a, tail)


def _gelu_erf_bf16(b: FunctionBuilder, x: Rvalue, lanes: int) -> Rvalue:
    return _gelu_bf16(b, x, _GELU_TAIL_BF16)


def _gelu_tanh_bf16(b: FunctionBuilder, x: Rvalue, lanes: int) -> Rvalue:
    return _gelu_bf16(b, x, _GELU_TANH_TAIL_BF16)


def _tanh(b: FunctionBuilder, x: Rvalue, lanes: int) -> Rvalue:
    y = b.let("y", vmax(-9.02, vmin(9.02, x)))
    z = b.let("z", y * y)
    return y * horner(z, _TANH_P) / horner(z, _TANH_Q)


def _sigmoid(b: FunctionBuilder, x: Rvalue, lanes: int) -> Rvalue:
    return 1.0 / (_call(b, "exp2", b.let("e", x * -_LOG2E), lanes) + 1.0)


def _logistic(b: FunctionBuilder, x: Rvalue, lanes: int) -> Rvalue:
    """The sigmoid as a gate of a recurrent cell needs it, in two thirds of the time: where it is below 1e-38, it is 1e-38."""
    y = b.let("y", vmax(-127.0, vmin(126.0, b.let("e", x * -_LOG2E))))
    bits, p = _exp2_polynomial(b, y, lanes)
    power = Bitcast(f32(lanes), binary("add", Bitcast(i32(lanes), p), binary("shl", bits, 23)))
    return 1.0 / (b.let("q", power) + 1.0)


def _silu(b: FunctionBuilder, x: Rvalue, lanes: int) -> Rvalue:
    return x / (_call(b, "exp2", b.let("e", x * -_LOG2E), lanes) + 1.0)


def _log_near_one(b: FunctionBuilder, f: Rvalue) -> Rvalue:
    """log(1 + f), 1 + f from sqrt(1/2) to sqrt(2); what rounding 1 + f would take away is still in f."""
    z = b.let("z", f * f)
    return f + Fma(z, Const(z.type, -0.5), b.let("g", f * z) * horner(f, _LOG))


def _log(b: FunctionBuilder, x: Rvalue, lanes: int) -> Rvalue:
    """0.9 ulp; minus infinity at 0, NaN below it."""
    scale = b.let("scale", Select(binary("lt", x, 2.0**-126), Const(x.type, 2.0**23), Const(x.type, 1.0)))  # of denormals
    bits = b.let("bits", Bitcast(i32(lanes), x * scale))
    k = b.let("k", binary("shr", binary("sub", bits, Const(i32(lanes), _SQRT_HALF_BITS)), 23))
    f = b.let("f", Bitcast(f32(lanes), binary("sub", bits, binary("shl", k, 23))) - 1.0)
    n = b.let("n", Convert(f32(lanes), k) - Select(binary("lt", 1.0, scale), Const(x.type, 23.0), Const(x.type, 0.0)))
    low = Fma(n, Const(x.type, -2.12194440e-4), _log_near_one(b, f))  # of log(2), whose high part is exact times n
    result = b.let("l", Fma(n, Const(x.type, 0.693359375), low))
    infinity = Const(x.type, math.inf)
    below = Select(binary("eq", x, 0.0), Const(x.type, -math.inf), Const(x.type, math.nan))
    return Select(binary("lt", 0.0, x), Select(binary("lt", x, infinity), result, infinity), below)


def _softplus(b: FunctionBuilder, x: Rvalue, lanes: int) -> Rvalue:
    """max(x, 0) + log(1 + e), e = exp(-|x|): 1.8 ulp. From sqrt(2) - 1 on, log(2) + log((1 + e) / 2)."""
    e = _call(b, "exp", b.let("m", -Unary("abs", x)), lanes)
    large = binary("lt", math.sqrt(2) - 1, e)
    f = b.let("f", Select(large, (e - 1.0) * 0.5, e))
    tail = _log_near_one(b, f) + Select(large, Const(x.type, math.log(2)), Const(x.type, 0.0))
    return vmax(0.0, x) + tail


def _round_bf16(b: FunctionBuilder, x: Rvalue, lanes: int) -> Rvalue:
    """To the nearest bfloat16 (ties to even) and back."""
    bits = b.let("b", Bitcast(i32(lanes), x))
    rounded = binary("and", bits + 0x7FFF + (binary("shr", bits, 16) & 1), Const(i32(lanes), -65536))
    return Select(binary("eq", x, x), Bitcast(f32(lanes), rounded), x)


def _round_tf32(b: FunctionBuilder, x: Rvalue, lanes: int) -> Rvalue:
    """To the nearest float with 10 bits behind the leading one (of two the larger)."""
    rounded = binary("and", b.let("b", Bitcast(i32(lanes), x)) + 0x1000, Const(i32(lanes), -0x2000))
    return Select(binary("eq", x, x), Bitcast(f32(lanes), rounded), x)


_BODIES: dict[str, Body] = {
    "exp2": _exp2,
    "exp2_nonpositive": _exp2_nonpositive,
    "exp2_weight": _exp2_weight,
    "exp2_weight_bf16": _exp2_weight_bf16,
    "exp": _exp,
    "exp_nonpositive": _exp_nonpositive,
    "erf": _erf,
    "gelu_erf": _gelu_erf,
    "gelu_tanh": _gelu_tanh,
    "gelu_erf_bf16": _gelu_erf_bf16,
    "gelu_tanh_bf16": _gelu_tanh_bf16,
    "tanh": _tanh,
    "sigmoid": _sigmoid,
    "logistic": _logistic,
    "silu": _silu,
    "log": _log,
    "softplus": _softplus,
    "round_bf16": _round_bf16,
    "round_tf32": _round_tf32,
}
_NEEDS: dict[str, tuple[str, ...]] = {
    "gelu_erf": ("exp2_nonpositive",),
    "gelu_tanh": ("exp2",),
    "sigmoid": ("exp2",),
    "silu": ("exp2",),
    "softplus": ("exp",),
}


_ROUGH = {"gelu_erf": "gelu_erf_bf16", "gelu_tanh": "gelu_tanh_bf16"}


def rough_function(name: str) -> str:
    """The function to use instead of ``name`` where its result is rounded to bfloat16 anyway."""
    return _ROUGH.get(name, name)


def has_math_function(name: str) -> bool:
    return name in _BODIES


@lru_cache(maxsize=256)
def math_function(name: str, lanes: int) -> Function:
    """f32 lanes -> f32 lanes. The kernel must define ``math_dependencies(name, lanes)`` first."""
    b = FunctionBuilder(f"xm_{name}_{lanes}", f32(lanes), inline=True)
    x = b.argument("x", f32(lanes))
    b.result(_BODIES[name](b, x, lanes))
    return b.finish()


def math_dependencies(name: str, lanes: int) -> list[Function]:
    """The functions that ``name`` calls, callees first, itself last."""
    return [f for need in _NEEDS.get(name, ()) for f in math_dependencies(need, lanes)] + [math_function(name, lanes)]


def convert_mask_to_float(mask: Rvalue) -> Rvalue:
    """1.0 where the mask is set."""
    lanes = mask.type.lanes
    return Convert(f32(lanes), binary("and", mask, Const(i32(lanes), 1)))
