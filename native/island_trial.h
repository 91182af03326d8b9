// Runs one island of a plan without a model or a session: to try a device, and to time kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "evaluation.h"
#include "opened_island.h"

namespace xyntra {

// Nanoseconds of a run as a session makes it, inputs and outputs on the host: all of it by the host's clock, and its kernels by the
// device's; on the CPU both are the same.
struct RunTime {
  int64_t all_ns = 0;
  int64_t kernels_ns = 0;
};

// How runs are timed, after two that are not. `threads` and `between_bytes` are for the CPU: how many threads share the work, and how
// much memory is read between two runs, as the rest of a model would read it. Inputs and outputs are then touched again: a model
// has just written them.
struct Timed {
  std::size_t runs = 0;
  std::size_t threads = 1;
  std::size_t between_bytes = 0;
};

// Runs island `island` of the plan in a file; then more often for what is returned. `constants`: in the plan's order. `outputs` have
// room for what the plan writes at these shapes. Throws what is wrong with the plan, and what the device reports.
std::vector<RunTime> run_island(const std::string& path, std::size_t island, const std::vector<InputView>& inputs,
                                const std::vector<ConstantView>& constants, const std::vector<void*>& outputs,
                                const Timed& timed);

}  // namespace xyntra
