// What one run of an island on a device needs besides the weights: a queue, device memory for inputs, outputs and temporaries,
// and the steps ready to be started. They stay for runs with the shapes of the last one, which only move data and start
// kernels.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "device.h"
#include "evaluation.h"
#include "kernel_loader.h"
#include "profile.h"

namespace xyntra {

// What an alternative needs that does not depend on shapes.
struct ReadyOnDevice {
  std::vector<void*> fixed;                  // per buffer: a POOL or LITERAL buffer, else null
  std::vector<const LoadedKernel*> kernels;  // per run step
};

class DeviceWorkspace {
 public:
  DeviceWorkspace(const Device& device, const PlanIsland& island)
      : device_(device), evaluation_(island, device.alignment()) {}

  // Makes memory and kernels right for these inputs; `alternatives` are those of the island. Throws as
  // Evaluation::prepare() does, and when the device has no room.
  void prepare(const std::vector<ReadyOnDevice>& alternatives, const std::vector<InputView>& inputs);
  // Inputs to the device, all steps, outputs back; returns when all is done. With `samples`, each step's time on the
  // device.
  void run(const std::vector<InputView>& inputs, const std::vector<void*>& outputs,
           std::vector<profile::Sample>* samples);
  const Evaluation& evaluation() const noexcept { return evaluation_; }

  // Reused by the caller from run to run.
  std::vector<InputView> inputs;
  std::vector<void*> outputs;

 private:
  struct Buffer {
    DeviceMemory memory;
    std::size_t room = 0;
    std::size_t bytes = 0;  // of these shapes
    bool used = false;      // by a step
  };

  void make_room(Buffer& buffer, std::size_t bytes);
  void take_memory(const std::vector<InputView>& inputs);
  void make_steps(const ReadyOnDevice& ready);
  void* memory_of(uint32_t buffer, const ReadyOnDevice& ready) const;
  DeviceQueue& queue(bool takes_times);

  const Device& device_;
  Evaluation evaluation_;
  Buffer arena_;
  std::vector<DeviceMemory> temporaries_;  // per buffer: its part of the arena
  std::vector<Buffer> inputs_, outputs_;
  std::vector<std::size_t> started_;  // the steps of the plan that have something to do
  std::unique_ptr<DeviceCalls> steps_;
  std::unique_ptr<DeviceQueue> queue_, timing_queue_;
};

}  // namespace xyntra
