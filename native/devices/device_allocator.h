// ONNX Runtime's allocator of tensors on a CUDA device. The driver is not touched before the first tensor: ORT makes an
// allocator for each device that it is told of when the library is registered, and the process may fork after that.
#pragma once

#include <atomic>

#include "ort.h"

namespace xyntra {

class DeviceAllocator : public OrtAllocator {
 public:
  // `info` is of the device `ordinal`; it and `logger` outlive the allocator.
  DeviceAllocator(const Ort& ort, const OrtLogger* logger, const OrtMemoryInfo* info, int ordinal);
  // A session that goes leaves no idle memory behind.
  ~DeviceAllocator();
  DeviceAllocator(const DeviceAllocator&) = delete;
  DeviceAllocator& operator=(const DeviceAllocator&) = delete;

 private:
  // Null when there is no memory, which is all that ORT lets an allocator say; the reason goes to the log.
  static void* take(OrtAllocator* self, std::size_t bytes);
  static void give_back(OrtAllocator* self, void* memory);
  void shrink() const;

  const Ort& ort_;
  const OrtLogger* const logger_;
  const OrtMemoryInfo* const info_;
  const int ordinal_;
  std::atomic<bool> used_{false};  // so there is a device that was opened
};

}  // namespace xyntra
