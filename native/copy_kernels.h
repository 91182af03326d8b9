// Kernels for the copies that ONNX Runtime inserts between our nodes and other providers' when a session's tensors are on a
// CUDA device (MemcpyFromHost, MemcpyToHost). Otherwise it would use the CPU's, which cannot read device memory.
#pragma once

#include "ort.h"

namespace xyntra {

class CopyKernels {
 public:
  CopyKernels(const Ort& ort, const char* provider, int ordinal);
  ~CopyKernels();
  CopyKernels(const CopyKernels&) = delete;
  CopyKernels& operator=(const CopyKernels&) = delete;
  const OrtKernelRegistry* registry() const noexcept { return registry_; }

 private:
  class Kernel;

  template <bool to_device>
  static OrtStatus* create(void* self, const OrtKernelInfo*, OrtKernelImpl** out);
  void add(const char* provider, const char* op, bool to_device);

  const Ort& ort_;
  const int ordinal_;
  OrtKernelRegistry* registry_ = nullptr;
};

}  // namespace xyntra
