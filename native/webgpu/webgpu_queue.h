// Kernels on their way to a WebGPU device: what each binds, and the queue that encodes them. WebGPU's commands cannot be kept, so a
// run encodes them anew, as one command buffer.
//
// Arguments are the buffers of a call, then a uniform with its parameters (int) and its number of blocks. Blocks go in two
// dimensions where one does not hold them.
#pragma once

#include <cstdint>
#include <vector>

#include "webgpu_device.h"

namespace xyntra {

class WebGpuCalls : public DeviceCalls {
 public:
  WebGpuCalls(const WebGpuDevice& device, const std::vector<DeviceCall>& calls);
  std::size_t size() const noexcept { return launches_.size(); }
  void encode(wgpu::Pass pass, std::size_t from, std::size_t to) const;

 private:
  struct Launch {
    wgpu::Pipeline pipeline = nullptr;
    wgpu::OwnedGroup group;
    uint32_t along = 0, rows = 0;
  };

  const WebGpuDevice& device_;
  wgpu::OwnedBuffer numbers_;
  std::vector<Launch> launches_;
};

class WebGpuQueue : public DeviceQueue {
 public:
  WebGpuQueue(const WebGpuDevice& device, Timing timing) : device_(device), timing_(timing) {}
  void write(void* memory, const void* from, std::size_t bytes) override;
  void read(void* to, void* memory, std::size_t bytes) override;
  void start(DeviceCalls& calls) override;
  void finish() override;
  void abandon() noexcept override;
  std::vector<int64_t> times() const override;

 private:
  struct Read {
    void* to = nullptr;
    std::size_t at = 0, bytes = 0;  // in staging_
  };
  struct Clock {  // what the passes of one set of queries write
    wgpu::OwnedQueries queries;
    wgpu::OwnedBuffer resolved;
    uint32_t count = 0;
  };

  wgpu::Encoder encoder();
  void one_pass(const WebGpuCalls& calls, std::size_t from, std::size_t to, Clock* clock);
  void submit();
  void wait() const;
  void map_and_take(wgpu::Buffer buffer, std::size_t bytes, const void*& mapped) const;
  void take_times();

  const WebGpuDevice& device_;
  const Timing timing_;
  wgpu::OwnedEncoder encoder_;  // of the run that is under way
  wgpu::Submission submitted_ = 0;
  bool is_submitted_ = false;
  std::vector<Read> reads_;
  std::vector<std::pair<wgpu::Buffer, std::size_t>> sources_;  // and where in them, of reads_
  wgpu::OwnedBuffer staging_;
  std::size_t staging_bytes_ = 0;
  std::vector<Clock> clocks_;
  std::vector<int64_t> times_;
};

}  // namespace xyntra
