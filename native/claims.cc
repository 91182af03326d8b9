#include "claims.h"

#include <algorithm>

#include "plan_fit.h"

namespace xyntra {
namespace {

std::string in_quotes(std::string_view name) { return "'" + std::string(name) + "'"; }

}  // namespace

Claims::Claims(const GraphBuffer& graph, const Plan& plan, const std::vector<LoadedKernel>& kernels)
    : graph_(graph),
      plan_(plan),
      island_of_(graph.nodes().size(), -1),
      producer_of_(graph.values().size(), -1),
      declined_(plan.islands.size()) {
  for (std::size_t i = 0; i < graph_.nodes().size(); ++i) {
    node_of_id_.emplace(graph_.nodes()[i].id, i);
    for (const int32_t value : graph_.nodes()[i].outputs)
      producer_of_[static_cast<std::size_t>(value)] = static_cast<int32_t>(i);
  }
  for (std::size_t i = 0; i < plan_.islands.size(); ++i) {
    const auto number = static_cast<int32_t>(i);
    std::string& why = declined_[i];
    why = check_nodes(plan_.islands[i], number);
    if (why.empty()) why = check_kernels(plan_.islands[i], kernels);
    if (why.empty()) why = check_values(plan_.islands[i], number);
    if (why.empty()) why = why_unfit(plan_.islands[i], graph_);
    if (!why.empty()) std::replace(island_of_.begin(), island_of_.end(), number, -1);
  }
  break_cycles();
}

std::vector<const OrtNode*> Claims::nodes_of(const PlanIsland& island) const {
  std::vector<const OrtNode*> nodes;
  nodes.reserve(island.nodes.size());
  for (const uint64_t id : island.nodes) nodes.push_back(graph_.nodes()[node_of_id_.at(id)].node);
  return nodes;
}

std::string Claims::check_nodes(const PlanIsland& island, int32_t number) {
  for (const uint64_t id : island.nodes) {
    const auto found = node_of_id_.find(id);
    if (found == node_of_id_.end()) return "the graph has no node " + std::to_string(id);
    if (graph_.nodes()[found->second].taken) return "another provider has node " + std::to_string(id);
    if (island_of_[found->second] >= 0) return "node " + std::to_string(id) + " is claimed twice";
    island_of_[found->second] = number;
  }
  return {};
}

std::string Claims::check_kernels(const PlanIsland& island, const std::vector<LoadedKernel>& kernels) const {
  if (kernels.empty()) return {};  // of a plan that is written and not executed
  for (const Alternative& alternative : island.alternatives) {
    for (const auto* steps : {&alternative.init, &alternative.run}) {
      for (const PlanStep& step : *steps) {
        if (!kernels[step.kernel].usable()) return kernels[step.kernel].error;
      }
    }
  }
  return {};
}

// Inputs and outputs must be those that ORT will give the fused node.
std::string Claims::check_values(const PlanIsland& island, int32_t number) const {
  const auto& nodes = graph_.nodes();
  const auto& values = graph_.values();
  std::vector<uint8_t> read(values.size()), made(values.size()), needed(values.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const bool inside = island_of_[i] == number;
    for (const int32_t value : nodes[i].inputs) (inside ? read : needed)[static_cast<std::size_t>(value)] = 1;
    if (!inside) continue;
    for (const int32_t value : nodes[i].outputs) made[static_cast<std::size_t>(value)] = 1;
  }
  for (const PlanTensor& input : island.inputs) {
    const int32_t index = graph_.find_value(input.name);
    const auto at = static_cast<std::size_t>(index);
    if (index < 0 || read[at] == 0 || made[at] != 0) return in_quotes(input.name) + " is not read from outside";
    if ((values[at].flags & kConstant) != 0) return "input " + in_quotes(input.name) + " is a constant";
  }
  for (const std::string& name : island.constants) {
    const int32_t index = graph_.find_value(name);
    const auto at = static_cast<std::size_t>(index);
    if (index < 0 || read[at] == 0 || (values[at].flags & kConstant) == 0)
      return in_quotes(name) + " is not a constant of the island";
  }
  std::vector<uint8_t> promised(values.size());
  for (const PlanTensor& output : island.outputs) {
    const int32_t index = graph_.find_value(output.name);
    if (index < 0 || made[static_cast<std::size_t>(index)] == 0)
      return in_quotes(output.name) + " is not made by the island";
    promised[static_cast<std::size_t>(index)] = 1;
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    const bool wanted = made[i] != 0 && (needed[i] != 0 || (values[i].flags & kGraphOutput) != 0);
    if (wanted && promised[i] == 0) return "the plan does not make " + in_quotes(values[i].name);
    if (!wanted && promised[i] != 0) return in_quotes(values[i].name) + " is not used outside of the island";
  }
  return {};
}

// With every island contracted to one vertex the graph must still have an order. Kahn's algorithm; while something is
// left over, the island that begins first is given up: what is left over begins with a cycle.
void Claims::break_cycles() {
  const std::size_t islands = plan_.islands.size();
  const std::size_t n = graph_.nodes().size();
  const auto vertex = [&](std::size_t node) {
    return island_of_[node] >= 0 ? static_cast<std::size_t>(island_of_[node]) : islands + node;
  };
  for (;;) {
    std::vector<std::vector<std::size_t>> next(islands + n);
    std::vector<std::size_t> waiting(islands + n), ready;
    for (std::size_t node = 0; node < n; ++node) {
      for (const int32_t value : graph_.nodes()[node].inputs) {
        const int32_t producer = producer_of_[static_cast<std::size_t>(value)];
        if (producer < 0) continue;
        const std::size_t from = vertex(static_cast<std::size_t>(producer));
        if (from == vertex(node)) continue;
        next[from].push_back(vertex(node));
        ++waiting[vertex(node)];
      }
    }
    for (std::size_t v = 0; v < waiting.size(); ++v) {
      if (waiting[v] == 0) ready.push_back(v);
    }
    while (!ready.empty()) {
      const std::size_t done = ready.back();
      ready.pop_back();
      for (const std::size_t v : next[done]) {
        if (--waiting[v] == 0) ready.push_back(v);
      }
    }
    const auto on_cycle = [&](int32_t island) { return island >= 0 && waiting[static_cast<std::size_t>(island)] != 0; };
    const auto first = std::find_if(island_of_.begin(), island_of_.end(), on_cycle);
    if (first == island_of_.end()) return;
    const auto worst = static_cast<std::size_t>(*first);
    declined_[worst] = "a path leaves the island and comes back";
    std::replace(island_of_.begin(), island_of_.end(), static_cast<int32_t>(worst), -1);
  }
}

}  // namespace xyntra
