#include "workspace.h"

#include <algorithm>
#include <cstring>

#include "ort.h"

namespace xyntra {
namespace {

std::string shape_text(const InputView& input) {
  std::string text = "[";
  for (std::size_t i = 0; i < input.rank; ++i) text += (i != 0 ? "," : "") + std::to_string(input.dims[i]);
  return text + "]";
}

std::string shapes_text(const PlanIsland& island, const std::vector<InputView>& inputs) {
  std::string text;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    text += (i != 0 ? ", " : "") + island.inputs[i].name + " " + shape_text(inputs[i]);
  }
  return text;
}

int64_t task_count(int64_t units, int64_t cost_ns) noexcept {
  return cost_ns < kInlineNs ? 1 : std::max<int64_t>(1, std::min(units, cost_ns / kTaskNs));
}

int64_t element_count(const InputView& input) noexcept {
  int64_t n = 1;
  for (std::size_t i = 0; i < input.rank; ++i) n *= input.dims[i];
  return n;
}

// False when the input at hand has no such dimension or element.
bool read_symbol(const Symbol& symbol, const InputView& input, int32_t elem_type, int64_t& value) noexcept {
  if (!symbol.is_element) {
    if (symbol.index >= input.rank) return false;
    value = input.dims[symbol.index];
    return true;
  }
  if (static_cast<int64_t>(symbol.index) >= element_count(input)) return false;
  const char* data = static_cast<const char*>(input.data);
  if (elem_type == kElementInt32) {
    int32_t narrow;
    std::memcpy(&narrow, data + symbol.index * sizeof(narrow), sizeof(narrow));
    value = narrow;
  } else {
    std::memcpy(&value, data + symbol.index * sizeof(value), sizeof(value));
  }
  return true;
}

char* offset_by(void* base, int64_t offset) noexcept { return static_cast<char*>(base) + offset; }

}  // namespace

void Workspace::prepare(const PlanIsland& island, const std::vector<ReadyAlternative>& alternatives,
                        const std::vector<InputView>& views) {
  read_key(island, alternatives, views);
  if (active_ != nullptr && key_ == seen_key_) return;

  active_ = nullptr;  // stays so when anything below throws
  for (std::size_t i = 0; i < views.size(); ++i) {
    const int32_t rank = island.inputs[i].rank;
    if (rank >= 0 && views[i].rank != static_cast<std::size_t>(rank)) {
      throw Error(kInvalidArgument, "XyntraEP: input '" + island.inputs[i].name + "' has shape " +
                                        shape_text(views[i]) + " of rank " + std::to_string(views[i].rank) +
                                        ", the model says rank " + std::to_string(rank));
    }
  }
  const auto found = std::find_if(alternatives.begin(), alternatives.end(),
                                  [&](const ReadyAlternative& ready) { return applies(ready, views, island); });
  if (found == alternatives.end()) {
    throw Error(kInvalidArgument,
                "XyntraEP: island '" + island.name + "' has no plan for " + shapes_text(island, views));
  }
  const ReadyAlternative* chosen = &*found;
  for (const PlanCheck& check : chosen->plan->checks) {
    if (values_[check.expr] == 0) {
      throw Error(kInvalidArgument, "XyntraEP: " + check.message + " (" + shapes_text(island, views) + ")");
    }
  }
  output_dims_.resize(chosen->plan->output_dims.size());
  for (std::size_t i = 0; i < output_dims_.size(); ++i) {
    const auto& dims = chosen->plan->output_dims[i];
    output_dims_[i].resize(dims.size());
    for (std::size_t d = 0; d < dims.size(); ++d) {
      output_dims_[i][d] = values_[dims[d]];
      if (output_dims_[i][d] < 0) {
        throw Error(kInvalidArgument, "XyntraEP: output '" + island.outputs[i].name +
                                          "' would have a negative dimension for " + shapes_text(island, views));
      }
    }
  }
  active_ = chosen;
  try {
    place_arena();
    fill_tables();
  } catch (...) {
    active_ = nullptr;
    throw;
  }
  seen_key_ = key_;
}

// Elements are read for all alternatives, because they decide which one applies.
void Workspace::read_key(const PlanIsland& island, const std::vector<ReadyAlternative>& alternatives,
                         const std::vector<InputView>& views) {
  key_.clear();
  for (const InputView& view : views) {
    key_.push_back(static_cast<int64_t>(view.rank));
    key_.insert(key_.end(), view.dims, view.dims + view.rank);
  }
  for (const ReadyAlternative& ready : alternatives) {
    for (const Symbol& symbol : ready.elements) {
      int64_t value = 0;
      read_symbol(symbol, views[symbol.input], island.inputs[symbol.input].elem_type, value);
      key_.push_back(value);
    }
  }
}

