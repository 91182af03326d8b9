// What one run of an island on the CPU needs besides the weights: its plan at the shapes at hand, memory for temporaries
// and the tables of pointers and parameters that kernels are called with. A workspace serves one run at a time; a run with
// the shapes of the last one only fills in input and output pointers.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "evaluation.h"
#include "kernel_loader.h"
#include "live.h"
#include "memory_block.h"
#include "overlap.h"
#include "plan.h"
#include "quiet.h"

namespace xyntra {

// What an alternative needs that does not depend on shapes: weights packed, literals aligned, kernels found.
struct ReadyAlternative {
  std::vector<void*> fixed;     // per buffer: the address of a POOL or LITERAL buffer, else null
  std::vector<Kernel> kernels;  // per run step
};

// A step is cut into tasks of about kTaskNs, neighbouring units in one, which ORT's pool hands out as threads ask for them.
// Handing one out costs 0.1 us and waking the pool 2 us, so a step of less than kInlineNs stays on the calling thread. A
// longer one should not: what it reads lies in the caches of the cores that wrote it, and one thread would have to fetch
// it all.
inline constexpr int64_t kTaskNs = 1'000;
inline constexpr int64_t kInlineNs = 6'000;

class Workspace {
 public:
  // `abreast` iterations of a loop at a time, each with its own row of `buffers`.
  struct Step {
    Kernel kernel = nullptr;
    void** buffers = nullptr;
    const int64_t* params = nullptr;
    std::size_t row = 0;  // buffers that the kernel takes
    int64_t units = 0;    // of one iteration
    int64_t tasks = 0;    // each is a range of units of one iteration
    int64_t cost_ns = 0;
    int64_t abreast = 1;
    std::atomic<uint64_t>* threads = nullptr;  // where there are loops: those that carried out a task, a bit for each

    // Beside other steps, and not again and again.
    std::size_t tasks_beside() const noexcept { return units <= 0 ? 0 : static_cast<std::size_t>(tasks); }
  };

  explicit Workspace(const PlanIsland& island) : evaluation_(island, kAlignment) {}

  // Makes the tables right for `inputs`; `alternatives` are those of the island. Throws as Evaluation::prepare() does, and
  // NoMemory.
  void prepare(const std::vector<ReadyAlternative>& alternatives);
  // From this run on, the steps call these kernels, which stay where they are: by run step of the alternative at hand.
  void use(const std::vector<Kernel>& kernels) noexcept;
  // Fills the addresses of this run, which are in `inputs` and `outputs`, into the tables.
  void bind();
  // After the steps: what was computed elsewhere goes to where it belongs.
  void deliver() const noexcept;
  // No run uses it: memory that none has needed for a while goes.
  void rest(quiet::Time now) noexcept;
  const std::vector<Step>& steps() const noexcept { return steps_; }
  // The next iterations of a loop, from number `first` on: its steps see their images. Returns how many they are.
  int64_t begin_iterations(const BatchLoop& loop, int64_t first);
  // After the steps: how many iterations of a loop the next run shall have side by side. As many as there are threads: each
  // then has an image, and so many images stay in the caches.
  void count_threads() noexcept;
  // After the steps: what is wrong with the data of this run, null when nothing is.
  const PlanFault* fault() const noexcept;
  const Evaluation& evaluation() const noexcept { return evaluation_; }

  // Of the run at hand.
  std::vector<InputView> inputs;
  std::vector<void*> outputs;

 private:
  struct Patch {
    std::size_t slot;
    uint32_t index;  // of the input or output
    bool is_output;
    int64_t offset;
  };

  // A slot that moves from image to image.
  struct Moving {
    const BatchLoop* loop;
    std::size_t slot;
    int64_t abreast;  // which of the iterations side by side
    int64_t bytes;    // from one image to the next
    bool bound;       // it is a run's input or output
    void* base = nullptr;
  };

  // An output of this run that must not be written where ORT wants it.
  struct Aside {
    void* to;
    const void* from;
    std::size_t bytes;
  };

  void take_memory();
  void fill_tables(const ReadyAlternative& ready);
  void fill_row(const ReadyAlternative& ready, const PlanStep& step, const BatchLoop* loop, int64_t abreast);
  void find_sizes();
  void find_order();
  void set_aside();
  bool must_be_aside(std::size_t output) const noexcept;

  const Counted<Live::kWorkspaces> counted_;
  Evaluation evaluation_;
  MemoryBlock arena_;
  std::size_t most_wanted_ = 0;  // of the arena, in this period
  quiet::Time period_began_ = 0;
  std::vector<void*> slots_;
  std::vector<int64_t> params_;
  std::vector<Patch> patches_;
  std::vector<Moving> moving_;
  std::atomic<uint64_t> seen_{0};
  int64_t threads_ = 1;
  std::vector<Step> steps_;
  const std::vector<Kernel>* kernels_ = nullptr;  // that the steps call

  std::vector<std::size_t> input_bytes_, output_bytes_;
  std::vector<std::size_t> reads_;        // per input: how many steps there are up to the last that reads it
  std::vector<std::size_t> first_write_;  // per output: the step
  OverlapSearch shared_;
  std::vector<Aside> aside_;
  std::vector<MemoryBlock> aside_memory_;  // per output
};

}  // namespace xyntra
