// One ONNX Runtime in this process: its function tables, and the two ways in which errors cross the border.
#pragma once

#include <cstdint>
#include <new>
#include <stdexcept>
#include <string>

#include "ort_abi.h"

namespace xyntra {

// An error on its way to an OrtStatus.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
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

// Every callback that ORT makes runs inside this: no C++ exception may cross the C border.
template <class Body>
OrtStatus* guard(const Ort& ort, Body&& body) noexcept {
  try {
    body();
    return nullptr;
  } catch (const Error& error) {
    return ort.status(error.code(), error.what());
  } catch (const std::bad_alloc&) {
    return ort.status(kRuntimeException, "XyntraEP: out of memory");
  } catch (const std::exception& error) {
    return ort.status(kRuntimeException, error.what());
  } catch (...) {
    return ort.status(kRuntimeException, "XyntraEP: unknown error");
  }
}

}  // namespace xyntra
