// The operations of include/tracea/tracea.h.
#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "border.h"
#include "convolution.h"
#include "operation_files.h"
#include "tensor_argument.h"
#include "tracea/tracea.h"

namespace xyntra::capi {
namespace {

constexpr int64_t kFusedHeads[] = {64, 128};  // sizes of heads with kernels of their own

TensorArgument floats(const TraceaTensorView* view, const char* name) {
  if (view == nullptr) throw Misused(std::string("there is no ") + name);
  TensorArgument argument = tensor_argument(*view, name);
  if (argument.elem_type != TRACEA_FLOAT32)
    throw Error(kNotImplemented, argument.name + " is not of float32, the only type of operations");
  return argument;
}

std::optional<TensorArgument> optional_floats(const TraceaTensorView* view, const char* name) {
  return view != nullptr ? std::optional(floats(view, name)) : std::nullopt;
}

void check_output(const TensorArgument& out, std::initializer_list<const TensorArgument*> inputs) {
  check_distinct(out);
  for (const TensorArgument* input : inputs) {
    if (input != nullptr && overlap(out, *input)) throw Misused(out.name + " overlaps " + input->name);
  }
}

Threads threads_of(const TraceaExecution& execution) {
  check_threads(execution.threads, "params");
  if (execution.stream != nullptr) throw Error(kNotImplemented, "a stream is of CUDA; operations run on the CPU");
  return Threads(execution.threads, execution.parallel_for, execution.parallel_for_user);
}

void check_fits(bool fits, const char* what) {
  if (!fits) throw Misused(std::string("sizes do not fit: ") + what);
}

// Whether the last two axes are those of a matrix without gaps that strides transpose, and what it is then.
std::optional<TensorArgument> transposed(const TensorArgument& matrices) {
  TensorArgument found = matrices;
  std::swap(found.dims[found.rank() - 2], found.dims[found.rank() - 1]);
  std::swap(found.strides[found.rank() - 2], found.strides[found.rank() - 1]);
  return !matrices.is_contiguous() && found.is_contiguous() ? std::optional(found) : std::nullopt;
}

void gemm(const TensorArgument& a, const TensorArgument& b, const TensorArgument* bias, const TensorArgument& out,
          const Tasks& tasks) {
  for (const TensorArgument* one : {&a, &b, &out}) {
    if (one->rank() != 2 && one->rank() != 3)
      throw Misused(one->name + " has " + std::to_string(one->rank()) + " axes, not 2 or 3");
  }
  if (bias != nullptr && bias->rank() != 1) throw Misused("bias has " + std::to_string(bias->rank()) + " axes, not 1");
  const std::size_t last = a.rank() - 1;
  const int64_t rows = a.dims[last - 1], depth = a.dims[last], columns = b.dims.back();
  int64_t batch = a.rank() == 3 ? a.dims[0] : 1;
  check_fits(b.rank() <= a.rank() && out.rank() == a.rank(), "a, b and out have other axes");
  check_fits(b.dims[b.rank() - 2] == depth, "the columns of a, the rows of b");
  check_fits(out.dims[last - 1] == rows && out.dims[last] == columns, "the rows of a, the columns of b, those of out");
  check_fits(a.rank() == 2 || (out.dims[0] == batch && (b.rank() == 2 || b.dims[0] == batch)), "the first axes of a, b and out");
  check_fits(bias == nullptr || bias->dims[0] == columns, "the columns of b, the bias");
  if (out.is_empty()) return;

  const int64_t products = b.rank() == 2 ? 1 : batch;  // what shares b is one product
  const int64_t all_rows = batch / products * rows;
  const std::optional<TensorArgument> b_transposed = transposed(b);
  const DenseInput left(a, {products, all_rows, depth}, tasks);
  const DenseInput right = b_transposed ? DenseInput(*b_transposed, {products, columns, depth}, tasks)
                                        : DenseInput(b, {products, depth, columns}, tasks);
  std::vector<CallersTensor> inputs = {left.tensor(), right.tensor()};
  std::optional<DenseInput> added;
  if (bias != nullptr) inputs.push_back(added.emplace(*bias, bias->dims, tasks).tensor());
  const DenseOutput result(out, {products, all_rows, columns});
  const std::string name = std::string("gemm") + (b_transposed ? "_nt" : "") + (bias != nullptr ? "_bias" : "");
  operation(name).run(inputs, {result.tensor()}, tasks);
  result.deliver(tasks);
}

// Of [B,G,T,D] one for each of `heads`, as [B * heads,1,T,D].
DenseInput for_heads(const TensorArgument& given, int64_t heads, const Tasks& tasks) {
  TensorArgument shared = given;
  if (given.dims[1] != heads) {
    shared.dims = {given.dims[0], given.dims[1], heads / given.dims[1], given.dims[2], given.dims[3]};
    shared.strides = {given.strides[0], given.strides[1], 0, given.strides[2], given.strides[3]};
  }
  return DenseInput(shared, {given.dims[0] * heads, 1, given.dims[2], given.dims[3]}, tasks);
}

// What is added to the scores of query i and key j.
MemoryBlock causal_mask(int64_t queries, int64_t keys) {
  MemoryBlock mask = float_block({queries, keys}, "a mask");
  auto* values = reinterpret_cast<float*>(mask.data());
  for (int64_t i = 0; i < queries; ++i) {
    for (int64_t j = 0; j < keys; ++j) *values++ = j <= i ? 0.0F : -std::numeric_limits<float>::infinity();
  }
  return mask;
}

void attention(const TensorArgument& q, const TensorArgument& k, const TensorArgument& v, const TensorArgument& out,
               const TraceaAttentionParams& params, const Tasks& tasks) {
  for (const TensorArgument* one : {&q, &k, &v, &out}) {
    if (one->rank() != 4) throw Misused(one->name + " has " + std::to_string(one->rank()) + " axes, not 4");
  }
  const int64_t batch = q.dims[0], heads = q.dims[1], queries = q.dims[2], depth = q.dims[3];
  const int64_t groups = k.dims[1], keys = k.dims[2], width = v.dims[3];
  check_fits(k.dims[0] == batch && v.dims[0] == batch && out.dims[0] == batch, "the batch of q, k, v and out");
  check_fits(v.dims[1] == groups && (groups == heads || (groups != 0 && heads % groups == 0)), "the heads of q, k and v");
  check_fits(k.dims[3] == depth, "the depth of q and k");
  check_fits(v.dims[2] == keys, "the keys, the values");
  check_fits(out.dims[1] == heads && out.dims[2] == queries && out.dims[3] == width, "q, v and out");
  if (!std::isfinite(params.scale)) throw Misused("scale is not a finite number");
  if (out.is_empty()) return;
  if (keys == 0 || depth == 0) throw Misused("there is no key, or none has a value");

  float scale = params.scale != 0.0F ? params.scale : 1.0F / std::sqrt(static_cast<float>(depth));
  const DenseInput query = for_heads(q, heads, tasks), key = for_heads(k, heads, tasks), value = for_heads(v, heads, tasks);
  std::vector<CallersTensor> inputs = {query.tensor(), key.tensor(), value.tensor(), {&scale, TRACEA_FLOAT32, {1}}};
  const DenseOutput result(out, {batch * heads, 1, queries, width});
  const bool is_fused = depth == width && std::find(std::begin(kFusedHeads), std::end(kFusedHeads), depth) != std::end(kFusedHeads);
  MemoryBlock mask;
  std::string name = is_fused ? "attention_" + std::to_string(depth) : "attention";
  if (params.is_causal != 0) {
    name += is_fused ? "_causal" : "_masked";
    if (!is_fused) {
      mask = causal_mask(queries, keys);
      inputs.push_back({mask.data(), TRACEA_FLOAT32, {queries, keys}});
    }
  }
  operation(name).run(inputs, {result.tensor()}, tasks);
  result.deliver(tasks);
}

}  // namespace
}  // namespace xyntra::capi

