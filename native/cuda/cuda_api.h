// The part of CUDA's driver API that islands need, from the driver's library at run time: neither headers nor the toolkit are
// wanted to build, and a machine without an NVIDIA GPU loses nothing. Names and numbers are those of cuda.h; where it maps a name
// to a later version of a function, that is the one used here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "ort.h"

namespace xyntra::cuda {

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

// CUdevice_attribute
inline constexpr int kMaxThreadsPerBlock = 1, kClockRate = 13, kMultiprocessorCount = 16, kMemoryClockRate = 36,
                     kMemoryBusWidth = 37, kL2CacheSize = 38, kCapabilityMajor = 75, kCapabilityMinor = 76,
                     kMaxSharedMemoryPerBlockOptin = 97;
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

struct Api {
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
  Result (*TensorMapEncodeTiled)(TensorMap*, int type, uint32_t rank, void* address, const uint64_t* extents,
                                 const uint64_t* strides, const uint32_t* box, const uint32_t* element_strides, int interleave,
                                 int swizzle, int promotion, int fill);
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
  Result (*GraphCreate)(Graph*, unsigned);
  Result (*GraphAddKernelNode)(GraphNode*, Graph, const GraphNode*, std::size_t, const KernelNode*);
  Result (*GraphInstantiateWithFlags)(GraphExec*, Graph, unsigned long long);
  Result (*GraphExecKernelNodeSetParams)(GraphExec, GraphNode, const KernelNode*);
  Result (*GraphLaunch)(GraphExec, Stream);
  Result (*GraphExecDestroy)(GraphExec);
  Result (*GraphDestroy)(Graph);
};

// Opened and initialised at the first call, never closed. Null without a driver or a GPU; `why` then says what is missing.
const Api* api(std::string* why = nullptr);

// The API's name of an error, or its number.
std::string error_name(const Api& api, Result code);

// What an error leaves of the context, which all sessions on the device share. Fatal are those after which, as cuda.h has it,
// "any further CUDA work will return the same error", and those that say that device or context are gone.
FailureKind kind_of(Result code);

}  // namespace xyntra::cuda
