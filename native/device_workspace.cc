#include "device_workspace.h"

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

// Nothing of a run may go on when it has failed: inputs and outputs belong to ORT.
class Drained {
 public:
  explicit Drained(DeviceQueue& queue) : queue_(&queue) {}
  ~Drained() {
    if (queue_ != nullptr) queue_->abandon();
  }
  Drained(const Drained&) = delete;
  Drained& operator=(const Drained&) = delete;
  void finish() {
    queue_->finish();
    queue_ = nullptr;
  }

 private:
  DeviceQueue* queue_;
};

}  // namespace

void DeviceWorkspace::prepare(const std::vector<ReadyOnDevice>& alternatives, const std::vector<InputView>& views) {
  if (!evaluation_.prepare(views)) return;
  try {
    steps_.reset();  // their arguments keep the memory of the last shapes
    take_memory(views);
    make_steps(alternatives[evaluation_.alternative()]);
  } catch (...) {
    evaluation_.forget();
    throw;
  }
}

void DeviceWorkspace::make_room(Buffer& buffer, std::size_t bytes) {
  buffer.bytes = bytes;
  if (buffer.memory.get() != nullptr && bytes <= buffer.room) return;
  buffer.memory = DeviceMemory();  // first free, then allocate: the peak is what one shape needs
  buffer.memory = device_.buffer(bytes);
  buffer.room = bytes;
}

void DeviceWorkspace::take_memory(const std::vector<InputView>& views) {
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
    temporaries_[b] = device_.part(arena_.memory, evaluation_.arena_at(b), evaluation_.arena_bytes_of(b));
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].used) make_room(inputs_[i], tensor_bytes(island.inputs[i].elem_type, views[i].dims, views[i].rank));
  }
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    const auto& dims = evaluation_.output_dims(i);
    make_room(outputs_[i], tensor_bytes(island.outputs[i].elem_type, dims.data(), dims.size()));
  }
}

void DeviceWorkspace::make_steps(const ReadyOnDevice& ready) {
  const Alternative& plan = evaluation_.plan();
  std::vector<DeviceCall> calls;
  started_.clear();
  for (std::size_t i = 0; i < plan.run.size(); ++i) {
    const PlanStep& step = plan.run[i];
    const int64_t units = evaluation_.value(step.units_expr);
    if (units <= 0) continue;
    DeviceCall& call = calls.emplace_back();
    call.kernel = ready.kernels[i];
    call.units = units;
    for (const BufferUse& use : step.buffers) call.buffers.push_back(memory_of(use.buffer, ready));
    for (const uint32_t param : step.params) call.add(evaluation_.value(param));
    started_.push_back(i);
  }
  steps_ = device_.ready(calls);
}

void* DeviceWorkspace::memory_of(uint32_t buffer, const ReadyOnDevice& ready) const {
  const PlanBuffer& of = evaluation_.plan().buffers[buffer];
  switch (of.kind) {
    case BufferKind::kInput: return inputs_[of.index].memory.get();
    case BufferKind::kOutput: return outputs_[of.index].memory.get();
    case BufferKind::kArena: return temporaries_[buffer].get();
    default: return ready.fixed[buffer];
  }
}

DeviceQueue& DeviceWorkspace::queue(bool takes_times) {
  std::unique_ptr<DeviceQueue>& queue = takes_times ? timing_queue_ : queue_;
  if (queue == nullptr) queue = device_.queue(takes_times);
  return *queue;
}

void DeviceWorkspace::run(const std::vector<InputView>& views, const std::vector<void*>& results,
                          std::vector<profile::Sample>* samples) {
  DeviceQueue& queue = this->queue(samples != nullptr);
  {
    Drained drained(queue);
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const Buffer& input = inputs_[i];
      if (input.used && input.bytes > 0) queue.write(input.memory.get(), views[i].data, input.bytes);
    }
    queue.start(*steps_);
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      const Buffer& output = outputs_[i];
      if (output.bytes > 0) queue.read(results[i], output.memory.get(), output.bytes);
    }
    drained.finish();
  }
  if (samples == nullptr) return;
  const Alternative& plan = evaluation_.plan();
  samples->resize(plan.run.size());
  for (std::size_t i = 0; i < plan.run.size(); ++i)
    (*samples)[i] = {0, evaluation_.value(plan.run[i].flops_expr), evaluation_.value(plan.run[i].bytes_expr)};
  const std::vector<int64_t> times = queue.times();
  for (std::size_t i = 0; i < started_.size(); ++i) (*samples)[started_[i]].ns = times[i];
}

}  // namespace xyntra
