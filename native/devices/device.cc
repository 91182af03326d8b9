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

std::string DeviceApi::list(std::string_view prefix) {
  for (const DeviceApi* api = first_; api != nullptr; api = api->next_)
    if (api->prefix_ == prefix && api->list_ != nullptr) return api->list_();
  return {};
}

namespace {

// By identity; the last one is the one in use, those before it are lost.
struct OpenedDevices {
  std::mutex mutex;
  std::map<std::string, std::vector<std::unique_ptr<const Device>>> devices;
};

OpenedDevices& opened() {
  static auto* const all = new OpenedDevices;
  return *all;
}

}  // namespace

Device::Found Device::find(const std::string& identity) {
  const std::lock_guard lock(opened().mutex);
  auto& devices = opened().devices[identity];
  if (!devices.empty() && !devices.back()->is_lost()) return {devices.back().get(), {}};
  try {
    return {devices.emplace_back(DeviceApi::open(identity)).get(), {}};
  } catch (const Error& error) {
    return {nullptr, error.what()};
  }
}

const Device* Device::latest(const std::string& identity) {
  const std::lock_guard lock(opened().mutex);
  const auto& devices = opened().devices[identity];
  return devices.empty() ? nullptr : devices.back().get();
}

void Device::require_alive() const {
  if (const std::string* const sentence = lost_.load(std::memory_order_acquire)) throw DeviceLost(*sentence);
}

void Device::fail(FailureKind kind, const std::string& sentence) const {
  if (kind == FailureKind::kFatal) {
    auto said = std::make_unique<const std::string>(sentence);
    const std::string* none = nullptr;
    if (lost_.compare_exchange_strong(none, said.get(), std::memory_order_acq_rel)) said.release();
  }
  require_alive();
  throw Error(kRuntimeException, sentence);
}

}  // namespace xyntra
