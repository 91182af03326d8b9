// The alternatives of an island on the CPU, ready to run: weights packed, literals aligned, kernels found. Knows no ORT: who makes
// it says where the constants are, and who runs it who carries out tasks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "init_steps.h"
#include "plan_source.h"
#include "profile.h"
#include "successors.h"
#include "weight_pool.h"
#include "workspace.h"

namespace xyntra {

// Who carries out the tasks of a step: calls `task` with `step` and each number below `count`, in any order and on any threads.
class Tasks {
 public:
  virtual void run(void (*task)(void* step, std::size_t number), std::size_t count, void* step) const = 0;

 protected:
  ~Tasks() = default;
};

// What threads do at once: the tasks of a step, or of several side by side, those of the first coming first.
struct Wave {
  const Workspace::Step* first = nullptr;
  std::size_t steps = 0;

  std::size_t tasks() const noexcept;
  // The step that a task belongs to; `task` becomes its number in that.
  std::size_t step_of(std::size_t& task) const noexcept;
};

// A task of a step: its share of the units of an iteration. Neighbours have the same iteration.
void run_units(const Workspace::Step& step, std::size_t task);

class CpuProgram {
 public:
  // Packs the weights on the calling thread. `usable` and the pool's weights live as long as this does.
  CpuProgram(std::shared_ptr<const UsablePlan> usable, std::size_t island, const Constants& constants, PoolWriter& pool,
             Say say = {});

  // Memory that the weights of an island can take at most.
  static std::size_t pool_room(const PlanIsland& island);

  const std::vector<ReadyAlternative>& alternatives() const noexcept { return alternatives_; }
  // Carries out the steps of a workspace that is prepared and bound. The steps are timed where a profile is asked for. `traced_as`:
  // the island's place in the trace (native/trace.h), 0 while that is off.
  void run(Workspace& workspace, const Tasks& tasks, uint32_t traced_as = 0) const;

 private:
  void make_ready(const Alternative& plan, const Constants& constants, PoolWriter& pool);
  void run_init(const Alternative& plan, ReadyAlternative& ready, const Constants& constants, PoolWriter& pool);

  const std::shared_ptr<const UsablePlan> usable_;
  std::vector<ReadyAlternative> alternatives_;
  mutable Successors successors_;  // which runs look for
  std::vector<PooledWeight> weights_;
  // While the constructor runs: alternatives pack mostly the same, and once is enough.
  std::map<std::vector<int64_t>, PooledWeight> packed_;
  std::vector<MemoryBlock> literals_;
};

}  // namespace xyntra
