#include "data_transfer.h"

#include <algorithm>

#include "tensor_device.h"
#include "graph_access.h"

namespace xyntra {

DataTransfer::DataTransfer(const Ort& ort) : OrtDataTransferImpl{}, ort_(ort) {
  ort_version_supported = ort_.api_version();
  Release = [](OrtDataTransferImpl* self) { delete static_cast<DataTransfer*>(self); };
  CanCopy = can_copy;
  CopyTensors = [](OrtDataTransferImpl* self, const OrtValue** from, OrtValue** to, OrtSyncStream**, std::size_t n) {
    const auto& transfer = *static_cast<DataTransfer*>(self);
    return guard_run(transfer.ort_, [&] { transfer.copy(from, to, n); });
  };
}

DataTransfer::Place DataTransfer::place_of(const OrtMemoryDevice* device) const noexcept {
  const int type = ort_.ep()[ep_api::kMemoryDeviceType](device);
  if (type == kMemoryOfCpu) return {kOnHost, true};
  const bool ours = type == kMemoryOfGpu && ort_.ep()[ep_api::kMemoryDeviceVendorId](device) == kNvidia;
  return {static_cast<int>(ort_.ep()[ep_api::kMemoryDeviceId](device)), ours};
}

// From device to device only where they are the same.
bool DataTransfer::can_copy(const OrtDataTransferImpl* self, const OrtMemoryDevice* from, const OrtMemoryDevice* to) {
  const auto& transfer = *static_cast<const DataTransfer*>(self);
  const Place a = transfer.place_of(from), b = transfer.place_of(to);
  if (!a.known || !b.known) return false;
  return a.ordinal == kOnHost ? b.ordinal != kOnHost : b.ordinal == kOnHost || a.ordinal == b.ordinal;
}

void DataTransfer::copy(const OrtValue** from, OrtValue** to, std::size_t n) const {
  for (std::size_t i = 0; i < n; ++i) copy_one(from[i], to[i]);
}

void DataTransfer::copy_one(const OrtValue* from, OrtValue* to) const {
  const std::size_t bytes = get(ort_, from, api::kGetTensorSizeInBytes);
  if (bytes == 0) return;
  const std::size_t room = get(ort_, static_cast<const OrtValue*>(to), api::kGetTensorSizeInBytes);
  if (bytes > room)
    throw Error(kInvalidArgument, "XyntraEP: " + std::to_string(bytes) + " bytes are to be copied to a tensor of " +
                                      std::to_string(room));
  const Place a = place_of(ort_.ep()[ep_api::kValueDevice](from)), b = place_of(ort_.ep()[ep_api::kValueDevice](to));
  const void* const source = get(ort_, from, api::kGetTensorData);
  void* const target = get(ort_, to, api::kGetTensorMutableData);
  if (source == nullptr || target == nullptr) throw NoMemory(room, "a tensor");
  const TensorDevice& device = TensorDevice::at(std::max(a.ordinal, b.ordinal));
  if (a.ordinal == kOnHost) {
    device.copy_in(target, source, bytes);
  } else if (b.ordinal == kOnHost) {
    device.copy_out(target, source, bytes);
  } else {
    device.copy_within(target, source, bytes);
  }
}

}  // namespace xyntra
