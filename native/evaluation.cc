#include "evaluation.h"

#include <algorithm>
#include <cstring>

#include "element_bytes.h"
#include "memory_block.h"
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

// Of a tensor that is there: only an empty one can have extents whose product does not fit.
int64_t element_count(const InputView& input) noexcept {
  int64_t n = 1;
  for (std::size_t i = 0; i < input.rank; ++i) {
    if (input.dims[i] == 0) return 0;
    if (__builtin_mul_overflow(n, input.dims[i], &n)) n = INT64_MAX;
  }
  return n;
}

// All that decides about an address or about what a kernel is told. Not costs: they are estimates.
template <class Visit>
void each_size(const Alternative& plan, const Visit& visit) {
  for (const PlanCheck& check : plan.checks) visit(check.expr);
  for (const auto& dims : plan.output_dims) std::for_each(dims.begin(), dims.end(), visit);
  for (const uint32_t buffer : plan.arena) visit(plan.buffers[buffer].size_expr);
  for (const PlanStep& step : plan.run) {
    visit(step.units_expr);
    std::for_each(step.params.begin(), step.params.end(), visit);
    for (const BufferUse& use : step.buffers) {
      if (use.offset_expr != kNoOffset) visit(use.offset_expr);
    }
    for (const CopiedTensor& tensor : step.tensors) {
      visit(tensor.offset_expr);
      for (const auto* sizes : {&tensor.extents, &tensor.strides}) std::for_each(sizes->begin(), sizes->end(), visit);
    }
  }
  for (const BatchLoop& loop : plan.loops) {
    visit(loop.iterations_expr);
    for (const BatchLoop::Stride& stride : loop.strides) visit(stride.bytes_expr);
  }
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

}  // namespace

bool Evaluation::prepare(const std::vector<InputView>& inputs, int64_t abreast) {
  read_key(inputs);
  if (active_ != nullptr && key_ == seen_key_ && (abreast == abreast_ || active_->loops.empty())) return false;

  active_ = nullptr;  // stays so when anything below throws
  abreast_ = abreast;
  check_ranks(inputs);
  const auto& alternatives = island_.alternatives;
  const auto found = std::find_if(alternatives.begin(), alternatives.end(),
                                  [&](const Alternative& plan) { return applies(plan, inputs); });
  if (found == alternatives.end()) {
    throw Error(kInvalidArgument,
                "XyntraEP: island '" + island_.name + "' has no plan for " + shapes_text(island_, inputs));
  }
  for (const PlanCheck& check : found->checks) {
    if (values_[check.expr] != 0) continue;
    int64_t a = 0, b = 0;
    const bool differ = found->exprs.unequal(check.expr, values_, a, b);
    refuse(check.message + (differ ? ": " + std::to_string(a) + " and " + std::to_string(b) : ""), inputs);
  }
  find_output_dims(*found, inputs);
  check_units(*found, inputs);
  place_arena(*found);
  active_ = &*found;
  seen_key_ = key_;
  return true;
}

void Evaluation::refuse(const std::string& what, const std::vector<InputView>& inputs) const {
  throw Error(kInvalidArgument, "XyntraEP: " + what + " (" + shapes_text(island_, inputs) + ")");
}

// Elements are read for all alternatives, because they decide which one applies.
void Evaluation::read_key(const std::vector<InputView>& inputs) {
  key_.clear();
  for (const InputView& input : inputs) {
    key_.push_back(static_cast<int64_t>(input.rank));
    key_.insert(key_.end(), input.dims, input.dims + input.rank);
  }
  for (const Alternative& plan : island_.alternatives) {
    for (const Symbol& symbol : plan.elements) {
      int64_t value = 0;
      read_symbol(symbol, inputs[symbol.input], island_.inputs[symbol.input].elem_type, value);
      key_.push_back(value);
    }
  }
}

void Evaluation::check_ranks(const std::vector<InputView>& inputs) const {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const int32_t rank = island_.inputs[i].rank;
    if (rank < 0 || inputs[i].rank == static_cast<std::size_t>(rank)) continue;
    throw Error(kInvalidArgument, "XyntraEP: input '" + island_.inputs[i].name + "' has shape " +
                                      shape_text(inputs[i]) + " of rank " + std::to_string(inputs[i].rank) +
                                      ", the model says rank " + std::to_string(rank));
  }
}

bool Evaluation::applies(const Alternative& plan, const std::vector<InputView>& inputs) {
  symbols_.resize(plan.exprs.symbols().size());
  for (std::size_t i = 0; i < symbols_.size(); ++i) {
    const Symbol& symbol = plan.exprs.symbols()[i];
    if (!read_symbol(symbol, inputs[symbol.input], island_.inputs[symbol.input].elem_type, symbols_[i])) return false;
  }
  values_.resize(plan.exprs.size());
  if (!plan.exprs.evaluate(symbols_.data(), values_.data())) return applies_as_far_as_it_fits(plan, inputs);
  return std::all_of(plan.guards.begin(), plan.guards.end(), [&](uint32_t guard) { return values_[guard] != 0; });
}

// Something did not fit into 64 bits. That may be a number that nobody uses, as the end of a slice counted from the front where
// it is counted from the back.
bool Evaluation::applies_as_far_as_it_fits(const Alternative& plan, const std::vector<InputView>& inputs) const {
  const std::vector<uint8_t> spoiled = plan.exprs.spoiled(values_);
  const auto use = [&](uint32_t expr) {
    if (spoiled[expr] != 0) refuse("a size is too large", inputs);
  };
  for (const uint32_t guard : plan.guards) {
    use(guard);
    if (values_[guard] == 0) return false;
  }
  each_size(plan, use);
  return true;
}

