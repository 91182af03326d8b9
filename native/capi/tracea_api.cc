// The C functions of include/tracea/tracea.h.
#include "tracea/tracea.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "byte_io.h"
#include "compiled_file.h"
#include "element_bytes.h"
#include "memory_block.h"
#include "open_nodes.h"
#include "ort.h"
#include "profile.h"
#include "shared_threads.h"
#include "version.h"

using xyntra::CallersTensor;
using xyntra::Error;
using xyntra::MemoryBlock;

namespace {

constexpr uint32_t kMostThreads = 1024;  // they stay: more are a mistake

thread_local std::string last_error;

// Wrong in the call, not in the model.
class Misused : public Error {
 public:
  explicit Misused(const std::string& message) : Error(xyntra::kInvalidArgument, message) {}
};

class NoFile : public Error {
 public:
  explicit NoFile(const std::string& message) : Error(xyntra::kFail, message) {}
};

void say(const char* what) noexcept {
  try {
    last_error = what;
  } catch (...) {
    last_error.clear();
  }
}

TraceaStatus failed(TraceaStatus status, const char* what) noexcept {
  say(what);
  return status;
}

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
  } catch (const xyntra::NoMemory& error) {
    return failed(TRACEA_OUT_OF_MEMORY, error.what());
  } catch (const std::bad_alloc&) {
    return failed(TRACEA_OUT_OF_MEMORY, "out of memory");
  } catch (const Error& error) {
    const bool unsupported = error.code() == xyntra::kNotImplemented;
    return failed(unsupported ? TRACEA_UNSUPPORTED_CONFIG : error.code() == xyntra::kInvalidArgument ? otherwise : TRACEA_CPU_ERROR, error.what());
  } catch (const xyntra::FormatError& error) {
    return failed(TRACEA_INVALID_MODEL, error.what());
  } catch (const std::exception& error) {
    return failed(TRACEA_CPU_ERROR, error.what());
  } catch (...) {
    return failed(TRACEA_CPU_ERROR, "unknown error");
  }
}

// Threads of the caller's.
class CallersThreads final : public xyntra::Tasks {
 public:
  CallersThreads(TraceaParallelFor parallel_for, void* user) : parallel_for_(parallel_for), user_(user) {}
  void run(void (*task)(void*, std::size_t), std::size_t count, void* step) const override { parallel_for_(user_, count, task, step); }

 private:
  const TraceaParallelFor parallel_for_;
  void* const user_;
};

// The C view of what a model says of its inputs or outputs.
struct Infos {
  explicit Infos(const std::vector<xyntra::OnnxTensorType>& types) : types(types), symbols(types.size()) {
    for (std::size_t i = 0; i < types.size(); ++i) {
      for (const std::string& symbol : types[i].symbols) symbols[i].push_back(symbol.c_str());
    }
  }
  void fill(std::size_t number, TraceaTensorInfo* info) const {
    if (info == nullptr || info->struct_size < sizeof(TraceaTensorInfo)) throw Misused("info is NULL, or its struct_size is not set");
    if (number >= types.size()) throw Misused("the model has " + std::to_string(types.size()) + " of these, not number " + std::to_string(number));
    const xyntra::OnnxTensorType& type = types[number];
    info->name = type.name.c_str();
    info->dtype = static_cast<TraceaDType>(type.elem_type);
    info->rank = type.has_shape ? static_cast<int32_t>(type.dims.size()) : -1;
    info->shape = type.dims.data();
    info->symbol = symbols[number].data();
  }

  const std::vector<xyntra::OnnxTensorType>& types;
  std::vector<std::vector<const char*>> symbols;
};

}  // namespace

struct TraceaModel {
  TraceaModel(std::string_view bytes, const std::string& folder, const TraceaModelOptions& options)
      : file(bytes, folder, options.digests != nullptr ? options.digests : ""), inputs(file.inputs()), outputs(file.outputs()) {
    const std::size_t threads = options.threads != 0 ? options.threads : std::max(1U, std::thread::hardware_concurrency());
    if (options.parallel_for != nullptr) {
      callers.emplace(options.parallel_for, options.parallel_for_user);
    } else {
      shared.emplace(threads);
    }
  }
  const xyntra::Tasks& threads() const noexcept {
    return callers ? static_cast<const xyntra::Tasks&>(*callers) : *shared;
  }

  const xyntra::CompiledFile file;
  const Infos inputs, outputs;
  std::optional<CallersThreads> callers;
  std::optional<xyntra::SharedThreads> shared;
};

