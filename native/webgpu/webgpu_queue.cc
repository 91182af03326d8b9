#include "webgpu_queue.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <utility>

#include "kernel_loader.h"
#include "memory_block.h"

namespace xyntra {
namespace {

constexpr uint32_t kMostQueries = 4096;            // of a set, as WebGPU allows
constexpr std::size_t kMostWritten = 64 << 20;     // at once: the library keeps a copy until the next submission
constexpr std::size_t kUniformAlignment = 256;     // on every adapter

const WebGpuMemory& memory_at(void* memory) { return *static_cast<const WebGpuMemory*>(memory); }

}  // namespace

WebGpuCalls::WebGpuCalls(const WebGpuDevice& device, const std::vector<DeviceCall>& calls) : device_(device) {
  const wgpu::Api& api = device.api();
  std::vector<int32_t> numbers;
  std::vector<std::pair<std::size_t, std::size_t>> places;  // bytes of each call's
  for (const DeviceCall& call : calls) {
    if (!call.tensors.empty()) throw Error(kRuntimeException, "XyntraEP: WebGPU copies no tensors");
    if (call.units > INT32_MAX) throw Error(kRuntimeException, "XyntraEP: more blocks than WebGPU counts");
    numbers.resize(align_up(numbers.size() * 4, kUniformAlignment) / 4);
    const std::size_t first = numbers.size();
    numbers.insert(numbers.end(), call.params.begin(), call.params.end());
    numbers.push_back(static_cast<int32_t>(call.units));
    places.emplace_back(first * 4, (numbers.size() - first) * 4);
  }
  if (calls.empty()) return;
  const std::size_t bytes = numbers.size() * 4;
  numbers_ = device.create_buffer(bytes, wgpu::kUseUniform | wgpu::kUseCopyTarget, "a run's numbers");
  device.checked("a run's numbers", [&] { api.QueueWriteBuffer(device.queue_id(), numbers_.get(), 0, numbers.data(), bytes); });
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const DeviceCall& call = calls[i];
    const WebGpuPipeline& pipeline = device.pipeline(call.kernel->program, call.kernel->symbol);
    if (pipeline.buffers != call.buffers.size()) throw Error(kRuntimeException, "XyntraEP: a kernel binds other buffers than its plan");
    std::vector<wgpu::GroupEntry> entries(call.buffers.size() + 1);
    for (std::size_t b = 0; b < call.buffers.size(); ++b) {
      const WebGpuMemory& memory = memory_at(call.buffers[b]);
      if (memory.bytes > device.limits().storage_bytes)
        throw Error(kRuntimeException, "XyntraEP: a tensor of " + std::to_string(memory.bytes) + " bytes is more than the " +
                                           std::to_string(device.limits().storage_bytes) + " that a kernel of WebGPU may bind");
      entries[b].binding = static_cast<uint32_t>(b);
      entries[b].buffer = memory.buffer;
      entries[b].offset = memory.offset;
      entries[b].bytes = memory.bytes;
    }
    entries.back().binding = static_cast<uint32_t>(call.buffers.size());
    entries.back().buffer = numbers_.get();
    entries.back().offset = places[i].first;
    entries.back().bytes = places[i].second;
    wgpu::GroupDescriptor wanted;
    wanted.layout = pipeline.layout.get();
    wanted.count = entries.size();
    wanted.entries = entries.data();
    Launch& launch = launches_.emplace_back();
    launch.pipeline = pipeline.pipeline.get();
    launch.group = device.checked("a kernel's buffers", [&] { return wgpu::OwnedGroup(api.DeviceCreateBindGroup(device.id(), &wanted)); });
    const int64_t most = device.limits().blocks_along, rows = (call.units + most - 1) / most;
    if (rows > most) throw Error(kRuntimeException, "XyntraEP: more blocks than WebGPU launches");
    launch.rows = static_cast<uint32_t>(rows);
    launch.along = static_cast<uint32_t>((call.units + rows - 1) / rows);
  }
}

void WebGpuCalls::encode(wgpu::Pass pass, std::size_t from, std::size_t to) const {
  const wgpu::Api& api = device_.api();
  for (std::size_t i = from; i < to; ++i) {
    const Launch& launch = launches_[i];
    api.ComputePassEncoderSetPipeline(pass, launch.pipeline);
    api.ComputePassEncoderSetBindGroup(pass, 0, launch.group.get(), 0, nullptr);
    api.ComputePassEncoderDispatchWorkgroups(pass, launch.along, launch.rows, 1);
  }
}

