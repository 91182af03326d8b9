// Workspaces of an island that no run uses at the moment. Each run takes one, or makes one when all are in use, and gives it
// back at its end, so that any number of threads may run a session. There are as many as runs there were at once, until some have
// not been used for a while (quiet.h).
#pragma once

#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "quiet.h"

namespace xyntra {

template <class Space>
class WorkspacePool {
 public:
  class Lease {
   public:
    Lease(WorkspacePool& pool, std::unique_ptr<Space> space) : pool_(pool), space_(std::move(space)) {}
    ~Lease() {
      const quiet::Time now = quiet::now();
      space_->rest(now);
      try {
        const std::lock_guard lock(pool_.mutex_);
        pool_.free_.push_back({std::move(space_), now});
      } catch (const std::bad_alloc&) {
        space_.reset();  // the next run makes a new one
      }
      quiet::run_ended(now);
    }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    Space& operator*() const noexcept { return *space_; }

   private:
    WorkspacePool& pool_;
    std::unique_ptr<Space> space_;
  };

  // The one used last: what it reads and writes is still in the caches, and those that are too many stay unused.
  template <class Make>
  Lease take(Make&& make) {
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        auto space = std::move(free_.back().space);
        free_.pop_back();
        return Lease(*this, std::move(space));
      }
    }
    return Lease(*this, make());
  }

 private:
  struct Free {
    std::unique_ptr<Space> space;
    quiet::Time since = 0;
  };

  static void give_back(void* self, quiet::Time unused_since) noexcept {
    auto& pool = *static_cast<WorkspacePool*>(self);
    for (;;) {
      std::unique_ptr<Space> old;  // goes without the lock, which runs wait for
      const std::lock_guard lock(pool.mutex_);
      if (pool.free_.empty() || pool.free_.front().since > unused_since) return;
      old = std::move(pool.free_.front().space);
      pool.free_.erase(pool.free_.begin());
    }
  }

  std::mutex mutex_;  // of free_ only
  std::vector<Free> free_;  // the one longest unused first
  quiet::Keeper keeper_{this, give_back};  // the first to go: nobody asks a pool that is going
};

}  // namespace xyntra
