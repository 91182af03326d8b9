#include "cuda_device.h"

#include <map>
#include <mutex>
#include <utility>

#include "cuda_queue.h"
#include "json.h"
#include "kernel_loader.h"
#include "memory_block.h"

namespace xyntra {
namespace {

struct Listed {
  int number = 0;
  cuda::Ordinal ordinal = 0;
  std::string name, architecture, driver, identity;
};

int attribute(const cuda::Api& api, cuda::Ordinal ordinal, int which) {
  int value = 0;
  return api.DeviceGetAttribute(&value, which, ordinal) == cuda::kSuccess ? value : 0;
}

std::vector<Listed> all_devices(const cuda::Api& api) {
  int count = 0, driver = 0;
  if (api.DeviceGetCount(&count) != cuda::kSuccess || api.DriverGetVersion(&driver) != cuda::kSuccess) return {};
  const std::string version = std::to_string(driver / 1000) + '.' + std::to_string(driver % 1000 / 10);
  std::vector<Listed> devices;
  std::map<std::string, int> seen;
  for (int i = 0; i < count; ++i) {
    Listed device;
    char name[256] = {};
    if (api.DeviceGet(&device.ordinal, i) != cuda::kSuccess) continue;
    if (api.DeviceGetName(name, sizeof(name) - 1, device.ordinal) != cuda::kSuccess) continue;
    device.number = i;
    device.name = name;
    device.architecture = "sm_" + std::to_string(attribute(api, device.ordinal, cuda::kCapabilityMajor)) +
                          std::to_string(attribute(api, device.ordinal, cuda::kCapabilityMinor));
    device.driver = version;
    device.identity = CudaDevice::kPrefix + device.name + " / " + device.architecture + " / driver " + version;
    const int before = seen[device.identity]++;
    if (before > 0) device.identity += " #" + std::to_string(before);
    devices.push_back(std::move(device));
  }
  return devices;
}

std::string described(const cuda::Api& api, const Listed& device) {
  std::size_t memory = 0;
  if (api.DeviceTotalMem(&memory, device.ordinal) != cuda::kSuccess) memory = 0;
  const auto number = [&](int which) { return std::to_string(attribute(api, device.ordinal, which)); };
  return "{\"identity\": " + json_quote(device.identity) + ", \"ordinal\": " + std::to_string(device.number) +
         ", \"name\": " + json_quote(device.name) + ", \"architecture\": " + json_quote(device.architecture) +
         ", \"driver\": " + json_quote(device.driver) +
         ", \"multiprocessors\": " + number(cuda::kMultiprocessorCount) +
         ", \"max_threads\": " + number(cuda::kMaxThreadsPerBlock) +
         ", \"shared_bytes\": " + number(cuda::kMaxSharedMemoryPerBlockOptin) +
         ", \"clock_khz\": " + number(cuda::kClockRate) + ", \"memory_clock_khz\": " + number(cuda::kMemoryClockRate) +
         ", \"memory_bus_bits\": " + number(cuda::kMemoryBusWidth) +
         ", \"l2_bytes\": " + number(cuda::kL2CacheSize) + ", \"memory_bytes\": " + std::to_string(memory) + "}";
}

cuda::Address address_of(const void* memory) { return reinterpret_cast<cuda::Address>(memory); }

std::string identity_of(int ordinal) {
  std::string why;
  const cuda::Api* const api = cuda::api(&why);
  if (api == nullptr) throw Error(kFail, "XyntraEP: " + why);
  for (const Listed& listed : all_devices(*api))
    if (listed.number == ordinal) return listed.identity;
  throw Error(kFail, "XyntraEP: the CUDA driver has no device " + std::to_string(ordinal));
}

const DeviceApi kApi(
    CudaDevice::kPrefix,
    [](const std::string& identity) -> std::unique_ptr<const Device> { return CudaDevice::open(identity); }, CudaDevice::list,
    identity_of);

}  // namespace

std::unique_ptr<const CudaDevice> CudaDevice::open(const std::string& identity) {
  std::string why;
  const cuda::Api* const api = cuda::api(&why);
  if (api == nullptr) throw Error(kFail, why);
  for (const Listed& listed : all_devices(*api)) {
    if (listed.identity != identity) continue;
    return std::unique_ptr<const CudaDevice>(new CudaDevice(*api, identity, listed.number, listed.ordinal));
  }
  throw Error(kFail, "the device '" + identity + "' is not on this machine");
}

std::string CudaDevice::list() {
  std::string why;
  const cuda::Api* const api = cuda::api(&why);
  if (api == nullptr) return "{\"missing\": " + json_quote(why) + "}";
  std::string all;
  for (const Listed& device : all_devices(*api)) all += (all.empty() ? "" : ", ") + described(*api, device);
  return "[" + all + "]";
}

CudaDevice::CudaDevice(const cuda::Api& api, std::string identity, int number, cuda::Ordinal device)
    : api_(&api), identity_(std::move(identity)), ordinal_(number) {
  check(api.DevicePrimaryCtxRetain(&context_, device), "its context");
}

void* CudaDevice::allocate(std::size_t bytes, const char* what) const {
  const Current current(*this);
  cuda::Address address = 0;
  check(api_->MemAlloc(&address, bytes), what);
  return reinterpret_cast<void*>(address);
}

DeviceMemory CudaDevice::buffer(std::size_t bytes) const {
  try {
    return {this, allocate(bytes + kSpareBytes, "a buffer")};
  } catch (const Error&) {
    if (!heap().shrink()) throw;
  }
  return {this, allocate(bytes + kSpareBytes, "a buffer")};
}

DeviceMemory CudaDevice::part(const DeviceMemory& whole, std::size_t at, std::size_t) const {
  return {nullptr, static_cast<char*>(whole.get()) + at};
}

DeviceMemory CudaDevice::buffer_of(const void* data, std::size_t bytes) const {
  DeviceMemory memory = buffer(bytes);
  if (bytes > 0) copy_in(memory.get(), data, bytes);
  return memory;
}

void CudaDevice::release(void* memory) const noexcept {
  // The driver is shutting down and frees all, or the memory went with the device.
  if (is_lost() || api_->CtxPushCurrent(context_) != cuda::kSuccess) return;
  api_->MemFree(address_of(memory));
  cuda::Context popped = nullptr;
  api_->CtxPopCurrent(&popped);
}

// Memory that was not had from our heap belongs to others, or to the user: then the driver knows whose it is.
std::size_t CudaDevice::room_at(const void* memory) const {
  if (const std::size_t room = heap().room_at(memory); room > 0) return room;
  const Current current(*this);
  int owner = -1;
  const cuda::Result code = api_->PointerGetAttribute(&owner, cuda::kPointerOrdinal, address_of(memory));
  if (code != cuda::kSuccess || owner != ordinal_)
    throw Error(kInvalidArgument, "XyntraEP: the address of a tensor is not memory of the device '" + identity_ + "'");
  return SIZE_MAX;
}

// From ordinary memory the call may return before the data has arrived, and our streams do not wait for it by themselves.
void CudaDevice::copy_in(void* to, const void* from, std::size_t bytes) const {
  const Current current(*this);
  check(api_->MemcpyHtoD(address_of(to), from, bytes), "a copy to the device");
  check(api_->StreamSynchronize(nullptr), "a copy to the device");
}

void CudaDevice::copy_out(void* to, const void* from, std::size_t bytes) const {
  const Current current(*this);
  check(api_->MemcpyDtoH(to, address_of(from), bytes), "a copy from the device");
}

void CudaDevice::copy_within(void* to, const void* from, std::size_t bytes) const {
  const Current current(*this);
  check(api_->MemcpyDtoD(address_of(to), address_of(from), bytes), "a copy on the device");
  check(api_->StreamSynchronize(nullptr), "a copy on the device");
}

void CudaDevice::synchronize() const {
  const Current current(*this);
  check(api_->CtxSynchronize(), "what was started");
}

std::size_t CudaDevice::free_bytes() const {
  const Current current(*this);
  std::size_t free = 0, all = 0;
  check(api_->MemGetInfo(&free, &all), "its free memory");
  return free;
}

void* CudaDevice::load(std::string_view binary) const {
  const Current current(*this);
  cuda::Module module = nullptr;
  const std::string copy(binary);
  check(api_->ModuleLoadData(&module, copy.data()), "a program");
  return module;
}

void CudaDevice::require(const LoadedKernel& kernel) const {
  const Current current(*this);
  function(kernel);
}

cuda::Function CudaDevice::function(const LoadedKernel& kernel) const {
  cuda::Function found = nullptr;
  cuda::Result code = api_->ModuleGetFunction(&found, static_cast<cuda::Module>(kernel.program), kernel.symbol.c_str());
  if (code == cuda::kSuccess && kernel.shared_bytes > 0)  // more than a launch gets that does not ask before
    code = api_->FuncSetAttribute(found, cuda::kMaxDynamicSharedBytes, static_cast<int>(kernel.shared_bytes));
  if (code != cuda::kSuccess) raise(code, "the kernel " + kernel.symbol);
  return found;
}

std::unique_ptr<DeviceCalls> CudaDevice::ready(const std::vector<DeviceCall>& calls) const {
  return std::make_unique<CudaCalls>(*this, calls);
}

std::unique_ptr<DeviceQueue> CudaDevice::queue(Timing timing) const {
  return std::make_unique<CudaQueue>(*this, timing);
}

void CudaDevice::raise(cuda::Result code, const std::string& doing) const {
  fail(cuda::kind_of(code),
       "XyntraEP: the device '" + identity_ + "' reports " + cuda::error_name(*api_, code) + " for " + doing);
}

}  // namespace xyntra
