#include "python_end.h"

#include <atomic>
#include <cstdint>

#include "system.h"

namespace xyntra {
namespace {

std::atomic<int (*)()> g_is_going{nullptr};
std::atomic<void* (*)()> g_python_thread{nullptr};
std::atomic<uint32_t> g_last_thread{0};  // that ends Python and is never ended by it

}  // namespace

void python_ends(int (*is_going)(), void* (*python_thread)()) noexcept {
  g_last_thread.store(system::thread_number());
  g_python_thread.store(python_thread);
  g_is_going.store(is_going);
}

void stay_if_python_goes() noexcept {
  const auto is_going = g_is_going.load(std::memory_order_acquire);
  if (is_going == nullptr || is_going() == 0) return;
  if (g_last_thread.load() != system::thread_number() && g_python_thread.load()() != nullptr) stay();
}

void stay() noexcept { system::sleep_forever(); }

}  // namespace xyntra
