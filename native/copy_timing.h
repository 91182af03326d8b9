// Times copies between the host and a device, made as runs make them: part of what an island on a device costs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace xyntra {

// Nanoseconds of a copy of a tensor to the device, and of one to the host, each with the wait for it.
struct CopyTime {
  int64_t there_ns = 0;
  int64_t back_ns = 0;
};

// Of `timed` copies of so many bytes each way, after some that are not timed. Throws what the device reports.
std::vector<CopyTime> time_copies(const std::string& device, std::size_t bytes, std::size_t timed);

}  // namespace xyntra
