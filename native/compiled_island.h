// One claimed island in one session: what ORT calls a node compute info.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "ort.h"
#include "plan_source.h"
#include "weight_pool.h"
#include "workspace.h"

namespace xyntra {

class CompiledIsland : public OrtNodeComputeInfo {
 public:
  // Packs the weights on the calling thread. Afterwards nothing of `graph` is used.
  CompiledIsland(const Ort& ort, std::shared_ptr<const UsablePlan> usable, std::size_t island, const OrtGraph* graph,
                 const OrtNode* fused_node, PoolWriter& pool);

  // Memory that the weights of an island can take at most.
  static std::size_t pool_room(const PlanIsland& island);

 private:
  class Lease;

  void find_positions(const OrtNode* fused_node);
  void make_ready(const Alternative& plan, const std::vector<const OrtValue*>& constants, PoolWriter& pool);
  void run_init(const Alternative& plan, ReadyAlternative& ready, const std::vector<const OrtValue*>& constants,
                PoolWriter& pool);
  void compute(OrtKernelContext* context);
  void run_steps(const Workspace& workspace, const OrtKernelContext* context) const;
  void run_step(const Workspace::Step& step, const OrtKernelContext* context) const;

  static OrtStatus* create_state(OrtNodeComputeInfo* self, OrtNodeComputeContext* context, void** state);
  static OrtStatus* compute_callback(OrtNodeComputeInfo* self, void* state, OrtKernelContext* context);
  static void release_state(OrtNodeComputeInfo* self, void* state);

  const Ort& ort_;
  const std::shared_ptr<const UsablePlan> usable_;
  const PlanIsland& island_;
  std::vector<std::size_t> input_position_, output_position_;  // within the fused node
  std::vector<ReadyAlternative> alternatives_;
  std::vector<PooledWeight> weights_;
  // While the constructor runs: alternatives pack mostly the same, and once is enough.
  std::map<std::vector<int64_t>, PooledWeight> packed_;
  std::vector<MemoryBlock> literals_;

  std::atomic<bool> has_run_{false};
  std::mutex mutex_;  // of free_ only
  std::vector<std::unique_ptr<Workspace>> free_;
};

}  // namespace xyntra
