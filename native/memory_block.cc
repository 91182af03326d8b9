#include "memory_block.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <new>
#include <utility>

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace xyntra {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kPage = 4096;

// mmap aligns to small pages only: map one huge page more and give the ends back.
char* map_huge(std::size_t bytes) {
  const std::size_t room = bytes + kHugePage;
  void* raw = mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) throw std::bad_alloc();
  char* const begin = static_cast<char*>(raw);
  char* const data = reinterpret_cast<char*>(align_up(reinterpret_cast<std::uintptr_t>(begin), kHugePage));
  if (data != begin) munmap(begin, static_cast<std::size_t>(data - begin));
  char* const end = begin + room;
  if (data + bytes != end) munmap(data + bytes, static_cast<std::size_t>(end - data) - bytes);
  madvise(data, bytes, MADV_HUGEPAGE);  // advice: a kernel without huge pages refuses and nothing is lost
  return data;
}

}  // namespace

void give_back_free_heap() noexcept {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

MemoryBlock::MemoryBlock(std::size_t bytes) {
  if (bytes > SIZE_MAX / 2) throw std::bad_alloc();
  mapped_ = bytes >= kHugePage;
  size_ = align_up(bytes == 0 ? 1 : bytes, mapped_ ? kPage : kAlignment);
  data_ = mapped_ ? map_huge(size_) : static_cast<char*>(std::aligned_alloc(kAlignment, size_));
  if (data_ == nullptr) throw std::bad_alloc();
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

void MemoryBlock::shrink(std::size_t bytes) noexcept {
  const std::size_t kept = align_up(bytes == 0 ? 1 : bytes, kPage);
  if (!mapped_ || kept >= size_) return;
  munmap(data_ + kept, size_ - kept);
  size_ = kept;
}

void MemoryBlock::release() noexcept {
  if (data_ == nullptr) return;
  if (mapped_) {
    munmap(data_, size_);
  } else {
    std::free(data_);
  }
}

}  // namespace xyntra
