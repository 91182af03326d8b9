// One ONNX Runtime in this process: its function tables, and the two ways in which errors cross the border.
#pragma once

#include <cstdint>
#include <new>
#include <stdexcept>
#include <string>

#include "ort_abi.h"

namespace xyntra {

// What is left of a session when a run of it has failed.
enum class FailureKind {
  kRecoverable,  // all of it: the next run may do
  kFatal,        // nothing: its device is lost
};

constexpr const char* what_is_left(FailureKind kind) noexcept {
  return kind == FailureKind::kFatal ? "the session is lost: make a new one" : "the session can go on";
}

// An error on its way to an OrtStatus: what happened, in one sentence, and of what kind it is.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& sentence, FailureKind kind = FailureKind::kRecoverable)
      : std::runtime_error(sentence), code_(code), kind_(kind) {}
  ErrorCode code() const noexcept { return code_; }
  FailureKind kind() const noexcept { return kind_; }

 private:
  ErrorCode code_;
  FailureKind kind_;
};

// A device on which nothing works any more. ONNX Runtime keeps EP_FAIL for a provider that has failed: nothing else of a run has
// this code, and its Python sessions answer it with a session on the CPU, where that is allowed (`enable_fallback`).
class DeviceLost : public Error {
 public:
  explicit DeviceLost(const std::string& sentence) : Error(kEpFail, sentence, FailureKind::kFatal) {}
};

// Memory that could not be had.
class NoMemory : public Error {
 public:
  NoMemory(std::size_t bytes, const std::string& what)
      : Error(kRuntimeException, "XyntraEP: there was no memory for " + what + " of " + std::to_string(bytes) + " bytes") {}
};

class Ort {
 public:
  // A process may hold two copies of ONNX Runtime (Python's and a host's), so everything keeps the one it came from.
  // Throws Error when the runtime is too old. Lives for the process.
  static const Ort& from(const OrtApiBase* base);

  template <class S>
  auto operator[](S slot) const noexcept {
    return api_[slot];
  }
  const FunctionTable& ep() const noexcept { return ep_api_; }
  uint32_t api_version() const noexcept { return version_; }
  const std::string& version_string() const noexcept { return version_string_; }

  // Throws what a failed call reports.
  void check(OrtStatus* status) const {
    if (status != nullptr) raise(status);
  }
  OrtStatus* status(ErrorCode code, const char* message) const noexcept {
    return api_[api::kCreateStatus](code, message);
  }
  // Of a run: the sentence, and what is left of the session.
  OrtStatus* status_of_run(ErrorCode code, FailureKind kind, const char* sentence) const noexcept;
  void log(const OrtLogger* logger, int level, const std::string& message) const noexcept;

 private:
  explicit Ort(const OrtApiBase* base);
  [[noreturn]] void raise(OrtStatus* status) const;

  FunctionTable api_;
  FunctionTable ep_api_;
  uint32_t version_ = 0;
  std::string version_string_;
};

// The API number in use; 0 before ONNX Runtime has loaded this library.
uint32_t api_version_in_use() noexcept;

// Null, or what `failed` makes of the exception that ended `body`.
template <class Body, class Failed>
OrtStatus* caught(Body&& body, Failed&& failed) noexcept {
  try {
    body();
    return nullptr;
  } catch (const Error& error) {
    return failed(error.code(), error.kind(), error.what());
  } catch (const std::bad_alloc&) {
    return failed(kRuntimeException, FailureKind::kRecoverable, "XyntraEP: out of memory");
  } catch (const std::exception& error) {
    return failed(kRuntimeException, FailureKind::kRecoverable, error.what());
  } catch (...) {
    return failed(kRuntimeException, FailureKind::kRecoverable, "XyntraEP: unknown error");
  }
}

// Every callback that ORT makes runs inside this: no C++ exception may cross the C border.
template <class Body>
OrtStatus* guard(const Ort& ort, Body&& body) noexcept {
  return caught(body, [&](ErrorCode code, FailureKind, const char* sentence) { return ort.status(code, sentence); });
}

// The same, of callbacks that are a part of a run.
template <class Body>
OrtStatus* guard_run(const Ort& ort, Body&& body) noexcept {
  return caught(
      body, [&](ErrorCode code, FailureKind kind, const char* sentence) { return ort.status_of_run(code, kind, sentence); });
}

}  // namespace xyntra
