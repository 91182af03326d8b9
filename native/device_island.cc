#include "device_island.h"

#include <algorithm>
#include <utility>

#include "graph_access.h"

namespace xyntra {
namespace {

constexpr std::size_t kLeftOver = std::size_t{64} << 20;  // for what runs need

// Weights that alternatives share count once, so one alternative of each island counts.
std::size_t weights_of(const Plan& plan) {
  std::size_t all = 0;
  for (const PlanIsland& island : plan.islands) {
    std::size_t most = 0;
    for (const Alternative& alternative : island.alternatives) {
      const InitSteps numbers(alternative);
      std::size_t bytes = 0;
      for (const PlanBuffer& buffer : alternative.buffers) {
        if (buffer.kind == BufferKind::kPool) bytes += numbers.bytes(buffer);
      }
      most = std::max(most, bytes);
    }
    all += most;
  }
  return all;
}

}  // namespace

std::string why_device_fails(const UsablePlan& usable) {
  for (const LoadedKernel& kernel : usable.kernels) {
    if (!kernel.usable()) return kernel.error;
  }
  if (usable.device == nullptr) return {};
  try {
    const std::size_t wanted = weights_of(*usable.plan) + kLeftOver, free = usable.device->free_bytes();
    if (wanted <= free) return {};
    return "the device has " + std::to_string(free >> 20) + " MiB free, the weights want " + std::to_string(wanted >> 20);
  } catch (const Error& error) {
    return error.what();
  }
}

DeviceIsland::DeviceIsland(const Ort& ort, std::shared_ptr<const UsablePlan> usable, std::size_t island,
                           const OrtGraph* graph, const OrtNode* fused_node, DeviceWorkspace::Tensors tensors)
    : Island(ort, std::move(usable), island, fused_node), device_(*usable_->device), tensors_(tensors) {
  const Constants constants = find_constants(graph);
  alternatives_.reserve(island_.alternatives.size());
  for (const Alternative& plan : island_.alternatives) make_ready(plan, constants);
  constants_.clear();
  packed_.clear();
}

void DeviceIsland::make_ready(const Alternative& plan, const Constants& constants) {
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

void DeviceIsland::run_init(const Alternative& plan, ReadyOnDevice& ready, const Constants& constants) {
  if (plan.init.empty()) return;
  const InitSteps numbers(plan);
  std::vector<DeviceMemory> temporaries(plan.buffers.size());
  std::unique_ptr<DeviceCalls> calls;  // to go after the queue that has them
  const auto queue = device_.queue(Timing::kNone);
  for (std::size_t i = 0; i < plan.init.size(); ++i) {
    const PlanStep& step = plan.init[i];
    const auto packing = numbers.packing(step);
    if (const auto known = packed_.find(packing); !packing.empty() && known != packed_.end()) {
      for (const BufferUse& use : step.buffers) {
        if (plan.buffers[use.buffer].kind == BufferKind::kPool) ready.fixed[use.buffer] = known->second;
      }
      continue;
    }
    DeviceCall call;
    call.kernel = &usable_->kernels[step.kernel];
    call.units = numbers.value(step.units_expr);
    for (const BufferUse& use : step.buffers) {
      const PlanBuffer& buffer = plan.buffers[use.buffer];
      void*& memory = ready.fixed[use.buffer];
      if (memory == nullptr && buffer.kind == BufferKind::kPool) {
        kept_.push_back(device_.buffer(numbers.bytes(buffer)));
        memory = kept_.back().get();
        if (!packing.empty()) packed_.emplace(packing, memory);
      } else if (memory == nullptr && buffer.kind == BufferKind::kInit) {
        temporaries[use.buffer] = device_.buffer(numbers.bytes(buffer));
        memory = temporaries[use.buffer].get();
      } else if (memory == nullptr) {
        memory = constant(buffer.index, constants);
      }
      call.buffers.push_back(memory);
    }
    if (call.units > 0) {
      for (const CopiedTensor& tensor : step.tensors) call.add(tensor, [&](uint32_t expr) { return numbers.value(expr); });
      for (const uint32_t param : step.params) call.add(numbers.value(param));
      calls = device_.ready({call});
      queue->start(*calls);
      queue->finish();  // before what it uses is set free
    }
    for (const BufferUse& use : step.buffers) {
      if (!numbers.ends_with(use.buffer, i)) continue;
      const BufferKind kind = plan.buffers[use.buffer].kind;
      if (kind == BufferKind::kPool || kind == BufferKind::kLiteral) continue;
      temporaries[use.buffer] = DeviceMemory();
      ready.fixed[use.buffer] = nullptr;  // so neither constants nor temporaries can be seen after Compile
    }
  }
}

void* DeviceIsland::constant(std::size_t index, const Constants& constants) {
  DeviceMemory& memory = constants_[index];
  if (memory.get() == nullptr) {
    const void* data = get(ort_, constants[index], api::kGetTensorData);
    memory = device_.buffer_of(data, get(ort_, constants[index], api::kGetTensorSizeInBytes));
    give_back_packed(constants[index]);
  }
  return memory.get();
}

void DeviceIsland::compute(OrtKernelContext* context) {
  const auto lease = workspaces_.take([&] { return std::make_unique<DeviceWorkspace>(device_, island_, tensors_); });
  DeviceWorkspace& workspace = *lease;
  read_inputs(context, workspace.inputs);
  workspace.prepare(alternatives_, workspace.inputs);
  make_outputs(context, workspace.evaluation(), workspace.outputs);
  switch (profile::mode()) {
    case profile::Mode::kOff:
      workspace.run(workspace.inputs, workspace.outputs, nullptr);
      return;
    case profile::Mode::kSteps: {
      std::vector<profile::Sample> samples;
      workspace.run(workspace.inputs, workspace.outputs, &samples);
      profile::add(*usable_->plan, island_, workspace.evaluation().alternative(), samples);
      return;
    }
    case profile::Mode::kRuns:
      profile::add_run(*usable_->plan, island_, workspace.evaluation().alternative(),
                       workspace.run_timed(workspace.inputs, workspace.outputs));
  }
}

}  // namespace xyntra
