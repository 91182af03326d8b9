#include "init_steps.h"

#include "ort.h"

namespace xyntra {

InitSteps::InitSteps(const Alternative& plan)
    : plan_(plan),
      values_(plan.exprs.fixed_values()),
      last_use_(plan.buffers.size()),
      steps_with_(plan.buffers.size()) {
  for (std::size_t i = 0; i < plan.init.size(); ++i) {
    for (const BufferUse& use : plan.init[i].buffers) {
      last_use_[use.buffer] = i;
      ++steps_with_[use.buffer];
    }
  }
}

std::size_t InitSteps::bytes(const PlanBuffer& buffer) const {
  const int64_t bytes = values_[buffer.size_expr];
  if (bytes < 0) throw Error(kFail, "XyntraEP: a packed weight of negative size");
  return static_cast<std::size_t>(bytes);
}

std::vector<int64_t> InitSteps::packing(const PlanStep& step) const {
  if (!step.tensors.empty()) return {};
  std::vector<int64_t> key{step.kernel, values_[step.units_expr], static_cast<int64_t>(step.params.size())};
  for (const uint32_t param : step.params) key.push_back(values_[param]);
  std::size_t weights = 0;
  for (const BufferUse& use : step.buffers) {
    const PlanBuffer& buffer = plan_.buffers[use.buffer];
    const bool is_weight = buffer.kind == BufferKind::kPool && steps_with_[use.buffer] == 1;
    if (!is_weight && buffer.kind != BufferKind::kConstant) return {};
    weights += is_weight ? 1 : 0;
    key.push_back(is_weight ? 1 : 0);
    key.push_back(is_weight ? values_[buffer.size_expr] : static_cast<int64_t>(buffer.index));
    key.push_back(offset(use));
  }
  return weights == 1 ? key : std::vector<int64_t>{};
}

}  // namespace xyntra
