#include "cuda_presence.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

namespace xyntra {
namespace {

constexpr const char* kWindowsDriver = "/usr/lib/wsl/lib/libcuda.so.1";  // which shows no devices to Linux

int entries_of(const std::string& folder) {
  DIR* const opened = opendir(folder.c_str());
  if (opened == nullptr) return 0;
  int n = 0;
  while (const dirent* entry = readdir(opened)) n += static_cast<int>(entry->d_name[0] != '.');
  closedir(opened);
  return n;
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
  const char* const told = std::getenv("XYNTRA_CUDA_DEVICES");
  if (told != nullptr && *told != '\0') return std::max(0, std::atoi(told));
  const int listed = entries_of(gpus);
  return visible_of(listed > 0 ? listed : static_cast<int>(access(kWindowsDriver, R_OK) == 0));
}

}  // namespace xyntra
