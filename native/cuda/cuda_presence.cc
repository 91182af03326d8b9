#include "cuda_presence.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>

namespace xyntra {
namespace {

constexpr const char* kDriver = "libcuda.so.1";
constexpr const char* kFolders = "/usr/local/nvidia/lib64:/lib64:/usr/lib64:/lib:/usr/lib";  // the loader's own, and containers'
constexpr const char* kWindowsDriver = "/usr/lib/wsl/lib/libcuda.so.1";  // which shows no devices to Linux

int entries_of(const std::string& folder) {
  DIR* const opened = opendir(folder.c_str());
  if (opened == nullptr) return 0;
  int n = 0;
  while (const dirent* entry = readdir(opened)) n += static_cast<int>(entry->d_name[0] != '.');
  closedir(opened);
  return n;
}

bool has_driver(const char* folders) {
  if (folders == nullptr) return false;
  std::istringstream list(folders);
  for (std::string folder; std::getline(list, folder, ':');) {
    if (!folder.empty() && access((folder + '/' + kDriver).c_str(), R_OK) == 0) return true;
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
  return visible_of(listed > 0 ? listed : static_cast<int>(access(kWindowsDriver, R_OK) == 0));
}

bool only_the_driver_knows(const std::string& gpus, const std::string& known_libraries) {
  if (is_told() || access(gpus.c_str(), F_OK) == 0 || visible_of(INT_MAX) == 0 || access(kWindowsDriver, R_OK) == 0) return false;
  return has_driver(std::getenv("LD_LIBRARY_PATH")) || has_driver(kFolders) || is_known(known_libraries);
}

}  // namespace xyntra
