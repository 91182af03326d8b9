// What one run of an island on a device needs besides the weights: a queue, device memory for inputs, outputs and temporaries,
// and the steps ready to be started. They stay for runs with the shapes of the last one, which only move data and start
// kernels. Where ORT's tensors are in the device's memory themselves, kernels read and write them where they are, and nothing
// is moved.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "device.h"
#include "evaluation.h"
#include "kernel_loader.h"
#include "live.h"
#include "overlap.h"
#include "profile.h"
#include "quiet.h"

namespace xyntra {

// What an alternative needs that does not depend on shapes.
struct ReadyOnDevice {
  std::vector<void*> fixed;                  // per buffer: a POOL or LITERAL buffer, else null
  std::vector<const LoadedKernel*> kernels;  // per run step
};

class DeviceWorkspace {
 public:
  // `tensors`: where ORT's are.
  enum class Tensors { kOnHost, kOnDevice };
  DeviceWorkspace(const Device& device, const PlanIsland& island, Tensors tensors);

  // Makes memory and kernels right for these inputs; `alternatives` are those of the island. Throws as
  // Evaluation::prepare() does, and when the device has no room.
  void prepare(const std::vector<ReadyOnDevice>& alternatives, const std::vector<InputView>& inputs);
  // Inputs to the device, all steps, outputs back; returns when all is done. With `samples`, each step's time on the
  // device.
  void run(const std::vector<InputView>& inputs, const std::vector<void*>& outputs,
           std::vector<profile::Sample>* samples);
  // The same; nanoseconds that all steps together take on the device, started as they are in other runs.
  int64_t run_timed(const std::vector<InputView>& inputs, const std::vector<void*>& outputs);
  const Evaluation& evaluation() const noexcept { return evaluation_; }
  // When the steps of the last run were started, by the host's clock; of runs that are traced.
  int64_t started_ns() const noexcept { return started_ns_; }
  // No run uses it: memory that none has needed for a while goes.
  void rest(quiet::Time now) noexcept;

  // Reused by the caller from run to run.
  std::vector<InputView> inputs;
  std::vector<void*> outputs;

 private:
  struct Buffer {
    DeviceMemory memory;
    std::size_t room = 0;
    std::size_t bytes = 0;  // of these shapes
    std::size_t most = 0;   // of all shapes in this period
    bool used = false;      // by a step
  };
  // Where a step takes an input or an output.
  struct Use {
    std::size_t call = 0, place = 0;
  };
  // An input or output in ORT's memory.
  struct Placed {
    const void* tensor = nullptr;  // of the last run; null: kernels have not been told
    bool aside = false;            // kernels use a buffer of ours for it, in memory that they can take
    std::vector<Use> uses;
  };

  void make_room(Buffer& buffer, std::size_t bytes);
  void take_memory(const std::vector<InputView>& inputs);
  void make_steps(const ReadyOnDevice& ready);
  void* memory_of(uint32_t buffer, const ReadyOnDevice& ready) const;
  const std::vector<InputView>& readable(const std::vector<InputView>& inputs);
  void place_tensors(const std::vector<InputView>& inputs, const std::vector<void*>& outputs);
  void place(Placed& placed, Buffer& buffer, const void* tensor, bool aside);
  bool overlaps_input(const char* output, std::size_t bytes) const;
  void bring(DeviceQueue& queue, const std::vector<InputView>& inputs);
  void fetch(DeviceQueue& queue, const std::vector<void*>& outputs);
  void run_in(DeviceQueue& queue, const std::vector<InputView>& inputs, const std::vector<void*>& outputs);
  DeviceQueue& queue(Timing timing);
  bool has_too_much() noexcept;

  const Counted<Live::kWorkspaces> counted_;
  const Device& device_;
  const bool on_device_;  // ORT's tensors
  Evaluation evaluation_;
  Buffer arena_;
  std::vector<DeviceMemory> temporaries_;  // per buffer: its part of the arena
  std::vector<Buffer> inputs_, outputs_;
  std::vector<std::size_t> output_bytes_;
  quiet::Time period_began_ = 0;
  std::vector<Placed> placed_inputs_, placed_outputs_;
  std::vector<InputView> readable_;      // inputs with the elements that decide about shapes on the host
  std::vector<std::vector<char>> elements_;
  int64_t started_ns_ = 0;
  std::vector<std::size_t> started_;  // the steps of the plan that have something to do
  std::unique_ptr<DeviceCalls> steps_;
  std::array<std::unique_ptr<DeviceQueue>, 3> queues_;  // by what they take the time of, made when they are wanted
};

}  // namespace xyntra
