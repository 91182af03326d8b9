// What ORT asks for when the library is registered: a name, devices, and a provider for each session.
//
// The CPU is the first device: sessions that name none get it, and their tensors are in ordinary memory, whatever computes. A
// session on a CUDA device has its tensors there. None of them is opened before a session or a tensor wants it.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "ep.h"
#include "ort.h"

namespace xyntra {

// What ORT's listing of devices tells, and what it compares options with.
using Facts = std::initializer_list<std::pair<Text, std::string>>;

class Factory : public OrtEpFactory {
 public:
  Factory(const Ort& ort, const OrtLogger* logger);
  ~Factory();
  Factory(const Factory&) = delete;
  Factory& operator=(const Factory&) = delete;

  // To the log of the runtime that was the last to register the provider; false where none has it.
  static bool say(int level, const std::string& message);

 private:
  static OrtStatus* devices_callback(OrtEpFactory* self, const OrtHardwareDevice* const* devices, std::size_t n,
                                     OrtEpDevice** out, std::size_t most, std::size_t* n_out);
  static OrtStatus* create_callback(OrtEpFactory* self, const OrtHardwareDevice* const*,
                                    const OrtKeyValuePairs* const* facts, std::size_t n,
                                    const OrtSessionOptions* session, const OrtLogger* logger, OrtEp** out);
  static OrtStatus* compatibility_callback(OrtEpFactory* self, const OrtHardwareDevice* const*, std::size_t, const char* info,
                                           int* verdict);
  static void release_callback(OrtEpFactory* self, OrtEp* ep);

  static OrtStatus* allocator_callback(OrtEpFactory* self, const OrtMemoryInfo* info, const OrtKeyValuePairs*,
                                       OrtAllocator** out);
  static void release_allocator_callback(OrtEpFactory* self, OrtAllocator* allocator);
  static OrtStatus* transfer_callback(OrtEpFactory* self, OrtDataTransferImpl** out);

  // ORT's view of a CUDA device.
  struct GpuEntry {
    OrtHardwareDevice* made = nullptr;  // when ORT lists none
    OrtMemoryInfo* memory = nullptr;
  };

  OrtEpDevice* describe(const OrtHardwareDevice* device, Facts facts, const OrtMemoryInfo* memory = nullptr);
  GpuEntry& entry_of(int ordinal);
  const OrtHardwareDevice* hardware_of(int ordinal, const OrtHardwareDevice* listed);

  const Ort& ort_;
  const OrtLogger* const logger_;
  std::vector<GpuEntry> gpus_;  // by ordinal
};

}  // namespace xyntra
