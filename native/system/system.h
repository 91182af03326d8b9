// What systems do differently: libraries, pages, files, processes, threads. Each has a file of its own (linux.cc, darwin.cc,
// windows.cc), and posix.cc what the first two share; nothing else in native/ asks which system it is on.
//
// Paths are UTF-8 with forward slashes everywhere in here; `to_system` and `from_system` stand at the border.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace xyntra::system {

// -- paths

using PathChar = std::filesystem::path::value_type;  // ONNX Runtime's ORTCHAR_T

inline std::filesystem::path to_system(std::string_view path) { return std::filesystem::u8path(path.begin(), path.end()); }
std::string from_system(const PathChar* path);
// What a person wrote, who may have used the system's own signs.
std::string with_slashes(std::string path);
bool is_absolute(const std::string& path);

// -- libraries; they are never closed

// Null where there is none that can be opened, and then `why` says why.
void* open_library(const std::string& path, std::string& why);
// The same of a file whose content was checked, so that nobody can exchange it in between. `path` is how messages call it.
void* open_checked_library(const std::string& path, int file, std::string_view content, std::string& why);
// The same of a content that is in no file.
void* open_library_in_memory(const std::string& name, std::string_view content, std::string& why);
void* symbol(void* library, const char* name) noexcept;
// The file of the library that has this function; empty where that is not known.
std::string library_of(const void* function);

// -- memory

std::size_t page_bytes() noexcept;
// Null when there is none. Aligned to huge pages where the system has them and this is large enough. `reserve`: it may be more
// than the machine has, for most of it will never be touched.
char* map_pages(std::size_t bytes, bool reserve) noexcept;
void unmap_pages(char* data, std::size_t bytes) noexcept;
// Gives the pages of a mapping from `kept` bytes on back, with their addresses where that is possible. Returns whether it did.
bool unmap_end(char* data, std::size_t bytes, std::size_t kept) noexcept;
// Gives pages back whose content nobody wants; their addresses stay.
void drop_pages(char* data, std::size_t bytes) noexcept;
// For blocks too small to be mapped.
void* allocate(std::size_t alignment, std::size_t bytes) noexcept;
void deallocate(void* data) noexcept;
// Asks the C library to return what was freed to the system, where it can.
void give_back_free_heap() noexcept;

// Memory behind a descriptor, without a name and full of zeros; it ends with the last process that has it. On Linux it can be
// neither shrunk nor grown. Throws std::system_error.
struct SharedMemory {
  int file = -1;
  void* data = nullptr;
};
SharedMemory share_memory(const char* name, std::size_t bytes);

// -- files

void close_file(int file) noexcept;
// What tells a file from every other, and from itself after a change; all zero where it is not there.
using FileIdentity = std::tuple<uint64_t, uint64_t, uint64_t, int64_t>;
FileIdentity identity_of(const std::string& path) noexcept;
// Why no file can be made in a folder; empty where it can.
std::string why_unwritable(const std::string& folder);

// -- processes and threads

int64_t process_number() noexcept;
// When this process began, in the system's own unit: with its number it names a process for good. 0 where that is not told.
uint64_t process_start();
uint32_t thread_number() noexcept;
// Calls this in each child that is made by fork, where there is such a thing.
void in_forked_children(void (*call)()) noexcept;
[[noreturn]] void sleep_forever() noexcept;
// Milliseconds of a clock that never goes back; the cheapest that there is, correct to some 10.
int64_t coarse_ms() noexcept;

// -- the processor

// What it can do, in the words of Linux's /proc/cpuinfo.
std::vector<std::string> cpu_features();
// Empty, or why this process may not use matrix tiles (Intel AMX).
std::string permit_matrix_tiles();

}  // namespace xyntra::system
