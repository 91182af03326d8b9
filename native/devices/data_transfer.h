// How ONNX Runtime moves tensors to a CUDA device, from it, and on it. What was copied is there when the call returns.
#pragma once

#include "ort.h"

namespace xyntra {

class DataTransfer : public OrtDataTransferImpl {
 public:
  explicit DataTransfer(const Ort& ort);

 private:
  struct Place {
    int ordinal = kOnHost;
    bool known = false;  // memory that we can copy from and to
  };
  static constexpr int kOnHost = -1;

  static bool can_copy(const OrtDataTransferImpl* self, const OrtMemoryDevice* from, const OrtMemoryDevice* to);
  Place place_of(const OrtMemoryDevice* device) const noexcept;
  void copy(const OrtValue** from, OrtValue** to, std::size_t n) const;
  void copy_one(const OrtValue* from, OrtValue* to) const;

  const Ort& ort_;
};

}  // namespace xyntra
