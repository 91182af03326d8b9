// Tracea for C++17: tracea.h with owners and exceptions. Header only; link libxyntra_ep.so, or `find_package(tracea)`.
//
//   tracea::Model model("compiled.onnx");
//   std::vector<float> x(4 * 64), y(4 * 5);
//   model.run({{x.data(), {4, 64}}}, {{y.data(), {4, 5}}});
//
//   tracea::Conv2dParams params;
//   params.padding = {1, 1, 1, 1};
//   tracea::conv2d({image.data(), {1, 3, 32, 32}}, {kernel.data(), {8, 3, 3, 3}}, std::nullopt, {out.data(), {1, 8, 32, 32}}, params);
#ifndef TRACEA_TRACEA_HPP
#define TRACEA_TRACEA_HPP

#include <array>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tracea.h"

namespace tracea {

inline std::string version() { return tracea_version(); }

inline std::string get_last_error() {
  std::string text(tracea_get_last_error(nullptr, 0) + 1, '\0');
  text.resize(tracea_get_last_error(text.data(), text.size()));
  return text;
}

// A failed call: what it has said, and its status.
class Error : public std::runtime_error {
 public:
  Error(TraceaStatus status, const std::string& message) : std::runtime_error(message), status_(status) {}
  TraceaStatus status() const noexcept { return status_; }
  // Whether what is left of the model is nothing: tracea_is_fatal().
  bool is_fatal() const noexcept { return tracea_is_fatal(status_) != 0; }

 private:
  TraceaStatus status_;
};

inline void check(TraceaStatus status) {
  if (status != TRACEA_SUCCESS) throw Error(status, get_last_error());
}

enum class DType : int {
  kFloat32 = TRACEA_FLOAT32,
  kUint8 = TRACEA_UINT8,
  kInt8 = TRACEA_INT8,
  kUint16 = TRACEA_UINT16,
  kInt16 = TRACEA_INT16,
  kInt32 = TRACEA_INT32,
  kInt64 = TRACEA_INT64,
  kBool = TRACEA_BOOL,
  kFloat16 = TRACEA_FLOAT16,
  kFloat64 = TRACEA_FLOAT64,
  kUint32 = TRACEA_UINT32,
  kUint64 = TRACEA_UINT64,
  kBfloat16 = TRACEA_BFLOAT16,
};

template <class T>
constexpr DType dtype_of() {
  using U = std::remove_cv_t<T>;
  if constexpr (std::is_same_v<U, float>) return DType::kFloat32;
  else if constexpr (std::is_same_v<U, double>) return DType::kFloat64;
  else if constexpr (std::is_same_v<U, bool>) return DType::kBool;
  else if constexpr (std::is_same_v<U, uint8_t>) return DType::kUint8;
  else if constexpr (std::is_same_v<U, int8_t>) return DType::kInt8;
  else if constexpr (std::is_same_v<U, uint16_t>) return DType::kUint16;
  else if constexpr (std::is_same_v<U, int16_t>) return DType::kInt16;
  else if constexpr (std::is_same_v<U, uint32_t>) return DType::kUint32;
  else if constexpr (std::is_same_v<U, int32_t>) return DType::kInt32;
  else if constexpr (std::is_same_v<U, uint64_t>) return DType::kUint64;
  else {
    static_assert(std::is_same_v<U, int64_t>, "no element type of ONNX; name it: TensorView(pointer, shape, DType::kFloat16)");
    return DType::kInt64;
  }
}

// A tensor in memory of the caller's, which must live as long as calls use it.
class TensorView {
 public:
  TensorView(void* ptr, std::vector<int64_t> shape, DType dtype, int32_t device_id = TRACEA_CPU)
      : ptr_(ptr), shape_(std::move(shape)), dtype_(dtype), device_id_(device_id) {}
  template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
  TensorView(T* ptr, std::vector<int64_t> shape)
      : TensorView(const_cast<std::remove_const_t<T>*>(ptr), std::move(shape), dtype_of<T>()) {}

