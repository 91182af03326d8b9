#include "device_workspace.h"

#include <algorithm>

#include "element_bytes.h"
#include "trace.h"

namespace xyntra {
namespace {

constexpr uintptr_t kTensorAlignment = 16;  // of what a kernel moves at once

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

DeviceWorkspace::DeviceWorkspace(const Device& device, const PlanIsland& island, Tensors tensors)
    : device_(device), on_device_(tensors == Tensors::kOnDevice), evaluation_(island, device.alignment()) {}

void DeviceWorkspace::prepare(const std::vector<ReadyOnDevice>& alternatives, const std::vector<InputView>& views) {
  if (!evaluation_.prepare(on_device_ ? readable(views) : views)) return;
  try {
    steps_.reset();  // their arguments keep the memory of the last shapes
    take_memory(views);
    make_steps(alternatives[evaluation_.alternative()]);
  } catch (...) {
    evaluation_.forget();
    throw;
  }
}

// The host reads the elements that symbols stand for, and nothing else.
const std::vector<InputView>& DeviceWorkspace::readable(const std::vector<InputView>& views) {
  const PlanIsland& island = evaluation_.island();
  readable_ = views;
  elements_.resize(views.size());
  std::vector<std::size_t> wanted;
  for (std::size_t i = 0; i < views.size(); ++i) {
    std::size_t last = 0;  // one behind it
    for (const Alternative& plan : island.alternatives) {
      for (const Symbol& symbol : plan.elements) {
        if (symbol.input == i) last = std::max<std::size_t>(last, std::size_t{symbol.index} + 1);
      }
    }
    if (last == 0) continue;
    const int32_t type = island.inputs[i].elem_type;
    elements_[i].resize(std::min(last * element_bytes(type), tensor_bytes(type, views[i].dims, views[i].rank)));
    readable_[i].data = elements_[i].data();
    if (!elements_[i].empty()) wanted.push_back(i);
  }
  if (wanted.empty()) return readable_;
  DeviceQueue& queue = this->queue(Timing::kNone);
  Drained drained(queue);
  for (const std::size_t i : wanted)
    queue.read(elements_[i].data(), const_cast<void*>(views[i].data), elements_[i].size());
  drained.finish();
  return readable_;
}

void DeviceWorkspace::make_room(Buffer& buffer, std::size_t bytes) {
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
  arena_.bytes = evaluation_.arena_bytes();
  make_room(arena_, arena_.bytes);
  temporaries_.resize(plan.buffers.size());
  for (const uint32_t b : plan.arena)
    temporaries_[b] = device_.part(arena_.memory, evaluation_.arena_at(b), evaluation_.arena_bytes_of(b));
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (!inputs_[i].used) continue;
    inputs_[i].bytes = tensor_bytes(island.inputs[i].elem_type, views[i].dims, views[i].rank);
    if (!on_device_) make_room(inputs_[i], inputs_[i].bytes);
  }
  output_bytes_.resize(outputs_.size());
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    const auto& dims = evaluation_.output_dims(i);
    output_bytes_[i] = outputs_[i].bytes = tensor_bytes(island.outputs[i].elem_type, dims.data(), dims.size());
    if (!on_device_) make_room(outputs_[i], outputs_[i].bytes);
  }
}

void DeviceWorkspace::make_steps(const ReadyOnDevice& ready) {
  const Alternative& plan = evaluation_.plan();
  std::vector<DeviceCall> calls;
  started_.clear();
  placed_inputs_.assign(inputs_.size(), {});
  placed_outputs_.assign(outputs_.size(), {});
  for (std::size_t i = 0; i < plan.run.size(); ++i) {
    const PlanStep& step = plan.run[i];
    const int64_t units = evaluation_.value(step.units_expr);
    if (units <= 0) continue;
    DeviceCall& call = calls.emplace_back();
    call.kernel = ready.kernels[i];
    call.units = units;
    for (const BufferUse& use : step.buffers) {
      const PlanBuffer& of = plan.buffers[use.buffer];
      const Use here{calls.size() - 1, call.buffers.size()};
      if (of.kind == BufferKind::kInput) placed_inputs_[of.index].uses.push_back(here);
      if (of.kind == BufferKind::kOutput) placed_outputs_[of.index].uses.push_back(here);
      call.buffers.push_back(memory_of(use.buffer, ready));
    }
    for (const CopiedTensor& tensor : step.tensors) call.add(tensor, [&](uint32_t expr) { return evaluation_.value(expr); });
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

void DeviceWorkspace::rest(quiet::Time now) noexcept {
  const bool too_much = has_too_much();
  if (now - period_began_ < quiet::period()) return;
  if (too_much) {  // all anew at the next run, because calls and parts name what goes
    steps_.reset();
    temporaries_.clear();
    arena_ = Buffer();
    inputs_.clear();
    outputs_.clear();
    evaluation_.forget();
  }
  arena_.most = 0;
  for (auto* buffers : {&inputs_, &outputs_})
    for (Buffer& buffer : *buffers) buffer.most = 0;
  period_began_ = now;
}

// By what was wanted since the period began.
bool DeviceWorkspace::has_too_much() noexcept {
  bool too_much = false;
  const auto look = [&](Buffer& buffer) {
    buffer.most = std::max(buffer.most, buffer.bytes);
    too_much = too_much || buffer.room / 2 > buffer.most;
  };
  look(arena_);
  for (auto* buffers : {&inputs_, &outputs_})
    for (Buffer& buffer : *buffers) look(buffer);
  return too_much;
}

DeviceQueue& DeviceWorkspace::queue(Timing timing) {
  std::unique_ptr<DeviceQueue>& queue = queues_[static_cast<std::size_t>(timing)];
  if (queue == nullptr) queue = device_.queue(timing);
  return *queue;
}

// Kernels take ORT's tensors where they can. Not an address that is not aligned, as a part of a tensor may have that somebody
// else made; not an output that is an input, too, because kernels may read what others of them have written.
void DeviceWorkspace::place_tensors(const std::vector<InputView>& views, const std::vector<void*>& results) {
  const auto aligned = [](const void* tensor) { return reinterpret_cast<uintptr_t>(tensor) % kTensorAlignment == 0; };
  bool inputs_moved = false;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (!inputs_[i].used || inputs_[i].bytes == 0) continue;
    if (views[i].data != nullptr && placed_inputs_[i].tensor == views[i].data) continue;
    place(placed_inputs_[i], inputs_[i], views[i].data, !aligned(views[i].data));
    inputs_moved = true;
  }
  for (Placed& placed : placed_outputs_) {
    if (inputs_moved) placed.tensor = nullptr;  // whether it overlaps one is to be asked again, also when that fails for another
  }
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    if (outputs_[i].bytes == 0) continue;
    if (results[i] != nullptr && placed_outputs_[i].tensor == results[i]) continue;
    const bool aside = !aligned(results[i]) || overlaps_input(static_cast<const char*>(results[i]), outputs_[i].bytes);
    place(placed_outputs_[i], outputs_[i], results[i], aside);
  }
}

