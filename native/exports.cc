#include "exports.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <fstream>
#include <memory>
#include <new>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "copy_timing.h"
#include "cuda_presence.h"
#include "device.h"
#include "factory.h"
#include "file_pages.h"
#include "hash128.h"
#include "island_trial.h"
#include "kernel_timing.h"
#include "live.h"
#include "opened_island.h"
#include "profile.h"
#include "python_end.h"
#include "quiet.h"
#include "reports.h"
#include "shared_threads.h"
#include "trace.h"
#include "trusted_file.h"
#include "version.h"
#include "weight_pool.h"

namespace {

// Before there is an Ort object, errors can only be made with API number 1, which every runtime has.
OrtStatus* early_error(const OrtApiBase* base, xyntra::ErrorCode code, const char* message) noexcept {
  return xyntra::FunctionTable(base->GetApi(1))[xyntra::api::kCreateStatus](code, message);
}

// For who can read no exception.
void tell(const char* what, char* why, uint64_t capacity) noexcept {
  if (capacity == 0) return;
  const std::size_t n = std::min<std::size_t>(std::strlen(what), capacity - 1);
  std::memcpy(why, what, n);
  why[n] = '\0';
}

void tell(const std::exception& error, char* why, uint64_t capacity) noexcept { tell(error.what(), why, capacity); }

std::vector<xyntra::InputView> views_of(const void* const* inputs, const uint32_t* ranks, const int64_t* dims, uint32_t n) {
  std::vector<xyntra::InputView> views;
  for (uint32_t i = 0; i < n; dims += ranks[i++]) views.push_back({inputs[i], dims, ranks[i]});
  return views;
}

std::vector<xyntra::ConstantView> constants_of(const void* const* constants, const uint64_t* bytes, uint32_t n) {
  std::vector<xyntra::ConstantView> known;
  for (uint32_t i = 0; i < n; ++i) known.push_back({constants[i], bytes[i]});
  return known;
}

}  // namespace

OrtStatus* CreateEpFactories(const char*, const OrtApiBase* base, const OrtLogger* logger, OrtEpFactory** factories,
                             std::size_t most, std::size_t* n) noexcept {
  try {
    if (most < 1) return early_error(base, xyntra::kInvalidArgument, "XyntraEP needs room for one factory");
    factories[0] = std::make_unique<xyntra::Factory>(xyntra::Ort::from(base), logger).release();
    *n = 1;
    return nullptr;
  } catch (const xyntra::Error& error) {
    return early_error(base, error.code(), error.what());
  } catch (const std::exception& error) {
    return early_error(base, xyntra::kFail, error.what());
  }
}

OrtStatus* ReleaseEpFactory(OrtEpFactory* factory) noexcept {
  delete static_cast<xyntra::Factory*>(factory);
  return nullptr;
}

void xyntra_attach(xyntra::PlannerCallback callback, const char* code_version, const char* cpu_features,
                   const char* compiler_id, const char* default_cache_dir, const char* watched) noexcept {
  try {
    xyntra::Planner planner;
    planner.callback = callback;
    for (const char* part : {code_version, cpu_features, compiler_id}) (planner.identity += part) += '\n';
    planner.default_cache_dir = default_cache_dir;
    std::istringstream names(watched);
    for (std::string name; std::getline(names, name);) planner.watched.push_back(name);
    xyntra::attach_planner(std::move(planner));
  } catch (const std::bad_alloc&) {
    return;  // without a planner, ONNX Runtime keeps its nodes
  }
}

void xyntra_python_ends(int (*is_going)(), void* (*python_thread)()) noexcept {
  xyntra::attach_planner({});
  xyntra::python_ends(is_going, python_thread);
}

void xyntra_reply(void* reply, int is_plan, const void* bytes, uint64_t n) noexcept {
  auto& answer = *static_cast<xyntra::PlannerReply*>(reply);
  try {
    answer.bytes.assign(static_cast<const char*>(bytes), n);
    answer.is_plan = is_plan == 1;
    answer.given = true;
  } catch (const std::exception&) {
    answer.given = false;  // no memory for it
  }
}

int xyntra_say(int level, const char* message) noexcept {
  try {
    return xyntra::Factory::say(level, message) ? 1 : 0;
  } catch (const std::exception&) {
    return 0;  // no memory for it
  }
}

const char* xyntra_version() noexcept { return xyntra::kVersion; }

uint32_t xyntra_api_version() noexcept { return xyntra::api_version_in_use(); }

void xyntra_hash128(const void* data, uint64_t n, uint8_t* hash) noexcept {
  const xyntra::Hash128 result = xyntra::hash128(data, n);
  std::memcpy(hash, result.data(), result.size());
}

