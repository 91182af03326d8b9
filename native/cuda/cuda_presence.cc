#include "cuda_presence.h"

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

namespace xyntra {
namespace {

constexpr const char* kDriver = "libcuda.so.1";
constexpr const char* kFolders = "/usr/local/nvidia/lib64:/lib64:/usr/lib64:/lib:/usr/lib";  // the loader's own, and containers'
constexpr const char* kWindowsDriver = "/usr/lib/wsl/lib/libcuda.so.1";  // which shows no devices to Linux

int entries_of(const std::string& folder) {
  std::error_code problem;
  int n = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder, problem)) {
    n += static_cast<int>(entry.path().filename().native().front() != '.');
  }
  return n;
}

bool is_readable(const std::string& file) { return std::ifstream(file).is_open(); }

bool has_driver(const char* folders) {
  if (folders == nullptr) return false;
  std::istringstream list(folders);
  for (std::string folder; std::getline(list, folder, ':');) {
    if (!folder.empty() && is_readable(folder + '/' + kDriver)) return true;
  }
  return false;
}

// The loader's own table has names between zeros.
bool is_known(const std::string& table) {
  std::ifstream file(table, std::ios::binary);
  const std::string content{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return content.find(std::string(1, '\0') + kDriver + '\0') != std::string::npos;
}

// Whether somebody has said how many there are.
bool is_told() {
  const char* const told = std::getenv("XYNTRA_CUDA_DEVICES");
  return told != nullptr && *told != '\0';
}

// CUDA takes the list up to the first device that is not there. A UUID counts as one.
int visible_of(int devices) {
  const char* const text = std::getenv("CUDA_VISIBLE_DEVICES");
  if (text == nullptr) return devices;
  std::istringstream list(text);
  int n = 0;
  for (std::string item; n < devices && std::getline(list, item, ','); ++n) {
    char* end = nullptr;
    const long number = std::strtol(item.c_str(), &end, 10);
    const bool is_number = end != item.c_str();
    const bool is_uuid = item.rfind("GPU-", 0) == 0 || item.rfind("MIG-", 0) == 0;
    if (!is_uuid && (!is_number || number < 0 || number >= devices)) break;
  }
  return n;
}

}  // namespace

int cuda_devices_at_hand(const std::string& gpus) {
  if (is_told()) return std::max(0, std::atoi(std::getenv("XYNTRA_CUDA_DEVICES")));
  const int listed = entries_of(gpus);
  return visible_of(listed > 0 ? listed : static_cast<int>(is_readable(kWindowsDriver)));
}

bool only_the_driver_knows(const std::string& gpus, const std::string& known_libraries) {
    std::error_code problem;
  if (is_told() || std::filesystem::exists(gpus, problem) || visible_of(INT_MAX) == 0 || is_readable(kWindowsDriver)) return false;
  return has_driver(std::getenv("LD_LIBRARY_PATH")) || has_driver(kFolders) || is_known(known_libraries);
}

}  // namespace xyntra