void DeviceWorkspace::place(Placed& placed, Buffer& buffer, const void* tensor, bool aside) {
  placed.tensor = nullptr;  // when anything below throws
  if (tensor == nullptr) throw NoMemory(buffer.bytes, "a tensor");  // ORT goes on with a null address
  if (device_.room_at(tensor) < buffer.bytes)
    throw Error(kInvalidArgument, "XyntraEP: a tensor on the device has less memory than its shape needs");
  if (aside) make_room(buffer, buffer.bytes);
  placed.aside = aside;
  for (const Use& use : placed.uses)
    steps_->replace(use.call, use.place, aside ? buffer.memory.get() : const_cast<void*>(tensor));
  placed.tensor = tensor;
}

bool DeviceWorkspace::overlaps_input(const char* output, std::size_t bytes) const {
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const bool in_place = inputs_[i].used && !placed_inputs_[i].aside;
    if (in_place && overlap(output, bytes, placed_inputs_[i].tensor, inputs_[i].bytes)) return true;
  }
  return false;
}

// Inputs to where kernels read them.
void DeviceWorkspace::bring(DeviceQueue& queue, const std::vector<InputView>& views) {
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const Buffer& input = inputs_[i];
    if (!input.used || input.bytes == 0) continue;
    if (!on_device_) {
      queue.write(input.memory.get(), views[i].data, input.bytes);
    } else if (placed_inputs_[i].aside) {
      queue.copy(input.memory.get(), views[i].data, input.bytes);
    }
  }
}

// Outputs to where ORT wants them.
void DeviceWorkspace::fetch(DeviceQueue& queue, const std::vector<void*>& results) {
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    const Buffer& output = outputs_[i];
    if (output.bytes == 0) continue;
    if (!on_device_) {
      queue.read(results[i], output.memory.get(), output.bytes);
    } else if (placed_outputs_[i].aside) {
      queue.copy(results[i], output.memory.get(), output.bytes);
    }
  }
}

void DeviceWorkspace::run_in(DeviceQueue& queue, const std::vector<InputView>& views, const std::vector<void*>& results) {
  refuse_shared_outputs(evaluation_.island(), results, output_bytes_);
  if (on_device_) place_tensors(views, results);
  Drained drained(queue);
  bring(queue, views);
  if (trace::is_on()) started_ns_ = trace::now_ns();
  queue.start(*steps_);
  fetch(queue, results);
  drained.finish();
}

int64_t DeviceWorkspace::run_timed(const std::vector<InputView>& views, const std::vector<void*>& results) {
  DeviceQueue& queue = this->queue(Timing::kWhole);
  run_in(queue, views, results);
  const std::vector<int64_t> times = queue.times();
  return times.empty() ? 0 : times.front();
}

void DeviceWorkspace::run(const std::vector<InputView>& views, const std::vector<void*>& results,
                          std::vector<profile::Sample>* samples) {
  DeviceQueue& queue = this->queue(samples != nullptr ? Timing::kEach : Timing::kNone);
  run_in(queue, views, results);
  if (samples == nullptr) return;
  const Alternative& plan = evaluation_.plan();
  samples->resize(plan.run.size());
  for (std::size_t i = 0; i < plan.run.size(); ++i) {
    const PlanStep& step = plan.run[i];
    (*samples)[i] = {1, 0, evaluation_.value(step.flops_expr), evaluation_.value(step.bytes_expr),
                     evaluation_.cost_ns(step), 1};
  }
  const std::vector<int64_t> times = queue.times();
  for (std::size_t i = 0; i < started_.size(); ++i) (*samples)[started_[i]].ns = times[i];
}

}  // namespace xyntra
