// Kernels that take the place of an island's: compiled for the sizes of one model while its session already runs, with general ones.
// They appear in the cache one after the other; once all of an island are there, its next run begins with them.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kernel_loader.h"
#include "plan_source.h"

namespace xyntra {

// Says in a log why an island stays with the kernels that it has.
using Say = std::function<void(const std::string& what)>;

class Successors {
 public:
  // By alternative, for each of its run steps.
  using Lists = std::vector<std::vector<Kernel>>;

  // Looks at once: where they are there already, the first run has them.
  Successors(std::shared_ptr<const UsablePlan> usable, std::size_t island, Say say);

  // The kernels of a run that begins now; null: those that the island was made ready with. Looks at files once a second at most, and
  // after the exchange never again. What it returned stays valid. Any number of threads may ask.
  const Lists* now() noexcept {
    if (pending_.load(std::memory_order_relaxed)) look();
    return taken_.load(std::memory_order_acquire);
  }

 private:
  void look() noexcept;
  void exchange();

  const std::shared_ptr<const UsablePlan> usable_;
  const PlanIsland& island_;
  const Say say_;
  std::vector<uint32_t> wanted_;  // kernels of the plan that have a successor
  std::mutex looking_;
  std::size_t there_ = 0;  // of the wanted ones, the files of the first are there
  Lists lists_;
  std::atomic<int64_t> next_look_ns_{0};
  std::atomic<bool> pending_{false};
  std::atomic<const Lists*> taken_{nullptr};
};

}  // namespace xyntra
