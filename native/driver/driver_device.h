// One device of a driver, with its primary context, which it shares with everybody else in the process.
#pragma once

#include "driver_api.h"
#include "tensor_device.h"

namespace xyntra {

class DriverDevice : public TensorDevice {
 public:
  // Throws Error when it is not there. An identity: "CUDA / name / sm_90 / driver 12.8", with " #1" on for the second of two
  // equal ones.
  static std::unique_ptr<const DriverDevice> open(const driver::Opened& driver, const std::string& identity);
  // All of them, as JSON: a list of {"identity", "name", "architecture", ...}, or {"missing": why}.
  static std::string list(const driver::Opened& driver);
  // Throws Error when there is none of this number.
  static std::string identity_of(const driver::Opened& driver, int ordinal);

  int ordinal() const noexcept override { return api_->is_known_to_ort ? ordinal_ : -1; }
  std::size_t room_at(const void* memory) const override;
  std::size_t free_bytes() const override;
  std::size_t alignment() const noexcept override { return 256; }  // as MemAlloc promises
  DeviceMemory buffer(std::size_t bytes) const override;
  DeviceMemory part(const DeviceMemory& whole, std::size_t at, std::size_t bytes) const override;
  DeviceMemory buffer_of(const void* data, std::size_t bytes) const override;
  void* load(std::string_view binary) const override;
  void require(const LoadedKernel& kernel) const override;
  std::unique_ptr<DeviceCalls> ready(const std::vector<DeviceCall>& calls) const override;
  std::unique_ptr<DeviceQueue> queue(Timing timing) const override;

  void* allocate(std::size_t bytes, const char* what) const override;
  void release(void* memory) const noexcept override;
  void copy_in(void* to, const void* from, std::size_t bytes) const override;
  void copy_out(void* to, const void* from, std::size_t bytes) const override;
  void copy_within(void* to, const void* from, std::size_t bytes) const override;
  void synchronize() const override;

  const driver::Api& api() const noexcept { return *api_; }
  driver::Function function(const LoadedKernel& kernel) const;

  // Makes the device the calling thread's, for as long as it lives. Throws DeviceLost where it is lost: each way to the driver
  // leads through here.
  class Current {
   public:
    explicit Current(const DriverDevice& device) : device_(device) {
      device.require_alive();
      device.check(device.api().CtxPushCurrent(device.context_), "its context");
    }
    ~Current() {
      driver::Context popped = nullptr;
      device_.api().CtxPopCurrent(&popped);
    }
    Current(const Current&) = delete;
    Current& operator=(const Current&) = delete;

   private:
    const DriverDevice& device_;
  };

  // Throws what a failed call says.
  void check(driver::Result code, const char* doing) const {
    if (code != driver::kSuccess) raise(code, doing);
  }

 private:
  DriverDevice(const driver::Api& api, std::string identity, int number, driver::Ordinal device);
  [[noreturn]] void raise(driver::Result code, const std::string& doing) const;

  const driver::Api* api_;
  std::string identity_;
  int ordinal_;
  driver::Context context_ = nullptr;
};

// A driver beside the others; `opened` opens it. `numbered`: its devices have the numbers of ONNX Runtime's.
template <driver::Source opened>
class DriverApi : public DeviceApi {
 public:
  DriverApi(const char* prefix, bool numbered) noexcept
      : DeviceApi(
            prefix,
            [](const std::string& identity) -> std::unique_ptr<const Device> { return DriverDevice::open(opened(), identity); },
            numbered ? Numbered([](int ordinal) { return DriverDevice::identity_of(opened(), ordinal); }) : nullptr,
            [] { return DriverDevice::list(opened()); }) {}
};

}  // namespace xyntra
