// The part of ONNX Runtime's C ABI that this plugin uses, declared by ourselves: no package ships the headers.
//
// OrtApi and OrtEpApi are plain arrays of function pointers that only ever grow at the end, so a function is a slot
// number and a signature. The structs that a plugin implements start with the API number they were written for;
// ORT never reads a field that is newer than that number.
#pragma once

#include <cstddef>
#include <cstdint>

#include "system.h"

struct OrtDataType;
struct OrtEpDevice;
struct OrtEpGraphSupportInfo;
struct OrtGraph;
struct OrtHardwareDevice;
struct OrtKernelContext;
struct OrtKernelDef;
struct OrtKernelDefBuilder;
struct OrtKernelInfo;
struct OrtKernelRegistry;
struct OrtKeyValuePairs;
struct OrtLogger;
struct OrtMemoryDevice;
struct OrtMemoryInfo;
struct OrtNode;
struct OrtNodeComputeContext;
struct OrtOpAttr;
struct OrtRunOptions;
struct OrtSessionOptions;
struct OrtStatus;
struct OrtSyncStream;
struct OrtTensorTypeAndShapeInfo;
struct OrtTypeInfo;
struct OrtValue;
struct OrtValueInfo;

struct OrtApiBase {
  const void* (*GetApi)(uint32_t version);
  const char* (*GetVersionString)();
};

namespace xyntra {

// Newest API number whose structs are declared below, and the oldest runtime that by-name providers work with.
inline constexpr uint32_t kNewestApi = 29;
inline constexpr uint32_t kOldestMinor = 25;
inline constexpr uint32_t kOldestPatch = 1;

template <class Signature>
struct Slot {
  std::size_t index;
};

class FunctionTable {
 public:
  FunctionTable() = default;
  explicit FunctionTable(const void* table) : entries_(static_cast<void* const*>(table)) {}

  template <class R, class... P>
  auto operator[](Slot<R(P...)> slot) const noexcept {
    return reinterpret_cast<R (*)(P...)>(entries_[slot.index]);
  }

