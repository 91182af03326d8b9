#include "workspace.h"

#include <algorithm>

namespace xyntra {
namespace {

int64_t task_count(int64_t units, int64_t cost_ns) noexcept {
  return cost_ns < kInlineNs ? 1 : std::max<int64_t>(1, std::min(units, cost_ns / kTaskNs));
}

char* offset_by(void* base, int64_t offset) noexcept { return static_cast<char*>(base) + offset; }

}  // namespace

void Workspace::prepare(const std::vector<ReadyAlternative>& alternatives, const std::vector<InputView>& views) {
  if (!evaluation_.prepare(views)) return;
  try {
    take_memory();
    fill_tables(alternatives[evaluation_.alternative()], views);
  } catch (...) {
    evaluation_.forget();
    throw;
  }
}

void Workspace::take_memory() {
  const std::size_t wanted = evaluation_.arena_bytes();
  if (wanted <= arena_.size()) return;
  arena_ = MemoryBlock();  // first free, then allocate: the peak is what one shape needs
  arena_ = MemoryBlock(wanted);
}

void Workspace::fill_tables(const ReadyAlternative& ready, const std::vector<InputView>& views) {
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
      const int64_t offset = evaluation_.offset_in(from, use, views);
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

// A temporary has spare bytes behind it, so there always is a first one.
const PlanFault* Workspace::fault() const noexcept {
  for (const PlanFault& fault : evaluation_.plan().faults) {
    if (arena_.data()[evaluation_.arena_at(fault.buffer)] != 0) return &fault;
  }
  return nullptr;
}

void Workspace::bind(const std::vector<InputView>& views, const std::vector<void*>& results) noexcept {
  for (const Patch& patch : patches_) {
    // Kernels take all buffers as void*; the plan names inputs as things to read only.
    void* base = patch.is_output ? results[patch.index] : const_cast<void*>(views[patch.index].data);
    slots_[patch.slot] = offset_by(base, patch.offset);
  }
}

}  // namespace xyntra
