// Time per step, or on a device per run, summed over the process while switched on. Off, it costs one relaxed load per Compute.
#pragma once

#include <cstdint>
#include <vector>

#include "plan.h"

namespace xyntra::profile {

// A step of one run of an island; flops, bytes and cost of all calls.
struct Sample {
  int64_t calls = 0;  // more than one in a loop over images
  int64_t ns = 0;
  int64_t flops = 0;
  int64_t bytes = 0;
  int64_t cost_ns = 0;  // by the plan, on one core; on a device, of all of it
  int64_t tasks = 1;    // that threads could share, of calls side by side
};

// What is timed: each step by itself, or the runs of islands on devices, whose steps are started as they are in other runs.
enum class Mode { kOff, kSteps, kRuns };

Mode mode() noexcept;
void set(Mode mode) noexcept;
// Whose kernels a run had: those of the plan, or the ones that take their place (native/first_run).
enum class Kernels { kPlanned, kSuccessors };
void add(const Plan& plan, const PlanIsland& island, std::size_t alternative, Kernels kernels, const std::vector<Sample>& run);
void add_run(const Plan& plan, const PlanIsland& island, std::size_t alternative, int64_t ns);
// One JSON object per step, or island, and line, in the order of first execution; docs/plan-format.md has the fields. Returns the size
// of the text; it is copied and the sums start anew when `capacity` is enough.
std::size_t take(char* buffer, std::size_t capacity);

}  // namespace xyntra::profile