uint64_t xyntra_pool_bytes() noexcept { return xyntra::pool_bytes(); }

uint64_t xyntra_counts(char* buffer, uint64_t capacity) noexcept {
  try {
    const std::string counts = xyntra::counts_as_json();
    if (counts.size() <= capacity) std::memcpy(buffer, counts.data(), counts.size());
    return counts.size();
  } catch (const std::bad_alloc&) {
    return 0;
  }
}

int64_t xyntra_quiet_ms(int64_t ms) noexcept { return xyntra::quiet::set_period(ms); }

uint64_t xyntra_give_back_file_pages(const void* data, uint64_t bytes) noexcept {
  return xyntra::give_back_file_pages(data, bytes);
}

uint64_t xyntra_take_report(const char* token, char* buffer, uint64_t capacity) noexcept {
  try {
    return xyntra::reports::take(token, buffer, capacity);
  } catch (const std::bad_alloc&) {
    return 0;
  }
}

void xyntra_profile(int what) noexcept {
  using xyntra::profile::Mode;
  xyntra::profile::set(what == 1 ? Mode::kSteps : what == 2 ? Mode::kRuns : Mode::kOff);
}

int xyntra_trace(int detail, uint64_t records) noexcept {
  using xyntra::trace::Detail;
  try {
    if (detail == 1 || detail == 2) {
      if (records < 16 || (records & (records - 1)) != 0 || records > (uint64_t{1} << 24)) return -1;
      xyntra::trace::begin(detail == 1 ? Detail::kRuns : Detail::kSteps, records);
    } else {
      xyntra::trace::end();
    }
    return xyntra::trace::fd();
  } catch (const std::exception&) {
    return -1;  // no memory for it
  }
}

void xyntra_trace_unless_told(const char* option) noexcept { xyntra::trace::set_default(option); }

int xyntra_trace_ring(int* detail) noexcept {
  *detail = static_cast<int>(xyntra::trace::detail());
  return xyntra::trace::fd();
}

uint64_t xyntra_trace_files() noexcept { return xyntra::trace::files(); }

void xyntra_trace_stage(const char* name, int64_t begin_ns, int64_t end_ns) noexcept {
  if (!xyntra::trace::is_on()) return;
  xyntra::TraceRecord record;
  record.kind = xyntra::TraceKind::kSpan;
  record.name = xyntra::trace::name(name);
  record.begin_ns = begin_ns;
  record.end_ns = end_ns;
  xyntra::trace::put(record);
}

uint64_t xyntra_take_profile(char* buffer, uint64_t capacity) noexcept {
  try {
    return xyntra::profile::take(buffer, capacity);
  } catch (const std::bad_alloc&) {
    return 0;
  }
}

int xyntra_cuda_at_hand(const char* gpus) noexcept {
  try {
    const std::string folder = gpus != nullptr ? gpus : "/proc/driver/nvidia/gpus";
    return xyntra::only_the_driver_knows(folder) ? -1 : xyntra::cuda_devices_at_hand(folder);
  } catch (const std::exception&) {
    return 0;
  }
}

uint64_t xyntra_devices(const char* prefix, char* buffer, uint64_t capacity) noexcept {
  try {
    const std::string devices = xyntra::DeviceApi::list(prefix);
    std::memcpy(buffer, devices.data(), std::min<std::size_t>(devices.size(), capacity));
    return devices.size();
  } catch (const std::exception&) {
    return 0;
  }
}

int xyntra_distrust(const char* path, uint64_t most_bytes, char* why, uint64_t capacity) noexcept {
  try {
    const xyntra::TrustedFile file = xyntra::read_trusted_file(path, most_bytes);
    tell(file.error.c_str(), why, capacity);
    return static_cast<int>(file.verdict);
  } catch (const std::exception& error) {
    tell(error, why, capacity);
    return static_cast<int>(xyntra::TrustedFile::Verdict::kUnusable);
  }
}

int xyntra_device_compile(const char* device, const char* source, const char* options, const char* path, char* why,
                          uint64_t capacity) noexcept {
  try {
    const auto found = xyntra::Device::find(device);
    if (found.device == nullptr) throw std::runtime_error(found.error);
    const std::string binary = found.device->compile(source, options);
    std::ofstream file(path, std::ios::binary);
    file.write(binary.data(), static_cast<std::streamsize>(binary.size()));
    file.close();
    if (!file) throw std::runtime_error(std::string(path) + ": cannot be written");
    return 1;
  } catch (const std::exception& error) {
    tell(error, why, capacity);
    return 0;
  }
}