  TensorView& with_stride(std::vector<int64_t> stride) {
    stride_ = std::move(stride);
    return *this;
  }
  const std::vector<int64_t>& shape() const noexcept { return shape_; }
  // Valid as long as this is neither changed nor gone.
  TraceaTensorView view() const {
    if (!stride_.empty() && stride_.size() != shape_.size()) throw Error(TRACEA_INVALID_PARAMS, "a tensor has other strides than axes");
    return {ptr_, static_cast<uint32_t>(shape_.size()), shape_.data(), stride_.empty() ? nullptr : stride_.data(),
            static_cast<TraceaDType>(dtype_), device_id_};
  }

 private:
  void* ptr_;
  std::vector<int64_t> shape_, stride_;
  DType dtype_;
  int32_t device_id_;
};

// What a model says of an input or output. A size is -1 where it is not fixed, and has a name then, or "".
struct TensorInfo {
  std::string name;
  DType dtype{};
  bool has_rank = false;
  std::vector<int64_t> shape;
  std::vector<std::string> symbols;
};

struct ModelOptions {
  uint32_t threads = 0;
  std::string digests;
  // Calls task(i) for each i below `count` on threads of yours; must not throw.
  std::function<void(std::size_t count, const std::function<void(std::size_t)>& task)> parallel_for;
};

// A model that `xyntra compile` has written. Any number of threads may run it.
class Model {
 public:
  explicit Model(const std::string& path, ModelOptions options = {}) : state_(std::make_unique<State>(std::move(options))) {
    const TraceaModelOptions given = state_->options();
    check(tracea_model_open(path.c_str(), &given, &state_->model));
  }
  static Model from_bytes(const void* bytes, std::size_t n, ModelOptions options = {}) {
    Model made(std::make_unique<State>(std::move(options)));
    const TraceaModelOptions given = made.state_->options();
    check(tracea_model_open_bytes(bytes, n, &given, &made.state_->model));
    return made;
  }

  std::vector<TensorInfo> inputs() const { return infos(tracea_model_input, true); }
  std::vector<TensorInfo> outputs() const { return infos(tracea_model_output, false); }

  std::vector<int64_t> output_shape(const std::vector<TensorView>& inputs, std::size_t number = 0) const {
    const std::vector<TraceaTensorView> given = views(inputs);
    uint32_t rank = 0;
    std::vector<int64_t> shape(TRACEA_MAX_RANK);
    check(tracea_model_output_shape(state_->model, given.data(), given.size(), number, &rank, shape.data()));
    shape.resize(rank);
    return shape;
  }

  void run(const std::vector<TensorView>& inputs, const std::vector<TensorView>& outputs) const {
    const std::vector<TraceaTensorView> given = views(inputs), wanted = views(outputs);
    check(tracea_model_run(state_->model, given.data(), given.size(), wanted.data(), wanted.size()));
  }

 private:
  // Where it is stays: the library has pointers to it.
  struct State {
    explicit State(ModelOptions given) : chosen(std::move(given)) {}
    ~State() { tracea_model_close(model); }
    State(const State&) = delete;
    State& operator=(const State&) = delete;
    TraceaModelOptions options() {
      TraceaModelOptions made{};
      made.struct_size = sizeof made;
      made.threads = chosen.threads;
      made.digests = chosen.digests.empty() ? nullptr : chosen.digests.c_str();
      if (chosen.parallel_for) {
        made.parallel_for = [](void* user, std::size_t count, void (*task)(void*, std::size_t), void* argument) {
          static_cast<State*>(user)->chosen.parallel_for(count, [&](std::size_t i) { task(argument, i); });
        };
        made.parallel_for_user = this;
      }
      return made;
    }
    ModelOptions chosen;
    TraceaModel* model = nullptr;
  };

  explicit Model(std::unique_ptr<State> state) : state_(std::move(state)) {}

  static std::vector<TraceaTensorView> views(const std::vector<TensorView>& tensors) {
    std::vector<TraceaTensorView> found;
    for (const TensorView& tensor : tensors) found.push_back(tensor.view());
    return found;
  }

