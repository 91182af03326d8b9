#include "device.h"

#include <limits>
#include <map>
#include <mutex>
#include <utility>

namespace xyntra {

DeviceMemory::~DeviceMemory() {
  if (!is_owned()) return;
  count(Live::kDeviceBuffers, -1);
  device_->release(memory_);
}

DeviceMemory& DeviceMemory::operator=(DeviceMemory&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(memory_, other.memory_);
  return *this;
}

void DeviceCall::add(int64_t param) {
  if (param < std::numeric_limits<int32_t>::min() || param > std::numeric_limits<int32_t>::max())
    throw Error(kRuntimeException, "XyntraEP: a size of " + std::to_string(param) + " is too large for this device");
  params.push_back(static_cast<int32_t>(param));
}

// Where buffers are objects, ONNX Runtime's tensors, with whose addresses it computes, cannot be such buffers.
void DeviceCalls::replace(std::size_t, std::size_t, void*) { throw Error(kFail, "XyntraEP: this device has no addresses"); }
void DeviceQueue::copy(void*, const void*, std::size_t) { throw Error(kFail, "XyntraEP: this device has no addresses"); }
std::size_t Device::room_at(const void*) const { throw Error(kFail, "XyntraEP: this device has no addresses"); }

std::string Device::compile(const std::string&, const std::string&) const {
  throw Error(kFail, "XyntraEP: this device's driver is not asked to compile");
}

std::unique_ptr<const Device> DeviceApi::open(const std::string& identity) {
  for (const DeviceApi* api = first_; api != nullptr; api = api->next_)
    if (identity.rfind(api->prefix_, 0) == 0) return api->open_(identity);
  throw Error(kFail, "XyntraEP: no device is called '" + identity + "'");
}

std::string DeviceApi::identity_of(int ordinal) {
  for (const DeviceApi* api = first_; api != nullptr; api = api->next_)
    if (api->numbered_ != nullptr) return api->numbered_(ordinal);
  throw Error(kFail, "XyntraEP: there is no device " + std::to_string(ordinal));
}

Device::Found Device::find(const std::string& identity) {
  static auto* const mutex = new std::mutex;
  static auto* const opened = new std::map<std::string, std::unique_ptr<const Device>>;
  const std::lock_guard lock(*mutex);
  if (const auto known = opened->find(identity); known != opened->end()) return {known->second.get(), {}};
  try {
    return {opened->emplace(identity, DeviceApi::open(identity)).first->second.get(), {}};
  } catch (const Error& error) {
    return {nullptr, error.what()};
  }
}

}  // namespace xyntra
