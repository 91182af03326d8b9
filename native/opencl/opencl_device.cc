#include "opencl_device.h"

#include <algorithm>
#include <map>
#include <memory>
#include <vector>

#include "kernel_loader.h"
#include "memory_block.h"
#include "opencl_queue.h"

namespace xyntra {
namespace {

// PoCL has a version of each kernel for launches of fewer work items.
constexpr std::size_t kSmallLaunch = std::size_t{1} << 16;
// The last argument of a kernel that can be launched for nothing.
constexpr char kGo[] = "go";

struct Listed {
  cl::DeviceId id = nullptr;
  std::string identity;
};

template <class Owner>
std::string text_of(cl::Int (*get)(Owner, cl::Uint, size_t, void*, size_t*), Owner owner, cl::Uint what) {
  std::size_t bytes = 0;
  if (get(owner, what, 0, nullptr, &bytes) != cl::kSuccess || bytes == 0) return {};
  std::string text(bytes, '\0');
  if (get(owner, what, bytes, text.data(), nullptr) != cl::kSuccess) return {};
  text.resize(std::min(text.find('\0'), text.size()));
  return text;
}

std::vector<Listed> all_devices(const cl::Api& api) {
  cl::Uint n = 0;
  if (api.GetPlatformIDs(0, nullptr, &n) != cl::kSuccess) return {};
  std::vector<cl::Platform> platforms(n);
  if (n == 0 || api.GetPlatformIDs(n, platforms.data(), nullptr) != cl::kSuccess) return {};
  std::vector<Listed> devices;
  std::map<std::string, int> seen;
  for (const cl::Platform platform : platforms) {
    const std::string name = text_of(api.GetPlatformInfo, platform, cl::kPlatformName);
    cl::Uint count = 0;
    if (api.GetDeviceIDs(platform, cl::kAllDevices, 0, nullptr, &count) != cl::kSuccess || count == 0) continue;
    std::vector<cl::DeviceId> ids(count);
    if (api.GetDeviceIDs(platform, cl::kAllDevices, count, ids.data(), nullptr) != cl::kSuccess) continue;
    for (const cl::DeviceId id : ids) {
      std::string identity = OpenClDevice::kPrefix + name + " / " + text_of(api.GetDeviceInfo, id, cl::kDeviceName) + " / " +
                             text_of(api.GetDeviceInfo, id, cl::kDriverVersion);
      const int before = seen[identity]++;
      if (before > 0) identity += " #" + std::to_string(before);
      devices.push_back({id, std::move(identity)});
    }
  }
  return devices;
}

const DeviceApi kApi(OpenClDevice::kPrefix,
                     [](const std::string& identity) -> std::unique_ptr<const Device> { return OpenClDevice::open(identity); });

}  // namespace

std::unique_ptr<const OpenClDevice> OpenClDevice::open(const std::string& identity) {
  std::string why;
  const cl::Api* const api = cl::api(&why);
  if (api == nullptr) throw Error(kFail, why);
  for (const Listed& listed : all_devices(*api)) {
    if (listed.identity == identity) return std::unique_ptr<const OpenClDevice>(new OpenClDevice(*api, identity, listed.id));
  }
  throw Error(kFail, "the OpenCL device '" + identity + "' is not on this machine");
}

OpenClDevice::OpenClDevice(const cl::Api& api, std::string identity, cl::DeviceId id)
    : api_(&api), identity_(std::move(identity)), id_(id) {
  cl::Int code = cl::kSuccess;
  context_ = api.CreateContext(nullptr, 1, &id, nullptr, nullptr, &code);
  check(code, "its context");
  cl::Uint bits = 0;
  check(api.GetDeviceInfo(id, cl::kMemBaseAddrAlign, sizeof(bits), &bits, nullptr), "its alignment");
  alignment_ = std::max<std::size_t>(kAlignment, bits / 8);
}

cl::OwnedQueue OpenClDevice::open_queue(Timing timing) const {
  cl::Int code = cl::kSuccess;
  cl::OwnedQueue queue(api_->CreateCommandQueue(context_, id_, timing != Timing::kNone ? cl::kProfilingEnable : 0, &code));
  check(code, "a queue");
  return queue;
}

DeviceMemory OpenClDevice::buffer(std::size_t bytes) const {
  cl::Int code = cl::kSuccess;
  DeviceMemory memory(this, api_->CreateBuffer(context_, cl::kReadWrite, bytes + kSpareBytes, nullptr, &code));
  check(code, "a buffer");
  return memory;
}

DeviceMemory OpenClDevice::part(const DeviceMemory& whole, std::size_t at, std::size_t bytes) const {
  cl::Int code = cl::kSuccess;
  const cl::Region region{at, bytes};
  const auto mem = static_cast<cl::Mem>(whole.get());
  DeviceMemory memory(this, api_->CreateSubBuffer(mem, cl::kReadWrite, cl::kCreateRegion, &region, &code));
  check(code, "a part of a buffer");
  return memory;
}

DeviceMemory OpenClDevice::buffer_of(const void* data, std::size_t bytes) const {
  if (bytes == 0) return buffer(0);
  cl::Int code = cl::kSuccess;
  // OpenCL only reads what it copies from.
  void* const from = const_cast<void*>(data);
  DeviceMemory memory(this, api_->CreateBuffer(context_, cl::kReadOnly | cl::kCopyHostPtr, bytes, from, &code));
  check(code, "a buffer of constants");
  return memory;
}

void OpenClDevice::release(void* memory) const noexcept { api_->ReleaseMemObject(static_cast<cl::Mem>(memory)); }

std::unique_ptr<DeviceCalls> OpenClDevice::ready(const std::vector<DeviceCall>& calls) const {
  return std::make_unique<OpenClCalls>(*this, calls);
}

std::unique_ptr<DeviceQueue> OpenClDevice::queue(Timing timing) const {
  return std::make_unique<OpenClQueue>(*this, timing);
}

std::string OpenClDevice::compile(const std::string& source, const std::string& options) const {
  cl::Int code = cl::kSuccess;
  const char* text = source.data();
  const std::size_t length = source.size();
  cl::Program const program = api_->CreateProgramWithSource(context_, 1, &text, &length, &code);
  check(code, "a program");
  return binary_of(link(program, "-cl-kernel-arg-info " + options).get());
}

void* OpenClDevice::load(std::string_view binary) const {
  cl::Int code = cl::kSuccess, status = cl::kSuccess;
  const auto* bytes = reinterpret_cast<const unsigned char*>(binary.data());
  const std::size_t length = binary.size();
  cl::Program const program = api_->CreateProgramWithBinary(context_, 1, &id_, &length, &bytes, &status, &code);
  check(code, "a program's binary");
  return (new cl::OwnedProgram(link(program, {})))->get();
}

void OpenClDevice::require(const LoadedKernel& wanted) const {
  kernel(static_cast<cl::Program>(wanted.program), wanted.symbol);
}

cl::OwnedProgram OpenClDevice::link(cl::Program program, const std::string& options) const {
  cl::OwnedProgram owned(program);
  const cl::Int code = api_->BuildProgram(program, 1, &id_, options.c_str(), nullptr, nullptr);
  if (code == cl::kSuccess) {
    finish(program);
    return owned;
  }
  std::size_t bytes = 0;
  std::string log;
  if (api_->GetProgramBuildInfo(program, id_, cl::kProgramBuildLog, 0, nullptr, &bytes) == cl::kSuccess && bytes > 1) {
    log.resize(bytes);
    api_->GetProgramBuildInfo(program, id_, cl::kProgramBuildLog, bytes, log.data(), nullptr);
    log.resize(std::min(log.find('\0'), log.size()));
  }
  raise(code, "a program" + (log.empty() ? log : "\n" + log));
}

std::string OpenClDevice::binary_of(cl::Program program) const {
  std::size_t bytes = 0;
  check(api_->GetProgramInfo(program, cl::kProgramBinarySizes, sizeof(bytes), &bytes, nullptr), "a program's binary");
  std::string binary(bytes, '\0');
  char* at = binary.data();
  check(api_->GetProgramInfo(program, cl::kProgramBinaries, sizeof(at), &at, nullptr), "a program's binary");
  return binary;
}

cl::OwnedKernel OpenClDevice::kernel(cl::Program program, const std::string& symbol) const {
  cl::Int code = cl::kSuccess;
  cl::OwnedKernel kernel(api_->CreateKernel(program, symbol.c_str(), &code));
  if (code != cl::kSuccess) raise(code, "the kernel " + symbol);
  return kernel;
}

void OpenClDevice::finish(cl::Program program) const {
  cl::Uint n = 0;
  check(api_->CreateKernelsInProgram(program, 0, nullptr, &n), "the kernels of a program");
  std::vector<cl::Kernel> kernels(n);
  if (n > 0) check(api_->CreateKernelsInProgram(program, n, kernels.data(), nullptr), "the kernels of a program");
  std::vector<cl::OwnedKernel> owned(kernels.begin(), kernels.end());
  for (const cl::OwnedKernel& kernel : owned) launch_for_nothing(kernel.get());
}

void OpenClDevice::launch_for_nothing(cl::Kernel kernel) const {
  const std::size_t group = group_size(kernel);
  cl::Uint arguments = 0;
  if (group == 0 || api_->GetKernelInfo(kernel, cl::kKernelNumArgs, sizeof(arguments), &arguments, nullptr) != 0) return;
  char last[sizeof(kGo)] = {};
  if (arguments == 0 ||
      api_->GetKernelArgInfo(kernel, arguments - 1, cl::kKernelArgName, sizeof(last), last, nullptr) != cl::kSuccess ||
      std::string_view(last) != kGo)
    return;
  const DeviceMemory nothing = buffer(0);
  for (cl::Uint i = 0; i < arguments; ++i) {
    cl::Uint space = 0;
    if (api_->GetKernelArgInfo(kernel, i, cl::kKernelArgAddressQualifier, sizeof(space), &space, nullptr) != 0) return;
    const int32_t zero = 0;
    void* const mem = nothing.get();
    const bool is_buffer = space == cl::kArgAddressGlobal;
    const void* const value = is_buffer ? static_cast<const void*>(&mem) : &zero;
    if (api_->SetKernelArg(kernel, i, is_buffer ? sizeof(mem) : sizeof(zero), value) != cl::kSuccess) return;
  }
  const cl::OwnedQueue aside = open_queue(Timing::kNone);
  for (const std::size_t groups : {std::size_t{1}, kSmallLaunch / group + 1}) {
    const std::size_t items = groups * group;
    const cl::Int code =
        api_->EnqueueNDRangeKernel(aside.get(), kernel, 1, nullptr, &items, &group, 0, nullptr, nullptr);
    check(code, "a launch of nothing");
  }
  check(api_->Finish(aside.get()), "a launch of nothing");
}

std::size_t OpenClDevice::group_size(cl::Kernel kernel) const {
  std::size_t size[3] = {0, 0, 0};
  check(api_->GetKernelWorkGroupInfo(kernel, id_, cl::kCompileWorkGroupSize, sizeof(size), size, nullptr), "a kernel");
  return size[0];
}

void OpenClDevice::raise(cl::Int code, const std::string& doing) const {
  fail(cl::kind_of(code), "XyntraEP: the OpenCL device '" + identity_ + "' reports " + cl::error_name(code) + " for " + doing);
}

}  // namespace xyntra
