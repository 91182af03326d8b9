// Time per step, summed over the process while switched on. Off, it costs one relaxed load per Compute.
#pragma once

#include <cstdint>
#include <string>

namespace xyntra::profile {

bool enabled() noexcept;
void enable(bool on) noexcept;
void add(const std::string& island, const std::string& label, uint64_t ns);
// One JSON object per line, {island, label, calls, ns}, in the order of first execution. Returns the size of the text;
// it is copied and the sums start anew when `capacity` is enough.
std::size_t take(char* buffer, std::size_t capacity);

}  // namespace xyntra::profile
