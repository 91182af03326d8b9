#include "device_program.h"

#include <utility>

namespace xyntra {

DeviceProgram::DeviceProgram(std::shared_ptr<const UsablePlan> usable, std::size_t island, const Constants& constants)
    : usable_(std::move(usable)), device_(*usable_->device) {
  const PlanIsland& planned = usable_->plan->islands[island];
  alternatives_.reserve(planned.alternatives.size());
  for (const Alternative& plan : planned.alternatives) make_ready(plan, constants);
  constants_.clear();
  packed_.clear();
}

void DeviceProgram::make_ready(const Alternative& plan, const Constants& constants) {
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

void DeviceProgram::run_init(const Alternative& plan, ReadyOnDevice& ready, const Constants& constants) {
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

void* DeviceProgram::constant(std::size_t index, const Constants& constants) {
  DeviceMemory& memory = constants_[index];
  if (memory.get() == nullptr) {
    memory = device_.buffer_of(constants.data(index), constants.bytes(index));
    constants.is_packed(index);
  }
  return memory.get();
}

}  // namespace xyntra
