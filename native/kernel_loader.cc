#include "kernel_loader.h"

#include <map>
#include <mutex>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "matrix_tiles.h"
#include "sha256.h"
#include "system.h"
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

Opened of_library(void* library, const std::string& path, std::string why) {
  if (library == nullptr) return {nullptr, nullptr, std::move(why)};
  if (system::symbol(library, kNeedsTiles) != nullptr && !permit_matrix_tiles().empty())
    return {nullptr, nullptr, path + ": " + permit_matrix_tiles()};
  return {library, nullptr, {}};
}

Opened open_library(const std::string& path, const TrustedFile& file) {
  std::string why;
  void* const library = system::open_checked_library(path, file.descriptor.get(), without_seal(file.bytes), why);
  return of_library(library, path, std::move(why));
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
  return device != nullptr ? open_program(path, file.bytes, *device) : open_library(path, file);
}

// What two threads open at the same time is opened twice: dlopen gives both the same handle, and of two programs both work.
// Kernels that were linked together are one file with many names, which is read and checked once.
Opened opened_once(const std::string& path, const std::optional<Hash128>& hash, const Device* device) {
  using Key = std::tuple<system::FileIdentity, std::optional<Hash128>, const Device*>;
  static auto* const mutex = new std::mutex;
  static auto* const known = new std::map<Key, Opened>;
  const system::FileIdentity identity = system::identity_of(path);
  if (identity == system::FileIdentity{}) return open(path, hash, device);  // says why
  const Key key(identity, hash, device);
  {
    const std::lock_guard lock(*mutex);
    if (const auto found = known->find(key); found != known->end()) return found->second;
  }
  const Opened opened = open(path, hash, device);
  if (!opened.error.empty()) return opened;
  const std::lock_guard lock(*mutex);
  return known->emplace(key, opened).first->second;
}

// Kernels of a compiled model: many are in one file, and sessions of one model have the same.
Opened opened_once(std::string_view bytes, const Hash128& hash) {
  static auto* const mutex = new std::mutex;
  static auto* const known = new std::map<Hash128, Opened>;
  if (bytes.empty()) return {nullptr, nullptr, "the compiled model lacks a kernel of its plan"};
  const std::lock_guard lock(*mutex);
  if (const auto found = known->find(hash); found != known->end()) return found->second;
  const std::string name = "a kernel of the compiled model";
  std::string why;
  void* const library = system::open_library_in_memory(name, without_seal(bytes), why);
  const Opened opened = of_library(library, name, std::move(why));
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
    kernel.function = reinterpret_cast<Kernel>(system::symbol(opened.library, symbol.c_str()));
    const auto* const takes = static_cast<const uint32_t*>(system::symbol(opened.library, (symbol + "_takes").c_str()));
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
