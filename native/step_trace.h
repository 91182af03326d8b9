// The steps of one run of an island on the CPU on their way into the trace (native/trace.h): when each began and ended, and which
// thread had which share of it. Made in every run; where nothing is traced it looks at no clock.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "evaluation.h"
#include "trace.h"
#include "workspace.h"

namespace xyntra {

class StepTrace {
 public:
  // `island`: its place in the trace; 0 where that is off.
  explicit StepTrace(uint32_t island) : island_(island) {
    if (is_on()) begin();
  }

  bool is_on() const noexcept { return island_ != 0; }
  // Before a step that several threads carry out: what they call tasks with. `step` outlives that.
  void* shared(const Workspace::Step& step) noexcept;
  // A task as ORT's threads call it, `shares` being what shared() gave.
  static void run_task(void* shares, std::size_t task);
  // Since the last call step `i` was done, for so many iterations in so many tasks.
  void add(std::size_t i, int64_t calls, int64_t tasks, const Evaluation& evaluation) noexcept;

 private:
  static constexpr std::size_t kMostThreads = 256;  // those that come later to a step are left out

  // A thread's part of a step; times are ticks of the processor's counter, because tasks take no longer than looking at the clock
  // some dozen times.
  struct Share {
    uint32_t thread, tasks;
    uint64_t begin, end;
  };
  struct Shares {
    const Workspace::Step* step = nullptr;
    uint64_t serial = 0;  // tells one step's threads that they are new to it
    std::atomic<uint32_t> used{0};
    std::array<Share, kMostThreads> all;  // as memory was: to clear it would cost each run
  };

  void begin() noexcept;

  const uint32_t island_;
  int64_t begin_ns_ = 0;
  uint64_t begin_ticks_ = 0;
  Shares shares_;
};

}  // namespace xyntra
