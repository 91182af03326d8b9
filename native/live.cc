#include "live.h"

#include <array>
#include <atomic>

namespace xyntra {
namespace {

constexpr std::array<const char*, kLives> kNames{"sessions", "plans",  "islands",     "workspaces",    "weights", "weight_bytes",
                                                 "blocks",   "block_bytes", "device_buffers"};
std::array<std::atomic<int64_t>, kLives> g_counts{};

}  // namespace

void count(Live what, int64_t more) noexcept {
  g_counts[static_cast<std::size_t>(what)].fetch_add(more, std::memory_order_relaxed);
}

uint64_t counted(Live what) noexcept {
  return static_cast<uint64_t>(g_counts[static_cast<std::size_t>(what)].load(std::memory_order_relaxed));
}

std::string counts_as_json() {
  std::string text;
  for (std::size_t i = 0; i < kLives; ++i) {
    text += text.empty() ? "{\"" : ", \"";
    text += kNames[i] + std::string("\": ") + std::to_string(counted(static_cast<Live>(i)));
  }
  return text + "}";
}

}  // namespace xyntra
