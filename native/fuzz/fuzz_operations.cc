// Arguments of the operations of include/tracea/tracea.h, on one buffer. Nonsense is a status with a reason, and nothing beyond the
// buffer is touched. With XYNTRA_PREBUILT_DIR what makes sense is computed, too.
#include <cstring>
#include <initializer_list>
#include <vector>

#include "fuzz.h"
#include "tracea/tracea.h"

namespace {

using xyntra::fuzz::must;

constexpr int64_t kRoom = 4096;  // floats

class Bytes {
 public:
  Bytes(const uint8_t* data, std::size_t size) : data_(data), size_(size) {}
  uint8_t next() { return at_ < size_ ? data_[at_++] : 0; }
  // Mostly small; now and then any.
  int64_t number() {
    const uint8_t first = next();
    if (first < 248) return first % 12;
    if (first < 252) return first - 252;
    uint64_t value = 0;
    for (int i = 0; i < 8; ++i) value = value << 8 | next();
    return static_cast<int64_t>(value);
  }

 private:
  const uint8_t* const data_;
  const std::size_t size_;
  std::size_t at_ = 0;
};

struct Tensor {
  Tensor(Bytes& in, float* room, uint32_t usual_rank) {
    const uint8_t kind = in.next();
    const uint32_t rank = kind < 240 ? usual_rank : kind % 20;
    for (uint32_t i = 0; i < rank; ++i) shape.push_back(in.number());
    for (uint32_t i = 0; i < rank; ++i) stride.push_back(in.number());
    const uint8_t where = in.next();
    view.ptr = where == 0 ? nullptr : room + where % 16 * (kRoom / 16);
    view.rank = rank;
    view.shape = shape.data();
    view.stride = kind % 2 != 0 ? stride.data() : nullptr;
    view.dtype = static_cast<TraceaDType>(where < 250 ? TRACEA_FLOAT32 : where - 250);
    view.device_id = kind == 1 ? 0 : TRACEA_CPU;
    left = kRoom - where % 16 * (kRoom / 16);
  }

  // Whether the library may believe it: what it takes for a tensor of floats lies within the buffer.
  bool is_honest() const {
    __int128 reach = 1, step = 1;
    bool is_possible = view.ptr != nullptr;
    for (std::size_t i = shape.size(); i-- > 0;) {
      is_possible = is_possible && shape[i] > 0 && (view.stride == nullptr || stride[i] >= 0);
      if (!is_possible) return true;
      reach += static_cast<__int128>(shape[i] - 1) * (view.stride != nullptr ? stride[i] : step);
      step *= shape[i];
      if (reach > kRoom || step > kRoom) return false;
    }
    return reach <= left;
  }

  std::vector<int64_t> shape, stride;
  TraceaTensorView view{};
  int64_t left = 0;
};

void fill(Bytes& in, TraceaExecution& execution) {
  execution.threads = in.next() < 250 ? 1 : 5000;
  if (in.next() == 255) execution.stream = &execution;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  Bytes in(data, size);
  std::vector<float> room(kRoom, 1.0F);
  const int which = in.next() % 3;
  const uint32_t rank = which == 0 ? 2 + in.next() % 2 : 4;
  std::vector<Tensor> tensors;
  for (int i = 0; i < 4; ++i) tensors.emplace_back(in, room.data(), i == 2 && which != 2 ? 1 : rank);
  for (const Tensor& tensor : tensors) {
    if (!tensor.is_honest()) return 0;
  }
  const TraceaTensorView* const third = in.next() % 2 != 0 || which == 2 ? &tensors[2].view : nullptr;
  TraceaStatus status = TRACEA_SUCCESS;
  if (which == 0) {
    TraceaGemmParams params{};
    params.struct_size = sizeof params;
    fill(in, params.execution);
    status = tracea_gemm(&tensors[0].view, &tensors[1].view, third, &tensors[3].view, &params);
  } else if (which == 1) {
    TraceaConv2dParams params{};
    params.struct_size = sizeof params;
    fill(in, params.execution);
    for (int64_t* numbers : {&params.stride[0], &params.stride[1], &params.padding[0], &params.padding[1], &params.padding[2],
                             &params.padding[3], &params.dilation[0], &params.dilation[1], &params.groups})
      *numbers = in.number();
    status = tracea_conv2d(&tensors[0].view, &tensors[1].view, third, &tensors[3].view, &params);
  } else {
    TraceaAttentionParams params{};
    params.struct_size = sizeof params;
    fill(in, params.execution);
    params.is_causal = in.next() % 2;
    const int32_t scale = static_cast<int32_t>(in.number());
    std::memcpy(&params.scale, &scale, sizeof scale);
    status = tracea_attention(&tensors[0].view, &tensors[1].view, third, &tensors[3].view, &params);
  }
  must(status == TRACEA_SUCCESS || tracea_get_last_error(nullptr, 0) > 0, "what fails says why");
  return 0;
}
