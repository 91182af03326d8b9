// What Python asks of WebGPU alone.
#pragma once

#include <cstdint>

#include "exports.h"

// Where the library is (native/webgpu/webgpu_api.h): to be said before a device is looked for.
XYNTRA_EXPORT void xyntra_webgpu_library(const char* path) noexcept;
