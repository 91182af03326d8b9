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

FailureKind kind_of(Result code) {
  switch (code) {
    case 4:    // CUDA_ERROR_DEINITIALIZED
    case 100:  // CUDA_ERROR_NO_DEVICE
    case 101:  // CUDA_ERROR_INVALID_DEVICE
    case 201:  // CUDA_ERROR_INVALID_CONTEXT: somebody else has reset the device
    case 214:  // CUDA_ERROR_ECC_UNCORRECTABLE
    case 220:  // CUDA_ERROR_NVLINK_UNCORRECTABLE
    case 226:  // CUDA_ERROR_CONTAINED
    case 700:  // CUDA_ERROR_ILLEGAL_ADDRESS
    case 702:  // CUDA_ERROR_LAUNCH_TIMEOUT
    case 709:  // CUDA_ERROR_CONTEXT_IS_DESTROYED
    case 710:  // CUDA_ERROR_ASSERT
    case 714:  // CUDA_ERROR_HARDWARE_STACK_ERROR
    case 715:  // CUDA_ERROR_ILLEGAL_INSTRUCTION
    case 716:  // CUDA_ERROR_MISALIGNED_ADDRESS
    case 717:  // CUDA_ERROR_INVALID_ADDRESS_SPACE
    case 718:  // CUDA_ERROR_INVALID_PC
    case 719:  // CUDA_ERROR_LAUNCH_FAILED
    case 721:  // CUDA_ERROR_TENSOR_MEMORY_LEAK
    case 806:  // CUDA_ERROR_MPS_RPC_FAILURE
    case 810:  // CUDA_ERROR_MPS_CLIENT_TERMINATED
    case 911:  // CUDA_ERROR_EXTERNAL_DEVICE
    case 999:  // CUDA_ERROR_UNKNOWN, which drivers give for a device that has fallen off its bus
      return FailureKind::kFatal;
    default:  // out of memory, not ready, a launch that asks for too much ...
      return FailureKind::kRecoverable;
  }
}

}  // namespace xyntra::cuda
