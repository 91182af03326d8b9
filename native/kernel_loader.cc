#include "kernel_loader.h"

#include <dlfcn.h>

#include <map>
#include <mutex>
#include <utility>

#include "matrix_tiles.h"
#include "trusted_file.h"

namespace xyntra {
namespace {

constexpr const char* kNeedsTiles = "xy_needs_tiles";  // exported by kernels that use matrix tiles

struct Library {
  void* handle = nullptr;
  std::string error;
};

Library open_library(const std::string& path, const Hash128& hash) {
  const TrustedFile file = read_trusted_file(path);
  if (!file.error.empty()) return {nullptr, file.error};
  if (hash128(file.bytes.data(), file.bytes.size()) != hash)
    return {nullptr, path + ": is damaged (its hash does not match)"};
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* reason = dlerror();
    return {nullptr, reason != nullptr ? reason : path + ": cannot be opened"};
  }
  if (dlsym(handle, kNeedsTiles) != nullptr && !permit_matrix_tiles().empty())
    return {nullptr, path + ": " + permit_matrix_tiles()};
  return {handle, {}};
}

}  // namespace

LoadedKernel load_kernel(const std::string& path, const std::string& symbol, const Hash128& hash) {
  static auto* const mutex = new std::mutex;
  static auto* const handles = new std::map<std::pair<std::string, Hash128>, void*>;

  void* handle = nullptr;
  {
    const std::lock_guard lock(*mutex);
    const auto found = handles->find({path, hash});
    if (found != handles->end()) handle = found->second;
  }
  if (handle == nullptr) {
    // Outside of the lock: two threads may open the same file, dlopen gives both the same handle.
    const Library library = open_library(path, hash);
    if (library.handle == nullptr) return {nullptr, library.error};
    handle = library.handle;
    const std::lock_guard lock(*mutex);
    handles->emplace(std::pair(path, hash), handle);
  }
  void* entry = dlsym(handle, symbol.c_str());
  if (entry == nullptr) return {nullptr, path + ": has no function " + symbol};
  return {reinterpret_cast<Kernel>(entry), {}};
}

}  // namespace xyntra
