// A compiled model that runs without ONNX Runtime: what include/tracea/tracea.h calls a TraceaModel. All of its nodes must be ours.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "memory_block.h"
#include "onnx_file.h"
#include "opened_island.h"
#include "plan_source.h"

namespace xyntra {

// A tensor of the caller's, contiguous.
struct CallersTensor {
  void* data = nullptr;
  int32_t elem_type = 0;
  std::vector<int64_t> dims;
};

class CompiledFile {
 public:
  // `folder`: where files beside the model are, "" for a model in memory. `digests` as in open_nodes.h. Throws why it cannot be
  // opened; nothing of it was executed then. Weights are packed on the calling thread.
  // Nobody reads `bytes` afterwards.
  CompiledFile(std::string_view bytes, const std::string& folder, const std::string& digests);

  const std::vector<OnnxTensorType>& inputs() const noexcept { return inputs_; }
  const std::vector<OnnxTensorType>& outputs() const noexcept { return outputs_; }

  // The outputs' dims for such inputs, whose data must be there: sizes may depend on it.
  std::vector<std::vector<int64_t>> output_dims(const std::vector<CallersTensor>& inputs) const;
  // Outputs have the sizes that output_dims() says. Any number of threads may be in it.
  void run(const std::vector<CallersTensor>& inputs, const std::vector<CallersTensor>& outputs, const Tasks& tasks) const;

 private:
  // Tensors by their number: the model's inputs first, then what nodes make.
  struct Node {
    std::unique_ptr<OpenedIsland> island;
    std::vector<std::size_t> reads, makes;
  };
  struct Value {
    const void* data = nullptr;
    std::vector<int64_t> dims;
    MemoryBlock owned;
  };

  std::vector<Value> values_of(const std::vector<CallersTensor>& inputs) const;
  std::vector<Value> carried_out(const std::vector<CallersTensor>& inputs, const std::vector<CallersTensor>* outputs,
                                 const Tasks& tasks) const;
  void* room_for(std::size_t tensor, Value& value, const std::vector<CallersTensor>* outputs) const;

  std::vector<OnnxTensorType> inputs_, outputs_;
  std::vector<std::size_t> output_of_;  // the tensor that each output is
  std::vector<int32_t> elem_types_;     // by tensor
  std::vector<Node> nodes_;             // in the order of execution
};

}  // namespace xyntra
