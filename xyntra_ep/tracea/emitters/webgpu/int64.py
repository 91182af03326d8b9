"""64-bit integers in WGSL, which has none: two words, the lower one first, that wrap as the processor's do."""

from __future__ import annotations

from typing import Final

LONG = "vec2<u32>"


def literal(value: int) -> str:
    """
    >>> literal(-2)
    'vec2<u32>(4294967294u, 4294967295u)'
    """
    return f"{LONG}({value & 0xFFFFFFFF}u, {value >> 32 & 0xFFFFFFFF}u)"


# Long division by shifting: 64 steps. It is rare on a GPU, where indices are 32 bits wide.
HELPERS: Final = {
    "xy_long": "fn xy_long(a: i32) -> vec2<u32> { return vec2<u32>(bitcast<u32>(a), bitcast<u32>(a >> 31u)); }",
    "xy_add_long": "fn xy_add_long(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> "
    "{ let low = a.x + b.x; return vec2<u32>(low, a.y + b.y + select(0u, 1u, low < a.x)); }",
    "xy_sub_long": "fn xy_sub_long(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> "
    "{ return vec2<u32>(a.x - b.x, a.y - b.y - select(0u, 1u, a.x < b.x)); }",
    "xy_neg_long": "fn xy_neg_long(a: vec2<u32>) -> vec2<u32> { return xy_sub_long(vec2<u32>(0u, 0u), a); }",
    "xy_mul_words": """fn xy_mul_words(a: u32, b: u32) -> vec2<u32> {
  let ll = (a & 0xffffu) * (b & 0xffffu);
  let lh = (a & 0xffffu) * (b >> 16u);
  let hl = (a >> 16u) * (b & 0xffffu);
  let mid = (ll >> 16u) + (lh & 0xffffu) + (hl & 0xffffu);
  return vec2<u32>((ll & 0xffffu) | (mid << 16u), (a >> 16u) * (b >> 16u) + (lh >> 16u) + (hl >> 16u) + (mid >> 16u));
}""",
    "xy_mul_long": "fn xy_mul_long(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> "
    "{ let low = xy_mul_words(a.x, b.x); return vec2<u32>(low.x, low.y + a.x * b.y + a.y * b.x); }",
    "xy_lt_long": "fn xy_lt_long(a: vec2<u32>, b: vec2<u32>) -> bool "
    "{ return select(bitcast<i32>(a.y) < bitcast<i32>(b.y), a.x < b.x, a.y == b.y); }",
    "xy_le_long": "fn xy_le_long(a: vec2<u32>, b: vec2<u32>) -> bool { return !xy_lt_long(b, a); }",
    "xy_eq_long": "fn xy_eq_long(a: vec2<u32>, b: vec2<u32>) -> bool { return a.x == b.x && a.y == b.y; }",
    "xy_ne_long": "fn xy_ne_long(a: vec2<u32>, b: vec2<u32>) -> bool { return a.x != b.x || a.y != b.y; }",
    "xy_min_long": "fn xy_min_long(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> { return select(b, a, xy_lt_long(a, b)); }",
    "xy_max_long": "fn xy_max_long(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> { return select(b, a, xy_lt_long(b, a)); }",
    "xy_abs_long": "fn xy_abs_long(a: vec2<u32>) -> vec2<u32> { return select(a, xy_neg_long(a), bitcast<i32>(a.y) < 0); }",
    # By less than 64; WGSL takes a word's shift modulo 32, so that by 0 and those from 32 on are cases of their own.
    "xy_shl_long": """fn xy_shl_long(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  if (b.x >= 32u) { return vec2<u32>(0u, a.x << (b.x - 32u)); }
  if (b.x == 0u) { return a; }
  return vec2<u32>(a.x << b.x, (a.y << b.x) | (a.x >> (32u - b.x)));
}""",
    "xy_shr_long": """fn xy_shr_long(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let high = bitcast<i32>(a.y);
  if (b.x >= 32u) { return vec2<u32>(bitcast<u32>(high >> (b.x - 32u)), bitcast<u32>(high >> 31u)); }
  if (b.x == 0u) { return a; }
  return vec2<u32>((a.x >> b.x) | (a.y << (32u - b.x)), bitcast<u32>(high >> b.x));
}""",
    "xy_divide_long": """fn xy_divide_long(a: vec2<u32>, b: vec2<u32>) -> vec4<u32> {
  let d = xy_abs_long(b);
  var n = xy_abs_long(a);
  var rest = vec2<u32>(0u, 0u);
  for (var i: i32 = 0; i < 64; i += 1) {
    rest = vec2<u32>((rest.x << 1u) | (n.y >> 31u), (rest.y << 1u) | (rest.x >> 31u));
    n = vec2<u32>(n.x << 1u, (n.y << 1u) | (n.x >> 31u));
    if (rest.y > d.y || (rest.y == d.y && rest.x >= d.x)) {
      rest = xy_sub_long(rest, d);
      n.x = n.x | 1u;
    }
  }
  return vec4<u32>(n, rest);
}""",
    "xy_div_long": """fn xy_div_long(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  if (b.x == 0u && b.y == 0u) { return b; }
  let quotient = xy_divide_long(a, b).xy;
  return select(quotient, xy_neg_long(quotient), ((a.y ^ b.y) >> 31u) != 0u);
}""",
    "xy_mod_long": """fn xy_mod_long(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  if (b.x == 0u && b.y == 0u) { return b; }
  let rest = xy_divide_long(a, b).zw;
  return select(rest, xy_neg_long(rest), (a.y >> 31u) != 0u);
}""",
    # The nearest float: the 32 bits below the leading one, of which the last stands for all behind it, round once.
    "xy_float_of_long": """fn xy_float_of_long(a: vec2<u32>) -> f32 {
  let n = xy_abs_long(a);
  if (n.y == 0u) { return select(f32(n.x), -f32(n.x), (a.y >> 31u) != 0u); }
  let shift = 32u - countLeadingZeros(n.y);
  let top = select((n.y << (32u - shift)) | (n.x >> shift), n.y, shift == 32u);
  let lost = select(n.x << (32u - shift), n.x, shift == 32u);
  let near = f32(top | select(0u, 1u, lost != 0u)) * exp2(f32(shift));
  return select(near, -near, (a.y >> 31u) != 0u);
}""",
    # Towards zero. Both parts are whole numbers of at most 24 bits, so neither is rounded.
    "xy_long_of_float": """fn xy_long_of_float(x: f32) -> vec2<u32> {
  let whole = trunc(abs(x));
  let high = floor(whole * 0x1p-32f);
  let n = vec2<u32>(u32(whole - high * 0x1p+32f), u32(high));
  return select(n, xy_neg_long(n), x < 0.0);
}""",
}
