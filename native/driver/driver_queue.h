// Kernels on their way to a device of a driver: a graph that is launched as one, where the driver has such, and the stream that
// takes them.
//
// Arguments are the buffers of a call, then the maps of its tensors, then its parameters (int). A unit is a block of threads.
// What goes between the host and the device goes through pinned memory of the queue's own, so that nothing waits for a copy.
#pragma once

#include <vector>

#include "driver_device.h"

namespace xyntra {

class DriverCalls : public DeviceCalls {
 public:
  DriverCalls(const DriverDevice& device, const std::vector<DeviceCall>& calls);
  ~DriverCalls() override;

  std::size_t size() const noexcept { return launches_.size(); }
  void launch(std::size_t call, driver::Stream stream);
  // All of them, as a graph that is made the first time, where the driver has graphs.
  void launch_all(driver::Stream stream);
  void replace(std::size_t call, std::size_t place, void* memory) override;

 private:
  struct Launch {
    driver::Function function = nullptr;
    unsigned blocks = 0, threads = 0, shared_bytes = 0;
    std::vector<void*> buffers;
    std::vector<DeviceTensor> tensors;
    std::vector<driver::TensorMap> maps;  // of the tensors, in the buffers as they are
    std::vector<int32_t> params;
    driver::GraphNode node = nullptr;
    bool replaced = false;  // a buffer, since the graph was made

    std::vector<void*> arguments(const DriverDevice& device);
  };

  driver::KernelNode node_of(Launch& launch, std::vector<void*>& arguments) const;
  void make_graph();
  void update_graph();

  const DriverDevice& device_;
  std::vector<Launch> launches_;
  driver::Graph graph_ = nullptr;  // stays, because its nodes are what the executable graph is told by
  driver::GraphExec executable_ = nullptr;
  bool replaced_ = false;
};

class DriverQueue : public DeviceQueue {
 public:
  DriverQueue(const DriverDevice& device, Timing timing);
  ~DriverQueue() override;
  DriverQueue(const DriverQueue&) = delete;
  DriverQueue& operator=(const DriverQueue&) = delete;

  void write(void* memory, const void* from, std::size_t bytes) override;
  void read(void* to, void* memory, std::size_t bytes) override;
  void copy(void* to, const void* from, std::size_t bytes) override;
  void start(DeviceCalls& calls) override;
  void finish() override;
  void abandon() noexcept override;
  std::vector<int64_t> times() const override;

 private:
  struct Pinned {
    char* data = nullptr;
    std::size_t bytes = 0;
  };
  struct Arriving {
    void* to = nullptr;
    const char* from = nullptr;
    std::size_t bytes = 0;
  };

  char* stage(std::size_t bytes);
  void restage() noexcept;
  void record();

  const DriverDevice& device_;
  const Timing timing_;
  driver::Stream stream_ = nullptr;
  std::vector<driver::Event> events_;  // one before the first call, and one behind each or behind all
  std::size_t recorded_ = 0;         // of them
  std::vector<Pinned> pinned_;       // the last one is being filled
  std::size_t filled_ = 0;           // bytes of it
  std::vector<Arriving> arriving_;
};

}  // namespace xyntra
