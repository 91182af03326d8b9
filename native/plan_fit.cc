#include "plan_fit.h"

namespace xyntra {
namespace {

const GraphValue* find(const GraphBuffer& graph, const std::string& name) {
  const int32_t index = graph.find_value(name);
  return index < 0 ? nullptr : &graph.values()[static_cast<std::size_t>(index)];
}

constexpr uint64_t kUnknown = UINT64_MAX;  // how large a constant is that the graph does not have

}  // namespace

bool begins_inside(const Alternative& plan, const std::vector<uint64_t>& constant_bytes) {
  if (plan.init.empty()) return true;
  const std::vector<int64_t> values = plan.exprs.fixed_values();
  for (const PlanStep& step : plan.init) {
    for (const BufferUse& use : step.buffers) {
      const PlanBuffer& buffer = plan.buffers[use.buffer];
      if (buffer.kind != BufferKind::kConstant || use.offset_expr == kNoOffset) continue;
      if (static_cast<uint64_t>(values[use.offset_expr]) > constant_bytes[buffer.index]) return false;
    }
  }
  return true;
}

std::string why_unfit(const PlanIsland& island, const GraphBuffer& graph) {
  for (const auto* tensors : {&island.inputs, &island.outputs}) {
    for (const PlanTensor& tensor : *tensors) {
      const GraphValue* value = find(graph, tensor.name);
      if (value != nullptr && value->elem_type != tensor.elem_type) {
        return "'" + tensor.name + "' is of type " + std::to_string(value->elem_type) + ", the plan says " +
               std::to_string(tensor.elem_type);
      }
    }
  }
  std::vector<uint64_t> bytes;
  for (const std::string& name : island.constants) {
    const GraphValue* constant = find(graph, name);
    bytes.push_back(constant != nullptr ? constant->bytes : kUnknown);
  }
  for (const Alternative& plan : island.alternatives) {
    if (!begins_inside(plan, bytes)) return "an init step begins outside of a constant";
  }
  return {};
}

}  // namespace xyntra
