#include "copy_timing.h"

#include <chrono>
#include <memory>

#include "device.h"

namespace xyntra {
namespace {

template <class Copy>
int64_t finished_ns(DeviceQueue& queue, const Copy& copy) {
  const auto begin = std::chrono::steady_clock::now();
  copy();
  queue.finish();
  return std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

std::vector<CopyTime> time_copies(const std::string& identity, std::size_t bytes, std::size_t timed) {
  constexpr std::size_t kBefore = 2;  // which find memory for all that comes after
  const Device::Found found = Device::find(identity);
  if (found.device == nullptr) throw Error(kFail, found.error);

  std::vector<char> tensor(bytes, 1);
  const DeviceMemory memory = found.device->buffer(bytes);
  const std::unique_ptr<DeviceQueue> queue = found.device->queue(Timing::kNone);
  std::vector<CopyTime> times(kBefore + timed);
  try {
    for (CopyTime& time : times) {
      time.there_ns = finished_ns(*queue, [&] { queue->write(memory.get(), tensor.data(), bytes); });
      time.back_ns = finished_ns(*queue, [&] { queue->read(tensor.data(), memory.get(), bytes); });
    }
  } catch (const Error&) {
    queue->abandon();  // nothing may go on when the memory goes
    throw;
  }
  times.erase(times.begin(), times.begin() + kBefore);
  return times;
}

}  // namespace xyntra
