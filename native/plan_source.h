// Where the plan for a graph comes from: the store of plans, else the planner. Whatever goes wrong on the way is a
// reason, never an error: without a plan ONNX Runtime keeps its nodes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "graph_buffer.h"
#include "kernel_loader.h"
#include "plan.h"

namespace xyntra {

struct UsablePlan {
  std::shared_ptr<const Plan> plan;  // null: no plan
  const Device* device = nullptr;     // null: the CPU
  std::vector<LoadedKernel> kernels;     // as in plan->kernels; a fresh plan may have some that do not load
  std::string digest;
  bool stored = false;
  std::string failure;  // why there is no plan; empty when nobody was there to make one
};

// Finds the device and opens all kernels of a plan; those that cannot be had say why.
void load_kernels(const Plan& plan, UsablePlan& usable);

// `ordinal`: of the device whose memory ORT's tensors are in, -1 for the host's. A plan must be for that device, then.
UsablePlan find_plan(const GraphBuffer& graph, const Options& options, int ordinal);

}  // namespace xyntra