int xyntra_time_kernel(const char* device, const char* path, const uint8_t* hash, const char* symbol, uint32_t threads,
                       int64_t units, const uint64_t* buffer_bytes, uint32_t buffers, const int32_t* params,
                       uint32_t n_params, int64_t* ns, uint32_t runs, char* why, uint64_t capacity) noexcept {
  try {
    xyntra::TimedKernel timed;
    timed.kernel.path = path;
    timed.kernel.symbol = symbol;
    timed.kernel.threads = threads;
    std::memcpy(timed.kernel.hash.data(), hash, timed.kernel.hash.size());
    timed.units = units;
    timed.buffer_bytes.assign(buffer_bytes, buffer_bytes + buffers);
    timed.params.assign(params, params + n_params);
    const std::vector<int64_t> times = xyntra::time_kernel(device, timed, runs);
    std::copy(times.begin(), times.end(), ns);
    return 1;
  } catch (const std::exception& error) {
    tell(error, why, capacity);
    return 0;
  }
}

int xyntra_run_island(const char* plan, uint32_t island, const void* const* inputs, const uint32_t* ranks,
                      const int64_t* dims, uint32_t n_inputs, const void* const* constants, const uint64_t* constant_bytes,
                      uint32_t n_constants, void* const* outputs, uint32_t n_outputs, uint32_t threads,
                      uint64_t between_bytes, int64_t* all_ns, int64_t* kernels_ns, uint32_t timed, char* why,
                      uint64_t capacity) noexcept {
  try {
    const auto views = views_of(inputs, ranks, dims, n_inputs);
    const auto known = constants_of(constants, constant_bytes, n_constants);
    const std::vector<void*> written(outputs, outputs + n_outputs);
    for (const auto& time : xyntra::run_island(plan, island, views, known, written, {timed, threads, between_bytes})) {
      *all_ns++ = time.all_ns;
      *kernels_ns++ = time.kernels_ns;
    }
    return 1;
  } catch (const std::exception& error) {
    tell(error, why, capacity);
    return 0;
  }
}

int xyntra_time_copies(const char* device, uint64_t bytes, int64_t* there_ns, int64_t* back_ns, uint32_t timed, char* why,
                       uint64_t capacity) noexcept {
  try {
    for (const auto& time : xyntra::time_copies(device, bytes, timed)) {
      *there_ns++ = time.there_ns;
      *back_ns++ = time.back_ns;
    }
    return 1;
  } catch (const std::exception& error) {
    tell(error, why, capacity);
    return 0;
  }
}

void* xyntra_open_island(const void* plan, uint64_t plan_bytes, uint32_t island, const void* const* constants,
                         const uint64_t* constant_bytes, uint32_t n_constants, char* why, uint64_t capacity) noexcept {
  try {
    const std::string_view bytes(static_cast<const char*>(plan), plan_bytes);
    return new xyntra::OpenedIsland(xyntra::usable_plan(bytes, "the plan"), island,
                                    constants_of(constants, constant_bytes, n_constants));
  } catch (const std::exception& error) {
    tell(error, why, capacity);
    return nullptr;
  }
}

int xyntra_output_dims(void* opened, const void* const* inputs, const uint32_t* ranks, const int64_t* dims, uint32_t n_inputs,
                       int64_t* output_dims, uint32_t n_output_dims, char* why, uint64_t capacity) noexcept {
  try {
    auto& island = *static_cast<xyntra::OpenedIsland*>(opened);
    const xyntra::OpenedIsland::Run run(island, views_of(inputs, ranks, dims, n_inputs));
    for (std::size_t i = 0; i < island.plan().outputs.size(); ++i) {
      for (const int64_t extent : run.output_dims(i)) {
        if (n_output_dims-- == 0) throw xyntra::Error(xyntra::kInvalidArgument, "the outputs have more dims");
        *output_dims++ = extent;
      }
    }
    return 1;
  } catch (const std::exception& error) {
    tell(error, why, capacity);
    return 0;
  }
}

int xyntra_run_opened(void* opened, const void* const* inputs, const uint32_t* ranks, const int64_t* dims, uint32_t n_inputs,
                      void* const* outputs, uint32_t n_outputs, uint32_t threads, char* why, uint64_t capacity) noexcept {
  try {
    xyntra::OpenedIsland::Run run(*static_cast<xyntra::OpenedIsland*>(opened), views_of(inputs, ranks, dims, n_inputs));
    run.bind({outputs, outputs + n_outputs});
    run.carry_out(xyntra::SharedThreads(threads));
    run.end();
    return 1;
  } catch (const std::exception& error) {
    tell(error, why, capacity);
    return 0;
  }
}

void xyntra_close_island(void* opened) noexcept { delete static_cast<xyntra::OpenedIsland*>(opened); }