namespace {

bool is_contiguous(const TraceaTensorView& view) {
  int64_t expected = 1;
  for (uint32_t i = view.rank; i-- > 0;) {
    if (view.shape[i] != 1 && view.stride[i] != expected) return false;
    expected *= view.shape[i];
  }
  return true;
}

CallersTensor checked(const TraceaTensorView& view, const std::string& name) {
  if (view.rank > TRACEA_MAX_RANK) throw Misused(name + " has more than " + std::to_string(TRACEA_MAX_RANK) + " axes");
  if (view.rank != 0 && view.shape == nullptr) throw Misused(name + " has no shape");
  if (view.device_id < TRACEA_CPU) throw Misused(name + " is on a device that there is not");
  if (view.device_id != TRACEA_CPU) throw Error(xyntra::kNotImplemented, name + " is on a CUDA device; compiled models run on the CPU");
  CallersTensor tensor;
  tensor.data = view.ptr;
  tensor.elem_type = view.dtype;
  bool is_empty = false;
  for (uint32_t i = 0; i < view.rank; ++i) {
    if (view.shape[i] < 0) throw Misused(name + " has a negative size");
    is_empty = is_empty || view.shape[i] == 0;
    tensor.dims.push_back(view.shape[i]);
  }
  try {
    xyntra::tensor_bytes(tensor.elem_type, tensor.dims.data(), tensor.dims.size());
  } catch (const Error& error) {
    throw Misused(name + ": " + error.what());
  }
  if (!is_empty && view.ptr == nullptr) throw Misused(name + " is NULL");
  if (reinterpret_cast<uintptr_t>(view.ptr) % xyntra::element_bytes(tensor.elem_type) != 0)
    throw Misused(name + " is not aligned to its elements");
  if (view.stride != nullptr && !is_empty) {
    for (uint32_t i = 0; i < view.rank; ++i) {
      if (view.stride[i] < 0) throw Misused(name + " has a negative stride");
    }
    if (!is_contiguous(view)) throw Error(xyntra::kNotImplemented, name + " has gaps; models take tensors in row-major order");
  }
  return tensor;
}

std::vector<CallersTensor> checked(const TraceaTensorView* views, std::size_t n, const char* what) {
  if (n != 0 && views == nullptr) throw Misused(std::string("the ") + what + "s are NULL");
  std::vector<CallersTensor> tensors;
  for (std::size_t i = 0; i < n; ++i) tensors.push_back(checked(views[i], std::string(what) + ' ' + std::to_string(i)));
  return tensors;
}

std::size_t bytes_of(const CallersTensor& tensor) {
  return xyntra::tensor_bytes(tensor.elem_type, tensor.dims.data(), tensor.dims.size());
}

bool overlap(const CallersTensor& a, const CallersTensor& b) {
  const auto from_a = reinterpret_cast<uintptr_t>(a.data), from_b = reinterpret_cast<uintptr_t>(b.data);
  return from_a < from_b + bytes_of(b) && from_b < from_a + bytes_of(a);
}

const TraceaModel& existing(const TraceaModel* model) {
  if (model == nullptr) throw Misused("the model is NULL");
  return *model;
}

// Fields that a caller's older header does not have are 0.
TraceaModelOptions known(const TraceaModelOptions* given) {
  TraceaModelOptions options{};
  if (given == nullptr) return options;
  if (given->struct_size < sizeof(std::size_t) || given->struct_size > (std::size_t{1} << 16)) throw Misused("struct_size of the options is not set");
  std::memcpy(&options, given, std::min(given->struct_size, sizeof options));
  if (options.threads > kMostThreads) throw Misused("the options ask for more than " + std::to_string(kMostThreads) + " threads");
  return options;
}

struct Content {
  MemoryBlock block;
  std::size_t bytes = 0;
  std::string_view view() const noexcept { return {block.data(), bytes}; }
};

Content content_of(const std::string& path) {
  std::error_code problem;
  if (!std::filesystem::is_regular_file(path, problem)) throw NoFile(path + ": cannot be opened, or is no file");
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const auto size = file ? static_cast<std::streamoff>(file.tellg()) : -1;
  if (size < 0) throw NoFile(path + ": cannot be opened");
  Content content{MemoryBlock(static_cast<std::size_t>(size), "a model"), static_cast<std::size_t>(size)};
  file.seekg(0);
  file.read(content.block.data(), size);
  if (!file) throw NoFile(path + ": cannot be read");
  return content;
}

template <class Make>
TraceaStatus opened(const TraceaModelOptions* options, TraceaModel** model, Make make) noexcept {
  if (model == nullptr) return failed(TRACEA_INVALID_PARAMS, "there is no place for the model");
  *model = nullptr;
  return guarded(TRACEA_INVALID_MODEL, [&] { *model = make(known(options)); });
}

}  // namespace

