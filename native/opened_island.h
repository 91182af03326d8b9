// An island of a plan that is opened once and run many times, by a host that is no ONNX Runtime: Python's front ends, and whoever
// links the library. Any number of threads may run it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cpu_program.h"
#include "evaluation.h"
#include "workspace_pool.h"

namespace xyntra {

// A constant, in memory that stays as it is while the island is opened.
struct ConstantView {
  const void* data = nullptr;
  std::size_t bytes = 0;
};

// Reads a plan and opens its kernels; throws why one cannot be had. `name`: of the plan, for messages.
UsablePlan usable_plan(std::string_view bytes, const std::string& name);

class OpenedIsland {
 public:
  // Of a plan for the CPU. Packs the weights on the calling thread; afterwards nobody reads the constants. They are in the plan's
  // order.
  OpenedIsland(UsablePlan usable, std::size_t number, const std::vector<ConstantView>& constants);
  OpenedIsland(std::shared_ptr<const UsablePlan> usable, std::size_t number, const Constants& constants);

  const PlanIsland& plan() const noexcept { return island_; }

  // A run of the island. One thread has it; `island` lives longer.
  class Run {
   public:
    // Finds the sizes. Throws what is wrong with the inputs.
    Run(OpenedIsland& island, const std::vector<InputView>& inputs);

    const std::vector<int64_t>& output_dims(std::size_t output) const noexcept {
      return workspace_.evaluation().output_dims(output);
    }
    // Where the outputs go: there is room for what output_dims() says.
    void bind(const std::vector<void*>& outputs);
    void carry_out(const Tasks& tasks);
    // The outputs are complete. Throws what is wrong with the data of the inputs.
    void end();

   private:
    const OpenedIsland& island_;
    const WorkspacePool<Workspace>::Lease lease_;
    Workspace& workspace_;
  };

 private:
  const std::shared_ptr<const UsablePlan> usable_;
  const PlanIsland& island_;
  PoolWriter pool_;
  const CpuProgram program_;
  WorkspacePool<Workspace> workspaces_;
};

}  // namespace xyntra