bool Workspace::applies(const ReadyAlternative& ready, const std::vector<InputView>& views, const PlanIsland& island) {
  const Alternative& plan = *ready.plan;
  symbols_.resize(plan.exprs.symbols().size());
  for (std::size_t i = 0; i < symbols_.size(); ++i) {
    const Symbol& symbol = plan.exprs.symbols()[i];
    if (!read_symbol(symbol, views[symbol.input], island.inputs[symbol.input].elem_type, symbols_[i])) return false;
  }
  values_.resize(plan.exprs.size());
  plan.exprs.evaluate(symbols_.data(), values_.data());
  return std::all_of(plan.guards.begin(), plan.guards.end(), [&](uint32_t guard) { return values_[guard] != 0; });
}

// Big buffers first, each at the lowest place that no buffer alive at the same time occupies.
void Workspace::place_arena() {
  const auto& buffers = active_->plan->buffers;
  arena_at_.assign(buffers.size(), 0);
  arena_bytes_.assign(buffers.size(), 0);
  for (const uint32_t b : active_->arena) {
    const int64_t bytes = values_[buffers[b].size_expr];
    if (bytes < 0) throw Error(kRuntimeException, "XyntraEP: a temporary of negative size");
    if (bytes > INT64_MAX / 4) throw std::bad_alloc();
    arena_bytes_[b] = align_up(static_cast<std::size_t>(bytes) + kSpareBytes, kAlignment);
  }
  order_ = active_->arena;
  std::sort(order_.begin(), order_.end(), [&](uint32_t a, uint32_t b) {
    return arena_bytes_[a] != arena_bytes_[b] ? arena_bytes_[a] > arena_bytes_[b] : a < b;
  });
  placed_.clear();  // by address
  placed_.reserve(order_.size());
  std::size_t total = 0;
  for (const uint32_t b : order_) {
    std::size_t at = 0;
    for (const uint32_t other : placed_) {
      if (buffers[other].last < buffers[b].first || buffers[b].last < buffers[other].first) continue;
      if (at + arena_bytes_[b] <= arena_at_[other]) break;
      at = std::max(at, arena_at_[other] + arena_bytes_[other]);
    }
    arena_at_[b] = at;
    if (__builtin_add_overflow(at, arena_bytes_[b], &at) || at > SIZE_MAX / 4) throw std::bad_alloc();
    total = std::max(total, at);
    const auto behind = std::upper_bound(placed_.begin(), placed_.end(), b,
                                         [&](uint32_t x, uint32_t y) { return arena_at_[x] < arena_at_[y]; });
    placed_.insert(behind, b);
  }
  if (total > arena_.size()) {
    arena_ = MemoryBlock();  // first free, then allocate: the peak is what one shape needs
    arena_ = MemoryBlock(total);
  }
}

void Workspace::fill_tables() {
  const Alternative& plan = *active_->plan;
  slots_.clear();
  params_.clear();
  patches_.clear();
  steps_.clear();
  for (std::size_t i = 0; i < plan.run.size(); ++i) {
    const PlanStep& from = plan.run[i];
    Step step;
    step.kernel = active_->kernels[i];
    step.units = values_[from.units_expr];
    step.tasks = task_count(step.units, values_[from.cost_expr]);
    for (const BufferUse& use : from.buffers) {
      const PlanBuffer& buffer = plan.buffers[use.buffer];
      const int64_t offset = use.offset_expr == kNoOffset ? 0 : values_[use.offset_expr];
      void* base = active_->fixed[use.buffer];
      if (buffer.kind == BufferKind::kArena) base = arena_.data() + arena_at_[use.buffer];
      if (buffer.kind == BufferKind::kInput || buffer.kind == BufferKind::kOutput) {
        patches_.push_back({slots_.size(), buffer.index, buffer.kind == BufferKind::kOutput, offset});
        slots_.push_back(nullptr);
      } else {
        slots_.push_back(offset_by(base, offset));
      }
    }
    for (const uint32_t param : from.params) params_.push_back(values_[param]);
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

void Workspace::bind(const std::vector<InputView>& views, const std::vector<void*>& results) noexcept {
  for (const Patch& patch : patches_) {
    // Kernels take all buffers as void*; the plan names inputs as things to read only.
    void* base = patch.is_output ? results[patch.index] : const_cast<void*>(views[patch.index].data);
    slots_[patch.slot] = offset_by(base, patch.offset);
  }
}

}  // namespace xyntra
