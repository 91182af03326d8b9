#include "plan_fit.h"

namespace xyntra {
namespace {

const GraphValue* find(const GraphBuffer& graph, const std::string& name) {
  const int32_t index = graph.find_value(name);
  return index < 0 ? nullptr : &graph.values()[static_cast<std::size_t>(index)];
}

bool begins_inside(const Alternative& plan, const PlanIsland& island, const GraphBuffer& graph) {
  if (plan.init.empty()) return true;
  const std::vector<int64_t> values = plan.exprs.fixed_values();
  for (const PlanStep& step : plan.init) {
    for (const BufferUse& use : step.buffers) {
      const PlanBuffer& buffer = plan.buffers[use.buffer];
      if (buffer.kind != BufferKind::kConstant || use.offset_expr == kNoOffset) continue;
      const GraphValue* constant = find(graph, island.constants[buffer.index]);
      if (constant != nullptr && static_cast<uint64_t>(values[use.offset_expr]) > constant->bytes) return false;
    }
  }
  return true;
}

}  // namespace

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
  for (const Alternative& plan : island.alternatives) {
    if (!begins_inside(plan, island, graph)) return "an init step begins outside of a constant";
  }
  return {};
}

}  // namespace xyntra
