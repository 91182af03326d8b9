// A device whose memory has addresses, so that ONNX Runtime's tensors can be in it. Allocators, transfers and copies know of no other.
#pragma once

#include <cstddef>

#include "device.h"
#include "device_heap.h"

namespace xyntra {

class TensorDevice : public Device {
 public:
  // The one that ONNX Runtime knows by this number; throws Error when it cannot be opened. Cheap after the first time. Of a lost
  // one: what a new session has opened in its place, if any has.
  static const TensorDevice& at(int ordinal);

  DeviceHeap& heap() const noexcept { return heap_; }  // of ONNX Runtime's tensors
  // Throws Error when there is no room, for `what`.
  virtual void* allocate(std::size_t bytes, const char* what) const = 0;
  void release(void* memory) const noexcept override = 0;
  // Done when they return.
  virtual void copy_in(void* to, const void* from, std::size_t bytes) const = 0;
  virtual void copy_out(void* to, const void* from, std::size_t bytes) const = 0;
  virtual void copy_within(void* to, const void* from, std::size_t bytes) const = 0;
  // Waits for all work of this process on the device.
  virtual void synchronize() const = 0;

 private:
  mutable DeviceHeap heap_{*this};
};

}  // namespace xyntra
