#include "workspace.h"

#include <algorithm>
#include <cstring>

#include "element_bytes.h"

namespace xyntra {
namespace {

int64_t task_count(int64_t units, int64_t cost_ns) noexcept {
  return cost_ns < kInlineNs ? 1 : std::max<int64_t>(1, std::min(units, cost_ns / kTaskNs));
}

char* offset_by(void* base, int64_t offset) noexcept { return static_cast<char*>(base) + offset; }

}  // namespace

void Workspace::prepare(const std::vector<ReadyAlternative>& alternatives) {
  if (!evaluation_.prepare(inputs)) return;
  try {
    find_sizes();
    take_memory();
    fill_tables(alternatives[evaluation_.alternative()]);
  } catch (...) {
    evaluation_.forget();
    throw;
  }
}

void Workspace::take_memory() {
  const std::size_t wanted = evaluation_.arena_bytes();
  if (wanted <= arena_.size()) return;
  arena_ = MemoryBlock();  // first free, then allocate: the peak is what one shape needs
  const std::string what = "the temporaries of island '" + evaluation_.island().name + "'";
  arena_ = MemoryBlock(wanted, what.c_str());
}

void Workspace::find_sizes() {
  const PlanIsland& island = evaluation_.island();
  input_bytes_.resize(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i)
    input_bytes_[i] = tensor_bytes(island.inputs[i].elem_type, inputs[i].dims, inputs[i].rank);
  output_bytes_.resize(island.outputs.size());
  for (std::size_t i = 0; i < output_bytes_.size(); ++i) {
    const auto& dims = evaluation_.output_dims(i);
    output_bytes_[i] = tensor_bytes(island.outputs[i].elem_type, dims.data(), dims.size());
  }
  shared_.expect(input_bytes_, output_bytes_);
  find_order();
}

// Steps are done one after the other, each by any number of threads.
void Workspace::find_order() {
  const Alternative& plan = evaluation_.plan();
  reads_.assign(input_bytes_.size(), 0);
  first_write_.assign(output_bytes_.size(), plan.run.size());
  for (std::size_t i = 0; i < plan.run.size(); ++i) {
    for (const BufferUse& use : plan.run[i].buffers) {
      const PlanBuffer& buffer = plan.buffers[use.buffer];
      if (buffer.kind == BufferKind::kInput) reads_[buffer.index] = i + 1;
      if (buffer.kind == BufferKind::kOutput) first_write_[buffer.index] = std::min(first_write_[buffer.index], i);
    }
  }
}

void Workspace::fill_tables(const ReadyAlternative& ready) {
  const Alternative& plan = evaluation_.plan();
  slots_.clear();
  params_.clear();
  patches_.clear();
  steps_.clear();
  for (std::size_t i = 0; i < plan.run.size(); ++i) {
    const PlanStep& from = plan.run[i];
    Step step;
    step.kernel = ready.kernels[i];
    step.units = evaluation_.value(from.units_expr);
    step.tasks = task_count(step.units, evaluation_.value(from.cost_expr));
    for (const BufferUse& use : from.buffers) {
      const PlanBuffer& buffer = plan.buffers[use.buffer];
      const int64_t offset = evaluation_.offset_in(from, use, inputs);
      void* base = ready.fixed[use.buffer];
      if (buffer.kind == BufferKind::kArena) base = arena_.data() + evaluation_.arena_at(use.buffer);
      if (buffer.kind == BufferKind::kInput || buffer.kind == BufferKind::kOutput) {
        patches_.push_back({slots_.size(), buffer.index, buffer.kind == BufferKind::kOutput, offset});
        slots_.push_back(nullptr);
      } else {
        slots_.push_back(offset_by(base, offset));
      }
    }
    for (const uint32_t param : from.params) params_.push_back(evaluation_.value(param));
    steps_.push_back(step);
  }
  // The vectors have their final place only now.
  void** slot = slots_.data();
  const int64_t* param = params_.data();
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    steps_[i].buffers = slot;
    steps_[i].params = param;
    slot += plan.run[i].buffers.size();
    param += plan.run[i].params.size();
  }
}

const PlanFault* Workspace::fault() const noexcept {
  for (const PlanFault& fault : evaluation_.plan().faults) {
    const char* first = arena_.data() + evaluation_.arena_at(fault.buffer);
    const int64_t bytes = evaluation_.value(evaluation_.plan().buffers[fault.buffer].size_expr);
    if (std::any_of(first, first + bytes, [](char byte) { return byte != 0; })) return &fault;
  }
  return nullptr;
}

void Workspace::bind() {
  aside_.clear();
  if (shared_.find(inputs, outputs)) set_aside();
  for (const Patch& patch : patches_) {
    // Kernels take all buffers as void*; the plan names inputs as things to read only.
    void* base = patch.is_output ? outputs[patch.index] : const_cast<void*>(inputs[patch.index].data);
    slots_[patch.slot] = offset_by(base, patch.offset);
  }
}

void Workspace::set_aside() {
  const PlanIsland& island = evaluation_.island();
  refuse_shared_outputs(island, outputs, output_bytes_);
  aside_memory_.resize(outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!must_be_aside(i)) continue;
    MemoryBlock& memory = aside_memory_[i];
    if (memory.size() < output_bytes_[i]) {
      memory = MemoryBlock();
      const std::string what = "the output '" + island.outputs[i].name + "', which lies over an input,";
      memory = MemoryBlock(output_bytes_[i] + kSpareBytes, what.c_str());
    }
    aside_.push_back({outputs[i], memory.data(), output_bytes_[i]});
    outputs[i] = memory.data();
  }
}

bool Workspace::must_be_aside(std::size_t output) const noexcept {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (reads_[i] > first_write_[output] && overlap(inputs[i].data, input_bytes_[i], outputs[output], output_bytes_[output]))
      return true;
  }
  return false;
}

void Workspace::deliver() const noexcept {
  for (const Aside& output : aside_) std::memcpy(output.to, output.from, output.bytes);
}

void Workspace::rest(quiet::Time now) noexcept {
  most_wanted_ = std::max(most_wanted_, evaluation_.arena_bytes());
  if (now - period_began_ < quiet::period()) return;
  if (most_wanted_ < arena_.size() / 2) arena_.shrink(most_wanted_);
  if (aside_.empty()) aside_memory_.clear();
  most_wanted_ = 0;
  period_began_ = now;
}

}  // namespace xyntra
