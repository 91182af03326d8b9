#include "driver_api.h"

namespace xyntra::driver {

int attribute(const Api& api, Ordinal ordinal, int which) {
  int value = 0;
  return api.DeviceGetAttribute(&value, which, ordinal) == kSuccess ? value : 0;
}

std::string error_name(const Api& api, Result code) {
  const char* name = nullptr;
  if (api.GetErrorName(code, &name) == kSuccess && name != nullptr) return name;
  return "error " + std::to_string(code);
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

}  // namespace xyntra::driver
