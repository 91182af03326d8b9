// Memory of a device for ONNX Runtime's tensors. What is given back is kept for the next tensor of its size, because the
// driver takes its time and waits for the device when memory is set free; never more than was in use at once.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <vector>

namespace xyntra {

class TensorDevice;

class DeviceHeap {
 public:
  explicit DeviceHeap(const TensorDevice& device) : device_(device) {}
  DeviceHeap(const DeviceHeap&) = delete;
  DeviceHeap& operator=(const DeviceHeap&) = delete;

  // Throws Error when the device has no room. Of 0 bytes: null.
  void* take(std::size_t bytes);
  // Of what take() gave; anything else is left alone. Never fails: on a device that is lost, memory is lost with it.
  void give_back(void* memory) noexcept;
  // Sets free what is not in use; whether there was anything.
  bool shrink() noexcept;
  // How many bytes there are from `memory` on, if it lies in what take() gave; else 0.
  std::size_t room_at(const void* memory) const noexcept;

 private:
  void* allocate(std::size_t bytes);
  bool drop_idle() noexcept;

  struct Idle {
    void* memory = nullptr;
    std::size_t bytes = 0;
  };

  const TensorDevice& device_;
  mutable std::mutex mutex_;
  std::map<char*, std::size_t> used_;
  std::vector<Idle> idle_;  // the one longest unused first
  std::size_t used_bytes_ = 0, most_used_bytes_ = 0, idle_bytes_ = 0;
};

}  // namespace xyntra
