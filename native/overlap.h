// Tensors of a run that lie in the same memory: who binds tensors may bind one buffer twice. Kernels read and write in an order of
// their own, so an output that lies over an input that is still read is computed elsewhere and copied at the end: as if all inputs
// were read before anything is written. Two outputs in one place are an error: at most one of them could be right.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "evaluation.h"

namespace xyntra {

bool overlap(const void* a, std::size_t a_bytes, const void* b, std::size_t b_bytes) noexcept;

// Throws Error(INVALID_ARGUMENT), which names both, when two outputs share memory.
void refuse_shared_outputs(const PlanIsland& island, const std::vector<void*>& outputs, const std::vector<std::size_t>& bytes);

// Finds out for each run whether an output shares memory with anything, in a few nanoseconds a tensor: it keeps them in the order
// of their addresses, which is mostly that of the last run.
class OverlapSearch {
 public:
  // The sizes of the next runs.
  void expect(const std::vector<std::size_t>& input_bytes, const std::vector<std::size_t>& output_bytes);
  bool find(const std::vector<InputView>& inputs, const std::vector<void*>& outputs) noexcept;

 private:
  struct Tensor {
    uintptr_t begin = 0, end = 0;
    std::size_t bytes = 0;
    std::size_t index = 0;
    bool is_output = false;
  };

  std::vector<Tensor> tensors_;
};

}  // namespace xyntra
