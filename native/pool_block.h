// The memory of a session's packed weights, one after the other in the order of their use, so that huge pages hold many of them.
// A page is given back with the last weight on it, even if other weights of the block are still in use; the addresses go with
// the last weight.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "memory_block.h"

namespace xyntra {

class PoolBlock {
 public:
  // As much as may come; held as a whole until finish().
  explicit PoolBlock(std::size_t capacity);
  ~PoolBlock();
  PoolBlock(const PoolBlock&) = delete;
  PoolBlock& operator=(const PoolBlock&) = delete;

  char* data() const noexcept { return block_.data(); }
  std::size_t size() const noexcept { return block_.size(); }
  // Nothing more comes, and what lies behind `used` bytes is not needed.
  void finish(std::size_t used) noexcept;
  // Somebody needs these bytes; before finish().
  void hold(std::size_t begin, std::size_t end) noexcept;
  void let_go(std::size_t begin, std::size_t end) noexcept;

 private:
  MemoryBlock block_;
  std::size_t page_ = 0;  // 0: the block goes as a whole
  std::unique_ptr<std::atomic<uint32_t>[]> holders_;  // per page; one that came to 0 is never held again
  std::atomic<int64_t> dropped_{0};
};

}  // namespace xyntra
