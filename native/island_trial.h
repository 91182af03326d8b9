// Runs one island of a plan without a model or a session, to try a device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "evaluation.h"

namespace xyntra {

// Nanoseconds of a run as a session makes it, inputs and outputs on the host: all of it by the host's clock, and its kernels by the
// device's.
struct RunTime {
  int64_t all_ns = 0;
  int64_t kernels_ns = 0;
};

// Runs island `island` of the plan in a file, which must be for a device and have no constants; then `timed` times more for what is
// returned. `outputs` have room for what the plan writes at these shapes. Throws what is wrong with the plan, and what the device
// reports.
std::vector<RunTime> run_island(const std::string& path, std::size_t island, const std::vector<InputView>& inputs,
                                const std::vector<void*>& outputs, std::size_t timed);

}  // namespace xyntra
