#include "driver_queue.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <map>
#include <thread>

#include "kernel_loader.h"
#include "memory_block.h"

namespace xyntra {
namespace {

// Before a run that is timed as a whole: its graph is queued meanwhile, else the event before it would be recorded by an idle
// device, and the host's way to the launch be part of the device's time.
constexpr std::chrono::microseconds kPause{500};

constexpr std::size_t kLeastPinned = std::size_t{1} << 16;

// Rows of a box lie swizzled in shared memory. Nothing is copied of an empty tensor, which is none to the driver.
driver::TensorMap map_of(const DriverDevice& device, const DeviceTensor& tensor, void* buffer) {
  static const std::map<uint32_t, int> types = {
      {1, driver::kBytes1}, {2, driver::kBytes2}, {4, driver::kBytes4}, {8, driver::kBytes8}};
  const auto type = types.find(tensor.element_bytes);
  if (type == types.end() || tensor.extents.size() > driver::kMaxTensorRank || device.api().TensorMapEncodeTiled == nullptr)
    throw Error(kFail, "XyntraEP: a tensor that this device cannot copy");
  const std::vector<uint64_t>& extents = tensor.extents;
  const std::vector<uint32_t> steps(extents.size(), 1);
  driver::TensorMap map{};
  if (buffer == nullptr || std::count(extents.begin(), extents.end(), uint64_t{0}) > 0) return map;
  device.check(device.api().TensorMapEncodeTiled(&map, type->second, static_cast<uint32_t>(extents.size()),
                                                 static_cast<char*>(buffer) + tensor.offset, extents.data(),
                                                 tensor.strides.data(), tensor.box.data(), steps.data(), driver::kNoInterleave,
                                                 driver::kSwizzle128, driver::kPromote128, driver::kFillZero),
               "the map of a tensor");
  return map;
}

}  // namespace

DriverCalls::DriverCalls(const DriverDevice& device, const std::vector<DeviceCall>& calls) : device_(device) {
  const DriverDevice::Current current(device);
  for (const DeviceCall& call : calls) {
    if (call.units > std::numeric_limits<int32_t>::max())  // what a grid can have along x
      throw Error(kRuntimeException, "XyntraEP: " + std::to_string(call.units) + " blocks are too many for this device");
    Launch& launch = launches_.emplace_back();
    launch.function = device.function(*call.kernel);
    launch.blocks = static_cast<unsigned>(call.units);
    launch.threads = call.kernel->threads;
    launch.shared_bytes = call.kernel->shared_bytes;
    launch.buffers = call.buffers;
    launch.tensors = call.tensors;
    launch.params = call.params;
  }
}

DriverCalls::~DriverCalls() {
  if (graph_ == nullptr) return;
  try {
    const DriverDevice::Current current(device_);  // whose graphs they are: the thread may have another one, or none
    if (executable_ != nullptr) device_.api().GraphExecDestroy(executable_);
    device_.api().GraphDestroy(graph_);
  } catch (const Error&) {  // the driver is shutting down and frees all, or the device is lost and all with it
  }
}

// The driver copies what the pointers point to when it is called.
std::vector<void*> DriverCalls::Launch::arguments(const DriverDevice& device) {
  maps.clear();
  for (const DeviceTensor& tensor : tensors) maps.push_back(map_of(device, tensor, buffers[tensor.buffer]));
  std::vector<void*> pointers;
  for (auto& buffer : buffers) pointers.push_back(&buffer);
  for (auto& map : maps) pointers.push_back(&map);
  for (auto& param : params) pointers.push_back(&param);
  return pointers;
}

void DriverCalls::launch(std::size_t call, driver::Stream stream) {
  Launch& it = launches_[call];
  std::vector<void*> arguments = it.arguments(device_);
  device_.check(device_.api().LaunchKernel(it.function, it.blocks, 1, 1, it.threads, 1, 1, it.shared_bytes, stream,
                                           arguments.data(), nullptr),
                "a kernel");
}

void DriverCalls::launch_all(driver::Stream stream) {
  const driver::Api& api = device_.api();
  if (launches_.size() < 2 || api.GraphCreate == nullptr) {  // a graph would save nothing, or there is none
    for (std::size_t i = 0; i < launches_.size(); ++i) launch(i, stream);
    return;
  }
  if (graph_ == nullptr) make_graph();
  if (executable_ == nullptr) device_.check(api.GraphInstantiateWithFlags(&executable_, graph_, 0), "a graph of kernels");
  if (replaced_) update_graph();
  device_.check(api.GraphLaunch(executable_, stream), "a graph of kernels");
}

void DriverCalls::replace(std::size_t call, std::size_t place, void* memory) {
  Launch& launch = launches_[call];
  launch.buffers[place] = memory;
  launch.replaced = replaced_ = graph_ != nullptr;
}

driver::KernelNode DriverCalls::node_of(Launch& launch, std::vector<void*>& arguments) const {
  arguments = launch.arguments(device_);
  return {launch.function, launch.blocks,       1,                1,      launch.threads, 1,
          1,               launch.shared_bytes, arguments.data(), nullptr};
}

void DriverCalls::make_graph() {
  const driver::Api& api = device_.api();
  driver::Graph made = nullptr;
  device_.check(api.GraphCreate(&made, 0), "a graph of kernels");
  driver::GraphNode last = nullptr;
  for (Launch& launch : launches_) {
    std::vector<void*> arguments;
    const driver::KernelNode node = node_of(launch, arguments);
    const driver::Result code = api.GraphAddKernelNode(&launch.node, made, &last, last != nullptr ? 1 : 0, &node);
    if (code != driver::kSuccess) {
      api.GraphDestroy(made);
      device_.check(code, "a graph of kernels");
    }
    last = launch.node;
  }
  graph_ = made;
}

void DriverCalls::update_graph() {
  for (Launch& launch : launches_) {
    if (!launch.replaced) continue;
    std::vector<void*> arguments;
    const driver::KernelNode node = node_of(launch, arguments);
    device_.check(device_.api().GraphExecKernelNodeSetParams(executable_, launch.node, &node), "a graph of kernels");
    launch.replaced = false;
  }
  replaced_ = false;
}

DriverQueue::DriverQueue(const DriverDevice& device, Timing timing) : device_(device), timing_(timing) {
  const DriverDevice::Current current(device);
  device.check(device.api().StreamCreate(&stream_, driver::kNonBlocking), "a stream");
}

DriverQueue::~DriverQueue() {
  try {
    const DriverDevice::Current current(device_);
    for (const driver::Event event : events_) device_.api().EventDestroy(event);
    for (const Pinned& block : pinned_) device_.api().MemFreeHost(block.data);
    device_.api().StreamDestroy(stream_);
  } catch (const Error&) {
    return;  // as above
  }
}

// Room that stays until finish(). After the first run one block has room for all of it.
char* DriverQueue::stage(std::size_t bytes) {
  bytes = align_up(bytes, kAlignment);
  if (pinned_.empty() || pinned_.back().bytes - filled_ < bytes) {
    Pinned block;
    block.bytes = std::max({kLeastPinned, bytes, pinned_.empty() ? std::size_t{0} : 2 * pinned_.back().bytes});
    void* data = nullptr;
    device_.check(device_.api().MemAllocHost(&data, block.bytes), "pinned memory");
    block.data = static_cast<char*>(data);
    pinned_.push_back(block);
    filled_ = 0;
  }
  char* const at = pinned_.back().data + filled_;
  filled_ += bytes;
  return at;
}

void DriverQueue::restage() noexcept {
  arriving_.clear();
  filled_ = 0;
  if (pinned_.size() > 1) {  // the last one is more than twice as large as those before
    for (std::size_t i = 0; i + 1 < pinned_.size(); ++i) device_.api().MemFreeHost(pinned_[i].data);
    pinned_.erase(pinned_.begin(), pinned_.end() - 1);
  }
}

void DriverQueue::write(void* memory, const void* from, std::size_t bytes) {
  const DriverDevice::Current current(device_);
  char* const at = stage(bytes);
  std::memcpy(at, from, bytes);
  device_.check(device_.api().MemcpyHtoDAsync(reinterpret_cast<driver::Address>(memory), at, bytes, stream_), "an input");
}

void DriverQueue::read(void* to, void* memory, std::size_t bytes) {
  const DriverDevice::Current current(device_);
  char* const at = stage(bytes);
  device_.check(device_.api().MemcpyDtoHAsync(at, reinterpret_cast<driver::Address>(memory), bytes, stream_), "an output");
  arriving_.push_back({to, at, bytes});
}

void DriverQueue::copy(void* to, const void* from, std::size_t bytes) {
  const DriverDevice::Current current(device_);
  device_.check(device_.api().MemcpyDtoDAsync(reinterpret_cast<driver::Address>(to), reinterpret_cast<driver::Address>(from),
                                              bytes, stream_),
                "a copy on the device");
}

void DriverQueue::start(DeviceCalls& all) {
  const DriverDevice::Current current(device_);
  auto& calls = static_cast<DriverCalls&>(all);
  recorded_ = 0;
  if (timing_ == Timing::kWhole)
    device_.check(device_.api().LaunchHostFunc(stream_, [](void*) { std::this_thread::sleep_for(kPause); }, nullptr), "a pause");
  if (timing_ != Timing::kNone) record();
  if (timing_ == Timing::kEach) {
    for (std::size_t i = 0; i < calls.size(); ++i) {
      calls.launch(i, stream_);
      record();
    }
    return;
  }
  calls.launch_all(stream_);
  if (timing_ == Timing::kWhole) record();
}

void DriverQueue::record() {
  if (recorded_ == events_.size()) {
    driver::Event event = nullptr;
    device_.check(device_.api().EventCreate(&event, 0), "an event");
    events_.push_back(event);
  }
  device_.check(device_.api().EventRecord(events_[recorded_++], stream_), "an event");
}

void DriverQueue::finish() {
  const DriverDevice::Current current(device_);
  device_.check(device_.api().StreamSynchronize(stream_), "a run");
  for (const Arriving& part : arriving_) std::memcpy(part.to, part.from, part.bytes);
  restage();
}

void DriverQueue::abandon() noexcept {
  try {
    const DriverDevice::Current current(device_);
    device_.api().StreamSynchronize(stream_);
    restage();
  } catch (const Error&) {
    arriving_.clear();
  }
}

std::vector<int64_t> DriverQueue::times() const {
  const DriverDevice::Current current(device_);
  std::vector<int64_t> ns;
  for (std::size_t i = 1; i < recorded_; ++i) {
    float ms = 0;
    device_.check(device_.api().EventElapsedTime(&ms, events_[i - 1], events_[i]), "a time");
    ns.push_back(static_cast<int64_t>(ms * 1e6F));
  }
  return ns;
}

}  // namespace xyntra
