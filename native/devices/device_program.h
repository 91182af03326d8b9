// The alternatives of an island on a device, ready to run: weights packed there, literals copied, kernels found. Knows no ORT: who
// makes it says where the constants are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "device_workspace.h"
#include "init_steps.h"
#include "plan_source.h"

namespace xyntra {

class DeviceProgram {
 public:
  // Packs the weights on the device. `usable` lives as long as this does.
  DeviceProgram(std::shared_ptr<const UsablePlan> usable, std::size_t island, const Constants& constants);

  const std::vector<ReadyOnDevice>& alternatives() const noexcept { return alternatives_; }

 private:
  void make_ready(const Alternative& plan, const Constants& constants);
  void run_init(const Alternative& plan, ReadyOnDevice& ready, const Constants& constants);
  void* constant(std::size_t index, const Constants& constants);

  const std::shared_ptr<const UsablePlan> usable_;
  const Device& device_;
  std::vector<ReadyOnDevice> alternatives_;
  std::vector<DeviceMemory> kept_;  // weights and literals
  // While the constructor runs: alternatives read and pack mostly the same, and once is enough.
  std::map<std::size_t, DeviceMemory> constants_;
  std::map<std::vector<int64_t>, void*> packed_;
};

}  // namespace xyntra
