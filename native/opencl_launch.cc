#include "opencl_launch.h"

#include <limits>

namespace xyntra {

OpenClLaunch::OpenClLaunch(const OpenClDevice& device, const LoadedKernel& kernel, int64_t units) : device_(device) {
  if (units <= 0) return;
  kernel_ = device.kernel(kernel.program, kernel.symbol);
  group_ = device.group_size(kernel_.get());
  groups_ = static_cast<std::size_t>(units);
  if (group_ == 0) throw Error(kFail, "XyntraEP: the kernel " + kernel.symbol + " requires no size of its groups");
}

void OpenClLaunch::add(cl::Mem buffer) {
  device_.check(device_.api().SetKernelArg(kernel_.get(), next_++, sizeof(buffer), &buffer), "a kernel's buffer");
}

void OpenClLaunch::add(int64_t param) {
  if (param < std::numeric_limits<int32_t>::min() || param > std::numeric_limits<int32_t>::max())
    throw Error(kRuntimeException, "XyntraEP: a size of " + std::to_string(param) + " is too large for this device");
  const auto narrow = static_cast<int32_t>(param);
  device_.check(device_.api().SetKernelArg(kernel_.get(), next_++, sizeof(narrow), &narrow), "a kernel's parameter");
}

void OpenClLaunch::enqueue(cl::Queue queue, cl::Event* event) const {
  const std::size_t items = groups_ * group_;
  device_.check(device_.api().EnqueueNDRangeKernel(queue, kernel_.get(), 1, nullptr, &items, &group_, 0, nullptr, event),
                "a kernel");
}

}  // namespace xyntra
