// What Linux and macOS share.
#if !defined(_WIN32)

#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "system.h"

namespace xyntra::system {

std::string from_system(const PathChar* path) { return path; }

std::string with_slashes(std::string path) { return path; }

bool is_absolute(const std::string& path) { return !path.empty() && path.front() == '/'; }

void* open_library(const std::string& path, std::string& why) {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const said = dlerror();
    why = said != nullptr ? said : path + ": cannot be opened";
  }
  return library;
}

void* symbol(void* library, const char* name) noexcept { return dlsym(library, name); }

std::string library_of(const void* function) {
  Dl_info info{};
  return dladdr(function, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "";
}

std::size_t page_bytes() noexcept {
  static const long bytes = sysconf(_SC_PAGESIZE);
  return bytes > 0 ? static_cast<std::size_t>(bytes) : 4096;
}

void unmap_pages(char* data, std::size_t bytes) noexcept { munmap(data, bytes); }

bool unmap_end(char* data, std::size_t bytes, std::size_t kept) noexcept { return munmap(data + kept, bytes - kept) == 0; }

void drop_pages(char* data, std::size_t bytes) noexcept { madvise(data, bytes, MADV_DONTNEED); }

void* allocate(std::size_t alignment, std::size_t bytes) noexcept { return std::aligned_alloc(alignment, bytes); }

void deallocate(void* data) noexcept { std::free(data); }

void close_file(int file) noexcept { close(file); }

FileIdentity identity_of(const std::string& path) noexcept {
  struct stat status = {};
  if (stat(path.c_str(), &status) != 0) return {};
  return {static_cast<uint64_t>(status.st_dev), static_cast<uint64_t>(status.st_ino), static_cast<uint64_t>(status.st_size),
          static_cast<int64_t>(status.st_mtime)};
}

std::string why_unwritable(const std::string& folder) {
  return access(folder.c_str(), W_OK | X_OK) == 0 ? std::string() : std::strerror(errno);
}

int64_t process_number() noexcept { return getpid(); }

void in_forked_children(void (*call)()) noexcept { pthread_atfork(nullptr, nullptr, call); }

void sleep_forever() noexcept {
  for (;;) pause();
}

}  // namespace xyntra::system

#endif
