// An island's plan at the shapes of a run: which alternative applies, the values of its expressions, the dims of the
// outputs, and where in one arena each temporary lies. Knows no memory and no device. It remembers the shapes it last saw.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plan.h"

namespace xyntra {

struct InputView {
  const void* data = nullptr;
  const int64_t* dims = nullptr;
  std::size_t rank = 0;
};

class Evaluation {
 public:
  // `alignment` of temporaries within the arena.
  Evaluation(const PlanIsland& island, std::size_t alignment) : island_(island), alignment_(alignment) {}

  // Returns whether anything changed since the last time. Throws Error(INVALID_ARGUMENT) when the plan cannot take these
  // inputs; the next call then starts anew.
  // Up to `abreast` iterations of a loop are carried out side by side, each with temporaries of its own.
  bool prepare(const std::vector<InputView>& inputs, int64_t abreast = 1);
  // What was made from the values could not be finished: the next prepare() returns true.
  void forget() noexcept { active_ = nullptr; }

  const PlanIsland& island() const noexcept { return island_; }
  // The error of a run that cannot be with these inputs: `what` is wrong, and their shapes.
  [[noreturn]] void refuse(const std::string& what, const std::vector<InputView>& inputs) const;
  // After prepare():
  std::size_t alternative() const noexcept { return static_cast<std::size_t>(active_ - island_.alternatives.data()); }
  const Alternative& plan() const noexcept { return *active_; }
  int64_t value(uint32_t expr) const noexcept { return values_[expr]; }
  // Of one call; a step of nothing is not carried out.
  int64_t cost_ns(const PlanStep& step) const noexcept { return value(step.units_expr) > 0 ? value(step.cost_expr) : 0; }
  // Of a run step into a buffer. Throws Error(INVALID_ARGUMENT) when that is not in the buffer, as it is with these inputs, in
  // some iteration of `loop` (null: the step is in none).
  int64_t offset_in(const PlanStep& step, const BufferUse& use, const std::vector<InputView>& inputs,
                    const BatchLoop* loop = nullptr) const;
  int64_t iterations(const BatchLoop& loop) const noexcept { return values_[loop.iterations_expr]; }
  // How many of them are side by side.
  int64_t abreast(const BatchLoop& loop) const noexcept;
  // From one image of a buffer to the next in a step of `loop`; 0 for what all share, and in a step of nothing, which is not
  // carried out: no image needs to be there.
  int64_t image_bytes(const BatchLoop* loop, const PlanStep& step, uint32_t buffer) const noexcept;
  const std::vector<int64_t>& output_dims(std::size_t output) const noexcept { return output_dims_[output]; }
  std::size_t arena_bytes() const noexcept { return arena_bytes_; }
  std::size_t arena_at(uint32_t buffer) const noexcept { return at_[buffer]; }
  // Of one temporary, with what may be read behind it; of each, where iterations side by side have one each.
  std::size_t arena_bytes_of(uint32_t buffer) const noexcept { return bytes_[buffer]; }

 private:
  void read_key(const std::vector<InputView>& inputs);
  void check_ranks(const std::vector<InputView>& inputs) const;
  bool applies(const Alternative& plan, const std::vector<InputView>& inputs);
  bool applies_as_far_as_it_fits(const Alternative& plan, const std::vector<InputView>& inputs) const;
  void check_units(const Alternative& plan, const std::vector<InputView>& inputs) const;
  void find_output_dims(const Alternative& plan, const std::vector<InputView>& inputs);
  void place_arena(const Alternative& plan);

  const PlanIsland& island_;
  const std::size_t alignment_;
  const Alternative* active_ = nullptr;  // null: nothing prepared
  std::vector<int64_t> key_, seen_key_;  // ranks, dims and the elements that symbols read
  int64_t abreast_ = 1;
  std::vector<int64_t> symbols_, values_;
  std::vector<std::vector<int64_t>> output_dims_;
  std::vector<uint32_t> order_, placed_;
  std::vector<std::size_t> at_, bytes_, room_;  // per buffer; its room is that of all iterations side by side
  std::size_t arena_bytes_ = 0;
};

}  // namespace xyntra
