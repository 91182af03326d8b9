// Times one kernel of a device without a model or a session, to measure ceilings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "plan.h"

namespace xyntra {

struct TimedKernel {
  PlanKernel kernel;  // with the whole path of its file
  int64_t units = 0;
  std::vector<uint64_t> buffer_bytes;  // of each argument; all begin as zeros
  std::vector<int32_t> params;
};

// Nanoseconds of each of `runs` launches, one right behind the other, by the device's own clock; after one that is not timed.
// Throws what the device reports.
std::vector<int64_t> time_kernel(const std::string& device, const TimedKernel& timed, std::size_t runs);

}  // namespace xyntra
