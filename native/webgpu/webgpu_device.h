// One adapter of WebGPU with its device and queue. A kernel's binary is its WGSL: the library compiles it where it is loaded.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "device.h"
#include "webgpu_api.h"

namespace xyntra {

// A kernel of a module, with the layout of what it binds: its buffers, then its numbers.
struct WebGpuPipeline {
  wgpu::OwnedGroupLayout layout;
  wgpu::OwnedPipeline pipeline;
  std::size_t buffers = 0;
};

class WebGpuDevice : public Device {
 public:
  // An identity: "WebGPU / Vulkan / name / driver / wgpu 29.0", with " #1" on for the second of two equal ones.
  static constexpr const char* kPrefix = "WebGPU / ";
  static std::unique_ptr<const WebGpuDevice> open(const std::string& identity);  // throws Error when it is not there
  // All of them, as JSON: a list of {"identity", "name", ... "problem"}, or {"missing": why}. Each is tried with a small kernel.
  static std::string list();

  // What may begin a part of a buffer, on every adapter.
  std::size_t alignment() const noexcept override { return 256; }
  DeviceMemory buffer(std::size_t bytes) const override;
  DeviceMemory part(const DeviceMemory& whole, std::size_t at, std::size_t bytes) const override;
  DeviceMemory buffer_of(const void* data, std::size_t bytes) const override;
  void* load(std::string_view binary) const override;
  void require(const LoadedKernel& wanted) const override;
  std::unique_ptr<DeviceCalls> ready(const std::vector<DeviceCall>& calls) const override;
  std::unique_ptr<DeviceQueue> queue(Timing timing) const override;
  // The source itself, if the library takes it and makes a pipeline of each kernel; throws Error with its words.
  std::string compile(const std::string& source, const std::string& options) const override;

  const wgpu::Api& api() const noexcept { return *api_; }
  wgpu::DeviceId id() const noexcept { return id_; }
  wgpu::Queue queue_id() const noexcept { return queue_; }
  const wgpu::Limits& limits() const noexcept { return limits_; }
  bool has_timestamps() const noexcept { return has_timestamps_; }
  const WebGpuPipeline& pipeline(void* program, const std::string& symbol) const;

  // Calls of the library go through here: throws what one has reported while `doing`, or that the device is lost.
  template <class Call>
  auto checked(const char* doing, Call call) const {
    finish("a run");  // some errors come when nobody asks
    if constexpr (std::is_void_v<decltype(call())>) {
      call();
      finish(doing);
    } else {
      auto result = call();
      finish(doing);
      return result;
    }
  }
  wgpu::OwnedBuffer create_buffer(std::size_t bytes, wgpu::Flags usage, const char* what) const;

 private:
  struct Program;
  WebGpuDevice(const wgpu::Api& api, std::string identity, wgpu::Adapter adapter, const wgpu::Limits& limits);
  void finish(const char* doing) const;
  WebGpuPipeline make(const Program& program, const std::string& symbol) const;
  void release(void* memory) const noexcept override;
  static void on_lost(const wgpu::DeviceId*, wgpu::Enum reason, wgpu::Text message, void* device, void*);
  static void on_error(const wgpu::DeviceId*, wgpu::Enum type, wgpu::Text message, void*, void*);

  const wgpu::Api* const api_;
  const std::string identity_;
  wgpu::Limits limits_;
  wgpu::DeviceId id_ = nullptr;
  wgpu::Queue queue_ = nullptr;
  bool has_timestamps_ = false;
  mutable std::mutex mutex_;  // of the pipelines, and of what follows
  mutable std::string lost_;
  mutable std::atomic<bool> is_gone_{false};
};

// What a DeviceMemory of this device holds: a buffer, or a part of one.
struct WebGpuMemory {
  wgpu::Buffer buffer = nullptr;
  std::size_t offset = 0, bytes = 0;  // of a binding: whole words
  bool is_part = false;
};

}  // namespace xyntra
