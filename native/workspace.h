// What one run of an island needs besides the weights: the values of all expressions for the shapes at hand, memory for
// temporaries and the tables of pointers and parameters that kernels are called with. A workspace serves one run at a
// time and remembers the shapes it last saw, so a run with the same shapes only fills in input and output pointers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernel_loader.h"
#include "memory_block.h"
#include "plan.h"

namespace xyntra {

// An alternative with everything that does not depend on shapes: weights packed, literals aligned, kernels found.
struct ReadyAlternative {
  const Alternative* plan = nullptr;
  std::vector<void*> fixed;      // per buffer: the address of a POOL or LITERAL buffer, else null
  std::vector<Kernel> kernels;   // per run step
  std::vector<uint32_t> arena;   // indices of the ARENA buffers
  std::vector<Symbol> elements;  // the symbols that read data
};

struct InputView {
  const void* data = nullptr;
  const int64_t* dims = nullptr;
  std::size_t rank = 0;
};

// A step is cut into tasks of about kTaskNs, neighbouring units in one, which ORT's pool hands out as threads ask for them.
// Handing one out costs 0.1 us and waking the pool 2 us, so a step of less than kInlineNs stays on the calling thread. A longer
// one should not: what it reads lies in the caches of the cores that wrote it, and one thread would have to fetch it all.
inline constexpr int64_t kTaskNs = 1'000;
inline constexpr int64_t kInlineNs = 6'000;

class Workspace {
 public:
  struct Step {
    Kernel kernel = nullptr;
    void** buffers = nullptr;
    const int64_t* params = nullptr;
    int64_t units = 0;
    int64_t tasks = 0;  // each is a range of units
  };

  // Makes the tables right for these inputs. Throws Error(INVALID_ARGUMENT) when the plan cannot take them.
  void prepare(const PlanIsland& island, const std::vector<ReadyAlternative>& alternatives,
               const std::vector<InputView>& inputs);

  // After prepare(): the dims of an output, then its address.
  const std::vector<int64_t>& output_dims(std::size_t output) const noexcept { return output_dims_[output]; }
  // Fills the addresses of this run into the tables.
  void bind(const std::vector<InputView>& inputs, const std::vector<void*>& outputs) noexcept;
  const std::vector<Step>& steps() const noexcept { return steps_; }
  const Alternative& plan() const noexcept { return *active_->plan; }
  int64_t value(uint32_t expr) const noexcept { return values_[expr]; }

  // Reused by the caller from run to run.
  std::vector<InputView> inputs;
  std::vector<void*> outputs;

 private:
  struct Patch {
    std::size_t slot;
    uint32_t index;  // of the input or output
    bool is_output;
    int64_t offset;
  };

  void read_key(const PlanIsland& island, const std::vector<ReadyAlternative>& alternatives,
                const std::vector<InputView>& inputs);
  bool applies(const ReadyAlternative& ready, const std::vector<InputView>& inputs, const PlanIsland& island);
  void check(const PlanIsland& island, const std::vector<InputView>& inputs) const;
  void place_arena();
  void fill_tables();

  const ReadyAlternative* active_ = nullptr;  // null: nothing prepared
  std::vector<int64_t> key_, seen_key_;       // ranks, dims and the elements that symbols read
  std::vector<int64_t> symbols_, values_;
  std::vector<std::vector<int64_t>> output_dims_;
  std::vector<uint32_t> order_, placed_;
  std::vector<std::size_t> arena_at_, arena_bytes_;  // per buffer
  MemoryBlock arena_;
  std::vector<void*> slots_;
  std::vector<int64_t> params_;
  std::vector<Patch> patches_;
  std::vector<Step> steps_;
};

}  // namespace xyntra