// The library copies at once, in whole words; what is submitted later sees it.
void WebGpuQueue::write(void* memory, const void* from, std::size_t bytes) {
  submit();
  const WebGpuMemory& to = memory_at(memory);
  const wgpu::Api& api = device_.api();
  const auto put = [&](std::size_t at, const void* data, std::size_t size) {
    device_.checked("an input", [&] { api.QueueWriteBuffer(device_.queue_id(), to.buffer, to.offset + at, data, size); });
  };
  const std::size_t whole = bytes / 4 * 4;
  const auto* const data = static_cast<const char*>(from);
  for (std::size_t at = 0; at < whole; at += kMostWritten) {
    put(at, data + at, std::min(kMostWritten, whole - at));
    if (whole - at > kMostWritten) {  // so that its copies go
      encoder();
      submit();
      wait();
    }
  }
  if (whole == bytes) return;
  uint32_t last = 0;
  std::memcpy(&last, data + whole, bytes - whole);
  put(whole, &last, 4);
}

void WebGpuQueue::read(void* to, void* memory, std::size_t bytes) {
  const WebGpuMemory& from = memory_at(memory);
  const std::size_t at = reads_.empty() ? 0 : align_up(reads_.back().at + align_up(reads_.back().bytes, 4), 8);
  reads_.push_back({to, at, bytes});
  sources_.emplace_back(from.buffer, from.offset);
}

void WebGpuQueue::start(DeviceCalls& calls) {
  const auto& launches = static_cast<WebGpuCalls&>(calls);
  times_.clear();
  clocks_.clear();
  if (launches.size() == 0) return;
  if (timing_ == Timing::kNone) {
    one_pass(launches, 0, launches.size(), nullptr);
    return;
  }
  const std::size_t step = timing_ == Timing::kWhole ? launches.size() : 1;
  for (std::size_t from = 0; from < launches.size(); from += step) {
    if (!device_.has_timestamps()) {  // by the host's clock, the way there and back with it
      submit();
      wait();
      const auto begun = std::chrono::steady_clock::now();
      one_pass(launches, from, from + step, nullptr);
      submit();
      wait();
      times_.push_back(std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - begun).count());
      continue;
    }
    if (clocks_.empty() || clocks_.back().count + 2 > kMostQueries) {
      Clock& clock = clocks_.emplace_back();
      wgpu::QueriesDescriptor wanted;
      wanted.count = kMostQueries;
      clock.queries = device_.checked(
          "a clock", [&] { return wgpu::OwnedQueries(device_.api().DeviceCreateQuerySet(device_.id(), &wanted)); });
      clock.resolved = device_.create_buffer(kMostQueries * sizeof(uint64_t), wgpu::kUseQueries | wgpu::kUseCopySource, "a clock");
    }
    one_pass(launches, from, from + step, &clocks_.back());
  }
}

void WebGpuQueue::one_pass(const WebGpuCalls& calls, std::size_t from, std::size_t to, Clock* clock) {
  const wgpu::Api& api = device_.api();
  wgpu::Encoder const encoder = this->encoder();
  wgpu::Timestamps stamps;
  wgpu::PassDescriptor wanted;
  if (clock != nullptr) {
    stamps.queries = clock->queries.get();
    stamps.begin = clock->count;
    stamps.end = clock->count + 1;
    clock->count += 2;
    wanted.timestamps = &stamps;
  }
  device_.checked("a run", [&] {
    const wgpu::OwnedPass pass(api.CommandEncoderBeginComputePass(encoder, &wanted));
    calls.encode(pass.get(), from, to);
    api.ComputePassEncoderEnd(pass.get());
  });
}

wgpu::Encoder WebGpuQueue::encoder() {
  if (encoder_.get() == nullptr) {
    const wgpu::Named wanted;
    encoder_ = device_.checked(
        "a run", [&] { return wgpu::OwnedEncoder(device_.api().DeviceCreateCommandEncoder(device_.id(), &wanted)); });
  }
  return encoder_.get();
}

void WebGpuQueue::submit() {
  if (encoder_.get() == nullptr) return;
  const wgpu::OwnedEncoder encoder = std::move(encoder_);
  encoder_ = wgpu::OwnedEncoder();
  const wgpu::Named wanted;
  const wgpu::Api& api = device_.api();
  const wgpu::OwnedCommands commands =
      device_.checked("a run", [&] { return wgpu::OwnedCommands(api.CommandEncoderFinish(encoder.get(), &wanted)); });
  wgpu::Commands const one = commands.get();
  submitted_ = device_.checked("a run", [&] { return api.QueueSubmitForIndex(device_.queue_id(), 1, &one); });
  is_submitted_ = true;
}

