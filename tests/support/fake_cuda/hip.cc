// HIP's runtime for machines without an AMD GPU, as far as native/hip/hip_api.cc asks for one: the stand-in for CUDA's driver under
// HIP's names, with HIP's numbers, and a device that is current to a thread. FAKE_HIP_ARCHITECTURE says what there is.
#pragma GCC diagnostic ignored "-Wsubobject-linkage"  // of what was meant for a file of its own
#include "driver.cc"

namespace {

constexpr int kBlockShared = 64 << 10;

// hipDeviceAttribute_t -> CUdevice_attribute
int attribute_of(int which) {
  static const std::map<int, int> numbers = {{56, 1}, {5, 13}, {63, 16}, {60, 36}, {59, 37}, {19, 38}};
  const auto found = numbers.find(which);
  return found != numbers.end() ? found->second : -1;
}

// Of a thread that has not asked for another device.
int enter() {
  if (contexts.empty()) contexts.push_back(&primary[0]);
  return kSuccess;
}

}  // namespace

API int hipInit(unsigned flags) { return cuInit(flags); }
API int hipDriverGetVersion(int* version) { return *version = 60240134, kSuccess; }
API const char* hipGetErrorName(int code) {
  switch (code) {
    case kInvalidValue: return "hipErrorInvalidValue";
    case kOutOfMemory: return "hipErrorOutOfMemory";
    case kNoDevice: return "hipErrorNoDevice";
    case kInvalidImage: return "hipErrorInvalidImage";
    case kInvalidContext: return "hipErrorInvalidContext";
    case kIllegalAddress: return "hipErrorIllegalAddress";
    case kUncorrectable: return "hipErrorECCNotCorrectable";
    case kLaunchFailed: return "hipErrorLaunchFailure";
    case kNotFound: return "hipErrorNotFound";
    default: return "hipErrorUnknown";
  }
}
API int hipGetDeviceCount(int* count) { return cuDeviceGetCount(count); }
API int hipDeviceGet(int* device, int ordinal) { return cuDeviceGet(device, ordinal); }
API int hipDeviceGetName(char* name, int bytes, int device) { return cuDeviceGetName(name, bytes, device); }
API int hipDeviceGetAttribute(int* value, int which, int device) {
  return which == 74 ? (*value = kBlockShared, kSuccess) : cuDeviceGetAttribute(value, attribute_of(which), device);
}
API int hipDeviceTotalMem(std::size_t* bytes, int device) { return cuDeviceTotalMem_v2(bytes, device); }
// The name is where all versions have it, the architecture somewhere behind it.
API int hipGetDevicePropertiesR0600(void* properties, int) {
  const char* const told = std::getenv("FAKE_HIP_ARCHITECTURE");
  std::strcpy(static_cast<char*>(properties), "Simulated GPU");
  return std::sprintf(static_cast<char*>(properties) + 1160, "%s:sramecc+:xnack-", told != nullptr ? told : "gfx942"), kSuccess;
}
API int hipGetDevice(int* device) { return enter(), *device = contexts.back()->device, kSuccess; }
API int hipSetDevice(int device) {
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  if (const int code = failure("SetDevice")) return code;
  return contexts.assign(1, &primary[device]), kSuccess;
}
API int hipMalloc(void** memory, std::size_t bytes) {
  return enter(), cuMemAlloc_v2(reinterpret_cast<uint64_t*>(memory), bytes);
}
API int hipFree(void* memory) { return enter(), cuMemFree_v2(reinterpret_cast<uint64_t>(memory)); }
API int hipMemGetInfo(std::size_t* free, std::size_t* all) { return enter(), cuMemGetInfo_v2(free, all); }
API int hipHostMalloc(void** memory, std::size_t bytes, unsigned) { return enter(), cuMemAllocHost_v2(memory, bytes); }
API int hipHostFree(void* memory) { return enter(), cuMemFreeHost(memory); }
API int hipMemcpyHtoD(uint64_t to, void* from, std::size_t bytes) { return enter(), cuMemcpyHtoD_v2(to, from, bytes); }
API int hipMemcpyDtoH(void* to, uint64_t from, std::size_t bytes) { return enter(), cuMemcpyDtoH_v2(to, from, bytes); }
API int hipMemcpyDtoD(uint64_t to, uint64_t from, std::size_t bytes) { return enter(), cuMemcpyDtoD_v2(to, from, bytes); }
API int hipMemcpyHtoDAsync(uint64_t to, void* from, std::size_t bytes, void* stream) {
  return enter(), cuMemcpyHtoDAsync_v2(to, from, bytes, stream);
}
API int hipMemcpyDtoHAsync(void* to, uint64_t from, std::size_t bytes, void* stream) {
  return enter(), cuMemcpyDtoHAsync_v2(to, from, bytes, stream);
}
API int hipMemcpyDtoDAsync(uint64_t to, uint64_t from, std::size_t bytes, void* stream) {
  return enter(), cuMemcpyDtoDAsync_v2(to, from, bytes, stream);
}
API int hipPointerGetAttribute(void* value, int which, uint64_t address) { return cuPointerGetAttribute(value, which, address); }
API int hipDeviceSynchronize() { return enter(), cuCtxSynchronize(); }
API int hipModuleLoadData(void** module, const void* image) { return enter(), cuModuleLoadData(module, image); }
API int hipModuleGetFunction(void** function, void* module, const char* name) {
  enter();
  const int code = cuModuleGetFunction(function, module, name);
  if (code == kSuccess) static_cast<Function*>(*function)->shared_bytes = kBlockShared;  // nobody has to ask for it
  return code;
}
API int hipModuleLaunchKernel(Function* f, unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by, unsigned bz,
                              unsigned shared_bytes, void* stream, void** args, void** extra) {
  return enter(), cuLaunchKernel(f, x, y, z, bx, by, bz, shared_bytes, stream, args, extra);
}
API int hipStreamCreateWithFlags(void** stream, unsigned flags) { return enter(), cuStreamCreate(stream, flags); }
API int hipStreamSynchronize(void* stream) { return enter(), cuStreamSynchronize(stream); }
API int hipLaunchHostFunc(void* stream, void (*work)(void*), void* with) { return enter(), cuLaunchHostFunc(stream, work, with); }
API int hipStreamDestroy(void* stream) { return enter(), cuStreamDestroy_v2(stream); }
API int hipEventCreateWithFlags(double** event, unsigned flags) { return enter(), cuEventCreate(event, flags); }
API int hipEventRecord(double* event, void* stream) { return enter(), cuEventRecord(event, stream); }
API int hipEventElapsedTime(float* ms, const double* a, const double* b) { return enter(), cuEventElapsedTime(ms, a, b); }
API int hipEventDestroy(double* event) { return enter(), cuEventDestroy_v2(event); }
