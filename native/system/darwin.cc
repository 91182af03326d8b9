#if defined(__APPLE__)

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/sysctl.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <utility>

#include "cpuid_features.h"
#include "file_pages.h"
#include "system.h"
#include "trusted_file.h"

namespace xyntra {
namespace system {
namespace {

std::string temporary_folder() {
  const char* const named = std::getenv("TMPDIR");
  return named != nullptr && *named != '\0' ? named : "/tmp";
}

bool write_all(int file, std::string_view content) noexcept {
  while (!content.empty()) {
    const ssize_t n = write(file, content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    content.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

}  // namespace

// The loader opens by path only. So it is given a copy of what was checked, in a folder that only we can enter and that is gone
// when it has been opened.
void* open_checked_library(const std::string& path, int, std::string_view content, std::string& why) {
  return open_library_in_memory(path, content, why);
}

void* open_library_in_memory(const std::string& name, std::string_view content, std::string& why) {
  std::string folder = temporary_folder() + "/xyntra-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) {
    why = name + ": no folder can be made for it: " + std::strerror(errno);
    return nullptr;
  }
  const std::string copy = folder + "/kernels.dylib";
  void* library = nullptr;
  {
    const FileDescriptor file(open(copy.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0500));
    if (file.get() < 0 || !write_all(file.get(), content)) {
      why = name + ": cannot be copied: " + std::strerror(errno);
    } else {
      library = open_library(copy, why);
      if (library == nullptr) why = name + ": " + why;
    }
  }
  unlink(copy.c_str());
  rmdir(folder.c_str());
  return library;
}

char* map_pages(std::size_t bytes, bool reserve) noexcept {
  const int flags = MAP_PRIVATE | MAP_ANON | (reserve ? MAP_NORESERVE : 0);
  void* const raw = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
  return raw == MAP_FAILED ? nullptr : static_cast<char*>(raw);
}

void give_back_free_heap() noexcept {}

// A file that has lost its name at once.
SharedMemory share_memory(const char* name, std::size_t bytes) {
  std::string path = temporary_folder() + "/" + name + "-XXXXXX";
  SharedMemory shared;
  shared.file = mkostemp(path.data(), O_CLOEXEC);
  if (shared.file < 0) throw std::system_error(errno, std::generic_category(), path);
  unlink(path.c_str());
  shared.data = MAP_FAILED;
  if (ftruncate(shared.file, static_cast<off_t>(bytes)) == 0)
    shared.data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, shared.file, 0);
  if (shared.data != MAP_FAILED) return shared;
  const int error = errno;
  close(shared.file);
  throw std::system_error(error, std::generic_category(), name);
}

uint64_t process_start() { return 0; }

uint32_t thread_number() noexcept {
  uint64_t number = 0;
  pthread_threadid_np(nullptr, &number);
  return static_cast<uint32_t>(number);
}

int64_t coarse_ms() noexcept { return static_cast<int64_t>(clock_gettime_nsec_np(CLOCK_MONOTONIC_RAW_APPROX) / 1'000'000); }

std::vector<std::string> cpu_features() {
#if defined(__aarch64__)
  constexpr std::pair<const char*, const char*> kKnown[] = {
      {"hw.optional.arm.FEAT_FP16", "asimdhp"}, {"hw.optional.arm.FEAT_DotProd", "asimddp"},
      {"hw.optional.arm.FEAT_I8MM", "i8mm"},    {"hw.optional.arm.FEAT_BF16", "bf16"},
  };
  std::vector<std::string> found{"fp", "asimd"};  // of every processor that there is
  for (const auto& [asked, word] : kKnown) {
    int has = 0;
    std::size_t bytes = sizeof has;
    if (sysctlbyname(asked, &has, &bytes, nullptr, 0) == 0 && has != 0) found.emplace_back(word);
  }
  return found;
#else
  return cpuid_features();
#endif
}

std::string permit_matrix_tiles() { return "matrix tiles are not known to this system"; }

}  // namespace system

std::size_t give_back_file_pages(const void*, std::size_t) noexcept { return 0; }

}  // namespace xyntra

#endif
