// The part of a GPU driver's API that islands need: NVIDIA's, and those whose functions do the same under other names. Each is a
// table of functions from the driver's library at run time: neither headers nor a toolkit are wanted to build, and a machine
// without such a GPU loses nothing. Names and numbers are those of cuda.h; where an API has other ones, its table adapts them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "ort.h"

namespace xyntra::driver {

using Ordinal = int;
using Address = uint64_t;  // CUdeviceptr
using Context = struct CUctx_st*;
using Module = struct CUmod_st*;
using Function = struct CUfunc_st*;
using Stream = struct CUstream_st*;
using Event = struct CUevent_st*;
using Graph = struct CUgraph_st*;
using GraphNode = struct CUgraphNode_st*;
using GraphExec = struct CUgraphExec_st*;
using Result = int;

inline constexpr Result kSuccess = 0;
inline constexpr unsigned kNonBlocking = 1;  // CU_STREAM_NON_BLOCKING

// Which attribute of a device tells what, as the API numbers them.
struct Attributes {
  int max_threads, shared_bytes, clock_khz, multiprocessors, memory_clock_khz, memory_bus_bits, l2_bytes;
};
// CUfunction_attribute
inline constexpr int kMaxDynamicSharedBytes = 8;

// CUpointer_attribute
inline constexpr int kPointerOrdinal = 9;

// CUtensorMap, and what is said about one: CUtensorMapDataType, Interleave, Swizzle, L2promotion, FloatOOBfill
struct alignas(64) TensorMap {
  uint64_t words[16];
};
inline constexpr int kBytes1 = 0, kBytes2 = 1, kBytes4 = 2, kBytes8 = 4;  // unsigned integers: bits are bits
inline constexpr int kNoInterleave = 0, kSwizzle128 = 3, kPromote128 = 2, kFillZero = 0;
inline constexpr std::size_t kMaxTensorRank = 5;

// CUDA_KERNEL_NODE_PARAMS_v1
struct KernelNode {
  Function function;
  unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
  void** params;
  void** extra;
};

// Of a device: its architecture, and the version of its driver, as identities have them.
struct Version {
  std::string architecture, driver;
};

struct Api {
  const char* prefix;  // of its devices' identities
  const char* name;    // of the driver, in sentences
  bool is_known_to_ort;  // ONNX Runtime has memory of its devices, by their numbers
  Attributes attributes;
  // False where the driver does not tell.
  bool (*version)(const Api&, Ordinal, Version&);

  Result (*Init)(unsigned);
  Result (*DriverGetVersion)(int*);
  Result (*GetErrorName)(Result, const char**);
  Result (*DeviceGetCount)(int*);
  Result (*DeviceGet)(Ordinal*, int);
  Result (*DeviceGetName)(char*, int, Ordinal);
  Result (*DeviceGetAttribute)(int*, int, Ordinal);
  Result (*DeviceTotalMem)(std::size_t*, Ordinal);
  Result (*DevicePrimaryCtxRetain)(Context*, Ordinal);
  Result (*CtxPushCurrent)(Context);
  Result (*CtxPopCurrent)(Context*);
  Result (*MemAlloc)(Address*, std::size_t);
  Result (*MemFree)(Address);
  Result (*MemGetInfo)(std::size_t*, std::size_t*);
  Result (*MemAllocHost)(void**, std::size_t);
  Result (*MemFreeHost)(void*);
  Result (*MemcpyHtoD)(Address, const void*, std::size_t);
  Result (*MemcpyDtoH)(void*, Address, std::size_t);
  Result (*MemcpyDtoD)(Address, Address, std::size_t);
  Result (*MemcpyHtoDAsync)(Address, const void*, std::size_t, Stream);
  Result (*MemcpyDtoHAsync)(void*, Address, std::size_t, Stream);
  Result (*MemcpyDtoDAsync)(Address, Address, std::size_t, Stream);
  Result (*PointerGetAttribute)(void*, int, Address);
  Result (*CtxSynchronize)();
  Result (*ModuleLoadData)(Module*, const void*);
  Result (*ModuleGetFunction)(Function*, Module, const char*);
  // Null where nothing copies tensors.
  Result (*TensorMapEncodeTiled)(TensorMap*, int type, uint32_t rank, void* address, const uint64_t* extents,
                                 const uint64_t* strides, const uint32_t* box, const uint32_t* element_strides, int interleave,
                                 int swizzle, int promotion, int fill);
  // Null where a launch may give all that there is.
  Result (*FuncSetAttribute)(Function, int, int);
  Result (*LaunchKernel)(Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Stream, void**,
                         void**);
  Result (*StreamCreate)(Stream*, unsigned);
  Result (*StreamSynchronize)(Stream);
  Result (*LaunchHostFunc)(Stream, void (*)(void*), void*);
  Result (*StreamDestroy)(Stream);
  Result (*EventCreate)(Event*, unsigned);
  Result (*EventRecord)(Event, Stream);
  Result (*EventElapsedTime)(float*, Event, Event);
  Result (*EventDestroy)(Event);
  // Null where kernels are launched one by one.
  Result (*GraphCreate)(Graph*, unsigned);
  Result (*GraphAddKernelNode)(GraphNode*, Graph, const GraphNode*, std::size_t, const KernelNode*);
  Result (*GraphInstantiateWithFlags)(GraphExec*, Graph, unsigned long long);
  Result (*GraphExecKernelNodeSetParams)(GraphExec, GraphNode, const KernelNode*);
  Result (*GraphLaunch)(GraphExec, Stream);
  Result (*GraphExecDestroy)(GraphExec);
  Result (*GraphDestroy)(Graph);
};

// What is opened and initialised at the first call, and never closed. No `api` without a driver or a GPU; `why` then says what is
// missing.
struct Opened {
  std::unique_ptr<const Api> api;
  std::string why;
};
using Source = const Opened& (*)();

int attribute(const Api& api, Ordinal ordinal, int which);

// The API's name of an error, or its number.
std::string error_name(const Api& api, Result code);

// What an error leaves of the context, which all sessions on the device share. Fatal are those after which, as cuda.h has it,
// "any further CUDA work will return the same error", and those that say that device or context are gone.
FailureKind kind_of(Result code);

}  // namespace xyntra::driver
