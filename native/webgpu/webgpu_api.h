// The part of WebGPU's C API (webgpu.h, and wgpu.h of wgpu-native 27 to 29, which brings it) that islands need, from a library
// that is found at run time: neither headers nor a library are wanted to build. Structs and numbers are those of these headers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace xyntra::wgpu {

using Instance = struct WGPUInstanceImpl*;
using Adapter = struct WGPUAdapterImpl*;
using DeviceId = struct WGPUDeviceImpl*;
using Queue = struct WGPUQueueImpl*;
using Buffer = struct WGPUBufferImpl*;
using ShaderModule = struct WGPUShaderModuleImpl*;
using GroupLayout = struct WGPUBindGroupLayoutImpl*;
using PipelineLayout = struct WGPUPipelineLayoutImpl*;
using Pipeline = struct WGPUComputePipelineImpl*;
using Group = struct WGPUBindGroupImpl*;
using Encoder = struct WGPUCommandEncoderImpl*;
using Pass = struct WGPUComputePassEncoderImpl*;
using Commands = struct WGPUCommandBufferImpl*;
using Queries = struct WGPUQuerySetImpl*;
using Bool = uint32_t;
using Enum = uint32_t;
using Flags = uint64_t;
using Submission = uint64_t;

inline constexpr Enum kSuccess = 1;          // of a status, a request and a map
inline constexpr Enum kSpontaneous = 3;      // when callbacks may come
inline constexpr Enum kWgslSource = 2, kInstanceExtras = 0x30004;  // sType
inline constexpr Enum kTimestampQuery = 9, kShaderF16 = 11;  // features
inline constexpr Enum kStorage = 3, kUniform = 2;            // bindings
inline constexpr Enum kTimestamps = 2;                       // of a query set
inline constexpr Enum kCpuAdapter = 3;
inline constexpr Enum kOutOfMemory = 3;  // an error's type
inline constexpr Enum kDestroyed = 2;    // why a device is lost
inline constexpr Flags kComputeStage = 4, kMapRead = 1;
inline constexpr Flags kUseMapRead = 1, kUseCopySource = 4, kUseCopyTarget = 8, kUseUniform = 0x40, kUseStorage = 0x80,
                       kUseQueries = 0x200;

struct Text {
  const char* data = nullptr;
  std::size_t length = SIZE_MAX;  // which means up to a zero
};

struct Chain {
  const Chain* next = nullptr;
  Enum type = 0;
};

// Beyond the first two it is for Direct3D and OpenGL: zeros leave it open.
struct InstanceExtras {
  Chain chain{nullptr, kInstanceExtras};
  Flags backends = 0;
  uint64_t others[24] = {};
};
// Vulkan, Metal, Direct3D 12. OpenGL's adapters are theirs once more, and looking for them talks to a display.
inline constexpr Flags kBackends = 1 | 4 | 8;
struct InstanceDescriptor {
  const Chain* next = nullptr;
  std::size_t features = 0;
  const void* feature = nullptr;
  const void* limits = nullptr;
};
struct EnumerateOptions {
  const Chain* next = nullptr;
  Flags backends = kBackends;
};
struct AdapterInfo {
  Chain* next = nullptr;
  Text vendor, architecture, device, description;
  Enum backend = 0, kind = 0;
  uint32_t vendor_id = 0, device_id = 0, subgroup_least = 0, subgroup_most = 0;
};

struct Limits {
  Chain* next = nullptr;
  uint32_t of_textures[4] = {};
  uint32_t groups = 0, groups_and_vertex_buffers = 0, bindings = 0, dynamic_uniforms = 0, dynamic_storages = 0;
  uint32_t sampled_textures = 0, samplers = 0;
  uint32_t storage_buffers = 0;  // that a kernel binds
  uint32_t storage_textures = 0, uniforms = 0;
  uint64_t uniform_bytes = 0, storage_bytes = 0;  // of a binding
  uint32_t uniform_alignment = 0, storage_alignment = 0;
  uint32_t vertex_buffers = 0;
  uint64_t buffer_bytes = 0;
  uint32_t vertex_attributes = 0, vertex_stride = 0, stage_variables = 0, attachments = 0, attachment_bytes = 0;
  uint32_t shared_bytes = 0, threads = 0, threads_along[3] = {}, blocks_along = 0, immediate_bytes = 0;
};

