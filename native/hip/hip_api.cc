// HIP's runtime, from AMD's library (hip_runtime_api.h of ROCm 5 to 7). Most functions are CUDA's under other names; what differs
// is adapted here. Kernels are launched one by one: how its graphs take kernels of modules is in no document.
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "driver_device.h"
#include "shared_library.h"

namespace xyntra::driver {
namespace {

// What is called by way of a function of ours. Its device, which is the context, is a number, and current to a thread.
struct Own {
  const char* (*GetErrorName)(Result);
  Result (*GetDevice)(int*);
  Result (*SetDevice)(int);
  Result (*HostMalloc)(void**, std::size_t, unsigned);
  Result (*GetDeviceProperties)(void*, int);
};
Own own;
thread_local std::vector<int> before;  // the devices that were current when others became so

Context context_of(int device) { return reinterpret_cast<Context>(static_cast<intptr_t>(device) + 1); }

Result retain(Context* context, Ordinal device) { return *context = context_of(device), kSuccess; }

Result push(Context context) {
  int device = 0;
  if (const Result code = own.GetDevice(&device); code != kSuccess) return code;
  if (const Result code = own.SetDevice(static_cast<int>(reinterpret_cast<intptr_t>(context) - 1)); code != kSuccess) return code;
  return before.push_back(device), kSuccess;
}

Result pop(Context*) {
  const int device = before.back();
  before.pop_back();
  return own.SetDevice(device);
}

Result error_name_of(Result code, const char** name) { return *name = own.GetErrorName(code), kSuccess; }

Result alloc_host(void** memory, std::size_t bytes) { return own.HostMalloc(memory, bytes, 0); }

// The architecture is one of the properties (gcnArchName, as "gfx90a:sramecc+:xnack-"), whose place has changed from version to
// version: it is the first text after the device's name that begins so.
bool version(const Api& api, Ordinal device, Version& found) {
  constexpr std::size_t kNameBytes = 256, kMostBytes = 1 << 14;  // more than any version's properties
  static const char kFamily[] = "gfx";
  int driver = 0;
  std::vector<char> properties(kMostBytes);
  if (api.DriverGetVersion(&driver) != kSuccess || own.GetDeviceProperties(properties.data(), device) != kSuccess) return false;
  for (std::size_t at = kNameBytes; at + kNameBytes < kMostBytes; ++at) {
    if (properties[at - 1] != 0 || std::memcmp(&properties[at], kFamily, sizeof(kFamily) - 1) != 0) continue;
    const std::string name(&properties[at]);
    found.architecture = name.substr(0, name.find(':'));
    found.driver = std::to_string(driver / 10000000) + '.' + std::to_string(driver / 100000 % 100);
    return true;
  }
  return false;
}

// By its name with a version, which is all that is installed to run programs; without, and where ROCm is not among the system's.
SharedLibrary runtime() {
  SharedLibrary library("libamdhip64.so.7");
  for (const char* name : {"libamdhip64.so.6", "libamdhip64.so.5", "/opt/rocm/lib/libamdhip64.so", "libamdhip64.so"}) {
    if (library.why().empty()) break;
    library = SharedLibrary(name);
  }
  return library;
}

Opened open() {
  SharedLibrary library = runtime();
  auto api = std::make_unique<Api>();
  api->prefix = "HIP / ";
  api->name = "AMD's driver";
  api->is_known_to_ort = false;
  api->attributes = {56, 74, 5, 63, 60, 59, 19};  // hipDeviceAttribute_t
  api->version = version;
#define XYNTRA_FIND(name, symbol) library.find("hip" symbol, api->name)
  XYNTRA_FIND(Init, "Init");
  XYNTRA_FIND(DriverGetVersion, "DriverGetVersion");
  XYNTRA_FIND(DeviceGetCount, "GetDeviceCount");
  XYNTRA_FIND(DeviceGet, "DeviceGet");
  XYNTRA_FIND(DeviceGetName, "DeviceGetName");
  XYNTRA_FIND(DeviceGetAttribute, "DeviceGetAttribute");
  XYNTRA_FIND(DeviceTotalMem, "DeviceTotalMem");
  XYNTRA_FIND(MemAlloc, "Malloc");
  XYNTRA_FIND(MemFree, "Free");
  XYNTRA_FIND(MemGetInfo, "MemGetInfo");
  XYNTRA_FIND(MemFreeHost, "HostFree");
  XYNTRA_FIND(MemcpyHtoD, "MemcpyHtoD");
  XYNTRA_FIND(MemcpyDtoH, "MemcpyDtoH");
  XYNTRA_FIND(MemcpyDtoD, "MemcpyDtoD");
  XYNTRA_FIND(MemcpyHtoDAsync, "MemcpyHtoDAsync");
  XYNTRA_FIND(MemcpyDtoHAsync, "MemcpyDtoHAsync");
  XYNTRA_FIND(MemcpyDtoDAsync, "MemcpyDtoDAsync");
  XYNTRA_FIND(PointerGetAttribute, "PointerGetAttribute");
  XYNTRA_FIND(CtxSynchronize, "DeviceSynchronize");
  XYNTRA_FIND(ModuleLoadData, "ModuleLoadData");
  XYNTRA_FIND(ModuleGetFunction, "ModuleGetFunction");
  XYNTRA_FIND(LaunchKernel, "ModuleLaunchKernel");
  XYNTRA_FIND(StreamCreate, "StreamCreateWithFlags");
  XYNTRA_FIND(StreamSynchronize, "StreamSynchronize");
  XYNTRA_FIND(LaunchHostFunc, "LaunchHostFunc");
  XYNTRA_FIND(StreamDestroy, "StreamDestroy");
  XYNTRA_FIND(EventCreate, "EventCreateWithFlags");
  XYNTRA_FIND(EventRecord, "EventRecord");
  XYNTRA_FIND(EventElapsedTime, "EventElapsedTime");
  XYNTRA_FIND(EventDestroy, "EventDestroy");
#undef XYNTRA_FIND
  library.find("hipGetErrorName", own.GetErrorName);
  library.find("hipGetDevice", own.GetDevice);
  library.find("hipSetDevice", own.SetDevice);
  library.find("hipHostMalloc", own.HostMalloc);
  // Since ROCm 6 the name alone stands for the properties as they were before; either has the architecture.
  SharedLibrary(library).find("hipGetDevicePropertiesR0600", own.GetDeviceProperties);
  if (own.GetDeviceProperties == nullptr) library.find("hipGetDeviceProperties", own.GetDeviceProperties);
  api->GetErrorName = error_name_of;
  api->DevicePrimaryCtxRetain = retain;
  api->CtxPushCurrent = push;
  api->CtxPopCurrent = pop;
  api->MemAllocHost = alloc_host;
  if (std::string why = library.why(); !why.empty()) return {nullptr, std::move(why)};
  if (const Result code = api->Init(0); code != kSuccess)
    return {nullptr, std::string(api->name) + " reports " + error_name(*api, code)};
  return {std::move(api), {}};
}

const Opened& opened() {
  static const auto* const once = new Opened(open());
  return *once;
}

const DriverApi<opened> kHip("HIP / ", false);

}  // namespace
}  // namespace xyntra::driver
