#include "cuda_api.h"

#include <memory>
#include <utility>

#include "shared_library.h"

namespace xyntra::cuda {
namespace {

struct Opened {
  std::unique_ptr<Api> api;
  std::string why;
};

Opened open() {
  SharedLibrary library("libcuda.so.1");
  auto api = std::make_unique<Api>();
#define XYNTRA_FIND(name, version) library.find("cu" #name version, api->name)
  XYNTRA_FIND(Init, "");
  XYNTRA_FIND(DriverGetVersion, "");
  XYNTRA_FIND(GetErrorName, "");
  XYNTRA_FIND(DeviceGetCount, "");
  XYNTRA_FIND(DeviceGet, "");
  XYNTRA_FIND(DeviceGetName, "");
  XYNTRA_FIND(DeviceGetAttribute, "");
  XYNTRA_FIND(DeviceTotalMem, "_v2");
  XYNTRA_FIND(DevicePrimaryCtxRetain, "");
  XYNTRA_FIND(CtxPushCurrent, "_v2");
  XYNTRA_FIND(CtxPopCurrent, "_v2");
  XYNTRA_FIND(MemAlloc, "_v2");
  XYNTRA_FIND(MemFree, "_v2");
  XYNTRA_FIND(MemGetInfo, "_v2");
  XYNTRA_FIND(MemAllocHost, "_v2");
  XYNTRA_FIND(MemFreeHost, "");
  XYNTRA_FIND(MemcpyHtoD, "_v2");
  XYNTRA_FIND(MemcpyDtoH, "_v2");
  XYNTRA_FIND(MemcpyDtoD, "_v2");
  XYNTRA_FIND(MemcpyHtoDAsync, "_v2");
  XYNTRA_FIND(MemcpyDtoHAsync, "_v2");
  XYNTRA_FIND(MemcpyDtoDAsync, "_v2");
  XYNTRA_FIND(PointerGetAttribute, "");
  XYNTRA_FIND(CtxSynchronize, "");
  XYNTRA_FIND(ModuleLoadData, "");
  XYNTRA_FIND(ModuleGetFunction, "");
  XYNTRA_FIND(TensorMapEncodeTiled, "");
  XYNTRA_FIND(FuncSetAttribute, "");
  XYNTRA_FIND(LaunchKernel, "");
  XYNTRA_FIND(StreamCreate, "");
  XYNTRA_FIND(StreamSynchronize, "");
  XYNTRA_FIND(LaunchHostFunc, "");
  XYNTRA_FIND(StreamDestroy, "_v2");
  XYNTRA_FIND(EventCreate, "");
  XYNTRA_FIND(EventRecord, "");
  XYNTRA_FIND(EventElapsedTime, "");
  XYNTRA_FIND(EventDestroy, "_v2");
  XYNTRA_FIND(GraphCreate, "");
  XYNTRA_FIND(GraphAddKernelNode, "");
  XYNTRA_FIND(GraphInstantiateWithFlags, "");
  XYNTRA_FIND(GraphExecKernelNodeSetParams, "");
  XYNTRA_FIND(GraphLaunch, "");
  XYNTRA_FIND(GraphExecDestroy, "");
  XYNTRA_FIND(GraphDestroy, "");
#undef XYNTRA_FIND
  if (std::string why = library.why(); !why.empty()) return {nullptr, std::move(why)};
  if (const Result code = api->Init(0); code != kSuccess)
    return {nullptr, "the CUDA driver reports " + error_name(*api, code)};
  return {std::move(api), {}};
}

}  // namespace

const Api* api(std::string* why) {
  static const auto* const opened = new Opened(open());
  if (why != nullptr) *why = opened->why;
  return opened->api.get();
}

std::string error_name(const Api& api, Result code) {
  const char* name = nullptr;
  if (api.GetErrorName(code, &name) == kSuccess && name != nullptr) return name;
  return "CUDA error " + std::to_string(code);
}

}  // namespace xyntra::cuda
