// Compiled kernels: shared objects, opened once per process and never closed, so a pointer to a kernel stays valid in
// every session, fork and exit path.
#pragma once

#include <cstdint>
#include <string>

#include "hash128.h"

namespace xyntra {

using Kernel = void (*)(void* const* buffers, const int64_t* params, int64_t begin, int64_t end);

struct LoadedKernel {
  Kernel function = nullptr;
  std::string error;  // why there is none
};

// Checks owner, mode and hash of the file before any of its code can run.
LoadedKernel load_kernel(const std::string& path, const std::string& symbol, const Hash128& hash);

}  // namespace xyntra