 private:
  void* const* entries_ = nullptr;
};

using Text = const char*;
using PathText = const system::PathChar*;

namespace api {
inline constexpr Slot<OrtStatus*(int, Text)> kCreateStatus{0};
inline constexpr Slot<int(const OrtStatus*)> kGetErrorCode{1};
inline constexpr Slot<Text(const OrtStatus*)> kGetErrorMessage{2};
inline constexpr Slot<OrtStatus*(OrtValue*, void**)> kGetTensorMutableData{51};
inline constexpr Slot<OrtStatus*(const OrtTypeInfo*, const OrtTensorTypeAndShapeInfo**)> kCastTypeInfoToTensorInfo{55};
inline constexpr Slot<OrtStatus*(const OrtTypeInfo*, int*)> kGetOnnxTypeFromTypeInfo{56};
inline constexpr Slot<OrtStatus*(const OrtTensorTypeAndShapeInfo*, int*)> kGetTensorElementType{60};
inline constexpr Slot<OrtStatus*(const OrtTensorTypeAndShapeInfo*, size_t*)> kGetDimensionsCount{61};
inline constexpr Slot<OrtStatus*(const OrtTensorTypeAndShapeInfo*, int64_t*, size_t)> kGetDimensions{62};
inline constexpr Slot<OrtStatus*(const OrtTensorTypeAndShapeInfo*, Text*, size_t)> kGetSymbolicDimensions{63};
inline constexpr Slot<OrtStatus*(const OrtKernelContext*, size_t, const OrtValue**)> kKernelContextGetInput{90};
inline constexpr Slot<OrtStatus*(OrtKernelContext*, size_t, const int64_t*, size_t, OrtValue**)>
    kKernelContextGetOutput{91};
inline constexpr Slot<void(OrtStatus*)> kReleaseStatus{93};
inline constexpr Slot<void(OrtMemoryInfo*)> kReleaseMemoryInfo{94};
inline constexpr Slot<void(OrtValue*)> kReleaseValue{96};
inline constexpr Slot<OrtStatus*(Text, const void*, int, int, OrtOpAttr**)> kCreateOpAttr{211};
inline constexpr Slot<void(OrtOpAttr*)> kReleaseOpAttr{212};
inline constexpr Slot<OrtStatus*(const OrtLogger*, int, Text, PathText, int, Text)> kLoggerLogMessage{247};
inline constexpr Slot<OrtStatus*(const OrtOpAttr*, int, void*, size_t, size_t*)> kReadOpAttr{272};
inline constexpr Slot<OrtStatus*(const OrtKernelContext*, void (*)(void*, size_t), size_t, size_t, void*)> kParallelFor{
    274};
inline constexpr Slot<OrtStatus*(const OrtValueInfo*, Text*)> kGetValueInfoName{289};
inline constexpr Slot<OrtStatus*(const OrtValueInfo*, const OrtTypeInfo**)> kGetValueInfoTypeInfo{290};
inline constexpr Slot<const void*()> kGetModelEditorApi{291};
inline constexpr Slot<void(OrtKeyValuePairs**)> kCreateKeyValuePairs{295};
inline constexpr Slot<void(OrtKeyValuePairs*, Text, Text)> kAddKeyValuePair{296};
inline constexpr Slot<Text(const OrtKeyValuePairs*, Text)> kGetKeyValue{297};
inline constexpr Slot<void(const OrtKeyValuePairs*, const Text**, const Text**, size_t*)> kGetKeyValuePairs{298};
inline constexpr Slot<void(OrtKeyValuePairs*)> kReleaseKeyValuePairs{300};
inline constexpr Slot<int(const OrtHardwareDevice*)> kHardwareDeviceType{307};
inline constexpr Slot<uint32_t(const OrtHardwareDevice*)> kHardwareDeviceVendorId{308};
inline constexpr Slot<const void*()> kGetEpApi{317};
inline constexpr Slot<OrtStatus*(const OrtValue*, size_t*)> kGetTensorSizeInBytes{318};
inline constexpr Slot<OrtStatus*(Text, int, uint32_t, int32_t, int, size_t, int, OrtMemoryInfo**)> kCreateMemoryInfo{320};  // V2
inline constexpr Slot<OrtStatus*(const OrtValueInfo*, const OrtValue**)> kValueInfoGetInitializerValue{326};
inline constexpr Slot<OrtStatus*(const OrtValueInfo*, bool*)> kValueInfoIsRequiredGraphInput{328};
inline constexpr Slot<OrtStatus*(const OrtValueInfo*, bool*)> kValueInfoIsOptionalGraphInput{329};
inline constexpr Slot<OrtStatus*(const OrtValueInfo*, bool*)> kValueInfoIsGraphOutput{330};
inline constexpr Slot<OrtStatus*(const OrtValueInfo*, bool*)> kValueInfoIsConstantInitializer{331};
inline constexpr Slot<OrtStatus*(const OrtValueInfo*, bool*)> kValueInfoIsFromOuterScope{332};
inline constexpr Slot<OrtStatus*(const OrtGraph*, Text*)> kGraphGetName{333};
inline constexpr Slot<OrtStatus*(const OrtGraph*, PathText*)> kGraphGetModelPath{334};
inline constexpr Slot<OrtStatus*(const OrtGraph*, size_t*)> kGraphGetNumOperatorSets{336};
inline constexpr Slot<OrtStatus*(const OrtGraph*, Text*, int64_t*, size_t)> kGraphGetOperatorSets{337};
inline constexpr Slot<OrtStatus*(const OrtGraph*, size_t*)> kGraphGetNumInputs{338};
inline constexpr Slot<OrtStatus*(const OrtGraph*, const OrtValueInfo**, size_t)> kGraphGetInputs{339};
inline constexpr Slot<OrtStatus*(const OrtGraph*, size_t*)> kGraphGetNumOutputs{340};
inline constexpr Slot<OrtStatus*(const OrtGraph*, const OrtValueInfo**, size_t)> kGraphGetOutputs{341};
inline constexpr Slot<OrtStatus*(const OrtGraph*, size_t*)> kGraphGetNumNodes{344};
inline constexpr Slot<OrtStatus*(const OrtGraph*, const OrtNode**, size_t)> kGraphGetNodes{345};
inline constexpr Slot<OrtStatus*(const OrtGraph*, const OrtNode**)> kGraphGetParentNode{346};
inline constexpr Slot<OrtStatus*(const OrtNode*, size_t*)> kNodeGetId{348};
inline constexpr Slot<OrtStatus*(const OrtNode*, Text*)> kNodeGetName{349};
inline constexpr Slot<OrtStatus*(const OrtNode*, Text*)> kNodeGetOperatorType{350};
inline constexpr Slot<OrtStatus*(const OrtNode*, Text*)> kNodeGetDomain{351};
inline constexpr Slot<OrtStatus*(const OrtNode*, int*)> kNodeGetSinceVersion{352};
inline constexpr Slot<OrtStatus*(const OrtNode*, size_t*)> kNodeGetNumInputs{353};
inline constexpr Slot<OrtStatus*(const OrtNode*, const OrtValueInfo**, size_t)> kNodeGetInputs{354};
inline constexpr Slot<OrtStatus*(const OrtNode*, size_t*)> kNodeGetNumOutputs{355};
inline constexpr Slot<OrtStatus*(const OrtNode*, const OrtValueInfo**, size_t)> kNodeGetOutputs{356};
inline constexpr Slot<OrtStatus*(const OrtNode*, size_t*)> kNodeGetNumImplicitInputs{357};
inline constexpr Slot<OrtStatus*(const OrtNode*, const OrtValueInfo**, size_t)> kNodeGetImplicitInputs{358};
inline constexpr Slot<OrtStatus*(const OrtNode*, size_t*)> kNodeGetNumAttributes{359};
inline constexpr Slot<OrtStatus*(const OrtNode*, const OrtOpAttr**, size_t)> kNodeGetAttributes{360};
inline constexpr Slot<OrtStatus*(const OrtOpAttr*, OrtValue**)> kOpAttrGetTensor{362};
inline constexpr Slot<OrtStatus*(const OrtOpAttr*, int*)> kOpAttrGetType{363};
inline constexpr Slot<OrtStatus*(const OrtOpAttr*, Text*)> kOpAttrGetName{364};
inline constexpr Slot<OrtStatus*(const OrtNode*, size_t*)> kNodeGetNumSubgraphs{365};
inline constexpr Slot<OrtStatus*(const OrtNode*, Text*)> kNodeGetEpName{368};
inline constexpr Slot<OrtStatus*(const OrtValue*, const void**)> kGetTensorData{378};
inline constexpr Slot<OrtStatus*(const OrtSessionOptions*, OrtKeyValuePairs**)> kGetSessionOptionsConfigEntries{379};
inline constexpr Slot<bool(const OrtTensorTypeAndShapeInfo*)> kTensorTypeAndShapeHasShape{390};
inline constexpr Slot<OrtStatus*(const OrtValue*, int*, const int64_t**, size_t*)> kGetTensorTypeAndShapeReference{414};
}  // namespace api

}  // namespace xyntra