// No step is to be left out, with what it would have written, because its size is nonsense.
void Evaluation::check_units(const Alternative& plan, const std::vector<InputView>& inputs) const {
  for (const PlanStep& step : plan.run) {
    if (values_[step.units_expr] < 0) refuse("step '" + step.label + "' would have a negative size", inputs);
  }
  for (const BatchLoop& loop : plan.loops) {
    const PlanStep& step = plan.run[loop.first];
    if (values_[loop.iterations_expr] < 0) refuse("step '" + step.label + "' would have a negative number of images", inputs);
  }
}

int64_t Evaluation::abreast(const BatchLoop& loop) const noexcept {
  return std::clamp<int64_t>(iterations(loop), 1, std::max<int64_t>(1, abreast_));
}

int64_t Evaluation::image_bytes(const BatchLoop* loop, const PlanStep& step, uint32_t buffer) const noexcept {
  if (loop == nullptr || values_[step.units_expr] == 0) return 0;
  for (const BatchLoop::Stride& stride : loop->strides) {
    if (stride.buffer == buffer) return values_[stride.bytes_expr];
  }
  return 0;
}

int64_t Evaluation::offset_in(const PlanStep& step, const BufferUse& use, const std::vector<InputView>& inputs,
                              const BatchLoop* loop) const {
  const int64_t each = image_bytes(loop, step, use.buffer);
  if (use.offset_expr == kNoOffset && each == 0) return 0;
  const PlanBuffer& buffer = active_->buffers[use.buffer];
  const int64_t offset = use.offset_expr == kNoOffset ? 0 : values_[use.offset_expr];
  std::size_t bytes = 0;
  switch (buffer.kind) {
    case BufferKind::kInput:
      bytes = tensor_bytes(island_.inputs[buffer.index].elem_type, inputs[buffer.index].dims, inputs[buffer.index].rank);
      break;
    case BufferKind::kOutput: {
      const auto& dims = output_dims_[buffer.index];
      bytes = tensor_bytes(island_.outputs[buffer.index].elem_type, dims.data(), dims.size());
      break;
    }
    case BufferKind::kLiteral: bytes = buffer.literal.size(); break;
    default: bytes = static_cast<std::size_t>(values_[buffer.size_expr]); break;  // found not to be negative
  }
  int64_t last = 0;  // where the last image begins
  const bool fits = each == 0 || (!__builtin_mul_overflow(each, std::max<int64_t>(0, iterations(*loop) - 1), &last) &&
                                  each > 0 && !__builtin_add_overflow(last, offset, &last));
  if (!fits || offset < 0 || static_cast<std::size_t>(std::max(offset, last)) > bytes)
    refuse("step '" + step.label + "' would begin outside of its buffer", inputs);
  return offset;
}

void Evaluation::find_output_dims(const Alternative& plan, const std::vector<InputView>& inputs) {
  output_dims_.resize(plan.output_dims.size());
  for (std::size_t i = 0; i < output_dims_.size(); ++i) {
    const auto& dims = plan.output_dims[i];
    output_dims_[i].resize(dims.size());
    for (std::size_t d = 0; d < dims.size(); ++d) {
      output_dims_[i][d] = values_[dims[d]];
      if (output_dims_[i][d] < 0) {
        throw Error(kInvalidArgument, "XyntraEP: output '" + island_.outputs[i].name +
                                          "' would have a negative dimension for " + shapes_text(island_, inputs));
      }
    }
    tensor_bytes(island_.outputs[i].elem_type, output_dims_[i].data(), dims.size());  // that it fits
  }
}

// Big buffers first, each at the lowest place that no buffer alive at the same time occupies.
void Evaluation::place_arena(const Alternative& plan) {
  const auto& buffers = plan.buffers;
  at_.assign(buffers.size(), 0);
  bytes_.assign(buffers.size(), 0);
  for (const uint32_t b : plan.arena) {
    const int64_t bytes = values_[buffers[b].size_expr];
    if (bytes < 0) throw Error(kInvalidArgument, "XyntraEP: a temporary would have a negative size");
    if (bytes > INT64_MAX / 4) throw NoMemory(static_cast<std::size_t>(bytes), "a temporary");
    bytes_[b] = align_up(static_cast<std::size_t>(bytes) + kSpareBytes, alignment_);
  }
  room_ = bytes_;
  for (const uint32_t b : plan.arena) {
    if (plan.loop_of[b] < 0) continue;
    const int64_t copies = abreast(plan.loops[static_cast<std::size_t>(plan.loop_of[b])]);
    if (__builtin_mul_overflow(bytes_[b], static_cast<std::size_t>(copies), &room_[b]))
      throw NoMemory(SIZE_MAX, "a temporary");
  }
  order_ = plan.arena;
  std::sort(order_.begin(), order_.end(),
            [&](uint32_t a, uint32_t b) { return room_[a] != room_[b] ? room_[a] > room_[b] : a < b; });
  placed_.clear();  // by address
  placed_.reserve(order_.size());
  std::size_t total = 0;
  for (const uint32_t b : order_) {
    std::size_t at = 0;
    for (const uint32_t other : placed_) {
      if (buffers[other].last < buffers[b].first || buffers[b].last < buffers[other].first) continue;
      if (at + room_[b] <= at_[other]) break;
      at = std::max(at, at_[other] + room_[other]);
    }
    at_[b] = at;
    if (__builtin_add_overflow(at, room_[b], &at) || at > SIZE_MAX / 4) throw NoMemory(at, "temporaries");
    total = std::max(total, at);
    const auto behind = std::upper_bound(placed_.begin(), placed_.end(), b,
                                         [&](uint32_t x, uint32_t y) { return at_[x] < at_[y]; });
    placed_.insert(behind, b);
  }
  arena_bytes_ = total;
}

}  // namespace xyntra
