// An island on the CPU: kernels are functions of this process, their units run on ORT's own threads.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <vector>

#include "island.h"
#include "weight_pool.h"
#include "workspace.h"
#include "workspace_pool.h"

namespace xyntra {

class CpuIsland : public Island {
 public:
  // Packs the weights on the calling thread. Afterwards nothing of `graph` is used.
  CpuIsland(const Ort& ort, std::shared_ptr<const UsablePlan> usable, std::size_t island, const OrtGraph* graph,
            const OrtNode* fused_node, PoolWriter& pool);

  // Memory that the weights of an island can take at most.
  static std::size_t pool_room(const PlanIsland& island);

 private:
  void make_ready(const Alternative& plan, const std::vector<const OrtValue*>& constants, PoolWriter& pool);
  void run_init(const Alternative& plan, ReadyAlternative& ready, const std::vector<const OrtValue*>& constants,
                PoolWriter& pool);
  void compute(OrtKernelContext* context) override;
  void run_steps(Workspace& workspace, const OrtKernelContext* context) const;
  void run_step(const Workspace::Step& step, int64_t iterations, const OrtKernelContext* context) const;

  std::vector<ReadyAlternative> alternatives_;
  std::vector<PooledWeight> weights_;
  // While the constructor runs: alternatives pack mostly the same, and once is enough.
  std::map<std::vector<int64_t>, PooledWeight> packed_;
  std::vector<MemoryBlock> literals_;

  std::atomic<bool> has_run_{false};
  WorkspacePool<Workspace> workspaces_;
};

}  // namespace xyntra
