#include "ort_host.h"

#include <memory>
#include <stdexcept>

namespace xyntra::host {
namespace {

constexpr Slot<OrtStatus*(int, Text, OrtEnv**)> kCreateEnv{3};
constexpr Slot<OrtStatus*(const OrtEnv*, PathText, const OrtSessionOptions*, OrtSession**)> kCreateSession{7};
constexpr Slot<OrtStatus*(OrtSession*, const OrtRunOptions*, const Text*, const OrtValue* const*, size_t, const Text*,
                          size_t, OrtValue**)>
    kRun{9};
constexpr Slot<OrtStatus*(OrtSessionOptions**)> kCreateSessionOptions{10};
constexpr Slot<OrtStatus*(OrtSessionOptions*, int)> kSetIntraOpNumThreads{24};
constexpr Slot<OrtStatus*(const OrtMemoryInfo*, void*, size_t, const int64_t*, size_t, int, OrtValue**)> kCreateTensor{
    49};
constexpr Slot<OrtStatus*(int, int, OrtMemoryInfo**)> kCreateCpuMemoryInfo{69};
constexpr Slot<void(OrtEnv*)> kReleaseEnv{92};
constexpr Slot<void(OrtMemoryInfo*)> kReleaseMemoryInfo{94};
constexpr Slot<void(OrtSession*)> kReleaseSession{95};
constexpr Slot<void(OrtSessionOptions*)> kReleaseSessionOptions{100};
constexpr Slot<OrtStatus*(OrtEnv*, Text, PathText)> kRegisterLibrary{301};
constexpr Slot<OrtStatus*(const OrtEnv*, const OrtEpDevice* const**, size_t*)> kGetEpDevices{303};
constexpr Slot<OrtStatus*(OrtSessionOptions*, OrtEnv*, const OrtEpDevice* const*, size_t, const Text*, const Text*,
                          size_t)>
    kAppendProvider{304};
constexpr Slot<Text(const OrtEpDevice*)> kEpDeviceEpName{312};

}  // namespace

Runtime::Runtime(const std::string& path) {
  std::string why;
  void* library = system::open_library(path, why);
  if (library == nullptr) throw std::runtime_error(why);
  const auto get_base = reinterpret_cast<const OrtApiBase* (*)()>(system::symbol(library, "OrtGetApiBase"));
  if (get_base == nullptr) throw std::runtime_error(path + " is no ONNX Runtime");
  api_ = FunctionTable(get_base()->GetApi(kOldestMinor));
  check(api_[kCreateEnv](kError, "host", &env_));
  check(api_[kCreateCpuMemoryInfo](0, 0, &memory_));
}

Runtime::~Runtime() {
  api_[kReleaseMemoryInfo](memory_);
  api_[kReleaseEnv](env_);
}

void Runtime::check(OrtStatus* status) const {
  if (status == nullptr) return;
  const std::string message = api_[api::kGetErrorMessage](status);
  const int code = api_[api::kGetErrorCode](status);
  api_[api::kReleaseStatus](status);
  throw std::runtime_error("error " + std::to_string(code) + ": " + message);
}

void Runtime::register_library(const std::string& name, const std::string& path) {
  check(api_[kRegisterLibrary](env_, name.c_str(), system::to_system(path).c_str()));
}

std::vector<const OrtEpDevice*> Runtime::devices_of(const std::string& provider) const {
  const OrtEpDevice* const* all = nullptr;
  std::size_t n = 0;
  check(api_[kGetEpDevices](env_, &all, &n));
  std::vector<const OrtEpDevice*> found;
  for (std::size_t i = 0; i < n; ++i) {
    if (provider == api_[kEpDeviceEpName](all[i])) found.push_back(all[i]);
  }
  if (found.empty()) throw std::runtime_error("no device of " + provider);
  return found;
}

Runtime::Session::Session(const Runtime& runtime, const std::string& model, const std::string& provider, int threads,
                          const std::vector<std::pair<std::string, std::string>>& options)
    : runtime_(runtime) {
  const FunctionTable& api = runtime_.api_;
  OrtSessionOptions* raw = nullptr;
  runtime_.check(api[kCreateSessionOptions](&raw));
  const auto release = [&](OrtSessionOptions* settings) { api[kReleaseSessionOptions](settings); };
  const std::unique_ptr<OrtSessionOptions, decltype(release)> settings(raw, release);
  runtime_.check(api[kSetIntraOpNumThreads](settings.get(), threads));
  std::vector<Text> keys, values;
  for (const auto& [key, value] : options) {
    keys.push_back(key.c_str());
    values.push_back(value.c_str());
  }
  const auto devices = runtime_.devices_of(provider);
  runtime_.check(
      api[kAppendProvider](settings.get(), runtime_.env_, devices.data(), 1, keys.data(), values.data(), keys.size()));
  runtime_.check(api[kCreateSession](runtime_.env_, system::to_system(model).c_str(), settings.get(), &session_));
}

Runtime::Session::~Session() { runtime_.api_[kReleaseSession](session_); }

std::vector<float> Runtime::Session::run(std::vector<Tensor>& inputs, const std::string& output) const {
  const FunctionTable& api = runtime_.api_;
  const auto release = [&](OrtValue* value) { api[api::kReleaseValue](value); };
  using Owned = std::unique_ptr<OrtValue, decltype(release)>;
  OrtValue* raw = nullptr;
  std::vector<Owned> owned;
  std::vector<Text> names;
  std::vector<const OrtValue*> values;
  for (Tensor& input : inputs) {
    runtime_.check(api[kCreateTensor](runtime_.memory_, input.data.data(), input.data.size(), input.dims.data(),
                                      input.dims.size(), input.elem_type, &raw));
    owned.emplace_back(raw, release);
    names.push_back(input.name.c_str());
    values.push_back(raw);
  }
  const Text output_name = output.c_str();
  raw = nullptr;
  runtime_.check(api[kRun](session_, nullptr, names.data(), values.data(), values.size(), &output_name, 1, &raw));
  const Owned y(raw, release);
  std::size_t bytes = 0;
  void* data = nullptr;
  runtime_.check(api[api::kGetTensorSizeInBytes](y.get(), &bytes));
  runtime_.check(api[api::kGetTensorMutableData](y.get(), &data));
  const auto* from = static_cast<const float*>(data);
  return {from, from + bytes / sizeof(float)};
}

}  // namespace xyntra::host