  template <class Get>
  std::vector<TensorInfo> infos(Get get, bool of_inputs) const {
    std::size_t n_inputs = 0, n_outputs = 0;
    check(tracea_model_counts(state_->model, &n_inputs, &n_outputs));
    std::vector<TensorInfo> found;
    for (std::size_t i = 0; i < (of_inputs ? n_inputs : n_outputs); ++i) {
      TraceaTensorInfo info{};
      info.struct_size = sizeof info;
      check(get(state_->model, i, &info));
      TensorInfo& one = found.emplace_back();
      one.name = info.name;
      one.dtype = static_cast<DType>(info.dtype);
      one.has_rank = info.rank >= 0;
      for (int32_t k = 0; k < info.rank; ++k) {
        one.shape.push_back(info.shape[k]);
        one.symbols.emplace_back(info.symbol[k]);
      }
    }
    return found;
  }

  std::unique_ptr<State> state_;
};

// Of a call of an operation; tracea.h says what each takes.
struct Execution {
  uint32_t threads = 0;
  void* stream = nullptr;
  // Calls task(i) for each i below `count` on threads of yours; must not throw.
  std::function<void(std::size_t count, const std::function<void(std::size_t)>& task)> parallel_for;

  // Valid as long as this is neither changed nor gone.
  TraceaExecution view() const {
    TraceaExecution made{};
    made.threads = threads;
    made.stream = stream;
    if (parallel_for) {
      made.parallel_for = [](void* user, std::size_t count, void (*task)(void*, std::size_t), void* argument) {
        static_cast<const Execution*>(user)->parallel_for(count, [&](std::size_t i) { task(argument, i); });
      };
      made.parallel_for_user = const_cast<Execution*>(this);
    }
    return made;
  }
};

struct GemmParams {
  Execution execution;
};

struct Conv2dParams {
  std::array<int64_t, 2> stride = {1, 1};
  std::array<int64_t, 4> padding = {0, 0, 0, 0};  // top, left, bottom, right
  std::array<int64_t, 2> dilation = {1, 1};
  int64_t groups = 1;
  Execution execution;
};

struct AttentionParams {
  float scale = 0;  // 0: 1/sqrt(D)
  bool is_causal = false;
  Execution execution;
};

inline void gemm(const TensorView& a, const TensorView& b, const std::optional<TensorView>& bias, const TensorView& out,
                 const GemmParams& params = {}) {
  TraceaGemmParams given{};
  given.struct_size = sizeof given;
  given.execution = params.execution.view();
  const TraceaTensorView left = a.view(), right = b.view(), result = out.view();
  const TraceaTensorView added = bias ? bias->view() : TraceaTensorView{};
  check(tracea_gemm(&left, &right, bias ? &added : nullptr, &result, &given));
}

inline void conv2d(const TensorView& x, const TensorView& w, const std::optional<TensorView>& bias, const TensorView& out,
                   const Conv2dParams& params = {}) {
  TraceaConv2dParams given{};
  given.struct_size = sizeof given;
  given.execution = params.execution.view();
  for (std::size_t i = 0; i < 2; ++i) given.stride[i] = params.stride[i];
  for (std::size_t i = 0; i < 4; ++i) given.padding[i] = params.padding[i];
  for (std::size_t i = 0; i < 2; ++i) given.dilation[i] = params.dilation[i];
  given.groups = params.groups;
  const TraceaTensorView images = x.view(), weights = w.view(), result = out.view();
  const TraceaTensorView added = bias ? bias->view() : TraceaTensorView{};
  check(tracea_conv2d(&images, &weights, bias ? &added : nullptr, &result, &given));
}

inline void attention(const TensorView& q, const TensorView& k, const TensorView& v, const TensorView& out,
                      const AttentionParams& params = {}) {
  TraceaAttentionParams given{};
  given.struct_size = sizeof given;
  given.execution = params.execution.view();
  given.scale = params.scale;
  given.is_causal = params.is_causal ? 1 : 0;
  const TraceaTensorView queries = q.view(), keys = k.view(), values = v.view(), result = out.view();
  check(tracea_attention(&queries, &keys, &values, &result, &given));
}

}  // namespace tracea

#endif
