// What a plan says about the steps that are executed once, when a session is created: they depend on no shape, so all their
// numbers are known.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "plan.h"

namespace xyntra {

// The constants of an island, by the plan's order. Needed only while a program is made.
struct Constants {
  std::function<const void*(std::size_t)> data;
  std::function<std::size_t(std::size_t)> bytes;
  // What was made of a constant is in memory of our own: nobody reads it again.
  std::function<void(std::size_t)> is_packed = [](std::size_t) {};
};

class InitSteps {
 public:
  explicit InitSteps(const Alternative& plan);

  int64_t value(uint32_t expr) const noexcept { return values_[expr]; }
  int64_t offset(const BufferUse& use) const noexcept {
    return use.offset_expr == kNoOffset ? 0 : values_[use.offset_expr];
  }
  // Of a POOL or INIT buffer.
  std::size_t bytes(const PlanBuffer& buffer) const;
  // Temporaries live from their first to their last use, weights are finished with it.
  bool ends_with(uint32_t buffer, std::size_t step) const noexcept { return last_use_[buffer] == step; }
  // What a step packs, in numbers: equal for equal weights of an island, whose alternatives pack mostly the same. Empty
  // unless the step reads constants only and is the only one to touch one weight, which it then makes.
  std::vector<int64_t> packing(const PlanStep& step) const;

 private:
  const Alternative& plan_;
  std::vector<int64_t> values_;
  std::vector<std::size_t> last_use_;   // per buffer
  std::vector<uint32_t> steps_with_;    // in how many steps each buffer appears
};

}  // namespace xyntra
