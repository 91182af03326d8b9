// An island on the CPU: kernels are functions of this process, their units run on ORT's own threads.
#pragma once

#include <atomic>
#include <memory>

#include "cpu_program.h"
#include "island.h"
#include "weight_pool.h"
#include "workspace_pool.h"

namespace xyntra {

class CpuIsland : public Island {
 public:
  // Packs the weights on the calling thread. Afterwards nothing of `graph` is used.
  CpuIsland(const Ort& ort, std::shared_ptr<const UsablePlan> usable, std::size_t island, const OrtGraph* graph,
            const OrtNode* fused_node, PoolWriter& pool);

 private:
  void compute(OrtKernelContext* context) override;

  const CpuProgram program_;
  std::atomic<bool> has_run_{false};
  WorkspacePool<Workspace> workspaces_;
};

}  // namespace xyntra
