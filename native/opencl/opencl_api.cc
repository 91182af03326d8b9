#include "opencl_api.h"

#include <memory>
#include <utility>

#include "shared_library.h"

namespace xyntra::cl {
namespace {

struct Opened {
  std::unique_ptr<Api> api;
  std::string why;
};

Opened open() {
  SharedLibrary library("libOpenCL.so.1");
  auto api = std::make_unique<Api>();
#define XYNTRA_FIND(name) library.find("cl" #name, api->name)
  XYNTRA_FIND(GetPlatformIDs);
  XYNTRA_FIND(GetPlatformInfo);
  XYNTRA_FIND(GetDeviceIDs);
  XYNTRA_FIND(GetDeviceInfo);
  XYNTRA_FIND(CreateContext);
  XYNTRA_FIND(CreateCommandQueue);
  XYNTRA_FIND(ReleaseCommandQueue);
  XYNTRA_FIND(CreateBuffer);
  XYNTRA_FIND(CreateSubBuffer);
  XYNTRA_FIND(ReleaseMemObject);
  XYNTRA_FIND(CreateProgramWithSource);
  XYNTRA_FIND(CreateProgramWithBinary);
  XYNTRA_FIND(BuildProgram);
  XYNTRA_FIND(GetProgramInfo);
  XYNTRA_FIND(GetProgramBuildInfo);
  XYNTRA_FIND(ReleaseProgram);
  XYNTRA_FIND(CreateKernel);
  XYNTRA_FIND(CreateKernelsInProgram);
  XYNTRA_FIND(GetKernelInfo);
  XYNTRA_FIND(GetKernelArgInfo);
  XYNTRA_FIND(GetKernelWorkGroupInfo);
  XYNTRA_FIND(SetKernelArg);
  XYNTRA_FIND(ReleaseKernel);
  XYNTRA_FIND(EnqueueWriteBuffer);
  XYNTRA_FIND(EnqueueReadBuffer);
  XYNTRA_FIND(EnqueueNDRangeKernel);
  XYNTRA_FIND(Finish);
  XYNTRA_FIND(GetEventProfilingInfo);
  XYNTRA_FIND(ReleaseEvent);
#undef XYNTRA_FIND
  if (std::string why = library.why(); !why.empty()) return {nullptr, std::move(why)};
  return {std::move(api), {}};
}

}  // namespace

const Api* api(std::string* why) {
  static const auto* const opened = new Opened(open());
  if (why != nullptr) *why = opened->why;
  return opened->api.get();
}

std::string error_name(Int code) {
  switch (code) {
    case -1: return "CL_DEVICE_NOT_FOUND";
    case -2: return "CL_DEVICE_NOT_AVAILABLE";
    case -3: return "CL_COMPILER_NOT_AVAILABLE";
    case -4: return "CL_MEM_OBJECT_ALLOCATION_FAILURE";
    case -5: return "CL_OUT_OF_RESOURCES";
    case -6: return "CL_OUT_OF_HOST_MEMORY";
    case -11: return "CL_BUILD_PROGRAM_FAILURE";
    case -13: return "CL_MISALIGNED_SUB_BUFFER_OFFSET";
    case -33: return "CL_INVALID_DEVICE";
    case -34: return "CL_INVALID_CONTEXT";
    case -36: return "CL_INVALID_COMMAND_QUEUE";
    case -42: return "CL_INVALID_BINARY";
    case -46: return "CL_INVALID_KERNEL_NAME";
    case -54: return "CL_INVALID_WORK_GROUP_SIZE";
    case -61: return "CL_INVALID_BUFFER_SIZE";
    case -1001: return "CL_PLATFORM_NOT_FOUND_KHR";
    default: return "OpenCL error " + std::to_string(code);
  }
}

// Where a kernel has left its memory, some drivers say CL_OUT_OF_RESOURCES, which may mean no more than that: only the next run
// then learns that queue or context are invalid.
FailureKind kind_of(Int code) {
  switch (code) {
    case -1:     // CL_DEVICE_NOT_FOUND
    case -2:     // CL_DEVICE_NOT_AVAILABLE
    case -33:    // CL_INVALID_DEVICE
    case -34:    // CL_INVALID_CONTEXT
    case -36:    // CL_INVALID_COMMAND_QUEUE
    case -9999:  // NVIDIA's, for an address that is not the kernel's
      return FailureKind::kFatal;
    default:  // no memory, no resources, a program that does not compile ...
      return FailureKind::kRecoverable;
  }
}

}  // namespace xyntra::cl
