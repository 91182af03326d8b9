#include "webgpu_device.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <memory>
#include <utility>

#include "json.h"
#include "kernel_loader.h"
#include "memory_block.h"
#include "webgpu_queue.h"

namespace xyntra {
namespace {

struct Listed {
  wgpu::Adapter adapter = nullptr;
  wgpu::Limits limits;
  std::string identity, name, driver, api;
  bool is_cpu = false;
};

// What the library has said of a call of this thread: it says so before the call returns.
struct Said {
  wgpu::Enum type = 0;
  std::string text;
};
thread_local Said said;

std::string version_of(const wgpu::Api& api) {
  const uint32_t version = api.GetVersion();
  return std::to_string(version >> 24) + '.' + std::to_string(version >> 16 & 255);
}

const char* name_of_backend(wgpu::Enum backend) {
  switch (backend) {
    case 4: return "Direct3D 12";
    case 5: return "Metal";
    case 6: return "Vulkan";
    default: return "another API";
  }
}

// Adapters stay as long as the process does.
std::vector<Listed> all_adapters(const wgpu::Api& api) {
  wgpu::InstanceExtras extras;
  extras.backends = wgpu::kBackends;
  wgpu::InstanceDescriptor wanted;
  wanted.next = &extras.chain;
  static wgpu::Instance const instance = api.CreateInstance(&wanted);
  if (instance == nullptr) return {};
  const wgpu::EnumerateOptions options;
  std::vector<wgpu::Adapter> adapters(api.InstanceEnumerateAdapters(instance, &options, nullptr));
  if (!adapters.empty()) adapters.resize(api.InstanceEnumerateAdapters(instance, &options, adapters.data()));
  std::vector<Listed> found;
  std::map<std::string, int> seen;
  for (wgpu::Adapter const adapter : adapters) {
    Listed listed;
    wgpu::AdapterInfo info;
    if (api.AdapterGetInfo(adapter, &info) != wgpu::kSuccess || api.AdapterGetLimits(adapter, &listed.limits) != wgpu::kSuccess) {
      api.AdapterRelease(adapter);
      continue;
    }
    listed.limits.next = nullptr;
    listed.adapter = adapter;
    listed.name = wgpu::text_of(info.device);
    listed.driver = wgpu::text_of(info.description);
    listed.api = name_of_backend(info.backend);
    listed.is_cpu = info.kind == wgpu::kCpuAdapter;
    api.AdapterInfoFreeMembers(info);
    listed.identity = WebGpuDevice::kPrefix + listed.api + " / " + listed.name + " / " + listed.driver + " / wgpu " + version_of(api);
    const int before = seen[listed.identity]++;
    if (before > 0) listed.identity += " #" + std::to_string(before);
    found.push_back(std::move(listed));
  }
  return found;
}

constexpr const char* kProbe =
    "@group(0) @binding(0) var<storage, read_write> x: array<f32>;\n"
    "struct given { units: i32 }\n@group(0) @binding(1) var<uniform> numbers: given;\n"
    "var<workgroup> shared_x: array<f32, 4>;\n"
    "@compute @workgroup_size(4) fn probe(@builtin(local_invocation_index) i: u32) {\n"
    "  shared_x[i] = x[i]; workgroupBarrier(); x[i] = shared_x[3u - i] * f32(numbers.units); }\n";

// Why a kernel cannot be built and run; empty when it can.
std::string try_out(const std::string& identity) {
  try {
    const auto device = WebGpuDevice::open(identity);
    LoadedKernel kernel;
    kernel.program = device->load(device->compile(kProbe, {}));
    kernel.symbol = "probe";
    kernel.threads = 4;
    const float given[4] = {1, 2, 3, 4};
    float got[4] = {};
    const DeviceMemory memory = device->buffer_of(given, sizeof(given));
    DeviceCall call;
    call.kernel = &kernel;
    call.units = 1;
    call.buffers = {memory.get()};
    const auto calls = device->ready({call});
    const auto queue = device->queue(Timing::kNone);
    queue->start(*calls);
    queue->read(got, memory.get(), sizeof(got));
    queue->finish();
    return got[0] == 4 && got[1] == 3 && got[2] == 2 && got[3] == 1 ? "" : "it computes wrong numbers";
  } catch (const Error& error) {
    return error.what();
  }
}

const DeviceApi kApi(WebGpuDevice::kPrefix,
                     [](const std::string& identity) -> std::unique_ptr<const Device> { return WebGpuDevice::open(identity); },
                     nullptr, WebGpuDevice::list);

WebGpuMemory& memory_at(void* memory) { return *static_cast<WebGpuMemory*>(memory); }

}  // namespace

// A module, and its kernels' pipelines as they are asked for.
struct WebGpuDevice::Program {
  wgpu::OwnedModule module;
  std::string source;
  std::map<std::string, WebGpuPipeline> pipelines;
};

std::string WebGpuDevice::list() {
  std::string why;
  const wgpu::Api* const api = wgpu::api(&why);
  if (api == nullptr) return "{\"missing\": " + json_quote(why) + "}";
  std::string text = "[";
  for (const Listed& listed : all_adapters(*api)) {
    const auto number = [](uint64_t value) { return std::to_string(value); };
    text += std::string(text.size() > 1 ? ", " : "") + "{\"identity\": " + json_quote(listed.identity) +
            ", \"name\": " + json_quote(listed.name) + ", \"api\": " + json_quote(listed.api) +
            ", \"driver\": " + json_quote(listed.driver) + ", \"is_cpu\": " + (listed.is_cpu ? "true" : "false") +
            ", \"has_half\": " + (api->AdapterHasFeature(listed.adapter, wgpu::kShaderF16) != 0 ? "true" : "false") +
            ", \"max_threads\": " + number(listed.limits.threads) + ", \"shared_bytes\": " + number(listed.limits.shared_bytes) +
            ", \"max_buffers\": " + number(listed.limits.storage_buffers) +
            ", \"buffer_bytes\": " + number(std::min(listed.limits.storage_bytes, listed.limits.buffer_bytes)) +
            ", \"problem\": " + json_quote(try_out(listed.identity)) + "}";
  }
  return text + "]";
}

std::unique_ptr<const WebGpuDevice> WebGpuDevice::open(const std::string& identity) {
  std::string why;
  const wgpu::Api* const api = wgpu::api(&why);
  if (api == nullptr) throw Error(kFail, "XyntraEP: " + why);
  for (const Listed& listed : all_adapters(*api)) {
    if (listed.identity == identity)
      return std::unique_ptr<const WebGpuDevice>(new WebGpuDevice(*api, identity, listed.adapter, listed.limits));
  }
  throw Error(kFail, "XyntraEP: the WebGPU adapter '" + identity + "' is not on this machine");
}

WebGpuDevice::WebGpuDevice(const wgpu::Api& api, std::string identity, wgpu::Adapter adapter, const wgpu::Limits& limits)
    : api_(&api), identity_(std::move(identity)), limits_(limits) {
  has_timestamps_ = api.AdapterHasFeature(adapter, wgpu::kTimestampQuery) != 0;
  const wgpu::Enum feature = wgpu::kTimestampQuery;
  wgpu::DeviceDescriptor wanted;
  wanted.features = has_timestamps_ ? 1 : 0;
  wanted.feature = &feature;
  wanted.limits = &limits_;
  wanted.lost.function = on_lost;
  wanted.lost.first = this;
  wanted.error.function = on_error;
  struct Answer {
    wgpu::DeviceId id = nullptr;
    std::string text = "no answer";
  } answer;
  wgpu::Callback<wgpu::OnDevice> then;
  then.function = [](wgpu::Enum status, wgpu::DeviceId id, wgpu::Text message, void* to, void*) {
    if (status == wgpu::kSuccess) static_cast<Answer*>(to)->id = id;
    static_cast<Answer*>(to)->text = wgpu::text_of(message);
  };
  then.first = &answer;
  api.AdapterRequestDevice(adapter, &wanted, then);
  if (answer.id == nullptr) throw Error(kFail, "XyntraEP: the WebGPU adapter '" + identity_ + "' gives no device: " + answer.text);
  id_ = answer.id;
  queue_ = api.DeviceGetQueue(id_);
}

void WebGpuDevice::on_error(const wgpu::DeviceId*, wgpu::Enum type, wgpu::Text message, void*, void*) {
  if (said.text.empty()) said = {type, wgpu::text_of(message)};
}

void WebGpuDevice::on_lost(const wgpu::DeviceId*, wgpu::Enum reason, wgpu::Text message, void* device, void*) {
  if (device == nullptr) return;
  auto* const self = static_cast<WebGpuDevice*>(device);
  const std::lock_guard lock(self->mutex_);
  self->lost_ = reason == wgpu::kDestroyed ? "it was destroyed" : wgpu::text_of(message);
  self->is_gone_.store(true, std::memory_order_release);
}

void WebGpuDevice::finish(const char* doing) const {
  require_alive();
  if (!is_gone_.load(std::memory_order_acquire) && said.text.empty()) return;
  const std::string head = "XyntraEP: the WebGPU adapter '" + identity_ + "' ";
  if (is_gone_.load(std::memory_order_acquire)) {
    said = {};
    const std::lock_guard lock(mutex_);
    fail(FailureKind::kFatal, head + "is lost: " + lost_);
  }
  const Said first = std::exchange(said, {});
  fail(FailureKind::kRecoverable, head + (first.type == wgpu::kOutOfMemory ? "has no memory for " : "reports for ") + doing +
                                      (first.text.empty() ? "" : ": " + first.text));
}

wgpu::OwnedBuffer WebGpuDevice::create_buffer(std::size_t bytes, wgpu::Flags usage, const char* what) const {
  wgpu::BufferDescriptor wanted;
  wanted.usage = usage;
  wanted.bytes = align_up(bytes, 4);
  return checked(what, [&] { return wgpu::OwnedBuffer(api_->DeviceCreateBuffer(id_, &wanted)); });
}

DeviceMemory WebGpuDevice::buffer(std::size_t bytes) const {
  const std::size_t room = align_up(bytes + kSpareBytes, 4);
  if (room > limits_.buffer_bytes)
    fail(FailureKind::kRecoverable, "XyntraEP: a buffer of " + std::to_string(bytes) + " bytes is more than the " +
                                        std::to_string(limits_.buffer_bytes) + " that the WebGPU adapter '" + identity_ + "' allows");
  constexpr wgpu::Flags kUsage = wgpu::kUseStorage | wgpu::kUseCopySource | wgpu::kUseCopyTarget;
  wgpu::BufferDescriptor wanted;
  wanted.usage = kUsage;
  wanted.bytes = room;
  auto memory = std::make_unique<WebGpuMemory>();
  memory->buffer = checked("a buffer", [&] { return api_->DeviceCreateBuffer(id_, &wanted); });
  memory->bytes = room;
  return DeviceMemory(this, memory.release());
}

DeviceMemory WebGpuDevice::part(const DeviceMemory& whole, std::size_t at, std::size_t bytes) const {
  const WebGpuMemory& of = memory_at(whole.get());
  auto memory = std::make_unique<WebGpuMemory>(WebGpuMemory{of.buffer, at, std::min(align_up(std::max<std::size_t>(bytes, 4), 4), of.bytes - at), true});
  return DeviceMemory(this, memory.release());
}

DeviceMemory WebGpuDevice::buffer_of(const void* data, std::size_t bytes) const {
  DeviceMemory memory = buffer(bytes);
  WebGpuQueue(*this, Timing::kNone).write(memory.get(), data, bytes);
  return memory;
}

void WebGpuDevice::release(void* memory) const noexcept {
  const std::unique_ptr<WebGpuMemory> owned(static_cast<WebGpuMemory*>(memory));
  if (!owned->is_part) api_->BufferRelease(owned->buffer);
}

std::unique_ptr<DeviceCalls> WebGpuDevice::ready(const std::vector<DeviceCall>& calls) const {
  return std::make_unique<WebGpuCalls>(*this, calls);
}

std::unique_ptr<DeviceQueue> WebGpuDevice::queue(Timing timing) const { return std::make_unique<WebGpuQueue>(*this, timing); }

void* WebGpuDevice::load(std::string_view binary) const {
  auto program = std::make_unique<Program>();
  program->source = binary;
  wgpu::WgslSource source;
  source.chain.type = wgpu::kWgslSource;
  source.code = {program->source.data(), program->source.size()};
  wgpu::ModuleDescriptor wanted;
  wanted.next = &source.chain;
  program->module = checked("a module", [&] { return wgpu::OwnedModule(api_->DeviceCreateShaderModule(id_, &wanted)); });
  return program.release();
}

WebGpuPipeline WebGpuDevice::make(const Program& program, const std::string& symbol) const {
  WebGpuPipeline made;
  constexpr std::string_view kBuffer = "var<storage";
  for (auto at = program.source.find(kBuffer); at != std::string::npos; at = program.source.find(kBuffer, at + 1)) ++made.buffers;
  std::vector<wgpu::LayoutEntry> entries(made.buffers + 1);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    entries[i].binding = static_cast<uint32_t>(i);
    entries[i].buffer.type = i < made.buffers ? wgpu::kStorage : wgpu::kUniform;
  }
  wgpu::GroupLayoutDescriptor group;
  group.count = entries.size();
  group.entries = entries.data();
  const std::string what = "the kernel " + symbol;
  made.layout = checked(what.c_str(), [&] { return wgpu::OwnedGroupLayout(api_->DeviceCreateBindGroupLayout(id_, &group)); });
  wgpu::GroupLayout const layout = made.layout.get();
  wgpu::PipelineLayoutDescriptor whole;
  whole.count = 1;
  whole.groups = &layout;
  const auto of_pipeline =
      checked(what.c_str(), [&] { return wgpu::OwnedPipelineLayout(api_->DeviceCreatePipelineLayout(id_, &whole)); });
  wgpu::PipelineDescriptor wanted;
  wanted.layout = of_pipeline.get();
  wanted.module = program.module.get();
  wanted.entry = {symbol.data(), symbol.size()};
  made.pipeline = checked(what.c_str(), [&] { return wgpu::OwnedPipeline(api_->DeviceCreateComputePipeline(id_, &wanted)); });
  return made;
}

const WebGpuPipeline& WebGpuDevice::pipeline(void* program, const std::string& symbol) const {
  auto& of = *static_cast<Program*>(program);
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = of.pipelines.find(symbol); known != of.pipelines.end()) return known->second;
  }
  WebGpuPipeline made = make(of, symbol);
  const std::lock_guard lock(mutex_);
  return of.pipelines.emplace(symbol, std::move(made)).first->second;
}

void WebGpuDevice::require(const LoadedKernel& wanted) const { pipeline(wanted.program, wanted.symbol); }

// Its kernels are made ready, too: what the driver refuses is to be known now.
std::string WebGpuDevice::compile(const std::string& source, const std::string&) const {
  const std::unique_ptr<Program> program(static_cast<Program*>(load(source)));
  constexpr std::string_view kKernel = "@compute";
  for (auto at = source.find(kKernel); at != std::string::npos; at = source.find(kKernel, at + 1)) {
    const auto name = source.find("fn ", at) + 3;
    auto end = name;
    while (end < source.size() && (std::isalnum(static_cast<unsigned char>(source[end])) != 0 || source[end] == '_')) ++end;
    make(*program, source.substr(name, end - name));
  }
  return source;
}

}  // namespace xyntra
