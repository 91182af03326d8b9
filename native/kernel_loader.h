// Compiled kernels: shared objects or programs of a device, opened once per process and never closed, so what a session has found
// stays valid in every session, fork and exit path.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "device.h"
#include "plan.h"


namespace xyntra {

using Kernel = void (*)(void* const* buffers, const int64_t* params, int64_t begin, int64_t end);

struct LoadedKernel {
  Kernel function = nullptr;      // on the CPU
  uint32_t buffers = 0;           // that it takes, on the CPU
  uint32_t params = 0;
  void* program = nullptr;        // on a device: what has it
  uint32_t threads = 0;           // of a block, on a device
  uint32_t shared_bytes = 0;      // that its launch gives to a block
  std::string symbol;
  std::string error;  // why there is none

  bool usable() const noexcept { return function != nullptr || program != nullptr; }
};

// Checks owner, mode and hash of the file before any of its code can run. Without a device it is a shared object, which exports
// beside a function f `const unsigned f_takes[2]`: how many buffers and parameters it reads from its tables.
LoadedKernel load_kernel(const std::string& path, const PlanKernel& wanted, const Device* device);

// On the CPU, a kernel whose hash no plan knows, since it was compiled after the plan was written: the checksum at the file's end has
// to be right.
LoadedKernel load_sealed_kernel(const std::string& path, const std::string& symbol);

// On the CPU, the same from memory, whose hash was checked: no folder need be writable.
LoadedKernel load_kernel(std::string_view file, const PlanKernel& wanted);

}  // namespace xyntra
