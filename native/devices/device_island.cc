#include "device_island.h"

#include <algorithm>
#include <utility>

#include "factory.h"
#include "init_steps.h"
#include "trace.h"

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
    : Island(ort, std::move(usable), island, fused_node),
      device_(*usable_->device),
      tensors_(tensors),
      program_(usable_, island, constants_in(graph)) {}

// ORT has a line in its log for each run that fails; that the device is lost is said once by itself.
void DeviceIsland::compute(OrtKernelContext* context) {
  try {
    device_.require_alive();
    compute_on_device(context);
  } catch (const DeviceLost& lost) {
    if (device_.is_first_told()) Factory::say(kError, std::string(lost.what()) + ". " + what_is_left(lost.kind()));
    throw;
  }
}

void DeviceIsland::compute_on_device(OrtKernelContext* context) {
  const auto lease = workspaces_.take([&] { return std::make_unique<DeviceWorkspace>(device_, island_, tensors_); });
  DeviceWorkspace& workspace = *lease;
  read_inputs(context, workspace.inputs);
  workspace.prepare(program_.alternatives(), workspace.inputs);
  make_outputs(context, workspace.evaluation(), workspace.outputs);
  const profile::Mode mode = profile::mode();
  const trace::Detail detail = trace::detail();
  const std::size_t alternative = workspace.evaluation().alternative();
  if (mode == profile::Mode::kOff && detail == trace::Detail::kOff) {
    workspace.run(workspace.inputs, workspace.outputs, nullptr);
  } else if (mode == profile::Mode::kSteps || (mode == profile::Mode::kOff && detail == trace::Detail::kSteps)) {
    std::vector<profile::Sample> samples;
    workspace.run(workspace.inputs, workspace.outputs, &samples);
    if (mode == profile::Mode::kSteps)
      profile::add(*usable_->plan, island_, alternative, profile::Kernels::kPlanned, samples);
    trace_steps(workspace, samples);
  } else {
    const int64_t ns = workspace.run_timed(workspace.inputs, workspace.outputs);
    if (mode == profile::Mode::kRuns) profile::add_run(*usable_->plan, island_, alternative, ns);
    profile::Sample whole;
    whole.calls = 1;
    whole.ns = ns;
    trace_steps(workspace, {whole});
  }
}

// One after the other, from when the host started them: how long they took is by the device's clock. One sample of an island with
// several steps is of all of them together.
void DeviceIsland::trace_steps(const DeviceWorkspace& workspace, const std::vector<profile::Sample>& samples) const noexcept {
  const uint32_t place = traced_as();
  if (place == 0) return;
  TraceRecord record;
  record.kind = TraceKind::kDeviceStep;
  record.name = place;
  record.alternative = static_cast<uint16_t>(workspace.evaluation().alternative());
  record.end_ns = workspace.started_ns();
  const bool whole = samples.size() != workspace.evaluation().plan().run.size();
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (samples[i].ns <= 0) continue;
    record.step = whole ? kTraceAllSteps : static_cast<uint32_t>(i);
    record.begin_ns = record.end_ns;
    record.end_ns += samples[i].ns;
    record.flops = samples[i].flops;
    record.bytes = samples[i].bytes;
    record.calls = static_cast<uint32_t>(samples[i].calls);
    trace::put(record);
  }
}

}  // namespace xyntra