struct OrtEp {
  uint32_t ort_version_supported;
  const char* (*GetName)(const OrtEp*);
  OrtStatus* (*GetCapability)(OrtEp*, const OrtGraph*, OrtEpGraphSupportInfo*);
  OrtStatus* (*Compile)(OrtEp*, const OrtGraph**, const OrtNode**, size_t, struct OrtNodeComputeInfo**, OrtNode**);
  void (*ReleaseNodeComputeInfos)(OrtEp*, struct OrtNodeComputeInfo**, size_t);
  void* GetPreferredDataLayout;
  void* ShouldConvertDataLayoutForOp;
  OrtStatus* (*SetDynamicOptions)(OrtEp*, const char* const*, const char* const*, size_t);
  OrtStatus* (*OnRunStart)(OrtEp*, const OrtRunOptions*);
  OrtStatus* (*OnRunEnd)(OrtEp*, const OrtRunOptions*, bool sync);
  void* between[2];
  const char* (*GetCompiledModelCompatibilityInfo)(OrtEp*, const OrtGraph*);
  OrtStatus* (*GetKernelRegistry)(OrtEp*, const OrtKernelRegistry**);
  void* IsConcurrentRunSupported;
  OrtStatus* (*Sync)(OrtEp*);
  void* later[6];
  OrtStatus* (*OnSessionInitializationEnd)(OrtEp*);  // called by an ORT of API 27 and newer
  void* unused[15];  // the rest is optional; some to spare, for an ORT that looks further than it says
};

