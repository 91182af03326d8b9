#include "webgpu_api.h"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>

#include "shared_library.h"

namespace xyntra::wgpu {
namespace {

struct Opened {
  std::unique_ptr<Api> api;
  std::string why;
};

struct Told {
  std::mutex mutex;
  std::string path;
};

Told& told() {
  static auto* const said = new Told;
  return *said;
}

std::string library_path() {
  const char* const given = std::getenv("XYNTRA_WGPU_LIBRARY");
  if (given != nullptr && *given != '\0') return given;
  const std::lock_guard lock(told().mutex);
  return told().path.empty() ? "libwgpu_native.so" : told().path;
}

Opened open() {
  SharedLibrary library(library_path().c_str());
  auto api = std::make_unique<Api>();
#define XYNTRA_FIND(name) library.find("wgpu" #name, api->name)
  XYNTRA_FIND(GetVersion);
  XYNTRA_FIND(CreateInstance);
  XYNTRA_FIND(InstanceEnumerateAdapters);
  XYNTRA_FIND(AdapterGetInfo);
  XYNTRA_FIND(AdapterInfoFreeMembers);
  XYNTRA_FIND(AdapterGetLimits);
  XYNTRA_FIND(AdapterHasFeature);
  XYNTRA_FIND(AdapterRequestDevice);
  XYNTRA_FIND(AdapterRelease);
  XYNTRA_FIND(DeviceGetQueue);
  XYNTRA_FIND(DevicePoll);
  XYNTRA_FIND(DeviceCreateShaderModule);
  XYNTRA_FIND(DeviceCreateBindGroupLayout);
  XYNTRA_FIND(DeviceCreatePipelineLayout);
  XYNTRA_FIND(DeviceCreateComputePipeline);
  XYNTRA_FIND(DeviceCreateBuffer);
  XYNTRA_FIND(DeviceCreateBindGroup);
  XYNTRA_FIND(DeviceCreateCommandEncoder);
  XYNTRA_FIND(DeviceCreateQuerySet);
  XYNTRA_FIND(QueueWriteBuffer);
  XYNTRA_FIND(QueueSubmitForIndex);
  XYNTRA_FIND(QueueGetTimestampPeriod);
  XYNTRA_FIND(CommandEncoderBeginComputePass);
  XYNTRA_FIND(CommandEncoderCopyBufferToBuffer);
  XYNTRA_FIND(CommandEncoderResolveQuerySet);
  XYNTRA_FIND(CommandEncoderFinish);
  XYNTRA_FIND(ComputePassEncoderSetPipeline);
  XYNTRA_FIND(ComputePassEncoderSetBindGroup);
  XYNTRA_FIND(ComputePassEncoderDispatchWorkgroups);
  XYNTRA_FIND(ComputePassEncoderEnd);
  XYNTRA_FIND(BufferMapAsync);
  XYNTRA_FIND(BufferGetConstMappedRange);
  XYNTRA_FIND(BufferUnmap);
  XYNTRA_FIND(ShaderModuleRelease);
  XYNTRA_FIND(BindGroupLayoutRelease);
  XYNTRA_FIND(PipelineLayoutRelease);
  XYNTRA_FIND(ComputePipelineRelease);
  XYNTRA_FIND(BufferRelease);
  XYNTRA_FIND(BindGroupRelease);
  XYNTRA_FIND(CommandEncoderRelease);
  XYNTRA_FIND(ComputePassEncoderRelease);
  XYNTRA_FIND(CommandBufferRelease);
  XYNTRA_FIND(QuerySetRelease);
#undef XYNTRA_FIND
  if (std::string why = library.why(); !why.empty()) return {nullptr, std::move(why)};
  return {std::move(api), {}};
}

}  // namespace

void set_library(const std::string& path) {
  const std::lock_guard lock(told().mutex);
  told().path = path;
}

const Api* api(std::string* why) {
  static const auto* const opened = new Opened(open());
  if (why != nullptr) *why = opened->why;
  return opened->api.get();
}

std::string text_of(Text text) {
  if (text.data == nullptr) return {};
  return {text.data, text.length == SIZE_MAX ? std::strlen(text.data) : text.length};
}

}  // namespace xyntra::wgpu
