"""Functions of floats in WGSL, whose own are promised to few digits (`sin` to 2^-11) or to none.

Polynomials are those of Cephes' single-precision library (Moshier, cephes/single): a few units in the last place. Infinity and
NaN are written by bits that no compiler sees, since WGSL has no constants of them.
"""

from __future__ import annotations

from typing import Final

# Bodies of functions whose usual ones round by adding and taking away a large number, which WGSL's compilers may leave out.
FUNCTIONS: Final = {
    "xm_exp_1": "return xy_exp(x);",
    "xm_exp_nonpositive_1": "return xy_exp(x);",
    **{f"xm_{name}_1": "return xy_exp2(x);" for name in ("exp2", "exp2_nonpositive", "exp2_weight", "exp2_weight_bf16")},
    "xm_logistic_1": "return 1.0 / (xy_exp2(x * -1.4426950408889634) + 1.0);",
}
HELPERS: Final = {
    "xy_infinity(": "var<private> xy_infinity_bits: u32 = 0x7f800000u;\n"
    "fn xy_infinity() -> f32 { return bitcast<f32>(xy_infinity_bits); }",
    "xy_nan(": "var<private> xy_nan_bits: u32 = 0x7fc00000u;\nfn xy_nan() -> f32 { return bitcast<f32>(xy_nan_bits); }",
    "xy_is_nan(": "fn xy_is_nan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }",
    # With a NaN the result is b. A comparison alone does not say so: compilers may make WGSL's own minimum of it.
    "xy_min_f32(": "fn xy_min_f32(a: f32, b: f32) -> f32 { return select(b, a, a < b && !xy_is_nan(b)); }",
    "xy_max_f32(": "fn xy_max_f32(a: f32, b: f32) -> f32 { return select(b, a, a > b && !xy_is_nan(b)); }",
    "xy_sin_near(": "fn xy_sin_near(r: f32) -> f32 { let s = r * r; "
    "return ((-1.9515295891e-4 * s + 8.3321608736e-3) * s - 1.6666654611e-1) * s * r + r; }",
    "xy_cos_near(": "fn xy_cos_near(r: f32) -> f32 { let s = r * r; "
    "return ((2.443315711809948e-5 * s - 1.388731625493765e-3) * s + 4.166664568298827e-2) * s * s - 0.5 * s + 1.0; }",
    # x - n pi / 2 by four parts of pi / 2, the first three of few bits, so that their products are exact up to n = 2^15.
    "xy_quarter(": "fn xy_quarter(x: f32, n: f32) -> f32 "
    "{ return (((x - n * 1.5703125) - n * 4.837512969970703e-4) - n * 7.549533434212208e-8) - n * 2.5633441515945e-12; }",
    "xy_sin(": """fn xy_sin(x: f32) -> f32 {
  let n = round(x * 0.6366197723675814);
  if (!(abs(n) < 32768.0)) { return sin(x); }
  let r = xy_quarter(x, n);
  let q = i32(n) & 3;
  let y = select(xy_sin_near(r), xy_cos_near(r), (q & 1) != 0);
  return select(y, -y, q >= 2);
}""",
    "xy_cos(": """fn xy_cos(x: f32) -> f32 {
  let n = round(x * 0.6366197723675814);
  if (!(abs(n) < 32768.0)) { return cos(x); }
  let r = xy_quarter(x, n);
  let q = i32(n) & 3;
  let y = select(xy_cos_near(r), xy_sin_near(r), (q & 1) != 0);
  return select(y, -y, q == 1 || q == 2);
}""",
    "xy_tan(": "fn xy_tan(x: f32) -> f32 { return xy_sin(x) / xy_cos(x); }",
    "xy_exp2(": """fn xy_exp2(x: f32) -> f32 {
  if (xy_is_nan(x)) { return x; }
  let t = clamp(x, -151.0, 130.0);
  let n = round(t);
  let f = t - n;
  let p = (((((1.53533618e-4 * f + 1.33988744e-3) * f + 9.61843736e-3) * f + 5.55033247e-2) * f + 2.40226479e-1) * f
    + 6.93147203e-1) * f + 1.0;
  let half = i32(n) / 2;
  return p * bitcast<f32>((half + 127) << 23u) * bitcast<f32>((i32(n) - half + 127) << 23u);
}""",
    "xy_exp(": """fn xy_exp(x: f32) -> f32 {
  if (xy_is_nan(x)) { return x; }
  let t = clamp(x, -150.0, 89.0);
  let n = round(t * 1.442695040888963);
  let r = (t - n * 0.693359375) + n * 2.12194440e-4;
  let p = ((((1.9875691500e-4 * r + 1.3981999507e-3) * r + 8.3334519073e-3) * r + 4.1665795894e-2) * r
    + 1.6666665459e-1) * r + 0.5;
  let half = i32(n) / 2;
  let low = bitcast<f32>((half + 127) << 23u);
  let high = bitcast<f32>((i32(n) - half + 127) << 23u);
  return (p * r * r + r + 1.0) * low * high;
}""",
    "xy_log(": """fn xy_log(x: f32) -> f32 {
  if (xy_is_nan(x) || x < 0.0) { return xy_nan(); }
  if (x == 0.0) { return -xy_infinity(); }
  if (bitcast<u32>(x) == 0x7f800000u) { return x; }
  let small = x < 0x1p-126f;
  let bits = bitcast<i32>(select(x, x * 0x1p+24f, small));
  let e = ((bits - 0x3f3504f3) >> 23u);
  let f = bitcast<f32>(bits - (e << 23u)) - 1.0;
  let n = f32(e) - select(0.0, 24.0, small);
  let z = f * f;
  let p = ((((((((7.0376836292e-2 * f - 1.1514610310e-1) * f + 1.1676998740e-1) * f - 1.2420140846e-1) * f + 1.4249322787e-1) * f
    - 1.6668057665e-1) * f + 2.0000714765e-1) * f - 2.4999993993e-1) * f + 3.3333331174e-1) * f * z;
  return (f + (p - n * 2.12194440e-4 - 0.5 * z)) + n * 0.693359375;
}""",
    # Near 0 by the series of the area tangent: what rounding 1 + x takes away is lost where compilers may reorder sums.
    "xy_log1p(": """fn xy_log1p(x: f32) -> f32 {
  if (!(abs(x) < 0.25)) { return xy_log(1.0 + x); }
  let s = x / (2.0 + x);
  let z = s * s;
  return 2.0 * s * (1.0 + z * (0.33333333 + z * (0.2 + z * (0.14285714 + z * 0.11111111))));
}""",
    "xy_expm1(": """fn xy_expm1(x: f32) -> f32 {
  if (abs(x) > 0.5) { return xy_exp(x) - 1.0; }
  return x + x * x * (0.5 + x * (1.6666665459e-1 + x * (4.1665795894e-2 + x * (8.3334519073e-3
    + x * (1.3981999507e-3 + x * 1.9875691500e-4)))));
}""",
    "xy_sinh(": """fn xy_sinh(x: f32) -> f32 {
  let a = abs(x);
  if (a > 1.0) {
    let h = 0.5 * xy_exp(0.5 * a);
    let y = h * xy_exp(0.5 * a) - select(0.5 * xy_exp(-a), 0.0, a > 20.0);
    return select(y, -y, x < 0.0);
  }
  let z = x * x;
  return ((2.03721912945e-4 * z + 8.33028376239e-3) * z + 1.66667160211e-1) * z * x + x;
}""",
    "xy_cosh(": """fn xy_cosh(x: f32) -> f32 {
  let a = abs(x);
  return 0.5 * xy_exp(0.5 * a) * xy_exp(0.5 * a) + 0.5 * xy_exp(-a);
}""",
    "xy_asinh(": """fn xy_asinh(x: f32) -> f32 {
  let a = abs(x);
  if (!(a < 1.0e18)) { return select(x, select(1.0, -1.0, x < 0.0) * (xy_log(a) + 0.693147180559945), a < xy_infinity()); }
  let y = xy_log1p(a + a * a / (1.0 + sqrt(a * a + 1.0)));
  return select(y, -y, x < 0.0);
}""",
    "xy_acosh(": """fn xy_acosh(x: f32) -> f32 {
  if (!(x >= 1.0)) { return xy_nan(); }
  if (x > 1.0e18) { return xy_log(x) + 0.693147180559945; }
  let t = x - 1.0;
  return xy_log1p(t + sqrt(2.0 * t + t * t));
}""",
    "xy_atanh(": """fn xy_atanh(x: f32) -> f32 {
  let a = abs(x);
  if (!(a <= 1.0)) { return xy_nan(); }
  let y = select(0.5 * xy_log1p(2.0 * a / max(1.0 - a, 0x1p-126f)), xy_infinity(), a == 1.0);
  return select(y, -y, x < 0.0);
}""",
    "xy_asin_near(": "fn xy_asin_near(x: f32) -> f32 { let z = x * x; return ((((4.2163199048e-2 * z + 2.4181311049e-2) * z "
    "+ 4.5470025998e-2) * z + 7.4953002686e-2) * z + 1.6666752422e-1) * z * x + x; }",
    "xy_asin(": """fn xy_asin(x: f32) -> f32 {
  let a = abs(x);
  if (!(a <= 1.0)) { return xy_nan(); }
  if (a <= 0.5) { return xy_asin_near(x); }
  let y = 1.5707963267948966 - 2.0 * xy_asin_near(sqrt(0.5 * (1.0 - a)));
  return select(y, -y, x < 0.0);
}""",
    "xy_acos(": """fn xy_acos(x: f32) -> f32 {
  if (!(abs(x) <= 1.0)) { return xy_nan(); }
  if (x < -0.5) { return 3.141592653589793 - 2.0 * xy_asin_near(sqrt(0.5 * (1.0 + x))); }
  if (x > 0.5) { return 2.0 * xy_asin_near(sqrt(0.5 * (1.0 - x))); }
  return 1.5707963267948966 - xy_asin_near(x);
}""",
    "xy_atan(": """fn xy_atan(x: f32) -> f32 {
  if (xy_is_nan(x)) { return x; }
  let a = abs(x);
  let far = a > 2.414213562373095;
  let middle = !far && a > 0.4142135623730950;
  let t = select(select(a, (a - 1.0) / (a + 1.0), middle), -1.0 / max(a, 1.0), far);
  let z = t * t;
  let y = select(select(0.0, 0.7853981633974483, middle), 1.5707963267948966, far)
    + ((((8.05374449538e-2 * z - 1.38776856032e-1) * z + 1.99777106478e-1) * z - 3.33329491539e-1) * z * t + t);
  return select(y, -y, x < 0.0);
}""",
    # The remainder of x / y, exact: what is left is halved against y from the top bit on (each subtraction is exact).
    "xy_fmod(": """fn xy_fmod(x: f32, y: f32) -> f32 {
  let b = abs(y);
  var rest = abs(x);
  if (xy_is_nan(x) || xy_is_nan(y) || b == 0.0 || !(rest < xy_infinity())) { return xy_nan(); }
  while (rest >= b) {
    let n = max((bitcast<i32>(rest) >> 23u) - (bitcast<i32>(b) >> 23u), 0);
    var part = b;
    for (var i: i32 = n; i > 0; i -= 64) { part = part * exp2(f32(min(i, 64))); }
    if (part > rest) { part = part * 0.5; }
    rest = rest - part;
  }
  return bitcast<f32>(bitcast<u32>(rest) | (bitcast<u32>(x) & 0x80000000u));
}""",
    # log2 of the magnitude in two parts, so that their product with y keeps its bits; a negative base has an odd or even power.
    "xy_pow(": """fn xy_pow(x: f32, y: f32) -> f32 {
  if (y == 0.0 || x == 1.0) { return 1.0; }
  if (xy_is_nan(x) || xy_is_nan(y)) { return xy_nan(); }
  let a = abs(x);
  let whole = floor(y) == y;
  let odd = whole && abs(y) < 16777216.0 && (i32(y) & 1) != 0;
  let negative = (bitcast<u32>(x) >> 31u) != 0u;
  var result: f32;
  if (a == 0.0) {
    result = select(0.0, xy_infinity(), y < 0.0);
  } else if (!(a < xy_infinity())) {
    result = select(xy_infinity(), 0.0, y < 0.0);
  } else if (!(abs(y) < xy_infinity())) {
    result = select(select(0.0, xy_infinity(), (a > 1.0) == (y > 0.0)), 1.0, a == 1.0);
  } else {
    if (negative && !whole) { return xy_nan(); }
    let n = f32(((bitcast<i32>(a) - 0x3f3504f3) >> 23u));
    let m = bitcast<f32>(bitcast<i32>(a) - (i32(n) << 23u));
    let f = m - 1.0;
    let s = f / (2.0 + f);
    let z = s * s;
    let tail = 2.0 * s * z * (0.3333333333 + z * (0.2 + z * (0.1428571429 + z * (0.1111111111 + z * 0.0909090909))));
    let head = 2.0 * s;
    let lost = 2.0 * ((f - s * (2.0 + f)) / (2.0 + f));
    let high = bitcast<f32>(bitcast<u32>(y) & 0xfffff000u);
    let log_high = bitcast<f32>(bitcast<u32>(n * 0.693359375 + (head + tail)) & 0xfffff000u);
    let log_low = ((n * 0.693359375 - log_high) + head) + (tail + lost - n * 2.12194440e-4);
    let p = high * log_high;
    let rest = (y - high) * log_high + y * log_low;
    result = xy_exp(p) * (1.0 + xy_expm1(clamp(rest, -1.0, 1.0)));
    if (abs(rest) > 1.0) { result = xy_exp(p + rest); }
  }
  return select(result, -result, negative && odd);
}""",
    # The nearest half, as the processor rounds: WGSL leaves open what its own function makes of those beyond the largest.
    "xy_narrow_f16(": """fn xy_narrow_f16(v: f32) -> u32 {
  let b = bitcast<u32>(v);
  let sign = (b >> 16u) & 0x8000u;
  let a = b & 0x7fffffffu;
  if (a > 0x7f800000u) { return sign | 0x7e00u; }
  if (a >= 0x477ff000u) { return sign | 0x7c00u; }
  if (a < 0x38800000u) { return sign | u32(round(bitcast<f32>(a) * 0x1p+24f)); }
  return sign | ((a - 0x38000000u + 0xfffu + ((a >> 13u) & 1u)) >> 13u);
}""",
    "xy_widen_f16(": "fn xy_widen_f16(h: u32) -> f32 { return unpack2x16float(h).x; }",
    "xy_narrow_bf16(": """fn xy_narrow_bf16(v: f32) -> u32 {
  let b = bitcast<u32>(v);
  return select((b + 0x7fffu + ((b >> 16u) & 1u)) >> 16u, (b >> 16u) | 0x40u, xy_is_nan(v));
}""",
    "xy_widen_bf16(": "fn xy_widen_bf16(h: u32) -> f32 { return bitcast<f32>(h << 16u); }",
    "xy_round_f16(": "fn xy_round_f16(v: f32) -> f32 { return xy_widen_f16(xy_narrow_f16(v)); }",
}
