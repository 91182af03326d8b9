// A 64-byte aligned block of memory; large ones are mapped on their own and ask for huge pages.
#pragma once

#include <cstddef>

namespace xyntra {

inline constexpr std::size_t kAlignment = 64;
// Kernels may read this far past the end of our buffers, so that vector loops need no scalar tail.
inline constexpr std::size_t kSpareBytes = 64;

constexpr std::size_t align_up(std::size_t n, std::size_t to) { return (n + to - 1) / to * to; }

class MemoryBlock {
 public:
  MemoryBlock() = default;
  // Throws NoMemory, which says what the block is for. The content is undefined; pages of mapped blocks cost nothing until
  // touched.
  MemoryBlock(std::size_t bytes, const char* what);
  // Addresses for as much as may come: mapped unless it is little, and nothing need be there for what is never touched.
  static MemoryBlock reserve(std::size_t bytes, const char* what);
  ~MemoryBlock() { release(); }
  MemoryBlock(MemoryBlock&& other) noexcept;
  MemoryBlock& operator=(MemoryBlock&& other) noexcept;

  char* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }
  // In how large parts it can be given back; 0: only as a whole.
  std::size_t page() const noexcept;
  // Gives the pages behind `bytes` back, with their addresses; only mapped blocks have any to give.
  void shrink(std::size_t bytes) noexcept;
  // Gives pages back that nobody touches any more; their addresses stay. Of a mapped block, in whole pages.
  void drop(std::size_t begin, std::size_t end) const noexcept;

 private:
  MemoryBlock(std::size_t bytes, const char* what, std::size_t least_mapped, bool reserve);
  void release() noexcept;

  char* data_ = nullptr;
  std::size_t size_ = 0;
  bool mapped_ = false;
};

}  // namespace xyntra
