// A TraceaTensorView that was looked at, and what becomes of strides: kernels take tensors without gaps, in row-major order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "compiled_file.h"
#include "memory_block.h"
#include "tracea/tracea.h"

namespace xyntra::capi {

struct TensorArgument {
  std::string name;
  void* data = nullptr;
  int32_t elem_type = 0;
  std::vector<int64_t> dims, strides;  // in elements

  std::size_t rank() const noexcept { return dims.size(); }
  bool is_empty() const noexcept;
  bool is_contiguous() const noexcept;
  // From its first element to behind its last one.
  std::size_t span_bytes() const;
};

// Throws what is wrong with the view, whatever is to be done with it. `name`: for messages.
TensorArgument tensor_argument(const TraceaTensorView& view, const std::string& name);

// Whether the addresses from the first to the last element of both have some in common.
bool overlap(const TensorArgument& a, const TensorArgument& b);

// Throws Misused for an output of which two elements are at one address.
void check_distinct(const TensorArgument& output);

// Calls body(i), which throws nothing, for each i below `count`.
template <class Body>
void share(const Tasks& tasks, std::size_t count, Body body) {
  if (count == 1) return body(0);
  if (count != 0) tasks.run([](void* step, std::size_t i) { (*static_cast<Body*>(step))(i); }, count, &body);
}

// Copies floats from one layout to another.
void copy_floats(const float* from, const std::vector<int64_t>& from_strides, float* to, const std::vector<int64_t>& to_strides,
                 const std::vector<int64_t>& dims, const Tasks& tasks);

std::vector<int64_t> row_major(const std::vector<int64_t>& dims);

// Memory for floats of a call.
MemoryBlock float_block(const std::vector<int64_t>& dims, const char* what);

// An input without gaps: the caller's own where it has none, else a copy.
class DenseInput {
 public:
  // `dims`: what it is for a kernel, of as many elements.
  DenseInput(const TensorArgument& argument, std::vector<int64_t> dims, const Tasks& tasks);
  const CallersTensor& tensor() const noexcept { return tensor_; }

 private:
  MemoryBlock copy_;
  CallersTensor tensor_;
};

// An output without gaps: the caller's own, or a temporary that deliver() copies to it.
class DenseOutput {
 public:
  DenseOutput(const TensorArgument& argument, std::vector<int64_t> dims);
  const CallersTensor& tensor() const noexcept { return tensor_; }
  void deliver(const Tasks& tasks) const;

 private:
  const TensorArgument& argument_;
  MemoryBlock copy_;
  CallersTensor tensor_;
};

}  // namespace xyntra::capi
