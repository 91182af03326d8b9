// CUDA's driver API, from the driver's library.
#include <memory>
#include <utility>

#include "driver_device.h"
#include "shared_library.h"

namespace xyntra::driver {
namespace {

constexpr int kCapabilityMajor = 75, kCapabilityMinor = 76;  // CUdevice_attribute, as the numbers below

bool version(const Api& api, Ordinal device, Version& found) {
  int driver = 0;
  if (api.DriverGetVersion(&driver) != kSuccess) return false;
  found.driver = std::to_string(driver / 1000) + '.' + std::to_string(driver % 1000 / 10);
  found.architecture = "sm_" + std::to_string(attribute(api, device, kCapabilityMajor)) +
                       std::to_string(attribute(api, device, kCapabilityMinor));
  return true;
}

Opened open() {
  SharedLibrary library("libcuda.so.1");
  auto api = std::make_unique<Api>();
  api->prefix = "CUDA / ";
  api->name = "the CUDA driver";
  api->is_known_to_ort = true;
  api->attributes = {1, 97, 13, 16, 36, 37, 38};
  api->version = version;
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
    return {nullptr, std::string(api->name) + " reports " + error_name(*api, code)};
  return {std::move(api), {}};
}

const Opened& opened() {
  static const auto* const once = new Opened(open());
  return *once;
}

const DriverApi<opened> kCuda("CUDA / ", true);

}  // namespace
}  // namespace xyntra::driver
