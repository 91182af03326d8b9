#if defined(__linux__)

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "file_pages.h"
#include "system.h"
#include "trusted_file.h"

namespace xyntra {
namespace system {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

[[noreturn]] void fail(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

// A name for an open file that no other file of this process ever had. The loader takes what it has loaded by name for the same,
// and a descriptor's number is used again: so files are told apart by how their names are written.
std::string unique_name(int file) {
  static std::atomic<uint64_t> names{0};
  std::string name = "/proc/self";
  for (uint64_t bits = ++names; bits != 0; bits >>= 1) name += (bits & 1) != 0 ? "/." : "//";
  return name + "/fd/" + std::to_string(file);
}

}  // namespace

// From the descriptor through which it was checked: what has the file's name by now does not matter. Tools that look at mappings
// still see that name.
void* open_checked_library(const std::string& path, int file, std::string_view, std::string& why) {
  const std::string name = unique_name(file);
  void* const library = open_library(name, why);
  if (library == nullptr) why = why.rfind(name, 0) == 0 ? path + why.substr(name.size()) : path + ": " + why;
  return library;
}

// A file in memory that nobody can change any more.
void* open_library_in_memory(const std::string& name, std::string_view content, std::string& why) {
  const auto failed = [&](const char* what) {
    why = std::string(what) + ": " + std::strerror(errno);
    return nullptr;
  };
  const FileDescriptor file(memfd_create("xyntra-kernels", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (file.get() < 0) return failed("no file in memory can be had");
  for (std::size_t done = 0; done < content.size();) {
    const ssize_t n = write(file.get(), content.data() + done, content.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return failed("a file in memory cannot be written");
    done += static_cast<std::size_t>(n);
  }
  if (fcntl(file.get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return failed("a file in memory cannot be sealed");
  return open_checked_library(name, file.get(), content, why);
}

// mmap aligns to small pages only: map one huge page more and give the ends back.
char* map_pages(std::size_t bytes, bool reserve) noexcept {
  const bool huge = bytes >= kHugePage;
  const std::size_t room = huge ? bytes + kHugePage : bytes;
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | (reserve ? MAP_NORESERVE : 0);
  void* raw = mmap(nullptr, room, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (raw == MAP_FAILED) return nullptr;
  if (!huge) return static_cast<char*>(raw);
  char* const begin = static_cast<char*>(raw);
  char* const data = begin + (kHugePage - reinterpret_cast<std::uintptr_t>(begin) % kHugePage) % kHugePage;
  if (data != begin) munmap(begin, static_cast<std::size_t>(data - begin));
  char* const end = begin + room;
  if (data + bytes != end) munmap(data + bytes, static_cast<std::size_t>(end - data) - bytes);
  madvise(data, bytes, MADV_HUGEPAGE);  // advice: a kernel without huge pages refuses and nothing is lost
  return data;
}

void give_back_free_heap() noexcept {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

SharedMemory share_memory(const char* name, std::size_t bytes) {
  SharedMemory shared;
  shared.file = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (shared.file < 0) fail("memfd_create");
  shared.data = MAP_FAILED;
  if (ftruncate(shared.file, static_cast<off_t>(bytes)) == 0 &&
      fcntl(shared.file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
    shared.data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, shared.file, 0);
  if (shared.data != MAP_FAILED) return shared;
  const int error = errno;
  close(shared.file);
  errno = error;
  fail(name);
}

uint64_t process_start() {
  std::ifstream file("/proc/self/stat");
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const std::size_t after_name = text.rfind(')');
  if (after_name == std::string::npos) return 0;
  std::istringstream fields(text.substr(after_name + 1));
  std::string field;
  for (int i = 3; i < 22; ++i) fields >> field;
  uint64_t start = 0;
  fields >> start;
  return start;
}

uint32_t thread_number() noexcept { return static_cast<uint32_t>(syscall(SYS_gettid)); }

int64_t coarse_ms() noexcept {
  timespec at = {};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &at);
  return int64_t{at.tv_sec} * 1'000 + at.tv_nsec / 1'000'000;
}

std::vector<std::string> cpu_features() {
  std::vector<std::string> found;
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("flags", 0) != 0 && line.rfind("Features", 0) != 0) continue;
    std::istringstream words(line.substr(std::min(line.find(':'), line.size() - 1) + 1));
    for (std::string word; words >> word;) found.push_back(word);
    break;
  }
  return found;
}

// Linux gives it to processes that ask, once, before their first tile instruction; it holds for all threads of the process.
std::string permit_matrix_tiles() {
#if defined(__x86_64__)
  constexpr int kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr unsigned long kTileData = 18;     // Documentation/arch/x86/xstate.rst
  if (syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0) return {};
  return std::string("the operating system does not permit matrix tiles: ") + std::strerror(errno);
#else
  return "matrix tiles are not known to this system";
#endif
}

}  // namespace system

namespace {

// Linux's Documentation/admin-guide/mm/pagemap.rst: an entry of 64 bits a page. A page of a private mapping that was written to
// is the process's own, and its entry says so; so is every page of the heap and of memory that is shared with nobody.
constexpr uint64_t kPresent = uint64_t{1} << 63;
constexpr uint64_t kOfFileOrShared = uint64_t{1} << 61;
constexpr std::size_t kAtOnce = 512;                       // entries: a page of them
constexpr std::size_t kLeastBytes = std::size_t{64} << 10;  // less is not worth the calls

// How many entries could be read.
std::size_t read_page_map(const FileDescriptor& file, uintptr_t page, uint64_t* entries, std::size_t n) noexcept {
  if (file.get() < 0) return 0;
  ssize_t got;
  do {
    got = pread(file.get(), entries, n * sizeof(uint64_t), static_cast<off_t>(page * sizeof(uint64_t)));
  } while (got < 0 && errno == EINTR);
  return got < 0 ? 0 : static_cast<std::size_t>(got) / sizeof(uint64_t);
}

}  // namespace

std::size_t give_back_file_pages(const void* data, std::size_t bytes) noexcept {
  if (bytes < kLeastBytes) return 0;
  const std::size_t size = system::page_bytes();
  const auto begin = reinterpret_cast<uintptr_t>(data);
  const uintptr_t end = (begin + bytes) / size;
  uintptr_t page = (begin + size - 1) / size;
  const FileDescriptor map(open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
  std::array<uint64_t, kAtOnce> entries;
  std::size_t gone = 0;
  while (page < end) {
    const std::size_t n = read_page_map(map, page, entries.data(), std::min<std::size_t>(kAtOnce, end - page));
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

#endif
