// An island on a device. Constants go there once, when the session is created; a run moves inputs and outputs and
// starts kernels, without Python and without compiling.
#pragma once

#include <memory>

#include "device_program.h"
#include "island.h"
#include "workspace_pool.h"

namespace xyntra {

// Why a session of this plan could not be made; empty when it seems that it can.
std::string why_device_fails(const UsablePlan& usable);

class DeviceIsland : public Island {
 public:
  // Packs the weights on the device. Afterwards nothing of `graph` is used.
  DeviceIsland(const Ort& ort, std::shared_ptr<const UsablePlan> usable, std::size_t island, const OrtGraph* graph,
               const OrtNode* fused_node, DeviceWorkspace::Tensors tensors);

 private:
  void compute(OrtKernelContext* context) override;
  void compute_on_device(OrtKernelContext* context);
  void trace_steps(const DeviceWorkspace& workspace, const std::vector<profile::Sample>& samples) const noexcept;

  const Device& device_;
  const DeviceWorkspace::Tensors tensors_;
  const DeviceProgram program_;
  WorkspacePool<DeviceWorkspace> workspaces_;
};

}  // namespace xyntra