void WebGpuQueue::wait() const {
  if (!is_submitted_) return;
  device_.checked("a run", [&] { return device_.api().DevicePoll(device_.id(), 1, &submitted_); });
}

void WebGpuQueue::map_and_take(wgpu::Buffer buffer, std::size_t bytes, const void*& mapped) const {
  const wgpu::Api& api = device_.api();
  struct Answer {
    bool has_come = false;
    wgpu::Enum status = 0;
  } answer;
  wgpu::Callback<wgpu::OnMapped> then;
  then.function = [](wgpu::Enum status, wgpu::Text, void* to, void*) { *static_cast<Answer*>(to) = {true, status}; };
  then.first = &answer;
  device_.checked("an output", [&] { api.BufferMapAsync(buffer, wgpu::kMapRead, 0, bytes, then); });
  while (!answer.has_come) device_.checked("an output", [&] { return api.DevicePoll(device_.id(), 1, nullptr); });
  if (answer.status != wgpu::kSuccess) throw Error(kRuntimeException, "XyntraEP: WebGPU does not give an output");
  mapped = device_.checked("an output", [&] { return api.BufferGetConstMappedRange(buffer, 0, bytes); });
}

void WebGpuQueue::finish() {
  const wgpu::Api& api = device_.api();
  const std::vector<Read> reads = std::exchange(reads_, {});
  const auto sources = std::exchange(sources_, {});
  const std::size_t bytes = reads.empty() ? 0 : reads.back().at + align_up(reads.back().bytes, 4);
  if (bytes > 0) {
    if (staging_bytes_ < bytes) {
      staging_ = wgpu::OwnedBuffer();
      staging_ = device_.create_buffer(bytes, wgpu::kUseMapRead | wgpu::kUseCopyTarget, "outputs");
      staging_bytes_ = bytes;
    }
    wgpu::Encoder const encoder = this->encoder();
    device_.checked("an output", [&] {
      for (std::size_t i = 0; i < reads.size(); ++i) {
        if (const std::size_t size = align_up(reads[i].bytes, 4); size > 0)
          api.CommandEncoderCopyBufferToBuffer(encoder, sources[i].first, sources[i].second, staging_.get(), reads[i].at, size);
      }
    });
  }
  for (const Clock& clock : clocks_) {
    wgpu::Encoder const encoder = this->encoder();
    device_.checked("a clock", [&] {
      api.CommandEncoderResolveQuerySet(encoder, clock.queries.get(), 0, clock.count, clock.resolved.get(), 0);
    });
  }
  submit();
  wait();
  if (bytes > 0) {
    const void* mapped = nullptr;
    map_and_take(staging_.get(), bytes, mapped);
    for (const Read& read : reads) std::memcpy(read.to, static_cast<const char*>(mapped) + read.at, read.bytes);
    device_.checked("an output", [&] { api.BufferUnmap(staging_.get()); });
  }
  take_times();
}

// Ticks of the adapter's clock, by way of memory that the host may see.
void WebGpuQueue::take_times() {
  const wgpu::Api& api = device_.api();
  const double period = clocks_.empty() ? 1.0 : api.QueueGetTimestampPeriod(device_.queue_id());
  for (const Clock& clock : std::exchange(clocks_, {})) {
    const std::size_t bytes = clock.count * sizeof(uint64_t);
    const wgpu::OwnedBuffer seen = device_.create_buffer(bytes, wgpu::kUseMapRead | wgpu::kUseCopyTarget, "a clock");
    wgpu::Encoder const encoder = this->encoder();
    device_.checked("a clock", [&] { api.CommandEncoderCopyBufferToBuffer(encoder, clock.resolved.get(), 0, seen.get(), 0, bytes); });
    submit();
    wait();
    const void* mapped = nullptr;
    map_and_take(seen.get(), bytes, mapped);
    std::vector<uint64_t> ticks(clock.count);
    std::memcpy(ticks.data(), mapped, bytes);
    for (std::size_t i = 0; i + 1 < ticks.size(); i += 2)
      times_.push_back(static_cast<int64_t>(static_cast<double>(ticks[i + 1] - ticks[i]) * period));
  }
}

void WebGpuQueue::abandon() noexcept {
  encoder_ = wgpu::OwnedEncoder();  // what was not submitted never runs
  reads_.clear();
  sources_.clear();
  clocks_.clear();
  try {
    wait();
  } catch (const std::exception&) {  // a lost device does nothing more
  }
}

std::vector<int64_t> WebGpuQueue::times() const { return times_; }

}  // namespace xyntra
