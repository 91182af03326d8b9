#include "memory_block.h"

#include <cstdint>
#include <utility>

#include "live.h"
#include "ort.h"
#include "system.h"

namespace xyntra {
namespace {

constexpr std::size_t kLeastMapped = std::size_t{2} << 20;  // a huge page
constexpr std::size_t kLeastReserved = std::size_t{64} << 10;  // what is less is not worth a mapping

}  // namespace

MemoryBlock::MemoryBlock(std::size_t bytes, const char* what, std::size_t least_mapped, bool reserve) {
  if (bytes > SIZE_MAX / 2) throw NoMemory(bytes, what);
  mapped_ = bytes >= least_mapped;
  const std::size_t size = align_up(bytes == 0 ? 1 : bytes, mapped_ ? system::page_bytes() : kAlignment);
  data_ = mapped_ ? system::map_pages(size, reserve) : static_cast<char*>(system::allocate(kAlignment, size));
  if (data_ == nullptr) throw NoMemory(bytes, what);
  size_ = size;
  count(Live::kBlocks, 1);
  count(Live::kBlockBytes, static_cast<int64_t>(size_));
}

MemoryBlock::MemoryBlock(std::size_t bytes, const char* what) : MemoryBlock(bytes, what, kLeastMapped, false) {}

// Without a reservation: what is only an upper bound may be more than the machine has.
MemoryBlock MemoryBlock::reserve(std::size_t bytes, const char* what) {
  return {bytes, what, kLeastReserved, true};
}

MemoryBlock::MemoryBlock(MemoryBlock&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)), mapped_(other.mapped_) {}

MemoryBlock& MemoryBlock::operator=(MemoryBlock&& other) noexcept {
  if (this != &other) {
    release();
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
    mapped_ = other.mapped_;
  }
  return *this;
}

std::size_t MemoryBlock::page() const noexcept { return mapped_ ? system::page_bytes() : 0; }

void MemoryBlock::shrink(std::size_t bytes) noexcept {
  const std::size_t kept = align_up(bytes == 0 ? 1 : bytes, system::page_bytes());
  if (!mapped_ || kept >= size_ || !system::unmap_end(data_, size_, kept)) return;
  count(Live::kBlockBytes, -static_cast<int64_t>(size_ - kept));
  size_ = kept;
}

void MemoryBlock::drop(std::size_t begin, std::size_t end) const noexcept { system::drop_pages(data_ + begin, end - begin); }

void MemoryBlock::release() noexcept {
  if (data_ == nullptr) return;
  count(Live::kBlocks, -1);
  count(Live::kBlockBytes, -static_cast<int64_t>(size_));
  if (mapped_) {
    system::unmap_pages(data_, size_);
  } else {
    system::deallocate(data_);
  }
}

}  // namespace xyntra