using OnDevice = void (*)(Enum status, DeviceId device, Text message, void*, void*);
using OnLost = void (*)(const DeviceId* device, Enum reason, Text message, void*, void*);
using OnError = void (*)(const DeviceId* device, Enum type, Text message, void*, void*);
using OnMapped = void (*)(Enum status, Text message, void*, void*);

template <class F>
struct Callback {
  Chain* next = nullptr;
  Enum mode = kSpontaneous;
  F function = nullptr;
  void* first = nullptr;
  void* second = nullptr;
};
struct ErrorCallback {
  Chain* next = nullptr;
  OnError function = nullptr;
  void* first = nullptr;
  void* second = nullptr;
};

struct Named {  // a descriptor of nothing else
  Chain* next = nullptr;
  Text label;
};
struct DeviceDescriptor {
  Chain* next = nullptr;
  Text label;
  std::size_t features = 0;
  const Enum* feature = nullptr;
  const Limits* limits = nullptr;
  Named queue;
  Callback<OnLost> lost;
  ErrorCallback error;
};
struct WgslSource {
  Chain chain;
  Text code;
};
struct ModuleDescriptor {
  const Chain* next = nullptr;
  Text label;
};
struct BufferLayout {
  Chain* next = nullptr;
  Enum type = 0;
  Bool has_dynamic_offset = 0;
  uint64_t least_bytes = 0;
};
struct LayoutEntry {
  Chain* next = nullptr;
  uint32_t binding = 0;
  Flags stages = kComputeStage;
  uint32_t array = 0;
  BufferLayout buffer;
  struct {
    Chain* next = nullptr;
    Enum type = 0;
  } sampler;
  struct {
    Chain* next = nullptr;
    Enum type = 0, view = 0;
    Bool is_multisampled = 0;
  } texture;
  struct {
    Chain* next = nullptr;
    Enum access = 0, format = 0, view = 0;
  } storage_texture;
};
struct GroupLayoutDescriptor {
  Chain* next = nullptr;
  Text label;
  std::size_t count = 0;
  const LayoutEntry* entries = nullptr;
};
struct PipelineLayoutDescriptor {
  Chain* next = nullptr;
  Text label;
  std::size_t count = 0;
  const GroupLayout* groups = nullptr;
  uint32_t immediate_bytes = 0;
};
struct PipelineDescriptor {
  Chain* next = nullptr;
  Text label;
  PipelineLayout layout = nullptr;
  Chain* stage_next = nullptr;
  ShaderModule module = nullptr;
  Text entry;
  std::size_t constants = 0;
  const void* constant = nullptr;
};
struct BufferDescriptor {
  Chain* next = nullptr;
  Text label;
  Flags usage = 0;
  uint64_t bytes = 0;
  Bool is_mapped = 0;
};
struct GroupEntry {
  Chain* next = nullptr;
  uint32_t binding = 0;
  Buffer buffer = nullptr;
  uint64_t offset = 0, bytes = 0;
  void* sampler = nullptr;
  void* texture = nullptr;
};
struct GroupDescriptor {
  Chain* next = nullptr;
  Text label;
  GroupLayout layout = nullptr;
  std::size_t count = 0;
  const GroupEntry* entries = nullptr;
};
struct Timestamps {
  Chain* next = nullptr;
  Queries queries = nullptr;
  uint32_t begin = 0, end = 0;
};
struct PassDescriptor {
  Chain* next = nullptr;
  Text label;
  const Timestamps* timestamps = nullptr;
};
struct QueriesDescriptor {
  Chain* next = nullptr;
  Text label;
  Enum type = kTimestamps;
  uint32_t count = 0;
};

