#include "metal_queue.h"

#include <cmath>
#include <cstring>

#include "kernel_loader.h"

namespace xyntra {

MetalCalls::MetalCalls(const MetalDevice& device, const std::vector<DeviceCall>& calls) : device_(device) {
  for (const DeviceCall& call : calls) {
    if (!call.tensors.empty()) throw Error(kRuntimeException, "XyntraEP: Metal copies no tensors");
    if (call.buffers.size() >= metal::kMostBuffers || call.params.size() * sizeof(int32_t) > metal::kMostBytes)
      throw Error(kRuntimeException, "XyntraEP: the kernel " + call.kernel->symbol + " has more arguments than Metal takes");
    Launch& launch = launches_.emplace_back();
    launch.pipeline = device.pipeline(*call.kernel);
    launch.groups = static_cast<std::size_t>(call.units);
    launch.threads = call.kernel->threads;
    launch.buffers = call.buffers;
    launch.params = call.params;
  }
}

void MetalCalls::encode(metal::Id encoder, std::size_t call) const {
  const metal::Api& api = device_.api();
  const Launch& launch = launches_[call];
  api.send<void>(encoder, "setComputePipelineState:", launch.pipeline);
  std::size_t index = 0;
  for (void* const buffer : launch.buffers) {
    const auto* const memory = static_cast<const MetalMemory*>(buffer);
    api.send<void>(encoder, "setBuffer:offset:atIndex:", memory->buffer.get(), memory->offset, index++);
  }
  if (!launch.params.empty()) {
    const void* const params = launch.params.data();
    api.send<void>(encoder, "setBytes:length:atIndex:", params, launch.params.size() * sizeof(int32_t), index);
  }
  api.send<void>(encoder, "dispatchThreadgroups:threadsPerThreadgroup:", metal::Size{launch.groups, 1, 1},
                 metal::Size{launch.threads, 1, 1});
}

MetalQueue::MetalQueue(const MetalDevice& device, Timing timing)
    : device_(device), timing_(timing), queue_(device.open_queue()) {}

// What runs may read what was there before.
void MetalQueue::write(void* memory, const void* from, std::size_t bytes) {
  arrive();
  std::memcpy(static_cast<MetalMemory*>(memory)->contents, from, bytes);
}

void MetalQueue::read(void* to, void* memory, std::size_t bytes) {
  arriving_.push_back({to, static_cast<MetalMemory*>(memory)->contents, bytes});
}

void MetalQueue::start(DeviceCalls& all) {
  device_.require_alive();
  const auto& calls = static_cast<const MetalCalls&>(all);
  ns_.clear();
  const metal::Pool pool(device_.api());
  if (timing_ == Timing::kEach) {
    for (std::size_t i = 0; i < calls.size(); ++i) commit(calls, i, i + 1);
  } else if (calls.size() > 0) {
    commit(calls, 0, calls.size());
  }
}

// A kernel begins after what it reads was written by those before it in its encoder, as buffers are tracked.
void MetalQueue::commit(const MetalCalls& calls, std::size_t begin, std::size_t end) {
  const metal::Api& api = device_.api();
  metal::Owned commands = metal::Owned::shared(api.send(queue_.get(), "commandBuffer"));
  const metal::Id encoder = api.send(commands.get(), "computeCommandEncoder");
  for (std::size_t i = begin; i < end; ++i) calls.encode(encoder, i);
  api.send<void>(encoder, "endEncoding");
  api.send<void>(commands.get(), "commit");
  started_.push_back(std::move(commands));
}

void MetalQueue::arrive() {
  const metal::Api& api = device_.api();
  for (const metal::Owned& commands : started_) api.send<void>(commands.get(), "waitUntilCompleted");
  const std::vector<metal::Owned> ended = std::move(started_);
  started_.clear();
  for (const metal::Owned& commands : ended) {
    device_.check(commands.get());
    const double seconds =
        api.send<double>(commands.get(), "GPUEndTime") - api.send<double>(commands.get(), "GPUStartTime");
    ns_.push_back(std::llround(seconds * 1e9));
  }
}

void MetalQueue::finish() {
  std::vector<Arriving> arriving = std::move(arriving_);
  arriving_.clear();
  arrive();
  for (const Arriving& part : arriving) std::memcpy(part.to, part.from, part.bytes);
}

void MetalQueue::abandon() noexcept {
  for (const metal::Owned& commands : started_) device_.api().send<void>(commands.get(), "waitUntilCompleted");
  started_.clear();
  arriving_.clear();
}

std::vector<int64_t> MetalQueue::times() const {
  if (timing_ == Timing::kWhole && ns_.empty()) return {0};
  return ns_;
}

}  // namespace xyntra
