// One CUDA device with its primary context, which it shares with everybody else in the process.
#pragma once

#include "cuda_api.h"
#include "tensor_device.h"

namespace xyntra {

class CudaDevice : public TensorDevice {
 public:
  // An identity: "CUDA / name / sm_90 / driver 12.8", with " #1" on for the second of two equal ones.
  static constexpr const char* kPrefix = "CUDA / ";
  static std::unique_ptr<const CudaDevice> open(const std::string& identity);  // throws Error when it is not there
  // All of them, as JSON: a list of {"identity", "name", "architecture", ...}, or {"missing": why}.
  static std::string list();

  int ordinal() const noexcept override { return ordinal_; }
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

  const cuda::Api& api() const noexcept { return *api_; }
  cuda::Function function(const LoadedKernel& kernel) const;

  // Makes the device the calling thread's, for as long as it lives. Throws DeviceLost where it is lost: each way to the driver
  // leads through here.
  class Current {
   public:
    explicit Current(const CudaDevice& device) : device_(device) {
      device.require_alive();
      device.check(device.api().CtxPushCurrent(device.context_), "its context");
    }
    ~Current() {
      cuda::Context popped = nullptr;
      device_.api().CtxPopCurrent(&popped);
    }
    Current(const Current&) = delete;
    Current& operator=(const Current&) = delete;

   private:
    const CudaDevice& device_;
  };

  // Throws what a failed call says.
  void check(cuda::Result code, const char* doing) const {
    if (code != cuda::kSuccess) raise(code, doing);
  }

 private:
  CudaDevice(const cuda::Api& api, std::string identity, int number, cuda::Ordinal device);
  [[noreturn]] void raise(cuda::Result code, const std::string& doing) const;

  const cuda::Api* api_;
  std::string identity_;
  int ordinal_;
  cuda::Context context_ = nullptr;
};

}  // namespace xyntra