struct Api {
  uint32_t (*GetVersion)();
  Instance (*CreateInstance)(const InstanceDescriptor*);
  std::size_t (*InstanceEnumerateAdapters)(Instance, const EnumerateOptions*, Adapter*);
  Enum (*AdapterGetInfo)(Adapter, AdapterInfo*);
  void (*AdapterInfoFreeMembers)(AdapterInfo);
  Enum (*AdapterGetLimits)(Adapter, Limits*);
  Bool (*AdapterHasFeature)(Adapter, Enum);
  uint64_t (*AdapterRequestDevice)(Adapter, const DeviceDescriptor*, Callback<OnDevice>);
  void (*AdapterRelease)(Adapter);
  Queue (*DeviceGetQueue)(DeviceId);
  Bool (*DevicePoll)(DeviceId, Bool, const Submission*);
  ShaderModule (*DeviceCreateShaderModule)(DeviceId, const ModuleDescriptor*);
  GroupLayout (*DeviceCreateBindGroupLayout)(DeviceId, const GroupLayoutDescriptor*);
  PipelineLayout (*DeviceCreatePipelineLayout)(DeviceId, const PipelineLayoutDescriptor*);
  Pipeline (*DeviceCreateComputePipeline)(DeviceId, const PipelineDescriptor*);
  Buffer (*DeviceCreateBuffer)(DeviceId, const BufferDescriptor*);
  Group (*DeviceCreateBindGroup)(DeviceId, const GroupDescriptor*);
  Encoder (*DeviceCreateCommandEncoder)(DeviceId, const Named*);
  Queries (*DeviceCreateQuerySet)(DeviceId, const QueriesDescriptor*);
  void (*QueueWriteBuffer)(Queue, Buffer, uint64_t, const void*, std::size_t);
  Submission (*QueueSubmitForIndex)(Queue, std::size_t, const Commands*);
  float (*QueueGetTimestampPeriod)(Queue);
  Pass (*CommandEncoderBeginComputePass)(Encoder, const PassDescriptor*);
  void (*CommandEncoderCopyBufferToBuffer)(Encoder, Buffer, uint64_t, Buffer, uint64_t, uint64_t);
  void (*CommandEncoderResolveQuerySet)(Encoder, Queries, uint32_t, uint32_t, Buffer, uint64_t);
  Commands (*CommandEncoderFinish)(Encoder, const Named*);
  void (*ComputePassEncoderSetPipeline)(Pass, Pipeline);
  void (*ComputePassEncoderSetBindGroup)(Pass, uint32_t, Group, std::size_t, const uint32_t*);
  void (*ComputePassEncoderDispatchWorkgroups)(Pass, uint32_t, uint32_t, uint32_t);
  void (*ComputePassEncoderEnd)(Pass);
  uint64_t (*BufferMapAsync)(Buffer, Flags, std::size_t, std::size_t, Callback<OnMapped>);
  const void* (*BufferGetConstMappedRange)(Buffer, std::size_t, std::size_t);
  void (*BufferUnmap)(Buffer);
  void (*ShaderModuleRelease)(ShaderModule);
  void (*BindGroupLayoutRelease)(GroupLayout);
  void (*PipelineLayoutRelease)(PipelineLayout);
  void (*ComputePipelineRelease)(Pipeline);
  void (*BufferRelease)(Buffer);
  void (*BindGroupRelease)(Group);
  void (*CommandEncoderRelease)(Encoder);
  void (*ComputePassEncoderRelease)(Pass);
  void (*CommandBufferRelease)(Commands);
  void (*QuerySetRelease)(Queries);
};

// Where the library is, before it is asked for; the environment's XYNTRA_WGPU_LIBRARY comes first. Without either it is
// libwgpu_native.so, where the system's loader finds it.
void set_library(const std::string& path);

// Opened at the first call and never closed. Null without it; `why` then says what is missing.
const Api* api(std::string* why = nullptr);

std::string text_of(Text text);

// Sets a handle free when it goes.
template <class T, void (*Api::*release)(T)>
class Handle {
 public:
  Handle() = default;
  explicit Handle(T value) : value_(value) {}
  ~Handle() {
    if (value_ != nullptr) (api()->*release)(value_);
  }
  Handle(Handle&& other) noexcept : value_(other.value_) { other.value_ = nullptr; }
  Handle& operator=(Handle&& other) noexcept {
    T const mine = value_;
    value_ = other.value_;
    other.value_ = mine;
    return *this;
  }
  T get() const noexcept { return value_; }

 private:
  T value_ = nullptr;
};

using OwnedModule = Handle<ShaderModule, &Api::ShaderModuleRelease>;
using OwnedGroupLayout = Handle<GroupLayout, &Api::BindGroupLayoutRelease>;
using OwnedPipelineLayout = Handle<PipelineLayout, &Api::PipelineLayoutRelease>;
using OwnedPipeline = Handle<Pipeline, &Api::ComputePipelineRelease>;
using OwnedBuffer = Handle<Buffer, &Api::BufferRelease>;
using OwnedGroup = Handle<Group, &Api::BindGroupRelease>;
using OwnedEncoder = Handle<Encoder, &Api::CommandEncoderRelease>;
using OwnedPass = Handle<Pass, &Api::ComputePassEncoderRelease>;
using OwnedCommands = Handle<Commands, &Api::CommandBufferRelease>;
using OwnedQueries = Handle<Queries, &Api::QuerySetRelease>;

}  // namespace xyntra::wgpu
