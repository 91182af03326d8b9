#include "copy_kernels.h"

#include <memory>
#include <vector>

#include "tensor_device.h"
#include "graph_access.h"

namespace xyntra {

class CopyKernels::Kernel : public OrtKernelImpl {
 public:
  Kernel(const Ort& ort, int ordinal, bool to_device)
      : OrtKernelImpl{}, ort_(ort), ordinal_(ordinal), to_device_(to_device) {
    ort_version_supported = ort_.api_version();
    Compute = [](OrtKernelImpl* self, OrtKernelContext* context) {
      const auto& kernel = *static_cast<Kernel*>(self);
      return guard(kernel.ort_, [&] { kernel.run(context); });
    };
    Release = [](OrtKernelImpl* self) { delete static_cast<Kernel*>(self); };
  }

 private:
  void run(OrtKernelContext* context) const {
    const OrtValue* from = nullptr;
    ort_.check(ort_[api::kKernelContextGetInput](context, 0, &from));
    const TensorShape shape = tensor_shape(ort_, from);
    OrtValue* to = nullptr;
    ort_.check(ort_[api::kKernelContextGetOutput](context, 0, shape.dims, shape.rank, &to));
    const std::size_t bytes = get(ort_, from, api::kGetTensorSizeInBytes);
    if (bytes == 0) return;
    const void* const source = get(ort_, from, api::kGetTensorData);
    void* const target = get(ort_, to, api::kGetTensorMutableData);
    if (source == nullptr || target == nullptr) throw NoMemory(bytes, "a tensor");
    const TensorDevice& device = TensorDevice::at(ordinal_);
    if (to_device_) {
      device.copy_in(target, source, bytes);
    } else {
      device.copy_out(target, source, bytes);
    }
  }

  const Ort& ort_;
  const int ordinal_;
  const bool to_device_;
};

CopyKernels::CopyKernels(const Ort& ort, const char* provider, int ordinal) : ort_(ort), ordinal_(ordinal) {
  ort_.check(ort_.ep()[ep_api::kCreateKernelRegistry](&registry_));
  try {
    add(provider, "MemcpyFromHost", true);
    add(provider, "MemcpyToHost", false);
  } catch (...) {
    ort_.ep()[ep_api::kReleaseKernelRegistry](registry_);
    throw;
  }
}

CopyKernels::~CopyKernels() { ort_.ep()[ep_api::kReleaseKernelRegistry](registry_); }

void CopyKernels::add(const char* provider, const char* op, bool to_device) {
  const FunctionTable& ep = ort_.ep();
  const auto release_builder = [&](OrtKernelDefBuilder* made) { ep[ep_api::kReleaseKernelDefBuilder](made); };
  OrtKernelDefBuilder* made = nullptr;
  ort_.check(ep[ep_api::kCreateKernelDefBuilder](&made));
  const std::unique_ptr<OrtKernelDefBuilder, decltype(release_builder)> builder(made, release_builder);
  ort_.check(ep[ep_api::kKernelDefOperatorType](made, op));
  ort_.check(ep[ep_api::kKernelDefDomain](made, ""));
  ort_.check(ep[ep_api::kKernelDefSinceVersion](made, 1, 1));
  ort_.check(ep[ep_api::kKernelDefProvider](made, provider));
  ort_.check(to_device ? ep[ep_api::kKernelDefInputMemory](made, 0, kInputOnCpu)
                       : ep[ep_api::kKernelDefOutputMemory](made, 0, kOutputOnCpu));
  std::vector<const OrtDataType*> types;
  for (const int type : {1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 16}) {  // ONNX's numbers: all numbers and bool, no strings
    types.emplace_back();
    ort_.check(ep[ep_api::kGetTensorDataType](type, &types.back()));
  }
  ort_.check(ep[ep_api::kKernelDefTypes](made, "T", types.data(), types.size()));
  OrtKernelDef* built = nullptr;
  ort_.check(ep[ep_api::kKernelDefBuild](made, &built));
  const auto release_def = [&](OrtKernelDef* def) { ep[ep_api::kReleaseKernelDef](def); };
  const std::unique_ptr<OrtKernelDef, decltype(release_def)> def(built, release_def);
  ort_.check(ep[ep_api::kAddKernel](registry_, built, to_device ? create<true> : create<false>, this));
}

template <bool to_device>
OrtStatus* CopyKernels::create(void* self, const OrtKernelInfo*, OrtKernelImpl** out) {
  const auto& kernels = *static_cast<CopyKernels*>(self);
  return guard(kernels.ort_, [&] { *out = new Kernel(kernels.ort_, kernels.ordinal_, to_device); });
}

}  // namespace xyntra
