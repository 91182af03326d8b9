// Where the plan for a graph comes from: the store of plans, else the planner. Whatever goes wrong on the way is a
// reason, never an error: without a plan ONNX Runtime keeps its nodes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "compiled_model.h"
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
  std::shared_ptr<const CompiledModel> compiled;  // which the plan is of, while that is needed
  bool from_model = false;  // it was compiled ahead of time
  std::string failure;  // why there is no plan; empty when nobody was there to make one
};

// Finds the device and opens all kernels of a plan; those that cannot be had say why.
// Of a compiled model, from it.
void load_kernels(const Plan& plan, UsablePlan& usable);

// The plan of a compiled model that this machine executes, whole. Throws Error with the reason where there is none. `execute`: its
// kernels are loaded, and it is for this machine; else it is the model's first, to be written and not executed. `adapt` may change
// the plan before.
UsablePlan plan_of(std::shared_ptr<const CompiledModel> compiled, bool execute, const std::function<void(Plan&)>& adapt = {});

// `ordinal`: of the device whose memory ORT's tensors are in, -1 for the host's. A plan must be for that device, then.
UsablePlan find_plan(const GraphBuffer& graph, const Options& options, int ordinal);

// What the planner compiles of a graph ahead of time: a plan with its `compiled`, or one that claims nothing. `execute` as in
// plan_of(), whose errors it throws.
UsablePlan compile_ahead(const GraphBuffer& graph, bool execute);

}  // namespace xyntra
