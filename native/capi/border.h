// What every function of include/tracea/tracea.h does at its border: exceptions end as a status and a text, structs of older
// headers are completed, and threads are the library's or the caller's.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <new>
#include <string>

#include "byte_io.h"
#include "ort.h"
#include "shared_threads.h"
#include "tracea/tracea.h"

namespace xyntra::capi {

// Wrong in the call, not in the model.
class Misused : public Error {
 public:
  explicit Misused(const std::string& message) : Error(kInvalidArgument, message) {}
};

class NoFile : public Error {
 public:
  explicit NoFile(const std::string& message) : Error(kFail, message) {}
};

// What the last failed call of this thread has said.
std::string& last_error() noexcept;

TraceaStatus failed(TraceaStatus status, const char* what) noexcept;

// `otherwise`: of what is wrong with an argument, which is the model when it is opened.
template <class Body>
TraceaStatus guarded(TraceaStatus otherwise, Body&& body) noexcept {
  try {
    body();
    return TRACEA_SUCCESS;
  } catch (const Misused& error) {
    return failed(TRACEA_INVALID_PARAMS, error.what());
  } catch (const NoFile& error) {
    return failed(TRACEA_FILE_ERROR, error.what());
  } catch (const NoMemory& error) {
    return failed(TRACEA_OUT_OF_MEMORY, error.what());
  } catch (const std::bad_alloc&) {
    return failed(TRACEA_OUT_OF_MEMORY, "out of memory");
  } catch (const DeviceLost& error) {
    return failed(TRACEA_DEVICE_LOST, error.what());
  } catch (const Error& error) {
    const bool unsupported = error.code() == kNotImplemented;
    const TraceaStatus wrong = error.code() == kInvalidArgument ? otherwise : TRACEA_CPU_ERROR;
    return failed(unsupported ? TRACEA_UNSUPPORTED_CONFIG : wrong, error.what());
  } catch (const FormatError& error) {
    return failed(TRACEA_INVALID_MODEL, error.what());
  } catch (const std::exception& error) {
    return failed(TRACEA_CPU_ERROR, error.what());
  } catch (...) {
    return failed(TRACEA_CPU_ERROR, "unknown error");
  }
}

// Fields that a caller's older header does not have are 0.
template <class Struct>
Struct known(const Struct* given, const char* name) {
  Struct complete{};
  if (given == nullptr) return complete;
  const std::size_t size = given->struct_size;
  if (size < sizeof size || size > (std::size_t{1} << 16)) throw Misused(std::string("struct_size of the ") + name + " is not set");
  std::memcpy(&complete, given, std::min(size, sizeof complete));
  return complete;
}

// Throws Misused for more than are sensible.
void check_threads(uint32_t threads, const char* name);

// Those that carry out what is called: the caller's where there are any, else so many of the library's, 0 being one per
// processor.
class Threads final : public Tasks {
 public:
  Threads(uint32_t threads, TraceaParallelFor parallel_for, void* user);
  void run(void (*task)(void* step, std::size_t number), std::size_t count, void* step) const override;

 private:
  const TraceaParallelFor parallel_for_;
  void* const user_;
  const SharedThreads shared_;
};

}  // namespace xyntra::capi
