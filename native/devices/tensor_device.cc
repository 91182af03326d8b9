#include "tensor_device.h"

#include <map>
#include <mutex>

namespace xyntra {

const TensorDevice& TensorDevice::at(int ordinal) {
  static auto* const mutex = new std::mutex;
  static auto* const known = new std::map<int, const Device*>;
  const std::lock_guard lock(*mutex);
  const Device*& device = (*known)[ordinal];
  if (device == nullptr) {
    const Found found = Device::find(DeviceApi::identity_of(ordinal));
    if (found.device == nullptr) throw Error(kFail, found.error);
    device = found.device;
  }
  return static_cast<const TensorDevice&>(*device);
}

}  // namespace xyntra
