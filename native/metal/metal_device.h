// One device of Metal. Its programs are texts, which its driver compiles when they are loaded: that keeps what it has made of them
// itself, from one process to the next.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "device.h"
#include "metal_api.h"

namespace xyntra {

// What a buffer of a call is: a part of an object of Metal's, of which the host has the address.
struct MetalMemory {
  metal::Owned buffer;
  std::size_t offset = 0;
  char* contents = nullptr;
};

class MetalDevice : public Device {
 public:
  // An identity: "Metal / name / version of the system", with " #1" on for the second of two equal ones.
  static constexpr const char* kPrefix = "Metal / ";
  static std::unique_ptr<const MetalDevice> open(const std::string& identity);  // throws Error when it is not there
  static std::string list();

  std::size_t free_bytes() const override;
  std::size_t alignment() const noexcept override { return 256; }  // what the strictest of its buffers' offsets want
  DeviceMemory buffer(std::size_t bytes) const override;
  DeviceMemory part(const DeviceMemory& whole, std::size_t at, std::size_t bytes) const override;
  DeviceMemory buffer_of(const void* data, std::size_t bytes) const override;
  void* load(std::string_view binary) const override;
  void require(const LoadedKernel& kernel) const override;
  std::unique_ptr<DeviceCalls> ready(const std::vector<DeviceCall>& calls) const override;
  std::unique_ptr<DeviceQueue> queue(Timing timing) const override;
  // The text itself, which the driver has compiled.
  std::string compile(const std::string& source, const std::string& options) const override;

  const metal::Api& api() const noexcept { return *api_; }
  metal::Owned open_queue() const;
  // The pipeline of a kernel, which stays.
  metal::Id pipeline(const LoadedKernel& kernel) const;
  // Throws what a command buffer says that did not end well.
  void check(metal::Id commands) const;

 private:
  MetalDevice(const metal::Api& api, std::string identity, metal::Owned device);
  void release(void* memory) const noexcept override;
  metal::Owned library(const std::string& source) const;
  [[noreturn]] void refuse(const std::string& what, metal::Id error = nullptr) const;

  const metal::Api* api_;
  std::string identity_;
  metal::Owned device_;
};

}  // namespace xyntra
