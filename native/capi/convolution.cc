#include "convolution.h"

#include <algorithm>
#include <limits>
#include <string>

#include "border.h"
#include "operation_files.h"

namespace xyntra::capi {
namespace {

constexpr int64_t kMost = std::numeric_limits<int32_t>::max();  // of a size: products of two fit
constexpr int64_t kColumnBytes = int64_t{8} << 20;              // of the columns that are there at a time
constexpr int64_t kLeastPixels = 64;                            // of these, however many channels there are

struct Axis {
  int64_t in = 0, kernel = 0, stride = 0, dilation = 0, before = 0, out = 0;

  // Of output pixels [from, to) those whose tap is in the image, not in the padding.
  int64_t first_inside(int64_t tap, int64_t from, int64_t to) const {
    const int64_t missing = before - tap * dilation;
    return std::clamp(missing <= 0 ? from : (missing + stride - 1) / stride, from, to);
  }
  int64_t end_inside(int64_t tap, int64_t from, int64_t to) const {
    const int64_t room = in + before - tap * dilation;
    return std::clamp(room <= 0 ? from : (room + stride - 1) / stride, from, to);
  }
};

Axis axis(const TensorArgument& x, const TensorArgument& w, const TraceaConv2dParams& params, std::size_t i) {
  const int64_t before = params.padding[i], after = params.padding[i + 2];
  const int64_t stride = params.stride[i] != 0 ? params.stride[i] : 1;
  const int64_t dilation = params.dilation[i] != 0 ? params.dilation[i] : 1;
  if (before < 0 || after < 0) throw Misused("a padding is negative");
  if (stride < 0) throw Misused("a stride of the convolution is negative");
  if (dilation < 0) throw Misused("a dilation is negative");
  if (std::max({before, after, stride, dilation}) > kMost) throw Misused("a padding, stride or dilation is too large");
  Axis made{x.dims[i + 2], w.dims[i + 2], stride, dilation, before, 0};
  if (made.kernel == 0) throw Misused("w has no taps");
  const int64_t room = made.in + before + after - dilation * (made.kernel - 1) - 1;
  if (room < 0) throw Misused("w reaches beyond the padded x");
  made.out = room / stride + 1;
  return made;
}

std::string text(const std::vector<int64_t>& dims) {
  std::string found = "[";
  for (std::size_t i = 0; i < dims.size(); ++i) found += (i != 0 ? "," : "") + std::to_string(dims[i]);
  return found + "]";
}

// One call. Column k of pixel p is at columns[k * pixels + p], for k over channels of all groups and taps.
class Convolution {
 public:
  Convolution(const TensorArgument& x, const TensorArgument& w, const TensorArgument* bias, const TensorArgument& out,
              const TraceaConv2dParams& params, const Tasks& tasks)
      : x_(x), w_(w), bias_(bias), out_(out), tasks_(tasks), groups_(params.groups != 0 ? params.groups : 1) {
    for (const TensorArgument* one : {&x, &w, &out}) {
      if (one->rank() != 4) throw Misused(one->name + " has " + std::to_string(one->rank()) + " axes, not 4");
      if (*std::max_element(one->dims.begin(), one->dims.end()) > kMost) throw Misused(one->name + " has a size that is too large");
    }
    if (groups_ < 0) throw Misused("groups is negative");
    if (w.dims[1] > kMost / groups_ || x.dims[1] != w.dims[1] * groups_ || w.dims[0] % groups_ != 0)
      throw Misused("x " + text(x.dims) + " and w " + text(w.dims) + " do not fit " + std::to_string(groups_) + " groups");
    rows_ = axis(x, w, params, 0);
    columns_ = axis(x, w, params, 1);
    const std::vector<int64_t> shape = {x.dims[0], w.dims[0], rows_.out, columns_.out};
    if (out.dims != shape) throw Misused("out is " + text(out.dims) + ", the result " + text(shape));
    if (bias != nullptr && bias->dims != std::vector<int64_t>{w.dims[0]})
      throw Misused("bias is " + text(bias->dims) + ", not one for each of w");
  }

