#include "operation_files.h"

#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>

#include "border.h"
#include "open_nodes.h"
#include "system.h"
#include "trusted_file.h"

namespace xyntra::capi {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 28;

// Beside the library that this code is in.
std::string folder_of_operations() {
  const char* const named = std::getenv("XYNTRA_PREBUILT_DIR");
  if (named != nullptr && *named != '\0') return named;
  const std::string library = system::library_of(reinterpret_cast<const void*>(&tracea_version));
  if (library.empty())
    throw NoFile("it is not known where the library is; name the folder of prebuilt kernels by XYNTRA_PREBUILT_DIR");
  return folder_of(library) + "/tracea/prebuilt";
}

std::unique_ptr<const CompiledFile> opened(const std::string& folder, const std::string& path) {
  const TrustedFile file = read_trusted_file(path, kMostBytes);
  if (file.verdict == TrustedFile::Verdict::kMissing)
    throw NoFile(path + ": is not there; operations need prebuilt kernels, and XYNTRA_PREBUILT_DIR names their folder");
  if (!file.error.empty()) throw NoFile(file.error);
  try {
    return std::make_unique<const CompiledFile>(file.bytes, folder, "");
  } catch (const NoMemory&) {
    throw;
  } catch (const Error& error) {
    throw FormatError(path + ": " + error.what());
  } catch (const FormatError& error) {
    throw FormatError(path + ": " + error.what());
  }
}

}  // namespace

const CompiledFile& operation(const std::string& name) {
  static std::mutex mutex;
  // By path. They stay until the process ends, and beyond: calls of other threads may go on while it does.
  static auto& files = *new std::map<std::string, std::unique_ptr<const CompiledFile>>;
  const std::string folder = folder_of_operations();
  const std::string path = folder + '/' + name + ".onnx";
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = files.find(path);
  if (found != files.end()) return *found->second;
  return *files.emplace(path, opened(folder, path)).first->second;
}

}  // namespace xyntra::capi
