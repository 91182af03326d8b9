#include "island_trial.h"

#include <chrono>
#include <cstring>
#include <utility>

#include "device_program.h"
#include "device_workspace.h"
#include "element_bytes.h"
#include "memory_block.h"
#include "opened_island.h"
#include "trial_threads.h"
#include "trusted_file.h"

namespace xyntra {
namespace {

using Clock = std::chrono::steady_clock;

int64_t ns_since(Clock::time_point begin) {
  return std::chrono::nanoseconds(Clock::now() - begin).count();
}

UsablePlan plan_in(const std::string& path) {
  const TrustedFile file = read_trusted_file(path);
  if (!file.error.empty()) throw Error(kFail, path + ": " + file.error);
  return usable_plan(file.bytes, path);
}

std::vector<RunTime> run_on_device(const std::shared_ptr<const UsablePlan>& usable, std::size_t number,
                                   const std::vector<InputView>& inputs, const Constants& constants,
                                   const std::vector<void*>& outputs, std::size_t runs) {
  const DeviceProgram program(usable, number, constants);
  DeviceWorkspace workspace(*usable->device, usable->plan->islands[number], DeviceWorkspace::Tensors::kOnHost);
  workspace.prepare(program.alternatives(), inputs);
  for (int run = 0; run < 2; ++run) workspace.run(inputs, outputs, nullptr);  // the second by what the first has made ready

  std::vector<RunTime> times(runs);
  for (RunTime& time : times) {
    const auto begin = Clock::now();
    workspace.run(inputs, outputs, nullptr);
    time.all_ns = ns_since(begin);
  }
  for (RunTime& time : times) time.kernels_ns = workspace.run_timed(inputs, outputs);
  return times;
}

// Reads each cache line, so that it is near.
void touch(const void* data, std::size_t bytes) noexcept {
  const auto* begin = static_cast<const volatile char*>(data);
  for (std::size_t i = 0; i < bytes; i += kAlignment) static_cast<void>(begin[i]);
}

// Kept for the next trial: to make it takes longer than most kernels. A process that makes trials does nothing else.
const MemoryBlock& memory_between(std::size_t bytes) {
  static MemoryBlock memory;
  if (memory.size() < bytes) {
    memory = MemoryBlock(bytes, "what is read between runs");
    std::memset(memory.data(), 1, memory.size());  // untouched, all of it is one page of zeros
  }
  return memory;
}

std::vector<RunTime> run_on_cpu(UsablePlan usable, std::size_t number, const std::vector<InputView>& inputs,
                                const std::vector<ConstantView>& constants, const std::vector<void*>& outputs,
                                const Timed& timed) {
  OpenedIsland opened(std::move(usable), number, constants);
  const PlanIsland& island = opened.plan();
  const TrialThreads threads(timed.threads);
  const MemoryBlock& between = memory_between(timed.between_bytes);

  std::vector<RunTime> times(timed.runs + 2);
  for (RunTime& time : times) {
    OpenedIsland::Run run(opened, inputs);
    run.bind(outputs);
    touch(between.data(), timed.between_bytes);
    for (std::size_t i = 0; i < inputs.size(); ++i)
      touch(inputs[i].data, tensor_bytes(island.inputs[i].elem_type, inputs[i].dims, inputs[i].rank));
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const auto& dims = run.output_dims(i);
      touch(outputs[i], tensor_bytes(island.outputs[i].elem_type, dims.data(), dims.size()));
    }
    const auto begin = Clock::now();
    run.carry_out(threads);
    time.all_ns = time.kernels_ns = ns_since(begin);
    run.end();
  }
  return {times.begin() + 2, times.end()};
}

}  // namespace

std::vector<RunTime> run_island(const std::string& path, std::size_t number, const std::vector<InputView>& inputs,
                                const std::vector<ConstantView>& constants, const std::vector<void*>& outputs,
                                const Timed& timed) {
  UsablePlan usable = plan_in(path);
  if (number >= usable.plan->islands.size()) throw Error(kInvalidArgument, path + " has no such island");
  const PlanIsland& island = usable.plan->islands[number];
  if (inputs.size() != island.inputs.size() || outputs.size() != island.outputs.size() ||
      constants.size() != island.constants.size())
    throw Error(kInvalidArgument, path + " has other inputs, constants and outputs");
  if (usable.device == nullptr) return run_on_cpu(std::move(usable), number, inputs, constants, outputs, timed);
  const Constants known{[&](std::size_t i) { return constants.at(i).data; }, [&](std::size_t i) { return constants.at(i).bytes; }};
  return run_on_device(std::make_shared<const UsablePlan>(std::move(usable)), number, inputs, known, outputs, timed.runs);
}

}  // namespace xyntra