struct OrtEpFactory {
  uint32_t ort_version_supported;
  const char* (*GetName)(const OrtEpFactory*);
  const char* (*GetVendor)(const OrtEpFactory*);
  OrtStatus* (*GetSupportedDevices)(OrtEpFactory*, const OrtHardwareDevice* const*, size_t, OrtEpDevice**, size_t,
                                    size_t*);
  OrtStatus* (*CreateEp)(OrtEpFactory*, const OrtHardwareDevice* const*, const OrtKeyValuePairs* const*, size_t,
                         const OrtSessionOptions*, const OrtLogger*, OrtEp**);
  void (*ReleaseEp)(OrtEpFactory*, OrtEp*);
  uint32_t (*GetVendorId)(const OrtEpFactory*);
  const char* (*GetVersion)(const OrtEpFactory*);
  OrtStatus* (*ValidateCompiledModelCompatibilityInfo)(OrtEpFactory*, const OrtHardwareDevice* const*, size_t, const char*, int*);
  OrtStatus* (*CreateAllocator)(OrtEpFactory*, const OrtMemoryInfo*, const OrtKeyValuePairs*, struct OrtAllocator**);
  void (*ReleaseAllocator)(OrtEpFactory*, struct OrtAllocator*);
  OrtStatus* (*CreateDataTransfer)(OrtEpFactory*, struct OrtDataTransferImpl**);  // called even when nothing needs it
  bool (*IsStreamAware)(const OrtEpFactory*);
  void* unused[24];
};

struct OrtNodeComputeInfo {
  uint32_t ort_version_supported;
  OrtStatus* (*CreateState)(OrtNodeComputeInfo*, OrtNodeComputeContext*, void**);
  OrtStatus* (*Compute)(OrtNodeComputeInfo*, void*, OrtKernelContext*);
  void (*ReleaseState)(OrtNodeComputeInfo*, void*);
  void* unused[4];
};

struct OrtKernelImpl {
  uint32_t ort_version_supported;
  uint32_t flags;  // ORT's own
  OrtStatus* (*Compute)(OrtKernelImpl*, OrtKernelContext*);
  void (*Release)(OrtKernelImpl*);
  void* PrePackWeight;
  void* SetSharedPrePackedWeight;
  void* unused[4];
};

using OrtKernelCreate = OrtStatus* (*)(void* state, const OrtKernelInfo*, OrtKernelImpl**);

struct OrtAllocator {
  uint32_t ort_version_supported;
  void* (*Alloc)(OrtAllocator*, size_t);
  void (*Free)(OrtAllocator*, void*);
  const OrtMemoryInfo* (*Info)(const OrtAllocator*);
  void* (*Reserve)(OrtAllocator*, size_t);
  void* GetStats;
  void* AllocOnStream;
  OrtStatus* (*Shrink)(OrtAllocator*);
  void* unused[4];
};

struct OrtDataTransferImpl {
  uint32_t ort_version_supported;
  void (*Release)(OrtDataTransferImpl*);
  bool (*CanCopy)(const OrtDataTransferImpl*, const OrtMemoryDevice* from, const OrtMemoryDevice* to);
  OrtStatus* (*CopyTensors)(OrtDataTransferImpl*, const OrtValue** from, OrtValue** to, OrtSyncStream** streams, size_t);
  void* unused[4];
};

struct OrtNodeFusionOptions {
  uint32_t ort_version_supported;
  bool drop_constant_initializers;
  uint64_t unused[4];
};

