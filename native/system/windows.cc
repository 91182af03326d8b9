#if defined(_WIN32)

#define WIN32_LEAN_AND_MEAN
#define NOMINMAX
#include <fcntl.h>
#include <io.h>
#include <malloc.h>
#include <windows.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <system_error>

#include "cpuid_features.h"
#include "file_pages.h"
#include "system.h"

namespace xyntra {
namespace system {
namespace {

std::string last_error() { return std::system_category().message(static_cast<int>(GetLastError())); }

[[noreturn]] void fail(const char* what) {
  throw std::system_error(static_cast<int>(GetLastError()), std::system_category(), what);
}

std::filesystem::path temporary_folder() {
  std::error_code problem;
  const auto folder = std::filesystem::temp_directory_path(problem);
  return problem ? std::filesystem::path(L".") : folder;
}

std::wstring unique_name(const wchar_t* suffix) {
  static std::atomic<uint32_t> names{0};
  wchar_t name[64];
  std::swprintf(name, std::size(name), L"xyntra-%lu-%llx-%u%ls", GetCurrentProcessId(), GetTickCount64(), ++names, suffix);
  return name;
}

// Copies of libraries can be removed when nobody has them loaded any more: so who comes next removes those of processes that ended.
const std::filesystem::path& folder_of_copies() {
  static const auto* const made = [] {
    auto* const folder = new std::filesystem::path(temporary_folder() / L"xyntra-kernels");
    std::error_code problem;
    std::filesystem::create_directory(*folder, problem);
    for (const auto& old : std::filesystem::directory_iterator(*folder, problem)) DeleteFileW(old.path().c_str());
    return folder;
  }();
  return *made;
}

uint64_t pair_of(DWORD high, DWORD low) noexcept { return uint64_t{high} << 32 | low; }

}  // namespace

std::string from_system(const PathChar* path) {
  return std::filesystem::path(path).generic_u8string();
}

std::string with_slashes(std::string path) {
  std::replace(path.begin(), path.end(), '\\', '/');
  return path;
}

bool is_absolute(const std::string& path) { return to_system(path).is_absolute(); }

void* open_library(const std::string& path, std::string& why) {
  const std::filesystem::path native = to_system(path).make_preferred();
  const DWORD flags = native.is_absolute() ? LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR | LOAD_LIBRARY_SEARCH_DEFAULT_DIRS
                                           : LOAD_LIBRARY_SEARCH_DEFAULT_DIRS;
  const HMODULE library = LoadLibraryExW(native.c_str(), nullptr, flags);
  if (library == nullptr) why = path + ": " + last_error();
  return reinterpret_cast<void*>(library);
}

// The descriptor forbids others to write to the file, to remove it and to rename a folder above it as long as it is open.
void* open_checked_library(const std::string& path, int, std::string_view, std::string& why) { return open_library(path, why); }

// A copy that nobody else may write to, from before its content is there until it is loaded.
void* open_library_in_memory(const std::string& name, std::string_view content, std::string& why) {
  const std::filesystem::path copy = folder_of_copies() / unique_name(L".dll");
  const HANDLE file = CreateFileW(copy.c_str(), GENERIC_READ | GENERIC_WRITE, FILE_SHARE_READ, nullptr, CREATE_NEW,
                                  FILE_ATTRIBUTE_TEMPORARY, nullptr);
  if (file == INVALID_HANDLE_VALUE) {
    why = name + ": no copy can be made of it: " + last_error();
    return nullptr;
  }
  bool written = true;
  while (written && !content.empty()) {
    DWORD n = 0;
    written = WriteFile(file, content.data(), static_cast<DWORD>(std::min<std::size_t>(content.size(), 1U << 30)), &n, nullptr) != 0;
    content.remove_prefix(n);
  }
  // The loader wants a file that nobody has open for writing: another handle holds it while this one goes.
  const HANDLE held = written ? CreateFileW(copy.c_str(), GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_WRITE, nullptr, OPEN_EXISTING,
                                            FILE_ATTRIBUTE_NORMAL, nullptr)
                              : INVALID_HANDLE_VALUE;
  if (held == INVALID_HANDLE_VALUE) why = name + ": cannot be copied: " + last_error();
  CloseHandle(file);
  if (held == INVALID_HANDLE_VALUE) return nullptr;
  void* const library = open_library(copy.generic_u8string(), why);
  CloseHandle(held);
  return library;
}

void* symbol(void* library, const char* name) noexcept {
  return reinterpret_cast<void*>(GetProcAddress(static_cast<HMODULE>(library), name));
}

std::string library_of(const void* function) {
  HMODULE library = nullptr;
  const DWORD flags = GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT;
  if (GetModuleHandleExW(flags, static_cast<LPCWSTR>(function), &library) == 0) return {};
  std::wstring path(1 << 15, L'\0');
  path.resize(GetModuleFileNameW(library, path.data(), static_cast<DWORD>(path.size())));
  return from_system(path.c_str());
}

std::size_t page_bytes() noexcept {
  static const std::size_t bytes = [] {
    SYSTEM_INFO info = {};
    GetSystemInfo(&info);
    return static_cast<std::size_t>(info.dwPageSize);
  }();
  return bytes;
}

// Windows answers for all of it at once, whether it is touched or not.
char* map_pages(std::size_t bytes, bool) noexcept {
  return static_cast<char*>(VirtualAlloc(nullptr, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE));
}

void unmap_pages(char* data, std::size_t) noexcept { VirtualFree(data, 0, MEM_RELEASE); }

// The addresses stay until all of it goes.
bool unmap_end(char* data, std::size_t bytes, std::size_t kept) noexcept {
  return VirtualFree(data + kept, bytes - kept, MEM_DECOMMIT) != 0;
}

void drop_pages(char* data, std::size_t bytes) noexcept { VirtualAlloc(data, bytes, MEM_RESET, PAGE_READWRITE); }

void* allocate(std::size_t alignment, std::size_t bytes) noexcept { return _aligned_malloc(bytes, alignment); }

void deallocate(void* data) noexcept { _aligned_free(data); }

void give_back_free_heap() noexcept { _heapmin(); }

// A file that goes with its last handle.
SharedMemory share_memory(const char* name, std::size_t bytes) {
  const std::filesystem::path path = temporary_folder() / unique_name(L".trace");
  const HANDLE file = CreateFileW(path.c_str(), GENERIC_READ | GENERIC_WRITE, FILE_SHARE_READ | FILE_SHARE_DELETE, nullptr, CREATE_NEW,
                                  FILE_ATTRIBUTE_TEMPORARY | FILE_FLAG_DELETE_ON_CLOSE, nullptr);
  if (file == INVALID_HANDLE_VALUE) fail(name);
  const uint64_t size = bytes;
  const HANDLE mapping =
      CreateFileMappingW(file, nullptr, PAGE_READWRITE, static_cast<DWORD>(size >> 32), static_cast<DWORD>(size), nullptr);
  SharedMemory shared;
  if (mapping != nullptr) {
    shared.data = MapViewOfFile(mapping, FILE_MAP_ALL_ACCESS, 0, 0, bytes);
    CloseHandle(mapping);  // the view keeps it
  }
  if (shared.data != nullptr) shared.file = _open_osfhandle(reinterpret_cast<intptr_t>(file), _O_RDWR | _O_BINARY | _O_NOINHERIT);
  if (shared.file >= 0) return shared;
  const DWORD error = GetLastError();
  CloseHandle(file);
  SetLastError(error);
  fail(name);
}

void close_file(int file) noexcept { _close(file); }

FileIdentity identity_of(const std::string& path) noexcept {
  const HANDLE file = CreateFileW(to_system(path).c_str(), 0, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, nullptr,
                                  OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, nullptr);
  if (file == INVALID_HANDLE_VALUE) return {};
  BY_HANDLE_FILE_INFORMATION info = {};
  const bool known = GetFileInformationByHandle(file, &info) != 0;
  CloseHandle(file);
  if (!known) return {};
  return {info.dwVolumeSerialNumber, pair_of(info.nFileIndexHigh, info.nFileIndexLow), pair_of(info.nFileSizeHigh, info.nFileSizeLow),
          static_cast<int64_t>(pair_of(info.ftLastWriteTime.dwHighDateTime, info.ftLastWriteTime.dwLowDateTime))};
}

// Rights are too many to be judged from outside: one file is made there and goes at once.
std::string why_unwritable(const std::string& folder) {
  const std::filesystem::path probe = to_system(folder) / unique_name(L".probe");
  const HANDLE file = CreateFileW(probe.c_str(), GENERIC_WRITE, 0, nullptr, CREATE_NEW, FILE_FLAG_DELETE_ON_CLOSE, nullptr);
  if (file == INVALID_HANDLE_VALUE) return last_error();
  CloseHandle(file);
  return {};
}

int64_t process_number() noexcept { return GetCurrentProcessId(); }

uint64_t process_start() {
  FILETIME begun = {}, ended = {}, kernel = {}, user = {};
  if (GetProcessTimes(GetCurrentProcess(), &begun, &ended, &kernel, &user) == 0) return 0;
  return pair_of(begun.dwHighDateTime, begun.dwLowDateTime);
}

uint32_t thread_number() noexcept { return GetCurrentThreadId(); }

void in_forked_children(void (*)()) noexcept {}  // nothing forks

void sleep_forever() noexcept {
  for (;;) Sleep(INFINITE);
}

int64_t coarse_ms() noexcept { return static_cast<int64_t>(GetTickCount64()); }

std::vector<std::string> cpu_features() {
#if defined(__x86_64__)
  return cpuid_features();
#else
  return {"fp", "asimd"};  // of every ARM processor that Windows runs on
#endif
}

std::string permit_matrix_tiles() { return "matrix tiles are not known to this system"; }

}  // namespace system

std::size_t give_back_file_pages(const void*, std::size_t) noexcept { return 0; }

}  // namespace xyntra

#endif
