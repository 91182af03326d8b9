// A 64-byte aligned block of memory; large ones are mapped on their own and ask for huge pages.
#pragma once

#include <cstddef>

namespace xyntra {

inline constexpr std::size_t kAlignment = 64;
// Kernels may read this far past the end of our buffers, so that vector loops need no scalar tail.
inline constexpr std::size_t kSpareBytes = 64;

constexpr std::size_t align_up(std::size_t n, std::size_t to) { return (n + to - 1) / to * to; }

// Asks the C library to return what was freed to the system, where it can.
void give_back_free_heap() noexcept;

class MemoryBlock {
 public:
  MemoryBlock() = default;
  // Throws std::bad_alloc. The content is undefined; pages of large blocks cost nothing until touched.
  explicit MemoryBlock(std::size_t bytes);
  ~MemoryBlock() { release(); }
  MemoryBlock(MemoryBlock&& other) noexcept;
  MemoryBlock& operator=(MemoryBlock&& other) noexcept;

  char* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }
  // Gives the pages behind `bytes` back; only large blocks have any to give.
  void shrink(std::size_t bytes) noexcept;

 private:
  void release() noexcept;

  char* data_ = nullptr;
  std::size_t size_ = 0;
  bool mapped_ = false;
};

}  // namespace xyntra
