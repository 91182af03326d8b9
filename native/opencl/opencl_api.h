// The part of OpenCL's C API (1.2, which every driver has) that islands need, from the system's loader at run time: neither
// headers nor a library are wanted to build, and a machine without OpenCL loses nothing. Numbers are those of cl.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "ort.h"

namespace xyntra::cl {

using Platform = struct _cl_platform_id*;
using DeviceId = struct _cl_device_id*;
using Context = struct _cl_context*;
using Queue = struct _cl_command_queue*;
using Mem = struct _cl_mem*;
using Program = struct _cl_program*;
using Kernel = struct _cl_kernel*;
using Event = struct _cl_event*;
using Int = int32_t;
using Uint = uint32_t;
using Long = uint64_t;  // bit fields and properties

inline constexpr Int kSuccess = 0;
inline constexpr Uint kFalse = 0;

inline constexpr Uint kPlatformName = 0x0902;
inline constexpr Long kAllDevices = 0xFFFFFFFF;
inline constexpr Uint kMemBaseAddrAlign = 0x1019, kDeviceName = 0x102B, kDriverVersion = 0x102D;
inline constexpr Long kReadWrite = 1, kReadOnly = 4, kCopyHostPtr = 32;
inline constexpr Uint kCreateRegion = 0x1220;
inline constexpr Long kProfilingEnable = 2;
inline constexpr Uint kProgramBinarySizes = 0x1165, kProgramBinaries = 0x1166, kProgramBuildLog = 0x1183;
inline constexpr Uint kKernelNumArgs = 0x1191, kKernelArgAddressQualifier = 0x1196;
inline constexpr Uint kKernelArgName = 0x119A, kArgAddressGlobal = 0x119B;
inline constexpr Uint kCompileWorkGroupSize = 0x11B1;
inline constexpr Uint kCommandStart = 0x1282, kCommandEnd = 0x1283;

struct Region {
  size_t origin, bytes;
};

struct Api {
  Int (*GetPlatformIDs)(Uint, Platform*, Uint*);
  Int (*GetPlatformInfo)(Platform, Uint, size_t, void*, size_t*);
  Int (*GetDeviceIDs)(Platform, Long, Uint, DeviceId*, Uint*);
  Int (*GetDeviceInfo)(DeviceId, Uint, size_t, void*, size_t*);
  Context (*CreateContext)(const intptr_t*, Uint, const DeviceId*, void*, void*, Int*);
  Queue (*CreateCommandQueue)(Context, DeviceId, Long, Int*);
  Int (*ReleaseCommandQueue)(Queue);
  Mem (*CreateBuffer)(Context, Long, size_t, void*, Int*);
  Mem (*CreateSubBuffer)(Mem, Long, Uint, const void*, Int*);
  Int (*ReleaseMemObject)(Mem);
  Program (*CreateProgramWithSource)(Context, Uint, const char**, const size_t*, Int*);
  Program (*CreateProgramWithBinary)(Context, Uint, const DeviceId*, const size_t*, const unsigned char**, Int*, Int*);
  Int (*BuildProgram)(Program, Uint, const DeviceId*, const char*, void*, void*);
  Int (*GetProgramInfo)(Program, Uint, size_t, void*, size_t*);
  Int (*GetProgramBuildInfo)(Program, DeviceId, Uint, size_t, void*, size_t*);
  Int (*ReleaseProgram)(Program);
  Kernel (*CreateKernel)(Program, const char*, Int*);
  Int (*CreateKernelsInProgram)(Program, Uint, Kernel*, Uint*);
  Int (*GetKernelInfo)(Kernel, Uint, size_t, void*, size_t*);
  Int (*GetKernelArgInfo)(Kernel, Uint, Uint, size_t, void*, size_t*);
  Int (*GetKernelWorkGroupInfo)(Kernel, DeviceId, Uint, size_t, void*, size_t*);
  Int (*SetKernelArg)(Kernel, Uint, size_t, const void*);
  Int (*ReleaseKernel)(Kernel);
  Int (*EnqueueWriteBuffer)(Queue, Mem, Uint, size_t, size_t, const void*, Uint, const Event*, Event*);
  Int (*EnqueueReadBuffer)(Queue, Mem, Uint, size_t, size_t, void*, Uint, const Event*, Event*);
  Int (*EnqueueNDRangeKernel)(Queue, Kernel, Uint, const size_t*, const size_t*, const size_t*, Uint, const Event*, Event*);
  Int (*Finish)(Queue);
  Int (*GetEventProfilingInfo)(Event, Uint, size_t, void*, size_t*);
  Int (*ReleaseEvent)(Event);
};

// Opened at the first call and never closed. Null without OpenCL; `why` then says what is missing.
const Api* api(std::string* why = nullptr);

// The API's name of an error, or its number.
std::string error_name(Int code);

// What an error leaves of the device's context.
FailureKind kind_of(Int code);

// Sets a handle free when it goes.
template <class T, Int (*Api::*release)(T)>
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

using OwnedQueue = Handle<Queue, &Api::ReleaseCommandQueue>;
using OwnedProgram = Handle<Program, &Api::ReleaseProgram>;
using OwnedKernel = Handle<Kernel, &Api::ReleaseKernel>;
using OwnedEvent = Handle<Event, &Api::ReleaseEvent>;

}  // namespace xyntra::cl
