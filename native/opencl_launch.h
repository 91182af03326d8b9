// A step on its way to an OpenCL device: a kernel object, its arguments, and how many groups run it.
//
// Arguments are the buffers of the step, then its parameters (int), then 1 (int: with 0 the kernel returns at once). A unit of
// the step is a work-group of the size that the kernel requires.
#pragma once

#include <cstdint>

#include "kernel_loader.h"
#include "opencl_device.h"

namespace xyntra {

class OpenClLaunch {
 public:
  // `units` of 0: there is nothing to launch.
  OpenClLaunch(const OpenClDevice& device, const LoadedKernel& kernel, int64_t units);

  bool empty() const noexcept { return groups_ == 0; }
  void add(cl::Mem buffer);
  void add(int64_t param);
  // After all buffers and parameters.
  void complete() { add(int64_t{1}); }
  void enqueue(cl::Queue queue, cl::Event* event) const;

 private:
  const OpenClDevice& device_;
  cl::OwnedKernel kernel_;
  std::size_t group_ = 0, groups_ = 0;
  cl::Uint next_ = 0;
};

}  // namespace xyntra
