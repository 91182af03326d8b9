// Which islands of a plan can be claimed. If one claim of a call is wrong, ORT drops all of them, or fails the session in
// Compile, so each island is checked against the graph first.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "graph_buffer.h"
#include "kernel_loader.h"
#include "plan.h"

namespace xyntra {

class Claims {
 public:
  Claims(const GraphBuffer& graph, const Plan& plan, const std::vector<LoadedKernel>& kernels);

  // Why the island stays with ORT; empty when it is to be claimed.
  const std::vector<std::string>& declined() const noexcept { return declined_; }
  std::vector<const OrtNode*> nodes_of(const PlanIsland& island) const;

 private:
  std::string check_nodes(const PlanIsland& island, int32_t number);
  std::string check_kernels(const PlanIsland& island, const std::vector<LoadedKernel>& kernels) const;
  std::string check_values(const PlanIsland& island, int32_t number) const;
  void break_cycles();

  const GraphBuffer& graph_;
  const Plan& plan_;
  std::unordered_map<uint64_t, std::size_t> node_of_id_;
  std::vector<int32_t> island_of_;    // per node; -1 = none
  std::vector<int32_t> producer_of_;  // per value; -1 = no node of this graph
  std::vector<std::string> declined_;
};

}  // namespace xyntra
