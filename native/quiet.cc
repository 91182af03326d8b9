#include "quiet.h"

#include <algorithm>
#include <atomic>
#include <mutex>

#include "system.h"

namespace xyntra::quiet {
namespace {

constexpr Time kPeriod = 30'000;
constexpr Time kBetween = 1'000;  // that keepers are asked, at least

std::atomic<Time> g_period{kPeriod};
std::atomic<Time> g_asked{0};

struct Keepers {
  std::mutex mutex;
  Keeper* first = nullptr;
};

Keepers& keepers() {
  static auto* const instance = new Keepers;  // leaked: sessions may end after static destructors ran
  return *instance;
}

}  // namespace

Time now() noexcept { return system::coarse_ms(); }

Time period() noexcept { return g_period.load(std::memory_order_relaxed); }

Time set_period(Time period) noexcept { return g_period.exchange(period, std::memory_order_relaxed); }

Keeper::Keeper(void* self, GiveBack give_back) : self_(self), give_back_(give_back) {
  Keepers& all = keepers();
  const std::lock_guard lock(all.mutex);
  next_ = all.first;
  here_ = &all.first;
  if (next_ != nullptr) next_->here_ = &next_;
  all.first = this;
}

Keeper::~Keeper() {
  const std::lock_guard lock(keepers().mutex);
  *here_ = next_;
  if (next_ != nullptr) next_->here_ = here_;
}

void run_ended(Time now) noexcept {
  const Time most = period();
  Time asked = g_asked.load(std::memory_order_relaxed);
  if (now - asked < std::min(kBetween, most)) return;
  if (!g_asked.compare_exchange_strong(asked, now, std::memory_order_relaxed)) return;  // somebody else asks
  Keepers& all = keepers();
  const std::unique_lock lock(all.mutex, std::try_to_lock);  // a run does not wait for sessions that come and go
  if (!lock.owns_lock()) return;
  for (Keeper* keeper = all.first; keeper != nullptr; keeper = keeper->next_) keeper->give_back_(keeper->self_, now - most);
}

}  // namespace xyntra::quiet
