#include "island_trial.h"

#include <chrono>

#include "device_workspace.h"
#include "plan_source.h"
#include "trusted_file.h"

namespace xyntra {

std::vector<RunTime> run_island(const std::string& path, std::size_t number, const std::vector<InputView>& inputs,
                                const std::vector<void*>& outputs, std::size_t timed) {
  const TrustedFile file = read_trusted_file(path);
  if (!file.error.empty()) throw Error(kFail, path + ": " + file.error);
  UsablePlan usable;
  usable.plan = Plan::read(file.bytes);
  load_kernels(*usable.plan, usable);
  for (const LoadedKernel& kernel : usable.kernels) {
    if (!kernel.usable()) throw Error(kFail, kernel.error);
  }
  if (usable.device == nullptr || number >= usable.plan->islands.size())
    throw Error(kInvalidArgument, path + " has no such island for a device");
  const PlanIsland& island = usable.plan->islands[number];
  if (inputs.size() != island.inputs.size() || outputs.size() != island.outputs.size())
    throw Error(kInvalidArgument, path + " has other inputs and outputs");

  std::vector<DeviceMemory> literals;
  std::vector<ReadyOnDevice> alternatives;
  for (const Alternative& plan : island.alternatives) {
    if (!plan.init.empty()) throw Error(kInvalidArgument, path + " has constants");
    ReadyOnDevice& ready = alternatives.emplace_back();
    for (const PlanBuffer& buffer : plan.buffers) {
      const bool is_literal = buffer.kind == BufferKind::kLiteral;
      if (is_literal) literals.push_back(usable.device->buffer_of(buffer.literal.data(), buffer.literal.size()));
      ready.fixed.push_back(is_literal ? literals.back().get() : nullptr);
    }
    for (const PlanStep& step : plan.run) ready.kernels.push_back(&usable.kernels[step.kernel]);
  }
  DeviceWorkspace workspace(*usable.device, island, DeviceWorkspace::Tensors::kOnHost);
  workspace.prepare(alternatives, inputs);
  for (int run = 0; run < 2; ++run) workspace.run(inputs, outputs, nullptr);  // the second by what the first has made ready

  std::vector<RunTime> times(timed);
  for (RunTime& time : times) {
    const auto begin = std::chrono::steady_clock::now();
    workspace.run(inputs, outputs, nullptr);
    time.all_ns = std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count();
  }
  for (RunTime& time : times) time.kernels_ns = workspace.run_timed(inputs, outputs);
  return times;
}

}  // namespace xyntra