const char* tracea_version(void) { return xyntra::kVersion; }

uint32_t tracea_abi_version(void) { return TRACEA_ABI_VERSION; }

size_t tracea_get_last_error(char* buffer, size_t capacity) {
  if (buffer != nullptr && capacity != 0) {
    const std::size_t n = std::min(last_error.size(), capacity - 1);
    std::memcpy(buffer, last_error.data(), n);
    buffer[n] = '\0';
  }
  return last_error.size();
}

void tracea_clear_error(void) { last_error.clear(); }

TraceaStatus tracea_model_open(const char* path, const TraceaModelOptions* options, TraceaModel** model) {
  return opened(options, model, [&](const TraceaModelOptions& known_options) {
    if (path == nullptr) throw Misused("the path is NULL");
    return new TraceaModel(content_of(path).view(), xyntra::folder_of(path), known_options);
  });
}

TraceaStatus tracea_model_open_bytes(const void* bytes, size_t n, const TraceaModelOptions* options, TraceaModel** model) {
  return opened(options, model, [&](const TraceaModelOptions& known_options) {
    if (bytes == nullptr && n != 0) throw Misused("the bytes are NULL");
    return new TraceaModel({static_cast<const char*>(bytes), n}, "", known_options);
  });
}

void tracea_model_close(TraceaModel* model) { delete model; }

TraceaStatus tracea_model_counts(const TraceaModel* model, size_t* inputs, size_t* outputs) {
  return guarded(TRACEA_INVALID_PARAMS, [&] {
    if (inputs != nullptr) *inputs = existing(model).file.inputs().size();
    if (outputs != nullptr) *outputs = existing(model).file.outputs().size();
    existing(model);
  });
}

TraceaStatus tracea_model_input(const TraceaModel* model, size_t number, TraceaTensorInfo* info) {
  return guarded(TRACEA_INVALID_PARAMS, [&] { existing(model).inputs.fill(number, info); });
}

TraceaStatus tracea_model_output(const TraceaModel* model, size_t number, TraceaTensorInfo* info) {
  return guarded(TRACEA_INVALID_PARAMS, [&] { existing(model).outputs.fill(number, info); });
}

TraceaStatus tracea_model_output_shape(const TraceaModel* model, const TraceaTensorView* inputs, size_t n_inputs, size_t number,
                                       uint32_t* rank, int64_t* shape) {
  return guarded(TRACEA_INVALID_PARAMS, [&] {
    const TraceaModel& opened_model = existing(model);
    if (rank == nullptr || shape == nullptr) throw Misused("there is no place for the shape");
    if (number >= opened_model.file.outputs().size()) throw Misused("the model has no output " + std::to_string(number));
    const auto dims = opened_model.file.output_dims(checked(inputs, n_inputs, "input"));
    if (dims[number].size() > TRACEA_MAX_RANK) throw Error(xyntra::kNotImplemented, "the output has too many axes");
    *rank = static_cast<uint32_t>(dims[number].size());
    std::copy(dims[number].begin(), dims[number].end(), shape);
  });
}

TraceaStatus tracea_model_run(const TraceaModel* model, const TraceaTensorView* inputs, size_t n_inputs,
                              const TraceaTensorView* outputs, size_t n_outputs) {
  return guarded(TRACEA_INVALID_PARAMS, [&] {
    const TraceaModel& opened_model = existing(model);
    const std::vector<CallersTensor> given = checked(inputs, n_inputs, "input");
    const std::vector<CallersTensor> wanted = checked(outputs, n_outputs, "output");
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      for (const CallersTensor& input : given) {
        if (overlap(wanted[i], input)) throw Misused("output " + std::to_string(i) + " overlaps an input");
      }
      for (std::size_t k = 0; k < i; ++k) {
        if (overlap(wanted[i], wanted[k])) throw Misused("output " + std::to_string(i) + " overlaps output " + std::to_string(k));
      }
    }
    opened_model.file.run(given, wanted, opened_model.threads());
  });
}

TraceaStatus tracea_profile(int on) {
  using xyntra::profile::Mode;
  return guarded(TRACEA_INVALID_PARAMS, [&] { xyntra::profile::set(on != 0 ? Mode::kSteps : Mode::kOff); });
}

TraceaStatus tracea_take_profile(char* buffer, size_t capacity, size_t* needed) {
  return guarded(TRACEA_INVALID_PARAMS, [&] {
    if (needed == nullptr) throw Misused("there is no place for the size");
    if (buffer == nullptr && capacity != 0) throw Misused("the buffer is NULL");
    *needed = xyntra::profile::take(buffer, capacity);
  });
}
