#include "opencl_queue.h"

#include "kernel_loader.h"

namespace xyntra {

OpenClCalls::OpenClCalls(const OpenClDevice& device, const std::vector<DeviceCall>& calls) : device_(device) {
  const cl::Api& api = device.api();
  for (const DeviceCall& call : calls) {
    if (!call.tensors.empty()) throw Error(kRuntimeException, "XyntraEP: OpenCL copies no tensors");
    Launch& launch = launches_.emplace_back();
    launch.kernel = device.kernel(static_cast<cl::Program>(call.kernel->program), call.kernel->symbol);
    launch.group = call.kernel->threads;
    launch.items = static_cast<std::size_t>(call.units) * launch.group;
    cl::Uint next = 0;
    const auto add = [&](const auto& value) {
      device.check(api.SetKernelArg(launch.kernel.get(), next++, sizeof(value), &value), "an argument of a kernel");
    };
    for (void* const buffer : call.buffers) add(buffer);
    for (const int32_t param : call.params) add(param);
    add(int32_t{1});
  }
}

void OpenClCalls::enqueue(cl::Queue queue, std::vector<cl::OwnedEvent>* events) const {
  for (const Launch& launch : launches_) {
    cl::Event event = nullptr;
    device_.check(device_.api().EnqueueNDRangeKernel(queue, launch.kernel.get(), 1, nullptr, &launch.items, &launch.group,
                                                     0, nullptr, events != nullptr ? &event : nullptr),
                  "a kernel");
    if (events != nullptr) events->emplace_back(event);
  }
}

OpenClQueue::OpenClQueue(const OpenClDevice& device, Timing timing)
    : device_(device), timing_(timing), queue_(device.open_queue(timing)) {}

void OpenClQueue::write(void* memory, const void* from, std::size_t bytes) {
  const auto mem = static_cast<cl::Mem>(memory);
  device_.check(device_.api().EnqueueWriteBuffer(queue_.get(), mem, cl::kFalse, 0, bytes, from, 0, nullptr, nullptr),
                "an input");
}

void OpenClQueue::read(void* to, void* memory, std::size_t bytes) {
  const auto mem = static_cast<cl::Mem>(memory);
  device_.check(device_.api().EnqueueReadBuffer(queue_.get(), mem, cl::kFalse, 0, bytes, to, 0, nullptr, nullptr),
                "an output");
}

void OpenClQueue::start(DeviceCalls& calls) {
  events_.clear();
  static_cast<OpenClCalls&>(calls).enqueue(queue_.get(), timing_ != Timing::kNone ? &events_ : nullptr);
}

void OpenClQueue::finish() {
  device_.check(device_.api().Finish(queue_.get()), "a run");
}

void OpenClQueue::abandon() noexcept { device_.api().Finish(queue_.get()); }

std::vector<int64_t> OpenClQueue::times() const {
  const auto time = [&](const cl::OwnedEvent& event, cl::Uint what) {
    uint64_t ns = 0;
    device_.check(device_.api().GetEventProfilingInfo(event.get(), what, sizeof(ns), &ns, nullptr), "a time");
    return ns;
  };
  const auto between = [&](const cl::OwnedEvent& first, const cl::OwnedEvent& last) {
    return static_cast<int64_t>(time(last, cl::kCommandEnd) - time(first, cl::kCommandStart));
  };
  if (timing_ == Timing::kWhole) return {events_.empty() ? 0 : between(events_.front(), events_.back())};
  std::vector<int64_t> ns;
  for (const cl::OwnedEvent& event : events_) ns.push_back(between(event, event));
  return ns;
}

}  // namespace xyntra
