// Workspaces of an island that no run uses at the moment. Each run takes one, or makes one when all are in use, and gives it
// back at its end, so that any number of threads may run a session.
#pragma once

#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

namespace xyntra {

template <class Space>
class WorkspacePool {
 public:
  class Lease {
   public:
    Lease(WorkspacePool& pool, std::unique_ptr<Space> space) : pool_(pool), space_(std::move(space)) {}
    ~Lease() {
      try {
        const std::lock_guard lock(pool_.mutex_);
        pool_.free_.push_back(std::move(space_));
      } catch (const std::bad_alloc&) {
        space_.reset();  // the next run makes a new one
      }
    }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    Space& operator*() const noexcept { return *space_; }

   private:
    WorkspacePool& pool_;
    std::unique_ptr<Space> space_;
  };

  template <class Make>
  Lease take(Make&& make) {
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        auto space = std::move(free_.back());
        free_.pop_back();
        return Lease(*this, std::move(space));
      }
    }
    return Lease(*this, make());
  }

 private:
  std::mutex mutex_;  // of free_ only
  std::vector<std::unique_ptr<Space>> free_;
};

}  // namespace xyntra
