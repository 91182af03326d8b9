// Kernels on their way to a device of Metal: pipelines with their arguments, and the queue that takes them.
//
// Arguments are the buffers of a call, then one with its parameters (int), where it has any. A unit is a threadgroup. Memory is
// shared with the host, which copies by itself.
#pragma once

#include <vector>

#include "metal_device.h"

namespace xyntra {

class MetalCalls : public DeviceCalls {
 public:
  MetalCalls(const MetalDevice& device, const std::vector<DeviceCall>& calls);
  std::size_t size() const noexcept { return launches_.size(); }
  void encode(metal::Id encoder, std::size_t call) const;

 private:
  struct Launch {
    metal::Id pipeline = nullptr;
    std::size_t groups = 0, threads = 0;
    std::vector<void*> buffers;
    std::vector<int32_t> params;
  };

  const MetalDevice& device_;
  std::vector<Launch> launches_;
};

class MetalQueue : public DeviceQueue {
 public:
  MetalQueue(const MetalDevice& device, Timing timing);
  ~MetalQueue() override { abandon(); }
  void write(void* memory, const void* from, std::size_t bytes) override;
  void read(void* to, void* memory, std::size_t bytes) override;
  void start(DeviceCalls& calls) override;
  void finish() override;
  void abandon() noexcept override;
  std::vector<int64_t> times() const override;

 private:
  struct Arriving {
    void* to;
    const void* from;
    std::size_t bytes;
  };

  void commit(const MetalCalls& calls, std::size_t begin, std::size_t end);
  // Waits, and throws what has failed.
  void arrive();

  const MetalDevice& device_;
  const Timing timing_;
  const metal::Owned queue_;
  std::vector<metal::Owned> started_;  // command buffers that nobody has waited for
  std::vector<Arriving> arriving_;
  std::vector<int64_t> ns_;  // of those of the last start() that have ended
};

}  // namespace xyntra
