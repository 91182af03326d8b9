// The steps of one run of an island on the CPU on their way into the trace (native/trace.h): when each began and ended, and which
// thread had which share of it. Made in every run; where nothing is traced it looks at no clock.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "cpu_program.h"
#include "evaluation.h"
#include "trace.h"
#include "workspace.h"

namespace xyntra {

// Within a run times are ticks of the processor's counter: a task takes about as long as some dozen looks at the clock. What they
// are by the clock is known when the run has ended, and then it goes into the ring.
class StepTrace {
 public:
  // `island`: its place in the trace; 0 where that is off.
  StepTrace(uint32_t island, const Evaluation& evaluation) : island_(island), evaluation_(evaluation) {
    if (is_on()) begin();
  }
  StepTrace(const StepTrace&) = delete;
  StepTrace& operator=(const StepTrace&) = delete;
  ~StepTrace() {
    if (is_on()) deliver();
  }

  bool is_on() const noexcept { return island_ != 0; }
  // Has threads carry out so many tasks of a wave, or iterations of a single step.
  void run(const Wave& wave, std::size_t count, const Tasks& tasks);
  // Since the last call step `i` was done, for so many iterations in so many tasks.
  void add(std::size_t i, int64_t calls, int64_t tasks) noexcept {
    if (is_on()) note(i, calls, tasks);
  }
  // Since the last call the steps of `wave`, from step `i` on, were done side by side. They stand one after the other in the trace,
  // each as wide as its part of what the threads did; the threads' shares tell when.
  void add(std::size_t i, const Wave& wave) noexcept {
    if (is_on()) note(i, wave);
  }

 private:
  static constexpr std::size_t kMostThreads = 256;  // those that come later to a step are left out

  // A thread's part of a step.
  struct Share {
    uint32_t thread, tasks;
    uint64_t begin, end;
    std::size_t step;  // of the wave
  };
  struct Shares {
    Wave wave;
    std::size_t count = 0;  // of tasks
    uint64_t serial = 0;    // tells one step's threads that they are new to it
    std::atomic<std::size_t> used{0};
    std::array<Share, kMostThreads> all;  // as memory was: to clear it would cost each run
  };
  struct Done {
    uint32_t step;
    uint32_t shares;
    int64_t calls, tasks;
    uint64_t begin, end;
    uint64_t wave_begin, wave_end;  // where its shares are: beside other steps they may lie outside of its own time
  };
  // Of the steps that are done; kept by each thread for its next run.
  struct Notes {
    std::vector<Done> steps;
    std::vector<Share> shares;
  };

  static std::unique_ptr<Notes>& kept() noexcept;
  void begin() noexcept;
  void note(std::size_t i, int64_t calls, int64_t tasks) noexcept;
  void note(std::size_t i, const Wave& wave) noexcept;
  void put_down(Done done, std::size_t step, std::size_t used) noexcept;
  void begin_anew() noexcept;
  // A task as threads call it.
  static void run_task(void* shares, std::size_t task);
  void deliver() noexcept;

  uint32_t island_;
  const Evaluation& evaluation_;
  int64_t begin_ns_ = 0;
  uint64_t begin_ticks_ = 0;
  uint64_t last_ticks_ = 0;  // when the step before ended
  std::unique_ptr<Notes> notes_;
  Shares shares_;
};

}  // namespace xyntra
