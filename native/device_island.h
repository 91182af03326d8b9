// An island on a device. Constants go there once, when the session is created; a run moves inputs and outputs and
// starts kernels, without Python and without compiling.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "device_workspace.h"
#include "init_steps.h"
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
  using Constants = std::vector<const OrtValue*>;

  void make_ready(const Alternative& plan, const Constants& constants);
  void run_init(const Alternative& plan, ReadyOnDevice& ready, const Constants& constants);
  void* constant(std::size_t index, const Constants& constants);
  void compute(OrtKernelContext* context) override;

  const Device& device_;
  const DeviceWorkspace::Tensors tensors_;
  std::vector<ReadyOnDevice> alternatives_;
  std::vector<DeviceMemory> kept_;  // weights and literals
  // While the constructor runs: alternatives read and pack mostly the same, and once is enough.
  std::map<std::size_t, DeviceMemory> constants_;
  std::map<std::vector<int64_t>, void*> packed_;
  WorkspacePool<DeviceWorkspace> workspaces_;
};

}  // namespace xyntra
