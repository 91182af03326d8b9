// The integer expressions of a plan: sizes, strides, unit counts and guards as functions of the input shapes.
#pragma once

#include <cstdint>
#include <vector>

#include "byte_io.h"

namespace xyntra {

struct Symbol {
  bool is_element = false;  // else a dimension
  uint32_t input = 0;
  uint32_t index = 0;
};

class Expressions {
 public:
  // Reads the `symbols` and `exprs` lists of a plan; operands must come earlier than their users.
  void read(ByteReader& in);

  // values[i] = op(a, b, c), in order. What does not fit into 64 bits becomes the nearest number that does, division by zero
  // gives 0: nothing here can trap. Returns whether everything fitted.
  bool evaluate(const int64_t* symbols, int64_t* values) const noexcept;
  // Which of these values are not what the expression says, because something on the way did not fit. A number that does not
  // decide about a value, as the one that a SELECT leaves, does not spoil it.
  std::vector<uint8_t> spoiled(const std::vector<int64_t>& values) const;

  const std::vector<Symbol>& symbols() const noexcept { return symbols_; }
  std::size_t size() const noexcept { return exprs_.size(); }
  // Of a condition that does not hold: the two numbers that it wants to be equal. False where it wants something else.
  bool unequal(uint32_t condition, const std::vector<int64_t>& values, int64_t& a, int64_t& b) const noexcept;
  // Does the value follow from the plan alone?
  bool is_fixed(uint32_t expr) const noexcept { return fixed_[expr] != 0; }
  // The values with all symbols taken as 0: right where is_fixed().
  std::vector<int64_t> fixed_values() const;

 private:
  struct Expr {
    uint8_t op = 0;
    int64_t a = 0, b = 0, c = 0;
  };

  std::vector<Symbol> symbols_;
  std::vector<Expr> exprs_;
  std::vector<uint8_t> fixed_;
};

}  // namespace xyntra
