#include "opencl_island.h"

#include <utility>

#include "graph_access.h"

namespace xyntra {

OpenClIsland::OpenClIsland(const Ort& ort, std::shared_ptr<const UsablePlan> usable, std::size_t island,
                           const OrtGraph* graph, const OrtNode* fused_node)
    : Island(ort, std::move(usable), island, fused_node), device_(*usable_->device) {
  const Constants constants = find_constants(graph);
  alternatives_.reserve(island_.alternatives.size());
  for (const Alternative& plan : island_.alternatives) make_ready(plan, constants);
  constants_.clear();
  packed_.clear();
}

void OpenClIsland::make_ready(const Alternative& plan, const Constants& constants) {
  ReadyOnDevice ready;
  ready.fixed.resize(plan.buffers.size());
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
    const PlanBuffer& buffer = plan.buffers[i];
    if (buffer.kind != BufferKind::kLiteral) continue;
    kept_.push_back(device_.buffer_of(buffer.literal.data(), buffer.literal.size()));
    ready.fixed[i] = kept_.back().get();
  }
  for (const PlanStep& step : plan.run) ready.kernels.push_back(&usable_->kernels[step.kernel]);
  run_init(plan, ready, constants);
  alternatives_.push_back(std::move(ready));
}

// Buffers may be released as soon as their last step is in the queue: OpenCL keeps what a command needs.
void OpenClIsland::run_init(const Alternative& plan, ReadyOnDevice& ready, const Constants& constants) {
  if (plan.init.empty()) return;
  const InitSteps numbers(plan);
  const cl::OwnedQueue queue = device_.queue(false);
  std::vector<cl::OwnedMem> temporaries(plan.buffers.size());
  for (std::size_t i = 0; i < plan.init.size(); ++i) {
    const PlanStep& step = plan.init[i];
    const auto packing = numbers.packing(step);
    if (const auto known = packed_.find(packing); !packing.empty() && known != packed_.end()) {
      for (const BufferUse& use : step.buffers) {
        if (plan.buffers[use.buffer].kind == BufferKind::kPool) ready.fixed[use.buffer] = known->second;
      }
      continue;
    }
    OpenClLaunch launch(device_, usable_->kernels[step.kernel], numbers.value(step.units_expr));
    for (const BufferUse& use : step.buffers) {
      const PlanBuffer& buffer = plan.buffers[use.buffer];
      cl::Mem& mem = ready.fixed[use.buffer];
      if (mem == nullptr && buffer.kind == BufferKind::kPool) {
        kept_.push_back(device_.buffer(numbers.bytes(buffer)));
        mem = kept_.back().get();
        if (!packing.empty()) packed_.emplace(packing, mem);
      } else if (mem == nullptr && buffer.kind == BufferKind::kInit) {
        temporaries[use.buffer] = device_.buffer(numbers.bytes(buffer));
        mem = temporaries[use.buffer].get();
      } else if (mem == nullptr) {
        mem = constant(buffer.index, constants);
      }
      if (!launch.empty()) launch.add(mem);
    }
    if (!launch.empty()) {
      for (const uint32_t param : step.params) launch.add(numbers.value(param));
      launch.complete();
      launch.enqueue(queue.get(), nullptr);
    }
    for (const BufferUse& use : step.buffers) {
      if (!numbers.ends_with(use.buffer, i)) continue;
      const BufferKind kind = plan.buffers[use.buffer].kind;
      if (kind == BufferKind::kPool || kind == BufferKind::kLiteral) continue;
      temporaries[use.buffer] = cl::OwnedMem();
      ready.fixed[use.buffer] = nullptr;  // so neither constants nor temporaries can be seen after Compile
    }
  }
  device_.check(device_.api().Finish(queue.get()), "the packing of weights");
}

cl::Mem OpenClIsland::constant(std::size_t index, const Constants& constants) {
  cl::OwnedMem& mem = constants_[index];
  if (mem.get() == nullptr) {
    const void* data = get(ort_, constants[index], api::kGetTensorData);
    mem = device_.buffer_of(data, get(ort_, constants[index], api::kGetTensorSizeInBytes));
  }
  return mem.get();
}

void OpenClIsland::compute(OrtKernelContext* context) {
  const auto lease = workspaces_.take([&] { return std::make_unique<OpenClWorkspace>(device_, island_); });
  OpenClWorkspace& workspace = *lease;
  read_inputs(context, workspace.inputs);
  workspace.prepare(alternatives_, workspace.inputs);
  make_outputs(context, workspace.evaluation(), workspace.outputs);
  if (!profile::enabled()) {
    workspace.run(workspace.inputs, workspace.outputs, nullptr);
    return;
  }
  std::vector<profile::Sample> samples;
  workspace.run(workspace.inputs, workspace.outputs, &samples);
  profile::add(*usable_->plan, island_, workspace.evaluation().alternative(), samples);
}

}  // namespace xyntra
