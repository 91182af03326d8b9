#include "factory.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "cuda_presence.h"
#include "data_transfer.h"
#include "device_allocator.h"
#include "graph_access.h"
#include "version.h"

namespace xyntra {
namespace {

constexpr const char* kOrdinalKey = "cuda_device_id";  // ORT's option device_id is compared with it
constexpr const char* kAbsentKey = "is_absent";
constexpr std::string_view kDeviceOption = "device_id";
constexpr std::string_view kAheadOption = "ahead_of_time";  // how the planner hears of it (xyntra_ep/options.py)
constexpr int kHost = -1;

Owned<OrtKeyValuePairs> pairs_of(const Ort& ort, Facts facts) {
  OrtKeyValuePairs* pairs = nullptr;
  ort[api::kCreateKeyValuePairs](&pairs);
  for (const auto& [key, value] : facts) ort[api::kAddKeyValuePair](pairs, key, value.c_str());
  return {ort, pairs, api::kReleaseKeyValuePairs};
}

// Of the devices that a session was given, that of its tensors. One that is absent is no choice, unless it is the only one.
int chosen_ordinal(const Ort& ort, const OrtKeyValuePairs* const* facts, std::size_t n) {
  int chosen = kHost;
  for (std::size_t i = 0; i < n; ++i) {
    const auto fact = [&](Text key) { return facts[i] != nullptr ? ort[api::kGetKeyValue](facts[i], key) : Text{}; };
    const Text text = fact(kOrdinalKey);
    if (n > 1 && fact(kAbsentKey) != nullptr) continue;
    const int ordinal = text != nullptr ? std::atoi(text) : kHost;
    if (ordinal != kHost && chosen != kHost && ordinal != chosen)
      throw Error(kInvalidArgument, "XyntraEP runs a session on one device, and was given several");
    chosen = std::max(chosen, ordinal);
  }
  return chosen;
}

// Sorted. ORT has read device_id where it was given, and a device can be chosen without it: so it is what was chosen. What ORT
// could not read stays as it was given, for the planner to refuse; -1 is the number that the CPU has.
struct SessionOptions {
  Options ours;
  AheadOfTime ahead;
};

SessionOptions read_options(const Ort& ort, const OrtSessionOptions* session, int ordinal) {
  const Owned entries(ort, get(ort, session, api::kGetSessionOptionsConfigEntries), api::kReleaseKeyValuePairs);
  const Text* keys = nullptr;
  const Text* values = nullptr;
  std::size_t n = 0;
  ort[api::kGetKeyValuePairs](entries.get(), &keys, &values, &n);

  constexpr std::string_view prefix = kOptionPrefix;
  Options options;
  std::vector<std::pair<std::string, std::string>> all;
  for (std::size_t i = 0; i < n; ++i) {
    const std::string_view key = keys[i];
    all.emplace_back(key, values[i]);
    if (key.substr(0, prefix.size()) != prefix) continue;
    const std::string_view name = key.substr(prefix.size());
    if (name == kAheadOption) continue;
    if (name == kDeviceOption && (ordinal != kHost || values[i] == std::to_string(kHost))) continue;
    options.emplace_back(name, values[i]);
  }
  if (ordinal != kHost) options.emplace_back(kDeviceOption, std::to_string(ordinal));
  AheadOfTime ahead = AheadOfTime::read(all, options);
  if (ahead.writes) options.emplace_back(kAheadOption, "1");
  std::sort(options.begin(), options.end());
  return {std::move(options), std::move(ahead)};
}

// The factories that there are, by age: a library may be registered under several names. The last speaks for us between sessions.
struct Speakers {
  std::mutex mutex;
  std::vector<const Factory*> factories;
};

Speakers& speakers() {
  static auto* const instance = new Speakers;
  return *instance;
}

}  // namespace

Factory::Factory(const Ort& ort, const OrtLogger* logger) : OrtEpFactory{}, ort_(ort), logger_(logger) {
  ort_version_supported = ort_.api_version();
  GetName = [](const OrtEpFactory*) { return kEpName; };
  GetVendor = [](const OrtEpFactory*) { return "XyntraEP"; };
  GetVendorId = [](const OrtEpFactory*) { return uint32_t{0}; };
  GetVersion = [](const OrtEpFactory*) { return kVersion; };
  CreateAllocator = allocator_callback;
  ReleaseAllocator = release_allocator_callback;
  CreateDataTransfer = transfer_callback;
  IsStreamAware = [](const OrtEpFactory*) { return false; };
  GetSupportedDevices = devices_callback;
  CreateEp = create_callback;
  ReleaseEp = release_callback;
  ValidateCompiledModelCompatibilityInfo = compatibility_callback;
  const std::lock_guard lock(speakers().mutex);
  speakers().factories.push_back(this);
}

Factory::~Factory() {
  {
    const std::lock_guard lock(speakers().mutex);
    std::vector<const Factory*>& all = speakers().factories;
    all.erase(std::remove(all.begin(), all.end(), this), all.end());
  }
  for (const GpuEntry& gpu : gpus_) {
    if (gpu.memory != nullptr) ort_[api::kReleaseMemoryInfo](gpu.memory);
    if (gpu.made != nullptr) ort_.ep()[ep_api::kReleaseHardwareDevice](gpu.made);
  }
}

bool Factory::say(int level, const std::string& message) {
  const std::lock_guard lock(speakers().mutex);
  if (speakers().factories.empty()) return false;
  const Factory& last = *speakers().factories.back();
  last.ort_.log(last.logger_, level, message);
  return true;
}

OrtStatus* Factory::devices_callback(OrtEpFactory* self, const OrtHardwareDevice* const* devices, std::size_t n,
                                     OrtEpDevice** out, std::size_t most, std::size_t* n_out) {
  auto& factory = *static_cast<Factory*>(self);
  const Ort& ort = factory.ort_;
  return guard(ort, [&] {
    *n_out = 0;
    const auto is_cpu = [&](auto* device) { return ort[api::kHardwareDeviceType](device) == kHardwareCpu; };
    const auto is_gpu = [&](auto* device) {
      return ort[api::kHardwareDeviceType](device) == kHardwareGpu && ort[api::kHardwareDeviceVendorId](device) == kNvidia;
    };
    const OrtHardwareDevice* const* const end = devices + n;
    const auto cpu = std::find_if(devices, end, is_cpu);  // one device: a machine's CPUs are one to us
    if (cpu != end && most > 0) out[(*n_out)++] = factory.describe(*cpu, {{kOrdinalKey, std::to_string(kHost)}});
    const int gpus = cuda_devices_at_hand();
    // CUDA numbers devices in an order of its own, so several that ORT lists cannot be told apart without the driver.
    const bool sure = gpus == 1 && std::count_if(devices, end, is_gpu) == 1;
    for (int ordinal = 0; ordinal < gpus && *n_out < most; ++ordinal) {
      const GpuEntry& gpu = factory.entry_of(ordinal);
      const OrtHardwareDevice* const hardware = factory.hardware_of(ordinal, sure ? *std::find_if(devices, end, is_gpu) : nullptr);
      out[(*n_out)++] = factory.describe(hardware, {{kOrdinalKey, std::to_string(ordinal)}}, gpu.memory);
    }
    // Who asks for a number that nothing has is told by ONNX Runtime that it does not know XyntraEP. Of the first such number, which
    // is 0 without a GPU, we are asked, and the planner says what is missing.
    if (cpu != end && *n_out < most)
      out[(*n_out)++] = factory.describe(*cpu, {{kOrdinalKey, std::to_string(gpus)}, {kAbsentKey, "1"}});
  });
}

Factory::GpuEntry& Factory::entry_of(int ordinal) {
  const auto index = static_cast<std::size_t>(ordinal);
  if (gpus_.size() <= index) gpus_.resize(index + 1);
  GpuEntry& gpu = gpus_[index];
  if (gpu.memory == nullptr)
    ort_.check(ort_[api::kCreateMemoryInfo]("XyntraCUDA", kMemoryOfGpu, kNvidia, ordinal, kDefaultMemory, 0, kDeviceAllocator,
                                            &gpu.memory));
  return gpu;
}

const OrtHardwareDevice* Factory::hardware_of(int ordinal, const OrtHardwareDevice* listed) {
  if (listed != nullptr) return listed;
  GpuEntry& gpu = entry_of(ordinal);
  if (gpu.made == nullptr) {
    const Owned facts = pairs_of(ort_, {{"is_virtual", "1"}});
    ort_.check(ort_.ep()[ep_api::kCreateHardwareDevice](kHardwareGpu, kNvidia, static_cast<uint32_t>(ordinal), "NVIDIA",
                                                        facts.get(), &gpu.made));
  }
  return gpu.made;
}

OrtEpDevice* Factory::describe(const OrtHardwareDevice* device, Facts facts, const OrtMemoryInfo* memory) {
  OrtEpDevice* described = nullptr;
  const Owned pairs = pairs_of(ort_, facts);
  ort_.check(ort_.ep()[ep_api::kCreateEpDevice](this, device, pairs.get(), nullptr, &described));
  if (memory != nullptr) ort_.check(ort_.ep()[ep_api::kAddAllocatorInfo](described, memory));
  return described;
}

OrtStatus* Factory::create_callback(OrtEpFactory* self, const OrtHardwareDevice* const*,
                                    const OrtKeyValuePairs* const* facts, std::size_t n,
                                    const OrtSessionOptions* session, const OrtLogger* logger, OrtEp** out) {
  const Ort& ort = static_cast<Factory*>(self)->ort_;
  return guard(ort, [&] {
    const int ordinal = chosen_ordinal(ort, facts, n);
    SessionOptions options = read_options(ort, session, ordinal);
    *out = std::make_unique<Ep>(ort, logger, std::move(options.ours), std::move(options.ahead), ordinal).release();
  });
}

OrtStatus* Factory::compatibility_callback(OrtEpFactory* self, const OrtHardwareDevice* const*, std::size_t, const char* info,
                                           int* verdict) {
  const auto& factory = *static_cast<Factory*>(self);
  return guard(factory.ort_, [&] {
    std::string why_not;
    *verdict = judge_compatibility(info, why_not);
    // ONNX Runtime since 1.32 fails the session by the verdict alone, and says no more than that.
    if (!why_not.empty()) factory.ort_.log(factory.logger_, kWarning, "XyntraEP does not execute this compiled model: " + why_not);
  });
}

void Factory::release_callback(OrtEpFactory*, OrtEp* ep) { delete static_cast<Ep*>(ep); }

OrtStatus* Factory::allocator_callback(OrtEpFactory* self, const OrtMemoryInfo* info, const OrtKeyValuePairs*,
                                       OrtAllocator** out) {
  auto& factory = *static_cast<Factory*>(self);
  const Ort& ort = factory.ort_;
  return guard(ort, [&] {
    const auto ordinal = static_cast<int>(ort.ep()[ep_api::kMemoryDeviceId](ort.ep()[ep_api::kMemoryInfoDevice](info)));
    *out = new DeviceAllocator(ort, factory.logger_, factory.entry_of(ordinal).memory, ordinal);
  });
}

void Factory::release_allocator_callback(OrtEpFactory*, OrtAllocator* allocator) {
  delete static_cast<DeviceAllocator*>(allocator);
}

OrtStatus* Factory::transfer_callback(OrtEpFactory* self, OrtDataTransferImpl** out) {
  const auto& factory = *static_cast<Factory*>(self);
  return guard(factory.ort_, [&] { *out = factory.gpus_.empty() ? nullptr : new DataTransfer(factory.ort_); });
}

}  // namespace xyntra
