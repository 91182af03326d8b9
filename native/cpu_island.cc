#include "cpu_island.h"

#include <atomic>
#include <utility>

#include "factory.h"
#include "memory_block.h"
#include "system.h"

namespace xyntra {
namespace {

// ORT drops the weights that we packed after Compile, and the C library keeps their pages: as much memory again as the
// model has. They go with an island's first run. Not before: who creates one session after the other uses them for the
// next. And not with a later one: a session that serves must not pay for one that is created beside it.
std::atomic<bool> weights_dropped{false};

void give_back_dropped_weights() noexcept {
  if (weights_dropped.load(std::memory_order_relaxed) && weights_dropped.exchange(false)) system::give_back_free_heap();
}

void say_that_it_stays(const std::string& why) {
  Factory::say(kInfo, "XyntraEP goes on with the kernels that a session began with: " + why);
}

// ORT's own threads.
class OrtTasks : public Tasks {
 public:
  OrtTasks(const Ort& ort, const OrtKernelContext* context) : ort_(ort), context_(context) {}
  void run(void (*task)(void*, std::size_t), std::size_t count, void* step) const override {
    ort_.check(ort_[api::kParallelFor](context_, task, count, 0, step));
  }

 private:
  const Ort& ort_;
  const OrtKernelContext* context_;
};

}  // namespace

CpuIsland::CpuIsland(const Ort& ort, std::shared_ptr<const UsablePlan> usable, std::size_t island,
                     const OrtGraph* graph, const OrtNode* fused_node, PoolWriter& pool)
    : Island(ort, std::move(usable), island, fused_node),
      program_(usable_, island, constants_in(graph), pool, say_that_it_stays) {
  weights_dropped = true;
}

void CpuIsland::compute(OrtKernelContext* context) {
  if (!has_run_.load(std::memory_order_relaxed) && !has_run_.exchange(true)) give_back_dropped_weights();
  const auto lease = workspaces_.take([&] { return std::make_unique<Workspace>(island_); });
  Workspace& workspace = *lease;
  read_inputs(context, workspace.inputs);
  workspace.prepare(program_.alternatives());
  make_outputs(context, workspace.evaluation(), workspace.outputs);
  workspace.bind();
  program_.run(workspace, OrtTasks(ort_, context), traced_as());
  if (const PlanFault* fault = workspace.fault()) workspace.evaluation().refuse(fault->message, workspace.inputs);
  workspace.deliver();
  workspace.count_threads();
}

}  // namespace xyntra
