// What Python asks of WebGPU alone.
#pragma once

#include <cstdint>

#include "exports.h"

// Where the library is (native/webgpu/webgpu_api.h): to be said before a device is looked for.
XYNTRA_EXPORT void xyntra_webgpu_library(const char* path) noexcept;
// The adapters of this machine as JSON (native/webgpu/webgpu_device.h): its size; copied, cut to `capacity`.
XYNTRA_EXPORT uint64_t xyntra_webgpu_devices(char* buffer, uint64_t capacity) noexcept;
