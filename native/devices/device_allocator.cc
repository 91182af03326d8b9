#include "device_allocator.h"

#include "tensor_device.h"

namespace xyntra {

DeviceAllocator::DeviceAllocator(const Ort& ort, const OrtLogger* logger, const OrtMemoryInfo* info, int ordinal)
    : OrtAllocator{}, ort_(ort), logger_(logger), info_(info), ordinal_(ordinal) {
  ort_version_supported = ort_.api_version();
  Alloc = take;
  Reserve = take;
  Free = give_back;
  Info = [](const OrtAllocator* self) { return static_cast<const DeviceAllocator*>(self)->info_; };
  Shrink = [](OrtAllocator* self) -> OrtStatus* {
    const auto& allocator = *static_cast<DeviceAllocator*>(self);
    return guard(allocator.ort_, [&] { allocator.shrink(); });
  };
}

DeviceAllocator::~DeviceAllocator() {
  try {
    shrink();
  } catch (const std::exception&) {
    return;  // a device that is lost has taken its memory along
  }
}

void DeviceAllocator::shrink() const {
  if (used_) TensorDevice::at(ordinal_).heap().shrink();
}

void* DeviceAllocator::take(OrtAllocator* self, std::size_t bytes) {
  auto& allocator = *static_cast<DeviceAllocator*>(self);
  try {
    allocator.used_ = true;
    return TensorDevice::at(allocator.ordinal_).heap().take(bytes);
  } catch (const Error& error) {
    allocator.ort_.log(allocator.logger_, kError, error.what());
  } catch (const std::exception&) {
    allocator.ort_.log(allocator.logger_, kError, "XyntraEP: no memory for a tensor of " + std::to_string(bytes) + " bytes");
  }
  return nullptr;
}

void DeviceAllocator::give_back(OrtAllocator* self, void* memory) {
  if (memory == nullptr) return;
  try {
    TensorDevice::at(static_cast<DeviceAllocator*>(self)->ordinal_).heap().give_back(memory);
  } catch (const std::exception&) {
    return;  // it was had from a device that opened, so there is nothing to give back
  }
}

}  // namespace xyntra
