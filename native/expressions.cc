#include "expressions.h"

#include <algorithm>

namespace xyntra {
namespace {

enum Op : uint8_t {
  kConst,
  kSymbol,
  kAdd,
  kSub,
  kMul,
  kFloorDiv,
  kCeilDiv,
  kMod,
  kMin,
  kMax,
  kEq,
  kNe,
  kLt,
  kLe,
  kAnd,
  kOr,
  kNot,
  kSelect,
  kOps
};

int operands_of(uint8_t op) { return op <= kSymbol ? 0 : op == kNot ? 1 : op == kSelect ? 3 : 2; }

// Signed overflow is undefined in C++, wrapping is not.
int64_t wrapped(uint64_t value) noexcept { return static_cast<int64_t>(value); }
uint64_t bits(int64_t value) noexcept { return static_cast<uint64_t>(value); }

// The nearest number to a result that is out of range.
int64_t limit(bool negative) noexcept { return negative ? INT64_MIN : INT64_MAX; }

bool negates_least(int64_t a, int64_t b) noexcept { return a == INT64_MIN && b == -1; }

int64_t floor_div(int64_t a, int64_t b) noexcept {
  if (b == 0) return 0;
  if (b == -1) return wrapped(0 - bits(a));
  const int64_t quotient = a / b;
  return quotient - static_cast<int64_t>(a % b != 0 && (a < 0) != (b < 0));
}

int64_t ceil_div(int64_t a, int64_t b) noexcept {
  if (b == 0) return 0;
  if (b == -1) return wrapped(0 - bits(a));
  const int64_t quotient = a / b;
  return quotient + static_cast<int64_t>(a % b != 0 && (a < 0) == (b < 0));
}

}  // namespace

void Expressions::read(ByteReader& in) {
  symbols_.resize(in.count(9));
  for (Symbol& symbol : symbols_) {
    const auto kind = in.read<uint8_t>();
    if (kind > 1) throw FormatError("unknown kind of symbol");
    symbol.is_element = kind == 1;
    symbol.input = in.read<uint32_t>();
    symbol.index = in.read<uint32_t>();
  }
  const uint32_t n = in.count(25);
  exprs_.reserve(n);
  fixed_.reserve(n);
  for (uint32_t i = 0; i < n; ++i) {
    Expr e;
    e.op = in.read<uint8_t>();
    e.a = in.read<int64_t>();
    e.b = in.read<int64_t>();
    e.c = in.read<int64_t>();
    if (e.op >= kOps) throw FormatError("unknown expression op " + std::to_string(e.op));
    if (e.op == kSymbol && bits(e.a) >= symbols_.size()) throw FormatError("an expression names no symbol");
    bool fixed = e.op != kSymbol;
    const int64_t operands[] = {e.a, e.b, e.c};
    for (int k = 0; k < operands_of(e.op); ++k) {
      if (bits(operands[k]) >= i) throw FormatError("an expression uses a later one");
      fixed = fixed && fixed_[static_cast<std::size_t>(operands[k])] != 0;
    }
    exprs_.push_back(e);
    fixed_.push_back(static_cast<uint8_t>(fixed));
  }
}

bool Expressions::evaluate(const int64_t* symbols, int64_t* values) const noexcept {
  bool fits = true;
  int64_t* out = values;
  for (const Expr& e : exprs_) {
    if (e.op == kConst) {
      *out++ = e.a;
      continue;
    }
    if (e.op == kSymbol) {
      *out++ = symbols[e.a];
      continue;
    }
    const int64_t a = values[e.a];
    const int64_t b = e.op == kNot ? 0 : values[e.b];
    int64_t r = 0;
    switch (e.op) {
      case kAdd:
        if (__builtin_add_overflow(a, b, &r)) r = limit(a < 0), fits = false;
        break;
      case kSub:
        if (__builtin_sub_overflow(a, b, &r)) r = limit(a < 0), fits = false;
        break;
      case kMul:
        if (__builtin_mul_overflow(a, b, &r)) r = limit((a < 0) != (b < 0)), fits = false;
        break;
      case kFloorDiv: r = floor_div(a, b), fits = fits && !negates_least(a, b); break;
      case kCeilDiv: r = ceil_div(a, b), fits = fits && !negates_least(a, b); break;
      case kMod: r = b == 0 ? 0 : wrapped(bits(a) - bits(floor_div(a, b)) * bits(b)); break;
      case kMin: r = std::min(a, b); break;
      case kMax: r = std::max(a, b); break;
      case kEq: r = a == b; break;
      case kNe: r = a != b; break;
      case kLt: r = a < b; break;
      case kLe: r = a <= b; break;
      case kAnd: r = a != 0 && b != 0; break;
      case kOr: r = a != 0 || b != 0; break;
      case kNot: r = a == 0; break;
      case kSelect: r = a != 0 ? b : values[e.c]; break;
      default: break;
    }
    *out++ = r;
  }
  return fits;
}

std::vector<uint8_t> Expressions::spoiled(const std::vector<int64_t>& values) const {
  std::vector<uint8_t> bad(exprs_.size());
  for (std::size_t i = 0; i < exprs_.size(); ++i) {
    const Expr& e = exprs_[i];
    const int n = operands_of(e.op);
    if (n == 0) continue;
    const int64_t a = values[e.a], b = n > 1 ? values[e.b] : 0;
    const bool bad_a = bad[e.a] != 0, bad_b = n > 1 && bad[e.b] != 0;
    int64_t unused = 0;
    switch (e.op) {
      case kAdd: bad[i] = bad_a || bad_b || __builtin_add_overflow(a, b, &unused); break;
      case kSub: bad[i] = bad_a || bad_b || __builtin_sub_overflow(a, b, &unused); break;
      case kMul: bad[i] = bad_a || bad_b || __builtin_mul_overflow(a, b, &unused); break;
      case kFloorDiv:
      case kCeilDiv: bad[i] = bad_a || bad_b || negates_least(a, b); break;
      case kAnd: bad[i] = (bad_a && bad_b) || (bad_a && b != 0) || (bad_b && a != 0); break;
      case kOr: bad[i] = (bad_a && bad_b) || (bad_a && b == 0) || (bad_b && a == 0); break;
      case kSelect: bad[i] = bad_a || (a != 0 ? bad_b : bad[e.c] != 0); break;
      default: bad[i] = bad_a || bad_b; break;
    }
  }
  return bad;
}

bool Expressions::unequal(uint32_t condition, const std::vector<int64_t>& values, int64_t& a, int64_t& b) const noexcept {
  const Expr* e = &exprs_[condition];
  // Operands come earlier, so this ends. Of what broadcasting allows, equality is said first.
  while (e->op == kAnd || e->op == kOr) e = &exprs_[static_cast<std::size_t>(values[e->a] == 0 ? e->a : e->b)];
  if (e->op != kEq) return false;
  a = values[e->a], b = values[e->b];
  return a != b;
}

std::vector<int64_t> Expressions::fixed_values() const {
  const std::vector<int64_t> zeros(symbols_.size());
  std::vector<int64_t> values(exprs_.size());
  evaluate(zeros.data(), values.data());
  return values;
}

}  // namespace xyntra
