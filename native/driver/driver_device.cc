#include "driver_device.h"

#include <map>
#include <mutex>
#include <utility>

#include "driver_queue.h"
#include "json.h"
#include "kernel_loader.h"
#include "memory_block.h"

namespace xyntra {
namespace {

struct Listed {
  int number = 0;
  driver::Ordinal ordinal = 0;
  std::string name, architecture, driver, identity;
};

std::vector<Listed> all_devices(const driver::Api& api) {
  int count = 0;
  if (api.DeviceGetCount(&count) != driver::kSuccess) return {};
  std::vector<Listed> devices;
  std::map<std::string, int> seen;
  for (int i = 0; i < count; ++i) {
    Listed device;
    char name[256] = {};
    if (api.DeviceGet(&device.ordinal, i) != driver::kSuccess) continue;
    if (api.DeviceGetName(name, sizeof(name) - 1, device.ordinal) != driver::kSuccess) continue;
    device.number = i;
    device.name = name;
    driver::Version version;
    if (!api.version(api, device.ordinal, version)) continue;
    device.architecture = version.architecture;
    device.driver = version.driver;
    device.identity = api.prefix + device.name + " / " + device.architecture + " / driver " + device.driver;
    const int before = seen[device.identity]++;
    if (before > 0) device.identity += " #" + std::to_string(before);
    devices.push_back(std::move(device));
  }
  return devices;
}

std::string described(const driver::Api& api, const Listed& device) {
  std::size_t memory = 0;
  if (api.DeviceTotalMem(&memory, device.ordinal) != driver::kSuccess) memory = 0;
  const auto number = [&](int which) { return std::to_string(driver::attribute(api, device.ordinal, which)); };
  const driver::Attributes& which = api.attributes;
  return "{\"identity\": " + json_quote(device.identity) + ", \"ordinal\": " + std::to_string(device.number) +
         ", \"name\": " + json_quote(device.name) + ", \"architecture\": " + json_quote(device.architecture) +
         ", \"driver\": " + json_quote(device.driver) +
         ", \"multiprocessors\": " + number(which.multiprocessors) +
         ", \"max_threads\": " + number(which.max_threads) +
         ", \"shared_bytes\": " + number(which.shared_bytes) +
         ", \"clock_khz\": " + number(which.clock_khz) + ", \"memory_clock_khz\": " + number(which.memory_clock_khz) +
         ", \"memory_bus_bits\": " + number(which.memory_bus_bits) +
         ", \"l2_bytes\": " + number(which.l2_bytes) + ", \"memory_bytes\": " + std::to_string(memory) + "}";
}

driver::Address address_of(const void* memory) { return reinterpret_cast<driver::Address>(memory); }

}  // namespace

std::string DriverDevice::identity_of(const driver::Opened& driver, int ordinal) {
  if (driver.api == nullptr) throw Error(kFail, "XyntraEP: " + driver.why);
  for (const Listed& listed : all_devices(*driver.api))
    if (listed.number == ordinal) return listed.identity;
  throw Error(kFail, std::string("XyntraEP: ") + driver.api->name + " has no device " + std::to_string(ordinal));
}

std::unique_ptr<const DriverDevice> DriverDevice::open(const driver::Opened& driver, const std::string& identity) {
  if (driver.api == nullptr) throw Error(kFail, driver.why);
  for (const Listed& listed : all_devices(*driver.api)) {
    if (listed.identity != identity) continue;
    return std::unique_ptr<const DriverDevice>(new DriverDevice(*driver.api, identity, listed.number, listed.ordinal));
  }
  throw Error(kFail, "the device '" + identity + "' is not on this machine");
}

std::string DriverDevice::list(const driver::Opened& driver) {
  if (driver.api == nullptr) return "{\"missing\": " + json_quote(driver.why) + "}";
  std::string all;
  for (const Listed& device : all_devices(*driver.api)) all += (all.empty() ? "" : ", ") + described(*driver.api, device);
  return "[" + all + "]";
}

DriverDevice::DriverDevice(const driver::Api& api, std::string identity, int number, driver::Ordinal device)
    : api_(&api), identity_(std::move(identity)), ordinal_(number) {
  check(api.DevicePrimaryCtxRetain(&context_, device), "its context");
}

void* DriverDevice::allocate(std::size_t bytes, const char* what) const {
  const Current current(*this);
  driver::Address address = 0;
  check(api_->MemAlloc(&address, bytes), what);
  return reinterpret_cast<void*>(address);
}

DeviceMemory DriverDevice::buffer(std::size_t bytes) const {
  try {
    return {this, allocate(bytes + kSpareBytes, "a buffer")};
  } catch (const Error&) {
    if (!heap().shrink()) throw;
  }
  return {this, allocate(bytes + kSpareBytes, "a buffer")};
}

DeviceMemory DriverDevice::part(const DeviceMemory& whole, std::size_t at, std::size_t) const {
  return {nullptr, static_cast<char*>(whole.get()) + at};
}

DeviceMemory DriverDevice::buffer_of(const void* data, std::size_t bytes) const {
  DeviceMemory memory = buffer(bytes);
  if (bytes > 0) copy_in(memory.get(), data, bytes);
  return memory;
}

void DriverDevice::release(void* memory) const noexcept {
  // The driver is shutting down and frees all, or the memory went with the device.
  if (is_lost() || api_->CtxPushCurrent(context_) != driver::kSuccess) return;
  api_->MemFree(address_of(memory));
  driver::Context popped = nullptr;
  api_->CtxPopCurrent(&popped);
}

// Memory that was not had from our heap belongs to others, or to the user: then the driver knows whose it is.
std::size_t DriverDevice::room_at(const void* memory) const {
  if (const std::size_t room = heap().room_at(memory); room > 0) return room;
  const Current current(*this);
  int owner = -1;
  const driver::Result code = api_->PointerGetAttribute(&owner, driver::kPointerOrdinal, address_of(memory));
  if (code != driver::kSuccess || owner != ordinal_)
    throw Error(kInvalidArgument, "XyntraEP: the address of a tensor is not memory of the device '" + identity_ + "'");
  return SIZE_MAX;
}

// From ordinary memory the call may return before the data has arrived, and our streams do not wait for it by themselves.
void DriverDevice::copy_in(void* to, const void* from, std::size_t bytes) const {
  const Current current(*this);
  check(api_->MemcpyHtoD(address_of(to), from, bytes), "a copy to the device");
  check(api_->StreamSynchronize(nullptr), "a copy to the device");
}

void DriverDevice::copy_out(void* to, const void* from, std::size_t bytes) const {
  const Current current(*this);
  check(api_->MemcpyDtoH(to, address_of(from), bytes), "a copy from the device");
}

void DriverDevice::copy_within(void* to, const void* from, std::size_t bytes) const {
  const Current current(*this);
  check(api_->MemcpyDtoD(address_of(to), address_of(from), bytes), "a copy on the device");
  check(api_->StreamSynchronize(nullptr), "a copy on the device");
}

void DriverDevice::synchronize() const {
  const Current current(*this);
  check(api_->CtxSynchronize(), "what was started");
}

std::size_t DriverDevice::free_bytes() const {
  const Current current(*this);
  std::size_t free = 0, all = 0;
  check(api_->MemGetInfo(&free, &all), "its free memory");
  return free;
}

void* DriverDevice::load(std::string_view binary) const {
  const Current current(*this);
  driver::Module module = nullptr;
  const std::string copy(binary);
  check(api_->ModuleLoadData(&module, copy.data()), "a program");
  return module;
}

void DriverDevice::require(const LoadedKernel& kernel) const {
  const Current current(*this);
  function(kernel);
}

driver::Function DriverDevice::function(const LoadedKernel& kernel) const {
  driver::Function found = nullptr;
  driver::Result code = api_->ModuleGetFunction(&found, static_cast<driver::Module>(kernel.program), kernel.symbol.c_str());
  // More than a launch gets that does not ask before.
  if (code == driver::kSuccess && kernel.shared_bytes > 0 && api_->FuncSetAttribute != nullptr)
    code = api_->FuncSetAttribute(found, driver::kMaxDynamicSharedBytes, static_cast<int>(kernel.shared_bytes));
  if (code != driver::kSuccess) raise(code, "the kernel " + kernel.symbol);
  return found;
}

std::unique_ptr<DeviceCalls> DriverDevice::ready(const std::vector<DeviceCall>& calls) const {
  return std::make_unique<DriverCalls>(*this, calls);
}

std::unique_ptr<DeviceQueue> DriverDevice::queue(Timing timing) const {
  return std::make_unique<DriverQueue>(*this, timing);
}

void DriverDevice::raise(driver::Result code, const std::string& doing) const {
  fail(driver::kind_of(code),
       "XyntraEP: the device '" + identity_ + "' reports " + driver::error_name(*api_, code) + " for " + doing);
}

}  // namespace xyntra
