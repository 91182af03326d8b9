// Threads that share the tasks of a step while kernels are timed without ORT. Only processes made for that have them.
#pragma once

#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

#include "cpu_program.h"

namespace xyntra {

class TrialThreads : public Tasks {
 public:
  // The caller's thread is one of them.
  explicit TrialThreads(std::size_t threads);
  ~TrialThreads();
  TrialThreads(const TrialThreads&) = delete;
  TrialThreads& operator=(const TrialThreads&) = delete;

  void run(void (*task)(void* step, std::size_t number), std::size_t count, void* step) const override;

 private:
  struct Work {
    void (*task)(void*, std::size_t) = nullptr;
    void* step = nullptr;
    std::size_t count = 0;
  };

  void serve();
  void take_part() const;

  mutable Work work_;
  mutable std::atomic<std::size_t> next_{0};
  mutable std::atomic<std::size_t> round_{0};    // of work that was given out
  mutable std::atomic<std::size_t> at_work_{0};  // threads beside the caller's that have not finished it
  std::atomic<bool> ends_{false};
  std::vector<std::thread> others_;
};

}  // namespace xyntra
