#include "trial_threads.h"

#include <algorithm>

namespace xyntra {

TrialThreads::TrialThreads(std::size_t threads) {
  for (std::size_t i = 1; i < std::max<std::size_t>(threads, 1); ++i) others_.emplace_back([this] { serve(); });
}

TrialThreads::~TrialThreads() {
  ends_ = true;
  for (std::thread& thread : others_) thread.join();
}

void TrialThreads::run(void (*task)(void*, std::size_t), std::size_t count, void* step) const {
  work_ = {task, step, count};
  next_ = 0;
  at_work_ = others_.size();
  round_.fetch_add(1, std::memory_order_release);
  take_part();
  while (at_work_.load(std::memory_order_acquire) != 0) std::this_thread::yield();
}

// Nobody sleeps: a thread that has to be woken would be part of what is timed.
void TrialThreads::serve() {
  for (std::size_t seen = 0; !ends_.load(std::memory_order_relaxed);) {
    if (round_.load(std::memory_order_acquire) == seen) {
      std::this_thread::yield();
      continue;
    }
    ++seen;
    take_part();
    at_work_.fetch_sub(1, std::memory_order_release);
  }
}

void TrialThreads::take_part() const {
  for (std::size_t i = next_.fetch_add(1); i < work_.count; i = next_.fetch_add(1)) work_.task(work_.step, i);
}

}  // namespace xyntra
