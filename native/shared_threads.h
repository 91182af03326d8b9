// Threads that share the tasks of steps where no ONNX Runtime lends its own. They are the process's: made when they are first asked
// for, asleep while there is nothing to do.
#pragma once

#include <cstddef>

#include "cpu_program.h"

namespace xyntra {

class SharedThreads final : public Tasks {
 public:
  // Up to so many threads take part in a step; the caller's is one of them.
  explicit SharedThreads(std::size_t threads) : threads_(threads) {}

  // One step at a time is shared: who comes while another's is, and who is in a process that was forked, does it all alone.
  void run(void (*task)(void* step, std::size_t number), std::size_t count, void* step) const override;

 private:
  const std::size_t threads_;
};

}  // namespace xyntra
