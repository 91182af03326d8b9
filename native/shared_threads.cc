#include "shared_threads.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>

#include "system.h"

namespace xyntra {
namespace {

// The steps of a run follow each other: a thread looks so often for the next one before it sleeps, which takes some 10 us.
constexpr int kLooks = 10'000;

class Crew {
 public:
  // Returns whether the work was done: not while other work is, and not in a child of the process that the threads are in.
  bool share(void (*task)(void*, std::size_t), std::size_t count, void* step, std::size_t helpers) {
    const std::unique_lock sharing(sharing_, std::try_to_lock);
    if (!sharing || system::process_number() != process_) return false;
    hire(helpers);
    {
      const std::lock_guard lock(mutex_);
      task_ = task;
      step_ = step;
      count_ = count;
      next_ = 0;
      wanted_ = std::min(helpers, hired_);
      at_work_ = wanted_;
    }
    wake_.notify_all();
    take_part();
    std::unique_lock lock(mutex_);
    at_work_ -= wanted_;  // who has not begun is too late
    wanted_ = 0;
    done_.wait(lock, [this] { return at_work_ == 0; });
    return true;
  }

 private:
  void hire(std::size_t helpers) {
    try {
      for (; hired_ < helpers; ++hired_) std::thread([this] { serve(); }).detach();
    } catch (const std::system_error&) {  // there are fewer, then
    }
  }

  void serve() {
    for (;;) {
      for (int look = 0; look < kLooks && wanted_.load(std::memory_order_relaxed) == 0; ++look) continue;
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [this] { return wanted_ > 0; });
        --wanted_;
      }
      take_part();
      const std::lock_guard lock(mutex_);
      if (--at_work_ == 0) done_.notify_one();
    }
  }

  void take_part() {
    for (std::size_t i = next_.fetch_add(1); i < count_; i = next_.fetch_add(1)) task_(step_, i);
  }

  const int64_t process_ = system::process_number();
  std::mutex sharing_;     // whose work is shared; what is below it is of that work
  std::size_t hired_ = 0;  // threads beside the caller's
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  void (*task_)(void*, std::size_t) = nullptr;
  void* step_ = nullptr;
  std::size_t count_ = 0;
  std::atomic<std::size_t> next_{0};
  std::atomic<std::size_t> wanted_{0};  // threads that may still begin
  std::size_t at_work_ = 0;             // threads that have begun or may, and have not finished
};

// Never destroyed: its threads end with the process.
Crew& crew() {
  static Crew& crew = *new Crew;
  return crew;
}

}  // namespace

void SharedThreads::run(void (*task)(void*, std::size_t), std::size_t count, void* step) const {
  const std::size_t helpers = std::min(threads_, count) - (count > 0 && threads_ > 0 ? 1 : 0);
  if (helpers > 0 && crew().share(task, count, step, helpers)) return;
  for (std::size_t i = 0; i < count; ++i) task(step, i);
}

}  // namespace xyntra
