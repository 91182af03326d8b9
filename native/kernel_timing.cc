#include "kernel_timing.h"

#include <memory>

#include "device.h"
#include "kernel_loader.h"

namespace xyntra {

std::vector<int64_t> time_kernel(const std::string& identity, const TimedKernel& timed, std::size_t runs) {
  const Device::Found found = Device::find(identity);
  if (found.device == nullptr) throw Error(kFail, found.error);
  const Device& device = *found.device;

  const LoadedKernel loaded = load_kernel(timed.kernel.path, timed.kernel, &device);
  if (!loaded.usable()) throw Error(kFail, loaded.error);

  std::vector<DeviceMemory> memory;
  DeviceCall call;
  call.kernel = &loaded;
  call.units = timed.units;
  for (const uint64_t bytes : timed.buffer_bytes) {
    memory.push_back(device.buffer_of(std::vector<char>(bytes).data(), bytes));
    call.buffers.push_back(memory.back().get());
  }
  call.params = timed.params;

  const std::unique_ptr<DeviceCalls> once = device.ready({call});
  const std::unique_ptr<DeviceCalls> often = device.ready(std::vector<DeviceCall>(runs, call));
  const std::unique_ptr<DeviceQueue> queue = device.queue(Timing::kEach);
  try {
    queue->start(*once);
    queue->finish();
    queue->start(*often);
    queue->finish();
    return queue->times();
  } catch (const Error&) {
    queue->abandon();  // nothing may go on when the memory goes
    throw;
  }
}

}  // namespace xyntra
