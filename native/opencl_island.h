// An island on an OpenCL device. Constants go there once, when the session is created; a run moves inputs and outputs and
// starts kernels, without Python and without compiling.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "init_steps.h"
#include "island.h"
#include "opencl_workspace.h"
#include "workspace_pool.h"

namespace xyntra {

class OpenClIsland : public Island {
 public:
  // Packs the weights on the device. Afterwards nothing of `graph` is used.
  OpenClIsland(const Ort& ort, std::shared_ptr<const UsablePlan> usable, std::size_t island, const OrtGraph* graph,
               const OrtNode* fused_node);

 private:
  using Constants = std::vector<const OrtValue*>;

  void make_ready(const Alternative& plan, const Constants& constants);
  void run_init(const Alternative& plan, ReadyOnDevice& ready, const Constants& constants);
  cl::Mem constant(std::size_t index, const Constants& constants);
  void compute(OrtKernelContext* context) override;

  const OpenClDevice& device_;
  std::vector<ReadyOnDevice> alternatives_;
  std::vector<cl::OwnedMem> kept_;  // weights and literals
  // While the constructor runs: alternatives read and pack mostly the same, and once is enough.
  std::map<std::size_t, cl::OwnedMem> constants_;
  std::map<std::vector<int64_t>, cl::Mem> packed_;
  WorkspacePool<OpenClWorkspace> workspaces_;
};

}  // namespace xyntra
