// One OpenCL device with its context.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "device.h"
#include "opencl_api.h"

namespace xyntra {

class OpenClDevice : public Device {
 public:
  // An identity: "OpenCL / platform / device / driver version", with " #1" on for the second of two equal ones.
  static constexpr const char* kPrefix = "OpenCL / ";
  static std::unique_ptr<const OpenClDevice> open(const std::string& identity);  // throws Error when it is not there

  std::size_t alignment() const noexcept override { return alignment_; }
  DeviceMemory buffer(std::size_t bytes) const override;
  DeviceMemory part(const DeviceMemory& whole, std::size_t at, std::size_t bytes) const override;
  DeviceMemory buffer_of(const void* data, std::size_t bytes) const override;
  void* load(std::string_view binary) const override;
  void require(const LoadedKernel& wanted) const override;
  std::unique_ptr<DeviceCalls> ready(const std::vector<DeviceCall>& calls) const override;
  std::unique_ptr<DeviceQueue> queue(Timing timing) const override;

  const cl::Api& api() const noexcept { return *api_; }
  cl::OwnedQueue open_queue(Timing timing) const;
  // Of a program finished down to machine code.
  std::string compile(const std::string& source, const std::string& options) const override;
  cl::OwnedKernel kernel(cl::Program program, const std::string& symbol) const;

  // Throws what a failed call says.
  void check(cl::Int code, const char* doing) const {
    if (code != cl::kSuccess) raise(code, doing);
  }

 private:
  std::string binary_of(cl::Program program) const;
  void release(void* memory) const noexcept override;
  OpenClDevice(const cl::Api& api, std::string identity, cl::DeviceId id);
  cl::OwnedProgram link(cl::Program program, const std::string& options) const;
  // Makes the driver do all that it puts off to a kernel's first launch (PoCL compiles then), by launches whose last
  // argument says to do nothing. A driver that does not tell about arguments has nothing to put off, and kernels
  // with barriers have no such argument (xyntra_ep/tracea/emitters/gpu_c.py).
  void finish(cl::Program program) const;
  void launch_for_nothing(cl::Kernel kernel) const;
  // Work items of a group, which the kernel itself requires.
  std::size_t group_size(cl::Kernel kernel) const;
  [[noreturn]] void raise(cl::Int code, const std::string& doing) const;

  const cl::Api* api_;
  std::string identity_;
  cl::DeviceId id_;
  cl::Context context_ = nullptr;
  std::size_t alignment_ = 0;
};

}  // namespace xyntra
