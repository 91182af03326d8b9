#include "file_pages.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>

#include "memory_block.h"

namespace xyntra {
namespace {

// Linux's Documentation/admin-guide/mm/pagemap.rst: an entry of 64 bits a page. A page of a private mapping that was written to
// is the process's own, and its entry says so; so is every page of the heap and of memory that is shared with nobody.
constexpr uint64_t kPresent = uint64_t{1} << 63;
constexpr uint64_t kOfFileOrShared = uint64_t{1} << 61;
constexpr std::size_t kAtOnce = 512;                       // entries: a page of them
constexpr std::size_t kLeastBytes = std::size_t{64} << 10;  // less is not worth the calls

class PageMap {
 public:
  PageMap() noexcept : file_(open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC)) {}
  ~PageMap() {
    if (file_ >= 0) close(file_);
  }
  PageMap(const PageMap&) = delete;
  PageMap& operator=(const PageMap&) = delete;

  // How many entries could be read.
  std::size_t read(uintptr_t page, uint64_t* entries, std::size_t n) const noexcept {
    if (file_ < 0) return 0;
    ssize_t got;
    do {
      got = pread(file_, entries, n * sizeof(uint64_t), static_cast<off_t>(page * sizeof(uint64_t)));
    } while (got < 0 && errno == EINTR);
    return got < 0 ? 0 : static_cast<std::size_t>(got) / sizeof(uint64_t);
  }

 private:
  const int file_;
};

}  // namespace

std::size_t give_back_file_pages(const void* data, std::size_t bytes) noexcept {
  if (bytes < kLeastBytes) return 0;
  const std::size_t size = page_bytes();
  const auto begin = reinterpret_cast<uintptr_t>(data);
  const uintptr_t end = (begin + bytes) / size;
  uintptr_t page = (begin + size - 1) / size;
  const PageMap map;
  std::array<uint64_t, kAtOnce> entries;
  std::size_t gone = 0;
  while (page < end) {
    const std::size_t n = map.read(page, entries.data(), std::min<std::size_t>(kAtOnce, end - page));
    if (n == 0) return gone;
    const auto goes = [&](std::size_t i) { return (entries[i] & kPresent) != 0 && (entries[i] & kOfFileOrShared) != 0; };
    for (std::size_t i = 0; i < n;) {
      std::size_t next = i + 1;
      if (goes(i)) {
        while (next < n && goes(next)) ++next;
        // Locked pages and those of devices are refused, and stay.
        if (madvise(reinterpret_cast<void*>((page + i) * size), (next - i) * size, MADV_DONTNEED) == 0) gone += (next - i) * size;
      }
      i = next;
    }
    page += n;
  }
  return gone;
}

}  // namespace xyntra
