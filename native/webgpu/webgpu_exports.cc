#include "webgpu_exports.h"

#include <exception>

#include "webgpu_api.h"

void xyntra_webgpu_library(const char* path) noexcept {
  try {
    xyntra::wgpu::set_library(path);
  } catch (const std::exception&) {  // no memory: the library is then looked for by its name
  }
}