namespace xyntra::ep_api {
inline constexpr Slot<OrtStatus*(OrtEpFactory*, const OrtHardwareDevice*, const OrtKeyValuePairs*,
                                 const OrtKeyValuePairs*, OrtEpDevice**)>
    kCreateEpDevice{0};
inline constexpr Slot<OrtStatus*(OrtEpGraphSupportInfo*, const OrtNode* const*, size_t, const OrtNodeFusionOptions*)>
    kAddNodesToFuse{2};
inline constexpr Slot<OrtStatus*(OrtEpDevice*, const OrtMemoryInfo*)> kAddAllocatorInfo{5};
inline constexpr Slot<const OrtMemoryDevice*(const OrtMemoryInfo*)> kMemoryInfoDevice{6};
inline constexpr Slot<const OrtMemoryDevice*(const OrtValue*)> kValueDevice{7};
inline constexpr Slot<int(const OrtMemoryDevice*)> kMemoryDeviceType{9};
inline constexpr Slot<uint32_t(const OrtMemoryDevice*)> kMemoryDeviceVendorId{11};
inline constexpr Slot<uint32_t(const OrtMemoryDevice*)> kMemoryDeviceId{12};
inline constexpr Slot<OrtStatus*(int, uint32_t, uint32_t, Text, const OrtKeyValuePairs*, OrtHardwareDevice**)>
    kCreateHardwareDevice{16};
inline constexpr Slot<void(OrtHardwareDevice*)> kReleaseHardwareDevice{17};
inline constexpr Slot<OrtStatus*(OrtKernelRegistry**)> kCreateKernelRegistry{18};
inline constexpr Slot<void(OrtKernelRegistry*)> kReleaseKernelRegistry{19};
inline constexpr Slot<OrtStatus*(OrtKernelRegistry*, const OrtKernelDef*, OrtKernelCreate, void*)> kAddKernel{20};
inline constexpr Slot<OrtStatus*(OrtKernelDefBuilder**)> kCreateKernelDefBuilder{21};
inline constexpr Slot<void(OrtKernelDefBuilder*)> kReleaseKernelDefBuilder{22};
inline constexpr Slot<OrtStatus*(OrtKernelDefBuilder*, Text)> kKernelDefOperatorType{23};
inline constexpr Slot<OrtStatus*(OrtKernelDefBuilder*, Text)> kKernelDefDomain{24};
inline constexpr Slot<OrtStatus*(OrtKernelDefBuilder*, int first, int last)> kKernelDefSinceVersion{25};
inline constexpr Slot<OrtStatus*(OrtKernelDefBuilder*, Text)> kKernelDefProvider{26};
inline constexpr Slot<OrtStatus*(OrtKernelDefBuilder*, size_t, int)> kKernelDefInputMemory{27};
inline constexpr Slot<OrtStatus*(OrtKernelDefBuilder*, size_t, int)> kKernelDefOutputMemory{28};
inline constexpr Slot<OrtStatus*(OrtKernelDefBuilder*, Text, const OrtDataType* const*, size_t)> kKernelDefTypes{29};
inline constexpr Slot<OrtStatus*(OrtKernelDefBuilder*, OrtKernelDef**)> kKernelDefBuild{32};
inline constexpr Slot<void(OrtKernelDef*)> kReleaseKernelDef{33};
inline constexpr Slot<OrtStatus*(int, const OrtDataType**)> kGetTensorDataType{40};
}  // namespace xyntra::ep_api

namespace xyntra::editor_api {
inline constexpr Slot<OrtStatus*(Text op, Text domain, Text name, const Text* inputs, size_t, const Text* outputs, size_t,
                                 OrtOpAttr** attributes, size_t, OrtNode**)>
    kCreateNode{6};
}  // namespace xyntra::editor_api

namespace xyntra {

enum ErrorCode : int { kFail = 1, kInvalidArgument = 2, kRuntimeException = 6, kNotImplemented = 9, kEpFail = 11 };
enum LogLevel : int { kVerbose = 0, kInfo = 1, kWarning = 2, kError = 3 };
enum AttributeType : int { kInt = 1, kInts, kFloat, kFloats, kString, kStrings, kGraph, kTensor };
inline constexpr int kElementInt32 = 6;
inline constexpr int kElementInt64 = 7;
inline constexpr int kElementFloat = 1;
inline constexpr int kElementString = 8;
inline constexpr int kOnnxTypeTensor = 1;
inline constexpr int kHardwareCpu = 0;
inline constexpr int kHardwareGpu = 1;
inline constexpr int kMemoryOfCpu = 0;
inline constexpr int kMemoryOfGpu = 1;
inline constexpr int kDefaultMemory = 0;
inline constexpr int kInputOnCpu = -2;
inline constexpr int kOutputOnCpu = -1;
inline constexpr int kDeviceAllocator = 0;
inline constexpr uint32_t kNvidia = 0x10de;

}  // namespace xyntra
