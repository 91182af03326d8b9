// The C functions of include/tracea/tracea.h.
#include "tracea/tracea.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "border.h"
#include "compiled_file.h"
#include "memory_block.h"
#include "open_nodes.h"
#include "ort.h"
#include "profile.h"
#include "system.h"
#include "tensor_argument.h"
#include "version.h"

using xyntra::CallersTensor;
using xyntra::Error;
using xyntra::MemoryBlock;
using xyntra::capi::failed;
using xyntra::capi::guarded;
using xyntra::capi::last_error;
using xyntra::capi::Misused;
using xyntra::capi::NoFile;
using xyntra::capi::TensorArgument;
using xyntra::capi::Threads;

namespace {

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
      : file(bytes, folder, options.digests != nullptr ? options.digests : ""),
        inputs(file.inputs()),
        outputs(file.outputs()),
        threads(options.threads, options.parallel_for, options.parallel_for_user) {}

  const xyntra::CompiledFile file;
  const Infos inputs, outputs;
  const Threads threads;
};

namespace {

std::vector<TensorArgument> checked(const TraceaTensorView* views, std::size_t n, const char* what) {
  if (n != 0 && views == nullptr) throw Misused(std::string("the ") + what + "s are NULL");
  std::vector<TensorArgument> tensors;
  for (std::size_t i = 0; i < n; ++i) {
    const std::string name = std::string(what) + ' ' + std::to_string(i);
    const TensorArgument& tensor = tensors.emplace_back(xyntra::capi::tensor_argument(views[i], name));
    if (!tensor.is_empty() && !tensor.is_contiguous())
      throw Error(xyntra::kNotImplemented, tensor.name + " has gaps; models take tensors in row-major order");
  }
  return tensors;
}

std::vector<CallersTensor> as_given(const std::vector<TensorArgument>& arguments) {
  std::vector<CallersTensor> tensors;
  for (const TensorArgument& argument : arguments) tensors.push_back({argument.data, argument.elem_type, argument.dims});
  return tensors;
}

const TraceaModel& existing(const TraceaModel* model) {
  if (model == nullptr) throw Misused("the model is NULL");
  return *model;
}

TraceaModelOptions known(const TraceaModelOptions* given) {
  const TraceaModelOptions options = xyntra::capi::known(given, "options");
  xyntra::capi::check_threads(options.threads, "options");
  return options;
}

struct Content {
  MemoryBlock block;
  std::size_t bytes = 0;
  std::string_view view() const noexcept { return {block.data(), bytes}; }
};

Content content_of(const std::string& path) {
  std::error_code problem;
  if (!std::filesystem::is_regular_file(xyntra::system::to_system(path), problem)) throw NoFile(path + ": cannot be opened, or is no file");
  std::ifstream file(xyntra::system::to_system(path), std::ios::binary | std::ios::ate);
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
    const std::size_t n = std::min(last_error().size(), capacity - 1);
    std::memcpy(buffer, last_error().data(), n);
    buffer[n] = '\0';
  }
  return last_error().size();
}

void tracea_clear_error(void) { last_error().clear(); }

int tracea_is_fatal(TraceaStatus status) { return status == TRACEA_DEVICE_LOST ? 1 : 0; }

TraceaStatus tracea_model_open(const char* path, const TraceaModelOptions* options, TraceaModel** model) {
  return opened(options, model, [&](const TraceaModelOptions& known_options) {
    if (path == nullptr) throw Misused("the path is NULL");
    const std::string file = xyntra::system::with_slashes(path);
    return new TraceaModel(content_of(file).view(), xyntra::folder_of(file), known_options);
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
    const auto dims = opened_model.file.output_dims(as_given(checked(inputs, n_inputs, "input")));
    if (dims[number].size() > TRACEA_MAX_RANK) throw Error(xyntra::kNotImplemented, "the output has too many axes");
    *rank = static_cast<uint32_t>(dims[number].size());
    std::copy(dims[number].begin(), dims[number].end(), shape);
  });
}

TraceaStatus tracea_model_run(const TraceaModel* model, const TraceaTensorView* inputs, size_t n_inputs,
                              const TraceaTensorView* outputs, size_t n_outputs) {
  return guarded(TRACEA_INVALID_PARAMS, [&] {
    const TraceaModel& opened_model = existing(model);
    const std::vector<TensorArgument> given = checked(inputs, n_inputs, "input");
    const std::vector<TensorArgument> wanted = checked(outputs, n_outputs, "output");
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      for (const TensorArgument& input : given) {
        if (overlap(wanted[i], input)) throw Misused("output " + std::to_string(i) + " overlaps an input");
      }
      for (std::size_t k = 0; k < i; ++k) {
        if (overlap(wanted[i], wanted[k])) throw Misused("output " + std::to_string(i) + " overlaps output " + std::to_string(k));
      }
    }
    opened_model.file.run(as_given(given), as_given(wanted), opened_model.threads);
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
