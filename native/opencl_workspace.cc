#include "opencl_workspace.h"

#include "element_bytes.h"

namespace xyntra {
namespace {

std::size_t tensor_bytes(int32_t elem_type, const int64_t* dims, std::size_t rank) {
  std::size_t bytes = element_bytes(elem_type);
  for (std::size_t i = 0; i < rank; ++i) {
    if (__builtin_mul_overflow(bytes, static_cast<std::size_t>(dims[i]), &bytes)) throw std::bad_alloc();
  }
  return bytes;
}

int64_t step_ns(const OpenClDevice& device, cl::Event event) {
  uint64_t begin = 0, end = 0;
  device.check(device.api().GetEventProfilingInfo(event, cl::kCommandStart, sizeof(begin), &begin, nullptr), "a time");
  device.check(device.api().GetEventProfilingInfo(event, cl::kCommandEnd, sizeof(end), &end, nullptr), "a time");
  return static_cast<int64_t>(end - begin);
}

// Nothing of a run may go on when it has failed: inputs and outputs belong to ORT.
class Drained {
 public:
  Drained(const OpenClDevice& device, cl::Queue queue) : device_(device), queue_(queue) {}
  ~Drained() {
    if (queue_ != nullptr) device_.api().Finish(queue_);
  }
  Drained(const Drained&) = delete;
  Drained& operator=(const Drained&) = delete;
  void finish() {
    const cl::Queue queue = queue_;
    queue_ = nullptr;
    device_.check(device_.api().Finish(queue), "a run");
  }

 private:
  const OpenClDevice& device_;
  cl::Queue queue_;
};

}  // namespace

void OpenClWorkspace::prepare(const std::vector<ReadyOnDevice>& alternatives, const std::vector<InputView>& views) {
  if (!evaluation_.prepare(views)) return;
  try {
    steps_.clear();  // their arguments keep the memory of the last shapes
    take_memory(views);
    make_steps(alternatives[evaluation_.alternative()]);
  } catch (...) {
    evaluation_.forget();
    throw;
  }
}

void OpenClWorkspace::make_room(Buffer& buffer, std::size_t bytes) {
  buffer.bytes = bytes;
  if (buffer.mem.get() != nullptr && bytes <= buffer.room) return;
  buffer.mem = cl::OwnedMem();  // first free, then allocate: the peak is what one shape needs
  buffer.mem = device_.buffer(bytes);
  buffer.room = bytes;
}

void OpenClWorkspace::take_memory(const std::vector<InputView>& views) {
  const Alternative& plan = evaluation_.plan();
  const PlanIsland& island = evaluation_.island();
  inputs_.resize(island.inputs.size());
  outputs_.resize(island.outputs.size());
  for (Buffer& input : inputs_) input.used = false;
  for (const PlanStep& step : plan.run) {
    for (const BufferUse& use : step.buffers) {
      const PlanBuffer& buffer = plan.buffers[use.buffer];
      if (buffer.kind == BufferKind::kInput) inputs_[buffer.index].used = true;
    }
  }
  temporaries_.clear();
  make_room(arena_, evaluation_.arena_bytes());
  temporaries_.resize(plan.buffers.size());
  for (const uint32_t b : plan.arena)
    temporaries_[b] = device_.part(arena_.mem.get(), evaluation_.arena_at(b), evaluation_.arena_bytes_of(b));
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].used) make_room(inputs_[i], tensor_bytes(island.inputs[i].elem_type, views[i].dims, views[i].rank));
  }
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    const auto& dims = evaluation_.output_dims(i);
    make_room(outputs_[i], tensor_bytes(island.outputs[i].elem_type, dims.data(), dims.size()));
  }
}

void OpenClWorkspace::make_steps(const ReadyOnDevice& ready) {
  const Alternative& plan = evaluation_.plan();
  for (std::size_t i = 0; i < plan.run.size(); ++i) {
    const PlanStep& from = plan.run[i];
    OpenClLaunch& step = steps_.emplace_back(device_, *ready.kernels[i], evaluation_.value(from.units_expr));
    if (step.empty()) continue;
    for (const BufferUse& use : from.buffers) step.add(memory_of(use.buffer, ready));
    for (const uint32_t param : from.params) step.add(evaluation_.value(param));
    step.complete();
  }
}

cl::Mem OpenClWorkspace::memory_of(uint32_t buffer, const ReadyOnDevice& ready) const {
  const PlanBuffer& of = evaluation_.plan().buffers[buffer];
  switch (of.kind) {
    case BufferKind::kInput: return inputs_[of.index].mem.get();
    case BufferKind::kOutput: return outputs_[of.index].mem.get();
    case BufferKind::kArena: return temporaries_[buffer].get();
    default: return ready.fixed[buffer];
  }
}

cl::Queue OpenClWorkspace::queue(bool profiling) {
  cl::OwnedQueue& queue = profiling ? profiling_queue_ : queue_;
  if (queue.get() == nullptr) queue = device_.queue(profiling);
  return queue.get();
}

void OpenClWorkspace::run(const std::vector<InputView>& views, const std::vector<void*>& results,
                          std::vector<profile::Sample>* samples) {
  const cl::Api& api = device_.api();
  const cl::Queue queue = this->queue(samples != nullptr);
  std::vector<cl::OwnedEvent> events;
  {
    Drained drained(device_, queue);
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const Buffer& input = inputs_[i];
      if (!input.used || input.bytes == 0) continue;
      device_.check(api.EnqueueWriteBuffer(queue, input.mem.get(), cl::kFalse, 0, input.bytes, views[i].data, 0,
                                           nullptr, nullptr),
                    "an input");
    }
    for (const OpenClLaunch& step : steps_) {
      cl::Event event = nullptr;
      if (!step.empty()) step.enqueue(queue, samples != nullptr ? &event : nullptr);
      if (samples != nullptr) events.emplace_back(event);
    }
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      const Buffer& output = outputs_[i];
      if (output.bytes == 0) continue;
      device_.check(
          api.EnqueueReadBuffer(queue, output.mem.get(), cl::kFalse, 0, output.bytes, results[i], 0, nullptr, nullptr),
          "an output");
    }
    drained.finish();
  }
  if (samples == nullptr) return;
  const Alternative& plan = evaluation_.plan();
  samples->resize(events.size());
  for (std::size_t i = 0; i < events.size(); ++i) {
    (*samples)[i] = {events[i].get() != nullptr ? step_ns(device_, events[i].get()) : 0,
                     evaluation_.value(plan.run[i].flops_expr), evaluation_.value(plan.run[i].bytes_expr)};
  }
}

}  // namespace xyntra
