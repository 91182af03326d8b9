#include "python_end.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

namespace xyntra {
namespace {

std::atomic<int (*)()> g_is_going{nullptr};
std::atomic<void* (*)()> g_python_thread{nullptr};
std::atomic<long> g_last_thread{0};  // that ends Python and is never ended by it

}  // namespace

void python_ends(int (*is_going)(), void* (*python_thread)()) noexcept {
  g_last_thread.store(syscall(SYS_gettid));
  g_python_thread.store(python_thread);
  g_is_going.store(is_going);
}

void stay_if_python_goes() noexcept {
  const auto is_going = g_is_going.load(std::memory_order_acquire);
  if (is_going == nullptr || is_going() == 0) return;
  if (g_last_thread.load() != syscall(SYS_gettid) && g_python_thread.load()() != nullptr) stay();
}

void stay() noexcept {
  for (;;) pause();
}

}  // namespace xyntra
