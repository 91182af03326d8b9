"""Scalar operations as Triton writes them, and the few functions that it does not have.

What stands in a table here is used as it is; what `HELPERS` has becomes a `@triton.jit` function at the top of the module. None
of them calls libdevice, which Triton's interpreter does not know.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

# {0}, {1} ... are operands.
FLOAT_FORMS: Mapping[str, str] = {
    "add": "{0} + {1}",
    "sub": "{0} - {1}",
    "mul": "{0} * {1}",
    "div": "{0} / {1}",
    "fmod": "{0} % {1}",
    "mod": "floor_mod({0}, {1})",
    "pow": "power({0}, {1})",
    "min": "tl.minimum({0}, {1}, propagate_nan=tl.PropagateNan.ALL)",
    "max": "tl.maximum({0}, {1}, propagate_nan=tl.PropagateNan.ALL)",
    "neg": "-{0}",
    "abs": "tl.abs({0})",
    "sign": "sign({0})",
    "relu": "relu({0})",
    "sqrt": "tl.sqrt({0})",
    "exp": "tl.exp({0})",
    "exp_nonpositive": "tl.exp({0})",
    "log": "tl.log({0})",
    "sin": "tl.sin({0})",
    "cos": "tl.cos({0})",
    "tan": "tl.sin({0}) / tl.cos({0})",
    "asin": "asin({0})",
    "acos": "1.5707963267948966 - asin({0})",
    "atan": "atan({0})",
    "sinh": "sinh({0})",
    "cosh": "0.5 * (tl.exp({0}) + tl.exp(-{0}))",
    "tanh": "tanh({0})",
    "asinh": "asinh({0})",
    "acosh": "tl.log({0} + tl.sqrt({0} * {0} - 1.0))",
    "atanh": "0.5 * tl.log((1.0 + {0}) / (1.0 - {0}))",
    "erf": "tl.erf({0})",
    "sigmoid": "tl.sigmoid({0})",
    "logistic": "tl.sigmoid({0})",
    "softplus": "softplus({0})",
    "gelu_erf": "gelu({0})",
    "gelu_tanh": "gelu_tanh({0})",
    "silu": "{0} * tl.sigmoid({0})",
    "floor": "tl.floor({0})",
    "ceil": "tl.ceil({0})",
    "round": "rint({0})",
    "isnan": "{0} != {0}",
    "isinf": 'tl.abs({0}) == float("inf")',
    "eq": "{0} == {1}",
    "lt": "{0} < {1}",
    "le": "{0} <= {1}",
    "where": "tl.where({0}, {1}, {2})",
    "to_f": "{0}",
    "to_i": "{0}.to(tl.int64)",
    "to_b": "{0} != 0",
    "round_f16": "{0}.to(tl.float16).to(tl.float32)",
    "round_bf16": "{0}.to(tl.bfloat16).to(tl.float32)",
    "round_f32": "{0}",
    "quantise": "quantise({0}, {1}, {2}, {3}, {4})",
}
INTEGER_FORMS: Mapping[str, str] = {
    "add": "{0} + {1}",
    "sub": "{0} - {1}",
    "mul": "{0} * {1}",
    "div": "{0} // {1}",  # of Triton's tensors: towards zero
    "fmod": "{0} % {1}",
    "mod": "floor_mod({0}, {1})",
    "min": "tl.minimum({0}, {1})",
    "max": "tl.maximum({0}, {1})",
    "neg": "-{0}",
    "abs": "tl.abs({0})",
    "sign": "tl.where({0} > 0, 1, tl.where({0} < 0, -1, 0))",
    "eq": "{0} == {1}",
    "lt": "{0} < {1}",
    "le": "{0} <= {1}",
    "bitand": "{0} & {1}",
    "bitor": "{0} | {1}",
    "bitxor": "{0} ^ {1}",
    "bitnot": "~{0}",
    "where": "tl.where({0}, {1}, {2})",
    "to_f": "{0}.to(tl.float32)",
    "to_i": "{0}",
    "to_b": "{0} != 0",
    "wrap_i32": "{0}.to(tl.int32)",
    "wrap_i16": "{0}.to(tl.int16).to(tl.int32)",
    "wrap_u16": "{0} & 65535",
    "wrap_i8": "{0}.to(tl.int8).to(tl.int32)",
    "wrap_u8": "{0} & 255",
}
BOOLEAN_FORMS: Mapping[str, str] = {
    "eq": "{0} == {1}",
    "and": "{0} & {1}",
    "or": "{0} | {1}",
    "xor": "{0} ^ {1}",
    "not": "~{0}",
    "where": "({0} & {1}) | (~{0} & {2})",
    "to_f": "{0}.to(tl.float32)",
    "to_i": "{0}.to(tl.int32)",
    "to_b": "{0}",
}

HELPERS: Mapping[str, str] = {
    "multiply": '''\
@triton.jit
def multiply(a, b):
    return a * b''',
    "rint": '''\
@triton.jit
def rint(x):
    # To the nearest integer, of two the even one: a float of 2^23 has no bits for a fraction.
    r = (tl.abs(x) + 8388608.0) - 8388608.0
    return tl.where(tl.abs(x) < 8388608.0, tl.where(x < 0, -r, r), x)''',
    "floor_mod": '''\
@triton.jit
def floor_mod(a, b):
    # With the sign of the divisor, where Triton's remainder has that of the dividend.
    r = a % b
    return tl.where((r != 0) & ((r < 0) != (b < 0)), r + b, r)''',
    "sign": '''\
@triton.jit
def sign(x):
    return tl.where(x > 0, 1.0, tl.where(x < 0, -1.0, x))''',
    "relu": '''\
@triton.jit
def relu(x):
    return tl.where(x < 0, 0.0, x)  # NaN stays NaN''',
    "tanh": '''\
@triton.jit
def tanh(x):
    t = tl.exp(-2.0 * tl.abs(x))
    y = (1.0 - t) / (1.0 + t)
    y = tl.where(tl.abs(x) < 0.01, tl.abs(x) - tl.abs(x) * x * x / 3.0, y)  # 1 - t has few digits there
    return tl.where(x < 0, -y, y)''',
    "sinh": '''\
@triton.jit
def sinh(x):
    y = 0.5 * (tl.exp(x) - tl.exp(-x))
    return tl.where(tl.abs(x) < 0.01, x + x * x * x / 6.0, y)  # the difference has few digits there''',
    "asinh": '''\
@triton.jit
def asinh(x):
    a = tl.abs(x)
    y = tl.log(a + tl.sqrt(a * a + 1.0))
    y = tl.where(a < 0.01, a - a * a * a / 6.0, y)  # the logarithm has few digits there
    return tl.where(x < 0, -y, y)''',
    "atan": '''\
@triton.jit
def atan(x):
    # Twice halved, so that the series is short: atan(a) = 2 atan(a / (1 + sqrt(1 + a^2))).
    a = tl.abs(x)
    inverted = a > 1.0
    a = tl.where(inverted, 1.0 / a, a)
    a = a / (1.0 + tl.sqrt(1.0 + a * a))
    a = a / (1.0 + tl.sqrt(1.0 + a * a))
    s = a * a
    y = 4.0 * a * (1.0 - s * (1 / 3 - s * (0.2 - s * (1 / 7 - s * (1 / 9)))))
    y = tl.where(inverted, 1.5707963267948966 - y, y)
    return tl.where(x < 0, -y, y)''',
    "asin": '''\
@triton.jit
def asin(x):
    return 2.0 * atan(x / (1.0 + tl.sqrt(1.0 - x * x)))''',
    "power": '''\
@triton.jit
def power(x, y):
    # Of a negative number only whole powers are numbers; odd ones are negative.
    whole = tl.floor(y) == y
    odd = whole & (tl.floor(y * 0.5) != y * 0.5)
    p = tl.exp(y * tl.log(tl.abs(x)))
    p = tl.where((x < 0) & odd, -p, p)
    p = tl.where((x < 0) & ~whole, float("nan"), p)
    return tl.where((y == 0) | (x == 1), 1.0, p)''',
    "softplus": '''\
@triton.jit
def softplus(x):
    return tl.maximum(x, 0.0) + tl.log(1.0 + tl.exp(-tl.abs(x)))''',
    "gelu": '''\
@triton.jit
def gelu(x):
    return 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))''',
    "gelu_tanh": '''\
@triton.jit
def gelu_tanh(x):
    return 0.5 * x * (1.0 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))''',
    "quantise": '''\
@triton.jit
def quantise(x, scale, zero, low, high):
    # The integer that stands for x, as a float; NaN is the lowest.
    level = rint(tl.div_rn(x, scale)) + zero
    level = tl.minimum(tl.maximum(level, low), high)
    return tl.where(x == x, level, low)''',
}  # fmt: skip


def needed_helpers(text: str) -> list[str]:
    """Which of `HELPERS` the ``text`` calls, and these call in turn."""
    found: dict[str, None] = {}
    waiting = [text]
    while waiting:
        part = waiting.pop()
        for name, body in HELPERS.items():
            if name not in found and re.search(rf"(?<![\w.]){name}\(|(?<![\w.])tl\.reduce\(.*\b{name}\)", part):
                found[name] = None
                waiting.append(body)
    return [name for name in HELPERS if name in found]
