#include "metal_device.h"

#include <cstring>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "json.h"
#include "kernel_loader.h"
#include "memory_block.h"
#include "metal_queue.h"

namespace xyntra {
namespace {

struct Listed {
  metal::Owned device;
  std::string name, system, identity;
};

// A library of kernels that was loaded, and the pipelines that were made of it.
struct Program {
  metal::Owned library;
  std::mutex mutex;
  std::map<std::string, metal::Owned> pipelines;
};

std::vector<Listed> all_devices(const metal::Api& api) {
  const metal::Pool pool(api);
  const metal::Id process = api.send(api.getClass("NSProcessInfo"), "processInfo");
  const std::string system = "macOS " + api.text(api.send(process, "operatingSystemVersionString"));
  const metal::Owned found(api.CopyAllDevices());
  std::vector<Listed> devices;
  std::map<std::string, int> seen;
  const auto count = api.send<std::size_t>(found.get(), "count");
  for (std::size_t i = 0; i < count; ++i) {
    Listed device;
    device.device = metal::Owned::shared(api.send(found.get(), "objectAtIndex:", i));
    device.name = api.text(api.send(device.device.get(), "name"));
    device.system = system;
    device.identity = MetalDevice::kPrefix + device.name + " / " + system;
    const int before = seen[device.identity]++;
    if (before > 0) device.identity += " #" + std::to_string(before);
    devices.push_back(std::move(device));
  }
  return devices;
}

// The n of the last MTLGPUFamilyApple<n> that it is of; 0 of a GPU that is not Apple's.
long family_of(const metal::Api& api, metal::Id device) {
  for (long n = metal::kMostFamily; n > 0; --n)
    if (api.send<bool>(device, "supportsFamily:", metal::kFamilyApple + n)) return n;
  return 0;
}

std::string described(const metal::Api& api, const Listed& device) {
  const metal::Id id = device.device.get();
  const auto number = [&](const char* what) { return std::to_string(api.send<std::size_t>(id, what)); };
  return "{\"identity\": " + json_quote(device.identity) + ", \"name\": " + json_quote(device.name) +
         ", \"system\": " + json_quote(device.system) + ", \"family\": " + std::to_string(family_of(api, id)) +
         ", \"shared_bytes\": " + number("maxThreadgroupMemoryLength") +
         ", \"memory_bytes\": " + number("recommendedMaxWorkingSetSize") + "}";
}

const DeviceApi kApi(
    MetalDevice::kPrefix,
    [](const std::string& identity) -> std::unique_ptr<const Device> { return MetalDevice::open(identity); }, nullptr,
    MetalDevice::list);

}  // namespace

std::unique_ptr<const MetalDevice> MetalDevice::open(const std::string& identity) {
  std::string why;
  const metal::Api* const api = metal::api(&why);
  if (api == nullptr) throw Error(kFail, why);
  for (Listed& listed : all_devices(*api)) {
    if (listed.identity != identity) continue;
    return std::unique_ptr<const MetalDevice>(new MetalDevice(*api, identity, std::move(listed.device)));
  }
  throw Error(kFail, "the device '" + identity + "' is not on this machine");
}

std::string MetalDevice::list() {
  std::string why;
  const metal::Api* const api = metal::api(&why);
  if (api == nullptr) return "{\"missing\": " + json_quote(why) + "}";
  std::string all;
  for (const Listed& device : all_devices(*api)) all += (all.empty() ? "" : ", ") + described(*api, device);
  return "[" + all + "]";
}

MetalDevice::MetalDevice(const metal::Api& api, std::string identity, metal::Owned device)
    : api_(&api), identity_(std::move(identity)), device_(std::move(device)) {}

std::size_t MetalDevice::free_bytes() const {
  const auto all = api_->send<uint64_t>(device_.get(), "recommendedMaxWorkingSetSize");
  const auto used = api_->send<std::size_t>(device_.get(), "currentAllocatedSize");
  return all > used ? all - used : 0;
}

DeviceMemory MetalDevice::buffer(std::size_t bytes) const {
  require_alive();
  const std::size_t wanted = bytes + kSpareBytes;
  auto memory = std::make_unique<MetalMemory>();
  if (wanted <= api_->send<std::size_t>(device_.get(), "maxBufferLength"))
    memory->buffer =
        metal::Owned(api_->send(device_.get(), "newBufferWithLength:options:", wanted, metal::kStorageShared));
  if (memory->buffer.get() == nullptr) refuse("has no memory for a buffer of " + std::to_string(wanted) + " bytes");
  memory->contents = api_->send<char*>(memory->buffer.get(), "contents");
  return {this, memory.release()};
}

DeviceMemory MetalDevice::part(const DeviceMemory& whole, std::size_t at, std::size_t) const {
  const auto& of = *static_cast<const MetalMemory*>(whole.get());
  return {this, new MetalMemory{metal::Owned::shared(of.buffer.get()), of.offset + at, of.contents + at}};
}

DeviceMemory MetalDevice::buffer_of(const void* data, std::size_t bytes) const {
  DeviceMemory memory = buffer(bytes);
  if (bytes > 0) std::memcpy(static_cast<MetalMemory*>(memory.get())->contents, data, bytes);
  return memory;
}

void MetalDevice::release(void* memory) const noexcept { delete static_cast<MetalMemory*>(memory); }

// With fast mathematics a compiler may take for granted that there is no NaN and no infinity.
metal::Owned MetalDevice::library(const std::string& source) const {
  require_alive();
  const metal::Pool pool(*api_);
  const metal::Owned options(api_->send(api_->getClass("MTLCompileOptions"), "new"));
  api_->send<void>(options.get(), "setFastMathEnabled:", false);
  metal::Id error = nullptr;
  metal::Owned library(api_->send(device_.get(), "newLibraryWithSource:options:error:", api_->string(source), options.get(),
                                  &error));
  if (library.get() == nullptr) refuse("does not compile a program", error);
  return library;
}

std::string MetalDevice::compile(const std::string& source, const std::string&) const {
  library(source);
  return source;
}

void* MetalDevice::load(std::string_view binary) const {
  auto program = std::make_unique<Program>();
  program->library = library(std::string(binary));
  return program.release();
}

void MetalDevice::require(const LoadedKernel& kernel) const { pipeline(kernel); }

metal::Id MetalDevice::pipeline(const LoadedKernel& kernel) const {
  require_alive();
  auto& program = *static_cast<Program*>(kernel.program);
  const std::lock_guard lock(program.mutex);
  metal::Owned& made = program.pipelines[kernel.symbol];
  if (made.get() != nullptr) return made.get();
  const metal::Pool pool(*api_);
  const metal::Owned function(api_->send(program.library.get(), "newFunctionWithName:", api_->string(kernel.symbol)));
  if (function.get() == nullptr) refuse("finds no kernel " + kernel.symbol);
  metal::Id error = nullptr;
  metal::Owned pipeline(
      api_->send(device_.get(), "newComputePipelineStateWithFunction:error:", function.get(), &error));
  if (pipeline.get() == nullptr) refuse("makes no pipeline of the kernel " + kernel.symbol, error);
  const auto threads = api_->send<std::size_t>(pipeline.get(), "maxTotalThreadsPerThreadgroup");
  if (threads < kernel.threads)
    refuse("runs " + std::to_string(threads) + " threads of the kernel " + kernel.symbol + ", which has " +
           std::to_string(kernel.threads));
  const auto width = api_->send<std::size_t>(pipeline.get(), "threadExecutionWidth");
  if (width != metal::kSimdWidth) refuse("runs " + std::to_string(width) + " threads in step, and not 32");
  made = std::move(pipeline);
  return made.get();
}

std::unique_ptr<DeviceCalls> MetalDevice::ready(const std::vector<DeviceCall>& calls) const {
  return std::make_unique<MetalCalls>(*this, calls);
}

std::unique_ptr<DeviceQueue> MetalDevice::queue(Timing timing) const { return std::make_unique<MetalQueue>(*this, timing); }

metal::Owned MetalDevice::open_queue() const {
  require_alive();
  metal::Owned queue(api_->send(device_.get(), "newCommandQueue"));
  if (queue.get() == nullptr) refuse("makes no queue");
  return queue;
}

void MetalDevice::check(metal::Id commands) const {
  if (api_->send<std::size_t>(commands, "status") != metal::kError) return;
  const metal::Pool pool(*api_);
  const metal::Id error = api_->send(commands, "error");
  const long code = api_->send<long>(error, "code");
  const std::string said = api_->text(api_->send(error, "localizedDescription"));
  fail(metal::kind_of(code), "XyntraEP: the device '" + identity_ + "' reports " + metal::error_name(code) + " for a run" +
                                 (said.empty() ? said : ": " + said));
}

void MetalDevice::refuse(const std::string& what, metal::Id error) const {
  const std::string said = api_->text(api_->send(error, "localizedDescription"));
  fail(FailureKind::kRecoverable, "XyntraEP: the device '" + identity_ + "' " + what + (said.empty() ? said : "\n" + said));
}

}  // namespace xyntra
