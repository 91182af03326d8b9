// Kernels on their way to an OpenCL device: kernel objects whose arguments are set, and the queue that takes them.
//
// Arguments are the buffers of a call, then its parameters (int), then 1 (int: with 0 the kernel returns at once). A unit is a
// work-group.
#pragma once

#include <vector>

#include "opencl_device.h"

namespace xyntra {

class OpenClCalls : public DeviceCalls {
 public:
  OpenClCalls(const OpenClDevice& device, const std::vector<DeviceCall>& calls);
  // With `events`, one more for each call.
  void enqueue(cl::Queue queue, std::vector<cl::OwnedEvent>* events) const;

 private:
  struct Launch {
    cl::OwnedKernel kernel;
    std::size_t group = 0, items = 0;
  };

  const OpenClDevice& device_;
  std::vector<Launch> launches_;
};

class OpenClQueue : public DeviceQueue {
 public:
  OpenClQueue(const OpenClDevice& device, Timing timing);
  void write(void* memory, const void* from, std::size_t bytes) override;
  void read(void* to, void* memory, std::size_t bytes) override;
  void start(DeviceCalls& calls) override;
  void finish() override;
  void abandon() noexcept override;
  std::vector<int64_t> times() const override;

 private:
  const OpenClDevice& device_;
  const Timing timing_;
  const cl::OwnedQueue queue_;
  std::vector<cl::OwnedEvent> events_;  // of the last start()
};

}  // namespace xyntra
