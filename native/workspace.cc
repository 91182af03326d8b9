#include "workspace.h"

#include <algorithm>
#include <bitset>
#include <cstring>
#include <utility>

#include "element_bytes.h"

namespace xyntra {
namespace {

int64_t task_count(int64_t units, int64_t cost_ns, int64_t abreast) noexcept {
  return cost_ns < kInlineNs / abreast ? 1 : std::max<int64_t>(1, std::min(units, cost_ns / kTaskNs));
}

char* offset_by(void* base, int64_t offset) noexcept { return static_cast<char*>(base) + offset; }

const BatchLoop* loop_at(const Alternative& plan, std::size_t step) noexcept {
  for (const BatchLoop& loop : plan.loops) {
    if (loop.contains(step)) return &loop;
  }
  return nullptr;
}

// The steps of which no order is known that step `i` is one of.
std::pair<std::size_t, std::size_t> together(const Alternative& plan, std::size_t i) noexcept {
  if (const BatchLoop* loop = loop_at(plan, i)) return {loop->first, loop->last};
  for (const PlanWave& wave : plan.waves) {
    if (wave.first <= i && i <= wave.last) return {wave.first, wave.last};
  }
  return {i, i};
}

}  // namespace

void Workspace::prepare(const std::vector<ReadyAlternative>& alternatives) {
  if (!evaluation_.prepare(inputs, threads_)) return;
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

// Steps are done one after the other, each by any number of threads; those of a loop again and again, those of a wave at once.
void Workspace::find_order() {
  const Alternative& plan = evaluation_.plan();
  reads_.assign(input_bytes_.size(), 0);
  first_write_.assign(output_bytes_.size(), plan.run.size());
  for (std::size_t i = 0; i < plan.run.size(); ++i) {
    const auto [first, last] = together(plan, i);
    for (const BufferUse& use : plan.run[i].buffers) {
      const PlanBuffer& buffer = plan.buffers[use.buffer];
      if (buffer.kind == BufferKind::kInput) reads_[buffer.index] = last + 1;
      if (buffer.kind == BufferKind::kOutput) first_write_[buffer.index] = std::min(first_write_[buffer.index], first);
    }
  }
}

void Workspace::fill_tables(const ReadyAlternative& ready) {
  const Alternative& plan = evaluation_.plan();
  slots_.clear();
  params_.clear();
  patches_.clear();
  moving_.clear();
  steps_.clear();
  for (std::size_t i = 0; i < plan.run.size(); ++i) {
    const PlanStep& from = plan.run[i];
    const BatchLoop* loop = loop_at(plan, i);
    Step step;
    step.kernel = ready.kernels[i];
    step.row = from.buffers.size();
    step.units = evaluation_.value(from.units_expr);
    step.cost_ns = evaluation_.value(from.cost_expr);
    if (loop != nullptr) step.abreast = evaluation_.abreast(*loop);
    step.tasks = task_count(step.units, step.cost_ns, step.abreast);
    if (!plan.loops.empty()) step.threads = &seen_;
    for (int64_t k = 0; k < step.abreast; ++k) fill_row(ready, from, loop, k);
    for (const uint32_t param : from.params) params_.push_back(evaluation_.value(param));
    steps_.push_back(step);
  }
  kernels_ = &ready.kernels;
  // The vectors have their final place only now.
  void** slot = slots_.data();
  const int64_t* param = params_.data();
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    steps_[i].buffers = slot;
    steps_[i].params = param;
    slot += steps_[i].row * static_cast<std::size_t>(steps_[i].abreast);
    param += plan.run[i].params.size();
  }
  for (Moving& slot : moving_) slot.base = slots_[slot.slot];
}

void Workspace::use(const std::vector<Kernel>& kernels) noexcept {
  if (kernels_ == &kernels) return;
  for (std::size_t i = 0; i < steps_.size(); ++i) steps_[i].kernel = kernels[i];
  kernels_ = &kernels;
}

void Workspace::fill_row(const ReadyAlternative& ready, const PlanStep& step, const BatchLoop* loop, int64_t abreast) {
  const Alternative& plan = evaluation_.plan();
  for (const BufferUse& use : step.buffers) {
    const PlanBuffer& buffer = plan.buffers[use.buffer];
    const int64_t offset = evaluation_.offset_in(step, use, inputs, loop);
    const int64_t image = evaluation_.image_bytes(loop, step, use.buffer);
    const bool bound = buffer.kind == BufferKind::kInput || buffer.kind == BufferKind::kOutput;
    if (image != 0) moving_.push_back({loop, slots_.size(), abreast, image, bound});
    void* base = ready.fixed[use.buffer];
    if (buffer.kind == BufferKind::kArena) {
      base = arena_.data() + evaluation_.arena_at(use.buffer);
      if (plan.loop_of[use.buffer] >= 0)
        base = offset_by(base, abreast * static_cast<int64_t>(evaluation_.arena_bytes_of(use.buffer)));
    }
    if (bound) {
      patches_.push_back({slots_.size(), buffer.index, buffer.kind == BufferKind::kOutput, offset});
      slots_.push_back(nullptr);
    } else {
      slots_.push_back(offset_by(base, offset));
    }
  }
}

int64_t Workspace::begin_iterations(const BatchLoop& loop, int64_t first) {
  const int64_t count = std::min(evaluation_.abreast(loop), evaluation_.iterations(loop) - first);
  for (const Moving& slot : moving_) {
    if (slot.loop == &loop && slot.abreast < count)
      slots_[slot.slot] = offset_by(slot.base, (first + slot.abreast) * slot.bytes);
  }
  return count;
}

void Workspace::count_threads() noexcept {
  if (evaluation_.plan().loops.empty()) return;
  const auto seen = static_cast<int64_t>(std::bitset<64>(seen_.exchange(0, std::memory_order_relaxed)).count());
  threads_ = std::max(threads_, seen);
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
  for (Moving& slot : moving_) {
    if (slot.bound) slot.base = slots_[slot.slot];
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
