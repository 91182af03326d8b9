#include "tensor_argument.h"

#include <algorithm>
#include <utility>

#include "border.h"
#include "element_bytes.h"

namespace xyntra::capi {
namespace {

constexpr int64_t kFloatsOfTask = int64_t{1} << 15;

}  // namespace

bool TensorArgument::is_empty() const noexcept { return std::find(dims.begin(), dims.end(), 0) != dims.end(); }

bool TensorArgument::is_contiguous() const noexcept {
  int64_t expected = 1;
  for (std::size_t i = rank(); i-- > 0;) {
    if (dims[i] != 1 && strides[i] != expected) return false;
    expected *= dims[i];
  }
  return true;
}

std::size_t TensorArgument::span_bytes() const {
  if (is_empty()) return 0;
  int64_t last = 0;
  bool fits = true;
  for (std::size_t i = 0; i < rank(); ++i) {
    int64_t reach = 0;
    fits = fits && !__builtin_mul_overflow(dims[i] - 1, strides[i], &reach) && !__builtin_add_overflow(last, reach, &last);
  }
  int64_t bytes = 0;
  fits = fits && last < INT64_MAX && !__builtin_mul_overflow(last + 1, static_cast<int64_t>(element_bytes(elem_type)), &bytes);
  if (!fits || static_cast<uintptr_t>(bytes) > UINTPTR_MAX - reinterpret_cast<uintptr_t>(data))
    throw Misused(name + " reaches beyond the last address");
  return static_cast<std::size_t>(bytes);
}

TensorArgument tensor_argument(const TraceaTensorView& view, const std::string& name) {
  if (view.rank > TRACEA_MAX_RANK) throw Misused(name + " has more than " + std::to_string(TRACEA_MAX_RANK) + " axes");
  if (view.rank != 0 && view.shape == nullptr) throw Misused(name + " has no shape");
  if (view.device_id < TRACEA_CPU) throw Misused(name + " is on a device that there is not");
  if (view.device_id != TRACEA_CPU) throw Error(kNotImplemented, name + " is on a CUDA device; the C functions compute on the CPU");
  TensorArgument argument{name, view.ptr, static_cast<int32_t>(view.dtype), {}, {}};
  for (uint32_t i = 0; i < view.rank; ++i) {
    if (view.shape[i] < 0) throw Misused(name + " has a negative size");
    argument.dims.push_back(view.shape[i]);
  }
  try {
    tensor_bytes(argument.elem_type, argument.dims.data(), argument.dims.size());
  } catch (const Error& error) {
    throw Misused(name + ": " + error.what());
  }
  const bool is_empty = argument.is_empty();
  if (!is_empty && view.ptr == nullptr) throw Misused(name + " is NULL");
  if (reinterpret_cast<uintptr_t>(view.ptr) % element_bytes(argument.elem_type) != 0)
    throw Misused(name + " is not aligned to its elements");
  if (view.stride == nullptr || is_empty) {
    argument.strides = row_major(argument.dims);
  } else {
    for (uint32_t i = 0; i < view.rank; ++i) {
      if (view.stride[i] < 0) throw Misused(name + " has a negative stride");
    }
    argument.strides.assign(view.stride, view.stride + view.rank);
  }
  argument.span_bytes();
  return argument;
}

bool overlap(const TensorArgument& a, const TensorArgument& b) {
  const auto from_a = reinterpret_cast<uintptr_t>(a.data), from_b = reinterpret_cast<uintptr_t>(b.data);
  return from_a < from_b + b.span_bytes() && from_b < from_a + a.span_bytes();
}

// Each axis steps over all that the axes of smaller strides reach.
void check_distinct(const TensorArgument& output) {
  std::vector<std::pair<int64_t, int64_t>> axes;  // stride, size
  for (std::size_t i = 0; i < output.rank(); ++i) {
    if (output.dims[i] > 1) axes.emplace_back(output.strides[i], output.dims[i]);
  }
  if (output.is_empty()) return;
  std::sort(axes.begin(), axes.end());
  int64_t reach = 0;
  for (const auto& [stride, size] : axes) {
    if (stride <= reach) throw Misused(output.name + " has elements that overlap");
    reach += (size - 1) * stride;
  }
}

void copy_floats(const float* from, const std::vector<int64_t>& from_strides, float* to, const std::vector<int64_t>& to_strides,
                 const std::vector<int64_t>& dims, const Tasks& tasks) {
  int64_t rows = 1;
  for (std::size_t i = 0; i + 1 < dims.size(); ++i) rows *= dims[i];
  const int64_t n = dims.empty() ? 1 : dims.back();
  if (rows == 0 || n == 0) return;
  const int64_t from_step = dims.empty() ? 1 : from_strides.back(), to_step = dims.empty() ? 1 : to_strides.back();
  const int64_t rows_of_task = std::max<int64_t>(1, kFloatsOfTask / n);
  share(tasks, static_cast<std::size_t>((rows + rows_of_task - 1) / rows_of_task), [&](std::size_t task) {
    const int64_t first = static_cast<int64_t>(task) * rows_of_task;
    for (int64_t row = first; row < std::min(rows, first + rows_of_task); ++row) {
      const float* source = from;
      float* target = to;
      int64_t rest = row;
      for (std::size_t i = dims.size() - std::min<std::size_t>(dims.size(), 1); i-- > 0;) {
        source += rest % dims[i] * from_strides[i];
        target += rest % dims[i] * to_strides[i];
        rest /= dims[i];
      }
      for (int64_t k = 0; k < n; ++k) target[k * to_step] = source[k * from_step];
    }
  });
}

std::vector<int64_t> row_major(const std::vector<int64_t>& dims) {
  std::vector<int64_t> strides(dims.size(), 1);
  const bool is_empty = std::find(dims.begin(), dims.end(), 0) != dims.end();
  for (std::size_t i = dims.size(); !is_empty && i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return strides;
}

MemoryBlock float_block(const std::vector<int64_t>& dims, const char* what) {
  return MemoryBlock(tensor_bytes(TRACEA_FLOAT32, dims.data(), dims.size()) + kSpareBytes, what);
}

DenseInput::DenseInput(const TensorArgument& argument, std::vector<int64_t> dims, const Tasks& tasks) {
  void* data = argument.data;
  if (!argument.is_empty() && !argument.is_contiguous()) {
    copy_ = float_block(argument.dims, "a tensor without gaps");
    data = copy_.data();
    copy_floats(static_cast<const float*>(argument.data), argument.strides, static_cast<float*>(data), row_major(argument.dims),
                argument.dims, tasks);
  }
  tensor_ = {data, argument.elem_type, std::move(dims)};
}

DenseOutput::DenseOutput(const TensorArgument& argument, std::vector<int64_t> dims) : argument_(argument) {
  if (!argument.is_contiguous()) copy_ = float_block(argument.dims, "a tensor without gaps");
  tensor_ = {copy_.data() != nullptr ? copy_.data() : argument.data, argument.elem_type, std::move(dims)};
}

void DenseOutput::deliver(const Tasks& tasks) const {
  if (copy_.data() == nullptr) return;
  copy_floats(static_cast<const float*>(tensor_.data), row_major(argument_.dims), static_cast<float*>(argument_.data),
              argument_.strides, argument_.dims, tasks);
}

}  // namespace xyntra::capi
