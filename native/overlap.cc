#include "overlap.h"

#include <algorithm>

#include "ort.h"

namespace xyntra {

bool overlap(const void* a, std::size_t a_bytes, const void* b, std::size_t b_bytes) noexcept {
  const auto first = reinterpret_cast<uintptr_t>(a), second = reinterpret_cast<uintptr_t>(b);
  return a_bytes != 0 && b_bytes != 0 && first < second + b_bytes && second < first + a_bytes;
}

void refuse_shared_outputs(const PlanIsland& island, const std::vector<void*>& outputs,
                           const std::vector<std::size_t>& bytes) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (overlap(outputs[i], bytes[i], outputs[j], bytes[j]))
        throw Error(kInvalidArgument, "XyntraEP: the outputs '" + island.outputs[j].name + "' and '" + island.outputs[i].name +
                                          "' are bound to the same memory. Give each a buffer of its own");
    }
  }
}

void OverlapSearch::expect(const std::vector<std::size_t>& input_bytes, const std::vector<std::size_t>& output_bytes) {
  tensors_.clear();
  for (std::size_t i = 0; i < input_bytes.size(); ++i) {
    if (input_bytes[i] != 0) tensors_.push_back({0, 0, input_bytes[i], i, false});
  }
  for (std::size_t i = 0; i < output_bytes.size(); ++i) {
    if (output_bytes[i] != 0) tensors_.push_back({0, 0, output_bytes[i], i, true});
  }
}

bool OverlapSearch::find(const std::vector<InputView>& inputs, const std::vector<void*>& outputs) noexcept {
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    Tensor tensor = tensors_[i];
    const void* data = tensor.is_output ? outputs[tensor.index] : inputs[tensor.index].data;
    tensor.begin = reinterpret_cast<uintptr_t>(data);
    tensor.end = tensor.begin + tensor.bytes;
    std::size_t at = i;
    for (; at > 0 && tensors_[at - 1].begin > tensor.begin; --at) tensors_[at] = tensors_[at - 1];
    tensors_[at] = tensor;
  }
  uintptr_t end = 0, output_end = 0;
  for (const Tensor& tensor : tensors_) {
    if (tensor.begin < (tensor.is_output ? end : output_end)) return true;
    end = std::max(end, tensor.end);
    if (tensor.is_output) output_end = std::max(output_end, tensor.end);
  }
  return false;
}

}  // namespace xyntra
