#include "kernel_loader.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>
#include <tuple>

#include "matrix_tiles.h"
#include "sha256.h"
#include "trusted_file.h"

namespace xyntra {
namespace {

constexpr const char* kNeedsTiles = "xy_needs_tiles";  // exported by kernels that use matrix tiles

// A kernel file ends in its checksum (xyntra_ep/tracea/runtime/kernel_cache.py), which loaders of shared objects overlook.
constexpr std::string_view kSeal = "XYNTRA-SHA256:";
constexpr std::size_t kSealBytes = kSeal.size() + 32;

std::string_view without_seal(std::string_view file) {
  if (file.size() < kSealBytes || file.substr(file.size() - kSealBytes, kSeal.size()) != kSeal) return file;
  return file.substr(0, file.size() - kSealBytes);
}

bool is_intact(std::string_view file) {
  const std::string_view content = without_seal(file);
  if (content.size() == file.size()) return false;
  std::string sum;
  for (const char c : file.substr(file.size() - 32)) {
    constexpr const char* kDigits = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(c);
    sum += {kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return sum == sha256_hex(content);
}

struct Opened {
  void* library = nullptr;
  void* program = nullptr;
  std::string error;
};

// A name for an open file that no other file of this process ever had. The loader takes what it has loaded by name for the same,
// and a descriptor's number is used again: so files are told apart by how their names are written.
std::string unique_name(const FileDescriptor& file) {
  static std::atomic<uint64_t> names{0};
  std::string name = "/proc/self";
  for (uint64_t bits = ++names; bits != 0; bits >>= 1) name += (bits & 1) != 0 ? "/." : "//";
  return name + "/fd/" + std::to_string(file.get());
}

// From the descriptor through which it was checked: what has the file's name by now does not matter. Tools that look at mappings
// still see that name.
Opened open_library(const std::string& path, const FileDescriptor& file) {
  const std::string name = unique_name(file);
  void* const handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* said = dlerror();
    const std::string reason = said != nullptr ? said : "cannot be opened";
    return {nullptr, nullptr, reason.rfind(name, 0) == 0 ? path + reason.substr(name.size()) : path + ": " + reason};
  }
  if (dlsym(handle, kNeedsTiles) != nullptr && !permit_matrix_tiles().empty())
    return {nullptr, nullptr, path + ": " + permit_matrix_tiles()};
  return {handle, nullptr, {}};
}

Opened open_program(const std::string& path, const std::string& binary, const Device& device) {
  try {
    return {nullptr, device.load(without_seal(binary)), {}};
  } catch (const Error& error) {
    return {nullptr, nullptr, path + ": " + error.what()};
  }
}

// Without a hash, the file's own checksum stands for it.
Opened open(const std::string& path, const std::optional<Hash128>& hash, const Device* device) {
  const TrustedFile file = read_trusted_file(path);
  if (!file.error.empty()) return {nullptr, nullptr, file.error};
  if (hash && hash128(file.bytes.data(), file.bytes.size()) != *hash)
    return {nullptr, nullptr, path + ": is damaged (its hash does not match)"};
  if (!hash && !is_intact(file.bytes)) return {nullptr, nullptr, path + ": is damaged (its checksum does not match)"};
  return device != nullptr ? open_program(path, file.bytes, *device) : open_library(path, file.descriptor);
}

// What two threads open at the same time is opened twice: dlopen gives both the same handle, and of two programs both work.
// Kernels that were linked together are one file with many names, which is read and checked once.
Opened opened_once(const std::string& path, const std::optional<Hash128>& hash, const Device* device) {
  using Key = std::tuple<dev_t, ino_t, off_t, time_t, std::optional<Hash128>, const Device*>;
  static auto* const mutex = new std::mutex;
  static auto* const known = new std::map<Key, Opened>;
  struct stat status = {};
  if (stat(path.c_str(), &status) != 0) return open(path, hash, device);  // says why
  const Key key(status.st_dev, status.st_ino, status.st_size, status.st_mtime, hash, device);
  {
    const std::lock_guard lock(*mutex);
    if (const auto found = known->find(key); found != known->end()) return found->second;
  }
  const Opened opened = open(path, hash, device);
  if (!opened.error.empty()) return opened;
  const std::lock_guard lock(*mutex);
  return known->emplace(key, opened).first->second;
}

// A file in memory that nobody can change any more.
Opened open_memory(std::string_view bytes) {
  const FileDescriptor file(memfd_create("xyntra-kernels", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (file.get() < 0) return {nullptr, nullptr, std::string("no file in memory can be had: ") + std::strerror(errno)};
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t n = write(file.get(), bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return {nullptr, nullptr, std::string("a file in memory cannot be written: ") + std::strerror(errno)};
    done += static_cast<std::size_t>(n);
  }
  if (fcntl(file.get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return {nullptr, nullptr, std::string("a file in memory cannot be sealed: ") + std::strerror(errno)};
  return open_library("a kernel of the compiled model", file);
}

// Kernels of a compiled model: many are in one file, and sessions of one model have the same.
Opened opened_once(std::string_view bytes, const Hash128& hash) {
  static auto* const mutex = new std::mutex;
  static auto* const known = new std::map<Hash128, Opened>;
  if (bytes.empty()) return {nullptr, nullptr, "the compiled model lacks a kernel of its plan"};
  const std::lock_guard lock(*mutex);
  if (const auto found = known->find(hash); found != known->end()) return found->second;
  const Opened opened = open_memory(bytes);
  return opened.error.empty() ? known->emplace(hash, opened).first->second : opened;
}

LoadedKernel found_in(const Opened& opened, const std::string& path, const PlanKernel& wanted, const Device* device) {
  const std::string& symbol = wanted.symbol;
  LoadedKernel kernel;
  kernel.symbol = symbol;
  kernel.threads = wanted.threads;
  kernel.shared_bytes = wanted.shared_bytes;
  kernel.error = opened.error;
  if (opened.program != nullptr) {
    try {
      kernel.program = opened.program;
      device->require(kernel);
    } catch (const Error& error) {
      kernel.program = nullptr;
      kernel.error = path + ": " + error.what();
    }
  } else if (opened.library != nullptr) {
    kernel.function = reinterpret_cast<Kernel>(dlsym(opened.library, symbol.c_str()));
    const auto* const takes = static_cast<const uint32_t*>(dlsym(opened.library, (symbol + "_takes").c_str()));
    if (kernel.function == nullptr) {
      kernel.error = path + ": has no function " + symbol;
    } else if (takes == nullptr) {
      kernel.function = nullptr;
      kernel.error = path + ": does not say what " + symbol + " takes";
    } else {
      kernel.buffers = takes[0];
      kernel.params = takes[1];
    }
  }
  return kernel;
}

}  // namespace

LoadedKernel load_kernel(const std::string& path, const PlanKernel& wanted, const Device* device) {
  return found_in(opened_once(path, wanted.hash, device), path, wanted, device);
}

LoadedKernel load_sealed_kernel(const std::string& path, const std::string& symbol) {
  PlanKernel wanted;
  wanted.symbol = symbol;
  return found_in(opened_once(path, std::nullopt, nullptr), path, wanted, nullptr);
}

LoadedKernel load_kernel(std::string_view file, const PlanKernel& wanted) {
  return found_in(opened_once(file, wanted.hash), "the compiled model", wanted, nullptr);
}

}  // namespace xyntra
