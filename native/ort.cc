#include "ort.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>

namespace xyntra {
namespace {

std::atomic<uint32_t> g_version{0};

}  // namespace

Ort::Ort(const OrtApiBase* base) : version_string_(base->GetVersionString()) {
  unsigned major = 0, minor = 0, patch = 0;
  std::sscanf(version_string_.c_str(), "%u.%u.%u", &major, &minor, &patch);
  const bool too_old = minor < kOldestMinor || (minor == kOldestMinor && patch < kOldestPatch);
  if (major != 1 || too_old) {
    throw Error(kNotImplemented, "XyntraEP needs ONNX Runtime 1.25.1 or newer (below 2.0); this is " + version_string_ +
                                     ". pip install -U onnxruntime");
  }
  version_ = std::min<uint32_t>(minor, kNewestApi);
  const void* table = base->GetApi(version_);
  if (table == nullptr) {
    throw Error(kFail,
                "ONNX Runtime " + version_string_ + " does not offer its own API number " + std::to_string(version_));
  }
  api_ = FunctionTable(table);
  ep_api_ = FunctionTable(api_[api::kGetEpApi]());
  g_version.store(version_, std::memory_order_relaxed);
}

const Ort& Ort::from(const OrtApiBase* base) {
  // Leaked on purpose, like every process-wide object here: sessions may outlive static destructors.
  static auto* const mutex = new std::mutex;
  static auto* const known = new std::map<const OrtApiBase*, std::unique_ptr<const Ort>>;
  const std::lock_guard lock(*mutex);
  auto& entry = (*known)[base];
  if (!entry) entry.reset(new Ort(base));
  return *entry;
}

void Ort::raise(OrtStatus* status) const {
  const auto code = static_cast<ErrorCode>(api_[api::kGetErrorCode](status));
  const std::string message = api_[api::kGetErrorMessage](status);
  api_[api::kReleaseStatus](status);
  throw Error(code, message);
}

OrtStatus* Ort::status_of_run(ErrorCode code, FailureKind kind, const char* sentence) const noexcept {
  try {
    return status(code, (std::string(sentence) + ". " + what_is_left(kind)).c_str());
  } catch (const std::bad_alloc&) {
    return status(code, what_is_left(kind));
  }
}

void Ort::log(const OrtLogger* logger, int level, const std::string& message) const noexcept {
  if (logger == nullptr || message.empty()) return;
  constexpr system::PathChar kFile[] = {'x', 'y', 'n', 't', 'r', 'a', '_', 'e', 'p', 0};
  OrtStatus* status = api_[api::kLoggerLogMessage](logger, level, message.c_str(), kFile, 0, "XyntraEP");
  if (status != nullptr) api_[api::kReleaseStatus](status);
}

uint32_t api_version_in_use() noexcept { return g_version.load(std::memory_order_relaxed); }

}  // namespace xyntra