  void run() const {
    if (out_.is_empty()) return;
    const CompiledFile& gemm = operation("gemm");
    const int64_t maps = w_.dims[0] / groups_, taps = w_.dims[1] * rows_.kernel * columns_.kernel;
    const DenseInput weights(w_, {groups_, maps, taps}, tasks_);
    const int64_t pixels = rows_.out * columns_.out;
    const bool is_direct = is_pointwise();
    const int64_t column_bytes = std::max<int64_t>(groups_ * taps, w_.dims[0]) * static_cast<int64_t>(sizeof(float));
    const int64_t at_once = is_direct ? pixels : std::min(pixels, std::max(kLeastPixels, kColumnBytes / column_bytes));
    MemoryBlock columns, products;
    if (!is_direct) columns = float_block({groups_ * taps, at_once}, "the columns of a convolution");
    const bool is_whole = at_once == pixels && bias_ == nullptr && out_.is_contiguous();
    if (!is_whole) products = float_block({w_.dims[0], at_once}, "the products of a convolution");
    for (int64_t image = 0; image < x_.dims[0]; ++image) {
      const float* const from = static_cast<const float*>(x_.data) + image * x_.strides[0];
      float* const to = static_cast<float*>(out_.data) + image * out_.strides[0];
      for (int64_t first = 0; first < pixels; first += at_once) {
        const int64_t n = std::min(at_once, pixels - first);
        CallersTensor seen{const_cast<float*>(from), TRACEA_FLOAT32, {groups_, taps, n}};
        if (!is_direct) {
          seen.data = columns.data();
          gather(from, first, n, reinterpret_cast<float*>(columns.data()));
        }
        CallersTensor made{is_whole ? to : static_cast<void*>(products.data()), TRACEA_FLOAT32, {groups_, maps, n}};
        gemm.run({weights.tensor(), seen}, {made}, tasks_);
        if (!is_whole) deliver(reinterpret_cast<const float*>(products.data()), first, n, to);
      }
    }
  }

 private:
  // Whether an image of x is its own columns.
  bool is_pointwise() const {
    const auto is_one = [](const Axis& axis) {
      return axis.kernel == 1 && axis.stride == 1 && axis.out == axis.in && axis.before == 0;
    };
    TensorArgument image = x_;
    image.dims[0] = 1;
    return is_one(rows_) && is_one(columns_) && image.is_contiguous();
  }

  void gather(const float* image, int64_t first, int64_t n, float* columns) const {
    const int64_t taps = rows_.kernel * columns_.kernel;
    share(tasks_, static_cast<std::size_t>(x_.dims[1] * taps), [&](std::size_t k) {
      const auto number = static_cast<int64_t>(k);
      const int64_t tap = number % taps;
      const float* const channel = image + number / taps * x_.strides[1];
      gather_tap(channel, tap / columns_.kernel, tap % columns_.kernel, first, n, columns + number * n);
    });
  }

  // What a tap sees of a channel, for pixels [first, first + n) of the output.
  void gather_tap(const float* channel, int64_t tap_row, int64_t tap_column, int64_t first, int64_t n, float* column) const {
    for (int64_t pixel = first; pixel < first + n;) {
      const int64_t row = pixel / columns_.out, from = pixel % columns_.out;
      const int64_t to = std::min(columns_.out, from + first + n - pixel);
      const int64_t y = row * rows_.stride + tap_row * rows_.dilation - rows_.before;
      const bool is_inside = y >= 0 && y < rows_.in;
      const int64_t begin = is_inside ? columns_.first_inside(tap_column, from, to) : to;
      const int64_t end = is_inside ? std::max(begin, columns_.end_inside(tap_column, from, to)) : to;
      const int64_t offset = tap_column * columns_.dilation - columns_.before;
      std::fill(column, column + (begin - from), 0.0F);
      for (int64_t q = begin; q < end; ++q)
        column[q - from] = channel[y * x_.strides[2] + (q * columns_.stride + offset) * x_.strides[3]];
      std::fill(column + (end - from), column + (to - from), 0.0F);
      column += to - from;
      pixel += to - from;
    }
  }

  void deliver(const float* products, int64_t first, int64_t n, float* image) const {
    share(tasks_, static_cast<std::size_t>(w_.dims[0]), [&](std::size_t k) {
      const auto map = static_cast<int64_t>(k);
      const float added = bias_ != nullptr ? static_cast<const float*>(bias_->data)[map * bias_->strides[0]] : 0.0F;
      for (int64_t i = 0; i < n; ++i) {
        const int64_t row = (first + i) / columns_.out, column = (first + i) % columns_.out;
        const float value = products[map * n + i];
        image[map * out_.strides[1] + row * out_.strides[2] + column * out_.strides[3]] = bias_ != nullptr ? value + added : value;
      }
    });
  }

  const TensorArgument &x_, &w_;
  const TensorArgument* const bias_;
  const TensorArgument& out_;
  const Tasks& tasks_;
  const int64_t groups_;
  Axis rows_, columns_;
};

}  // namespace

void convolve(const TensorArgument& x, const TensorArgument& w, const TensorArgument* bias, const TensorArgument& out,
              const TraceaConv2dParams& params, const Tasks& tasks) {
  Convolution(x, w, bias, out, params, tasks).run();
}

}  // namespace xyntra::capi
