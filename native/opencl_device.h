// One OpenCL device with its context: opened once per process and never closed, as kernels of the CPU are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "opencl_api.h"
#include "ort.h"

namespace xyntra {

class OpenClDevice {
 public:
  // What tells a device, and a driver, from others: "platform / device / driver version", with " #1" on for the second of
  // two equal ones. Plans and kernels are made for one identity.
  struct Found {
    const OpenClDevice* device = nullptr;
    std::string error;  // why there is none
  };
  static Found find(const std::string& identity);

  const cl::Api& api() const noexcept { return *api_; }
  const std::string& identity() const noexcept { return identity_; }
  // To what the address of a buffer is aligned at least.
  std::size_t alignment() const noexcept { return alignment_; }

  cl::OwnedQueue queue(bool profiling) const;
  // At least one byte, as OpenCL knows no empty buffers; with the spare bytes behind that kernels may read.
  cl::OwnedMem buffer(std::size_t bytes) const;
  // A part of a buffer, from a multiple of alignment() on.
  cl::OwnedMem part(cl::Mem whole, std::size_t at, std::size_t bytes) const;
  cl::OwnedMem buffer_of(const void* data, std::size_t bytes) const;
  // An executable program, finished down to machine code; throws Error with the compiler's log.
  cl::OwnedProgram build(const std::string& source, const std::string& options) const;
  // The same of what binary_of() gave.
  cl::OwnedProgram load(std::string_view binary) const;
  std::string binary_of(cl::Program program) const;
  cl::OwnedKernel kernel(cl::Program program, const std::string& symbol) const;
  // Work items of a group, which the kernel itself requires.
  std::size_t group_size(cl::Kernel kernel) const;

  // Throws what a failed call says.
  void check(cl::Int code, const char* doing) const {
    if (code != cl::kSuccess) raise(code, doing);
  }

 private:
  OpenClDevice(const cl::Api& api, std::string identity, cl::DeviceId id);
  cl::OwnedProgram link(cl::Program program, const std::string& options) const;
  // Makes the driver do all that it puts off to a kernel's first launch (PoCL compiles then), by launches whose last
  // argument says to do nothing. A driver that does not tell about arguments has nothing to put off, and kernels
  // with barriers have no such argument (xyntra_ep/tracea/emitters/gpu_c.py).
  void finish(cl::Program program) const;
  void launch_for_nothing(cl::Kernel kernel) const;
  [[noreturn]] void raise(cl::Int code, const std::string& doing) const;

  const cl::Api* api_;
  std::string identity_;
  cl::DeviceId id_;
  cl::Context context_ = nullptr;
  std::size_t alignment_ = 0;
};

}  // namespace xyntra
