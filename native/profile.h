// Time per step, summed over the process while switched on. Off, it costs one relaxed load per Compute.
#pragma once

#include <cstdint>
#include <vector>

#include "plan.h"

namespace xyntra::profile {

// A step of one run of an island.
struct Sample {
  int64_t ns = 0;
  int64_t flops = 0;
  int64_t bytes = 0;
};

bool enabled() noexcept;
void enable(bool on) noexcept;
void add(const Plan& plan, const PlanIsland& island, std::size_t alternative, const std::vector<Sample>& run);
// One JSON object per step and line, in the order of first execution; docs/plan-format.md has the fields. Returns the size
// of the text; it is copied and the sums start anew when `capacity` is enough.
std::size_t take(char* buffer, std::size_t capacity);

}  // namespace xyntra::profile
