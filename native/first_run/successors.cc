#include "successors.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <utility>

#include "system.h"

namespace xyntra {
namespace {

constexpr int64_t kBetweenLooksNs = 1'000'000'000;

int64_t now_ns() noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

Successors::Successors(std::shared_ptr<const UsablePlan> usable, std::size_t island, Say say)
    : usable_(std::move(usable)), island_(usable_->plan->islands[island]), say_(std::move(say)) {
  for (const Alternative& plan : island_.alternatives) {
    for (const PlanStep& step : plan.run) {
      if (usable_->plan->kernels[step.kernel].successor.empty()) continue;
      if (std::find(wanted_.begin(), wanted_.end(), step.kernel) == wanted_.end()) wanted_.push_back(step.kernel);
    }
  }
  pending_ = !wanted_.empty();
  if (pending_) look();
}

void Successors::look() noexcept {
  const int64_t now = now_ns();
  int64_t next = next_look_ns_.load(std::memory_order_relaxed);
  if (now < next || !next_look_ns_.compare_exchange_strong(next, now + kBetweenLooksNs)) return;
  const std::unique_lock lock(looking_, std::try_to_lock);  // no run waits for one that loads
  if (!lock || !pending_) return;
  try {
    for (; there_ < wanted_.size(); ++there_) {
      if (!std::filesystem::exists(system::to_system(usable_->plan->successor_path(wanted_[there_])))) return;
    }
    exchange();
  } catch (const std::exception& error) {
    lists_.clear();
    try {
      if (say_) say_(error.what());
    } catch (...) {  // a log that fails is no reason for a run to fail
    }
  }
  pending_ = false;
}

void Successors::exchange() {
  std::map<uint32_t, Kernel> found;
  for (const uint32_t number : wanted_) {
    const LoadedKernel& general = usable_->kernels[number];
    const LoadedKernel loaded =
        load_sealed_kernel(usable_->plan->successor_path(number), usable_->plan->kernels[number].successor_symbol);
    if (!loaded.usable()) throw Error(kFail, loaded.error);
    if (loaded.buffers != general.buffers || loaded.params != general.params)
      throw Error(kFail, loaded.symbol + " takes other buffers or parameters than " + general.symbol);
    found[number] = loaded.function;
  }
  for (const Alternative& plan : island_.alternatives) {
    std::vector<Kernel>& list = lists_.emplace_back();
    for (const PlanStep& step : plan.run) {
      const auto at = found.find(step.kernel);
      list.push_back(at != found.end() ? at->second : usable_->kernels[step.kernel].function);
    }
  }
  taken_.store(&lists_, std::memory_order_release);
}

}  // namespace xyntra
