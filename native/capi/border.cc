#include "border.h"

#include <thread>

namespace xyntra::capi {
namespace {

constexpr uint32_t kMostThreads = 1024;  // they stay: more are a mistake

}  // namespace

std::string& last_error() noexcept {
  thread_local std::string text;
  return text;
}

TraceaStatus failed(TraceaStatus status, const char* what) noexcept {
  try {
    last_error() = what;
  } catch (...) {
    last_error().clear();
  }
  return status;
}

void check_threads(uint32_t threads, const char* name) {
  if (threads > kMostThreads)
    throw Misused(std::string("the ") + name + " ask for more than " + std::to_string(kMostThreads) + " threads");
}

Threads::Threads(uint32_t threads, TraceaParallelFor parallel_for, void* user)
    : parallel_for_(parallel_for),
      user_(user),
      shared_(threads != 0 ? threads : std::max(1U, std::thread::hardware_concurrency())) {}

void Threads::run(void (*task)(void*, std::size_t), std::size_t count, void* step) const {
  if (parallel_for_ != nullptr) {
    parallel_for_(user_, count, task, step);
  } else {
    shared_.run(task, count, step);
  }
}

}  // namespace xyntra::capi
