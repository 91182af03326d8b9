#include "evaluation.h"

#include <algorithm>
#include <cstring>

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

}  // namespace

bool Evaluation::prepare(const std::vector<InputView>& inputs) {
  read_key(inputs);
  if (active_ != nullptr && key_ == seen_key_) return false;

  active_ = nullptr;  // stays so when anything below throws
  check_ranks(inputs);
  const auto& alternatives = island_.alternatives;
  const auto found = std::find_if(alternatives.begin(), alternatives.end(),
                                  [&](const Alternative& plan) { return applies(plan, inputs); });
  if (found == alternatives.end()) {
    throw Error(kInvalidArgument,
                "XyntraEP: island '" + island_.name + "' has no plan for " + shapes_text(island_, inputs));
  }
  for (const PlanCheck& check : found->checks) {
    if (values_[check.expr] == 0) {
      throw Error(kInvalidArgument, "XyntraEP: " + check.message + " (" + shapes_text(island_, inputs) + ")");
    }
  }
  find_output_dims(*found, inputs);
  place_arena(*found);
  active_ = &*found;
  seen_key_ = key_;
  return true;
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
  plan.exprs.evaluate(symbols_.data(), values_.data());
  return std::all_of(plan.guards.begin(), plan.guards.end(), [&](uint32_t guard) { return values_[guard] != 0; });
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
  }
}

// Big buffers first, each at the lowest place that no buffer alive at the same time occupies.
void Evaluation::place_arena(const Alternative& plan) {
  const auto& buffers = plan.buffers;
  at_.assign(buffers.size(), 0);
  bytes_.assign(buffers.size(), 0);
  for (const uint32_t b : plan.arena) {
    const int64_t bytes = values_[buffers[b].size_expr];
    if (bytes < 0) throw Error(kRuntimeException, "XyntraEP: a temporary of negative size");
    if (bytes > INT64_MAX / 4) throw NoMemory(static_cast<std::size_t>(bytes), "a temporary");
    bytes_[b] = align_up(static_cast<std::size_t>(bytes) + kSpareBytes, alignment_);
  }
  order_ = plan.arena;
  std::sort(order_.begin(), order_.end(),
            [&](uint32_t a, uint32_t b) { return bytes_[a] != bytes_[b] ? bytes_[a] > bytes_[b] : a < b; });
  placed_.clear();  // by address
  placed_.reserve(order_.size());
  std::size_t total = 0;
  for (const uint32_t b : order_) {
    std::size_t at = 0;
    for (const uint32_t other : placed_) {
      if (buffers[other].last < buffers[b].first || buffers[b].last < buffers[other].first) continue;
      if (at + bytes_[b] <= at_[other]) break;
      at = std::max(at, at_[other] + bytes_[other]);
    }
    at_[b] = at;
    if (__builtin_add_overflow(at, bytes_[b], &at) || at > SIZE_MAX / 4) throw NoMemory(at, "temporaries");
    total = std::max(total, at);
    const auto behind = std::upper_bound(placed_.begin(), placed_.end(), b,
                                         [&](uint32_t x, uint32_t y) { return at_[x] < at_[y]; });
    placed_.insert(behind, b);
  }
  arena_bytes_ = total;
}

}  // namespace xyntra
