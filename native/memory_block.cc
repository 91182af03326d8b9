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

#include "live.h"
#include "ort.h"

namespace xyntra {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kLeastReserved = std::size_t{64} << 10;  // what is less is not worth a mapping

// Null when there is no memory. mmap aligns to small pages only: map one huge page more and give the ends back.
char* map_pages(std::size_t bytes, int flags) noexcept {
  const bool huge = bytes >= kHugePage;
  const std::size_t room = huge ? bytes + kHugePage : bytes;
  void* raw = mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
  if (raw == MAP_FAILED) return nullptr;
  if (!huge) return static_cast<char*>(raw);
  char* const begin = static_cast<char*>(raw);
  char* const data = reinterpret_cast<char*>(align_up(reinterpret_cast<std::uintptr_t>(begin), kHugePage));
  if (data != begin) munmap(begin, static_cast<std::size_t>(data - begin));
  char* const end = begin + room;
  if (data + bytes != end) munmap(data + bytes, static_cast<std::size_t>(end - data) - bytes);
  madvise(data, bytes, MADV_HUGEPAGE);  // advice: a kernel without huge pages refuses and nothing is lost
  return data;
}

}  // namespace

std::size_t page_bytes() noexcept {
  static const long bytes = sysconf(_SC_PAGESIZE);
  return bytes > 0 ? static_cast<std::size_t>(bytes) : 4096;
}

void give_back_free_heap() noexcept {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

MemoryBlock::MemoryBlock(std::size_t bytes, const char* what, std::size_t least_mapped, int flags) {
  if (bytes > SIZE_MAX / 2) throw NoMemory(bytes, what);
  mapped_ = bytes >= least_mapped;
  const std::size_t size = align_up(bytes == 0 ? 1 : bytes, mapped_ ? page_bytes() : kAlignment);
  data_ = mapped_ ? map_pages(size, flags) : static_cast<char*>(std::aligned_alloc(kAlignment, size));
  if (data_ == nullptr) throw NoMemory(bytes, what);
  size_ = size;
  count(Live::kBlocks, 1);
  count(Live::kBlockBytes, static_cast<int64_t>(size_));
}

MemoryBlock::MemoryBlock(std::size_t bytes, const char* what) : MemoryBlock(bytes, what, kHugePage, 0) {}

// Without a reservation: what is only an upper bound may be more than the machine has.
MemoryBlock MemoryBlock::reserve(std::size_t bytes, const char* what) {
  return {bytes, what, kLeastReserved, MAP_NORESERVE};
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

std::size_t MemoryBlock::page() const noexcept { return mapped_ ? page_bytes() : 0; }

void MemoryBlock::shrink(std::size_t bytes) noexcept {
  const std::size_t kept = align_up(bytes == 0 ? 1 : bytes, page_bytes());
  if (!mapped_ || kept >= size_ || munmap(data_ + kept, size_ - kept) != 0) return;
  count(Live::kBlockBytes, -static_cast<int64_t>(size_ - kept));
  size_ = kept;
}

void MemoryBlock::drop(std::size_t begin, std::size_t end) const noexcept { madvise(data_ + begin, end - begin, MADV_DONTNEED); }

void MemoryBlock::release() noexcept {
  if (data_ == nullptr) return;
  count(Live::kBlocks, -1);
  count(Live::kBlockBytes, -static_cast<int64_t>(size_));
  if (mapped_) {
    munmap(data_, size_);
  } else {
    std::free(data_);
  }
}

}  // namespace xyntra
