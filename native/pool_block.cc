#include "pool_block.h"

#include <algorithm>

#include "live.h"

namespace xyntra {

PoolBlock::PoolBlock(std::size_t capacity)
    : block_(MemoryBlock::reserve(capacity, "the packed weights of a session")), page_(block_.page()) {
  if (page_ == 0) return;
  holders_ = std::make_unique<std::atomic<uint32_t>[]>(block_.size() / page_);
  hold(0, block_.size());
}

PoolBlock::~PoolBlock() { count(Live::kBlockBytes, dropped_.load(std::memory_order_relaxed)); }

void PoolBlock::finish(std::size_t used) noexcept {
  const std::size_t capacity = block_.size();
  block_.shrink(used);
  // Pages behind it were never held by a weight, and are gone.
  if (page_ != 0) let_go(0, std::min(capacity, block_.size()));
}

void PoolBlock::hold(std::size_t begin, std::size_t end) noexcept {
  if (page_ == 0) return;
  for (std::size_t page = begin / page_; page * page_ < end; ++page) holders_[page].fetch_add(1, std::memory_order_relaxed);
}

void PoolBlock::let_go(std::size_t begin, std::size_t end) noexcept {
  if (page_ == 0) return;
  std::size_t first = begin / page_, page = first;
  const auto drop = [&] {
    if (first == page) return;
    block_.drop(first * page_, page * page_);
    const auto bytes = static_cast<int64_t>((page - first) * page_);
    dropped_.fetch_add(bytes, std::memory_order_relaxed);
    count(Live::kBlockBytes, -bytes);
  };
  for (; page * page_ < end; ++page) {
    if (holders_[page].fetch_sub(1, std::memory_order_acq_rel) == 1) continue;
    drop();
    first = page + 1;
  }
  drop();
}

}  // namespace xyntra
