#include "webgpu_exports.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <string>

#include "webgpu_device.h"

void xyntra_webgpu_library(const char* path) noexcept {
  try {
    xyntra::wgpu::set_library(path);
  } catch (const std::exception&) {  // no memory: the library is then looked for by its name
  }
}

uint64_t xyntra_webgpu_devices(char* buffer, uint64_t capacity) noexcept {
  try {
    const std::string devices = xyntra::WebGpuDevice::list();
    std::memcpy(buffer, devices.data(), std::min<std::size_t>(devices.size(), capacity));
    return devices.size();
  } catch (const std::exception&) {
    return 0;
  }
}