using xyntra::capi::guarded;

TraceaStatus tracea_gemm(const TraceaTensorView* a, const TraceaTensorView* b, const TraceaTensorView* bias,
                         const TraceaTensorView* out, const TraceaGemmParams* params) {
  return guarded(TRACEA_INVALID_PARAMS, [&] {
    using namespace xyntra::capi;
    const TraceaGemmParams given = known(params, "params");
    const Threads threads = threads_of(given.execution);
    const TensorArgument left = floats(a, "a"), right = floats(b, "b"), result = floats(out, "out");
    const std::optional<TensorArgument> added = optional_floats(bias, "bias");
    check_output(result, {&left, &right, added ? &*added : nullptr});
    gemm(left, right, added ? &*added : nullptr, result, threads);
  });
}

TraceaStatus tracea_conv2d(const TraceaTensorView* x, const TraceaTensorView* w, const TraceaTensorView* bias,
                           const TraceaTensorView* out, const TraceaConv2dParams* params) {
  return guarded(TRACEA_INVALID_PARAMS, [&] {
    using namespace xyntra::capi;
    const TraceaConv2dParams given = known(params, "params");
    const Threads threads = threads_of(given.execution);
    const TensorArgument images = floats(x, "x"), weights = floats(w, "w"), result = floats(out, "out");
    const std::optional<TensorArgument> added = optional_floats(bias, "bias");
    check_output(result, {&images, &weights, added ? &*added : nullptr});
    convolve(images, weights, added ? &*added : nullptr, result, given, threads);
  });
}

TraceaStatus tracea_attention(const TraceaTensorView* q, const TraceaTensorView* k, const TraceaTensorView* v,
                              const TraceaTensorView* out, const TraceaAttentionParams* params) {
  return guarded(TRACEA_INVALID_PARAMS, [&] {
    using namespace xyntra::capi;
    const TraceaAttentionParams given = known(params, "params");
    const Threads threads = threads_of(given.execution);
    const TensorArgument queries = floats(q, "q"), keys = floats(k, "k"), values = floats(v, "v"), result = floats(out, "out");
    check_output(result, {&queries, &keys, &values});
    attention(queries, keys, values, result, given, threads);
  });
}
