// The packed weights of the process: sessions with the same weights share them by content.
//
// A PoolWriter serves one call of Compile. Init steps write straight into its block, buffer after buffer; a finished
// buffer is hashed and, if the process already holds the same bytes, its place is used again for the next one. So
// weights are never copied, the order in memory is the order of production, and no lock is held while kernels run.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "hash128.h"
#include "pool_block.h"

namespace xyntra {

class PoolEntry {
 public:
  PoolEntry(std::shared_ptr<PoolBlock> block, const char* data, std::size_t bytes, const Hash128& hash);
  ~PoolEntry();  // forgets the entry and lets its memory go
  PoolEntry(const PoolEntry&) = delete;
  PoolEntry& operator=(const PoolEntry&) = delete;

  const char* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return bytes_; }
  const Hash128& hash() const noexcept { return hash_; }

 private:
  std::size_t begin() const noexcept { return static_cast<std::size_t>(data_ - block_->data()); }

  const std::shared_ptr<PoolBlock> block_;
  const char* data_;
  std::size_t bytes_;
  Hash128 hash_;
};

using PooledWeight = std::shared_ptr<const PoolEntry>;

class PoolWriter {
 public:
  // `capacity`: the sum of room_for() of all buffers that may come.
  explicit PoolWriter(std::size_t capacity);
  ~PoolWriter();
  PoolWriter(const PoolWriter&) = delete;
  PoolWriter& operator=(const PoolWriter&) = delete;

  static std::size_t room_for(std::size_t bytes) { return align_up(bytes + kSpareBytes, kAlignment); }

  // Memory to write `bytes` into; several buffers may be open at a time.
  char* open(std::size_t bytes);
  // The buffer is written: gives what the session shall use, which may be an equal one from elsewhere.
  PooledWeight close(char* data, std::size_t bytes);

 private:
  std::shared_ptr<PoolBlock> block_;
  std::size_t used_ = 0;
};

// Bytes of packed weights alive in this process.
uint64_t pool_bytes() noexcept;

}  // namespace xyntra
