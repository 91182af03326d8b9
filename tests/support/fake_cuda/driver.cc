// A CUDA driver for machines without a GPU, as far as native/cuda_api.h asks for one: one device, whose memory is the host's and
// whose programs are shared objects of CUDA text behind block.h. Streams do at once what they are given. Tests put it in the
// driver's place (LD_LIBRARY_PATH).
//
// It is strict where a driver is: calls without a current context, foreign or freed addresses, copies beyond an allocation are
// errors, and what is left at the end is counted. FAKE_CUDA_FAIL="MemAlloc:3" makes the third such call fail;
// FAKE_CUDA_DEVICES and FAKE_CUDA_CAPABILITY (as 80) say what there is.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <elf.h>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#define API extern "C" __attribute__((visibility("default")))

namespace {

constexpr int kSuccess = 0, kInvalidValue = 1, kOutOfMemory = 2, kNoDevice = 100, kInvalidContext = 201, kInvalidImage = 200,
              kNotFound = 500, kIllegalAddress = 700;

std::recursive_mutex mutex;
std::map<std::string, long> counts;
std::map<uint64_t, std::size_t> device_memory, host_memory;
thread_local std::vector<void*> contexts;

int number(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::atoi(text) : otherwise;
}

// Counts the call; whether it is the one to fail.
bool fails(const std::string& name) {
  const long n = ++counts[name];
  const char* wanted = std::getenv("FAKE_CUDA_FAIL");
  return wanted != nullptr && name + ":" + std::to_string(n) == wanted;
}

bool lies_in(const std::map<uint64_t, std::size_t>& blocks, uint64_t at, std::size_t bytes) {
  auto next = blocks.upper_bound(at);
  if (next == blocks.begin()) return false;
  --next;
  return at + bytes <= next->first + next->second;
}

// Of a block: what any launch may give, and what one may that asked for it (compute capability 8.0: 163 KiB, 9.0: 227).
constexpr int kStaticShared = 48 << 10;
int shared_limit() { return (number("FAKE_CUDA_CAPABILITY", 80) >= 90 ? 227 : 163) << 10; }

using Run = int (*)(void* call, unsigned blocks, unsigned threads, unsigned shared_bytes);

struct Launch {
  void* call;
  Run run;
  void (*forget)(void* call);
  unsigned blocks, threads, shared_bytes;

  // Whether the block kept to the memory that it was given.
  int carry_out() const { return run(call, blocks, threads, shared_bytes) == 0 ? kSuccess : kIllegalAddress; }
};

struct Function {
  void* (*bind)(void** args);
  Run run;
  void (*forget)(void* call);
  int threads;
  int shared_bytes = kStaticShared;  // that a launch may give

  bool takes(unsigned of_threads, unsigned of_shared) const {
    return static_cast<int>(of_threads) == threads && static_cast<int>(of_shared) <= shared_bytes;
  }
};

Launch bound(Function* f, unsigned blocks, unsigned threads, unsigned shared_bytes, void** args) {
  return {f->bind(args), f->run, f->forget, blocks, threads, shared_bytes};
}

}  // namespace

#define ENTER(name)                                             \
  const std::lock_guard<std::recursive_mutex> lock(mutex);      \
  if (fails(name)) return kOutOfMemory
#define ENTER_CONTEXT(name) \
  ENTER(name);              \
  if (contexts.empty()) return kInvalidContext

API int cuInit(unsigned) { return number("FAKE_CUDA_DEVICES", 1) > 0 ? kSuccess : kNoDevice; }
// NVRTC in the same process asks for functions that are in no header, and can do without.
API int cuGetExportTable(const void** table, const void*) { return *table = nullptr, kNotFound; }
API int cuDriverGetVersion(int* version) { return *version = 12080, kSuccess; }
API int cuGetErrorName(int code, const char** name) {
  switch (code) {
    case kInvalidValue: *name = "CUDA_ERROR_INVALID_VALUE"; break;
    case kOutOfMemory: *name = "CUDA_ERROR_OUT_OF_MEMORY"; break;
    case kNoDevice: *name = "CUDA_ERROR_NO_DEVICE"; break;
    case kInvalidImage: *name = "CUDA_ERROR_INVALID_IMAGE"; break;
    case kInvalidContext: *name = "CUDA_ERROR_INVALID_CONTEXT"; break;
    case kIllegalAddress: *name = "CUDA_ERROR_ILLEGAL_ADDRESS"; break;
    case kNotFound: *name = "CUDA_ERROR_NOT_FOUND"; break;
    default: return kInvalidValue;
  }
  return kSuccess;
}
API int cuDeviceGetCount(int* n) { return *n = number("FAKE_CUDA_DEVICES", 1), kSuccess; }
API int cuDeviceGet(int* device, int ordinal) { return *device = ordinal, kSuccess; }
API int cuDeviceGetName(char* name, int bytes, int) { return std::snprintf(name, bytes, "Simulated GPU"), kSuccess; }
API int cuDeviceGetAttribute(int* value, int which, int) {
  const int capability = number("FAKE_CUDA_CAPABILITY", 80);
  const std::map<int, int> known = {{1, 1024}, {8, kStaticShared}, {97, shared_limit()}, {13, 1000000}, {16, 4}, {36, 1000000},
                                    {37, 256}, {38, 4 << 20},
                                    {75, capability / 10}, {76, capability % 10}};
  const auto found = known.find(which);
  return found != known.end() ? (*value = found->second, kSuccess) : kInvalidValue;
}
API int cuDeviceTotalMem_v2(std::size_t* bytes, int) { return *bytes = std::size_t{1} << 30, kSuccess; }
API int cuDevicePrimaryCtxRetain(void** context, int) { return *context = &counts, kSuccess; }
API int cuCtxPushCurrent_v2(void* context) { return contexts.push_back(context), kSuccess; }
API int cuCtxPopCurrent_v2(void** context) {
  if (contexts.empty()) return kInvalidContext;
  *context = contexts.back();
  contexts.pop_back();
  return kSuccess;
}

API int cuMemAlloc_v2(uint64_t* address, std::size_t bytes) {
  ENTER_CONTEXT("MemAlloc");
  if (bytes == 0) return kInvalidValue;
  void* const memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  std::memset(memory, 0xff, bytes);  // NaN to floats
  *address = reinterpret_cast<uint64_t>(memory);
  device_memory[*address] = bytes;
  return kSuccess;
}
API int cuMemFree_v2(uint64_t address) {
  ENTER_CONTEXT("MemFree");
  if (device_memory.erase(address) == 0) return kInvalidValue;
  std::free(reinterpret_cast<void*>(address));
  return kSuccess;
}
API int cuMemAllocHost_v2(void** memory, std::size_t bytes) {
  ENTER_CONTEXT("MemAllocHost");
  *memory = std::malloc(bytes);
  host_memory[reinterpret_cast<uint64_t>(*memory)] = bytes;
  return kSuccess;
}
API int cuMemFreeHost(void* memory) {
  ENTER_CONTEXT("MemFreeHost");
  if (host_memory.erase(reinterpret_cast<uint64_t>(memory)) == 0) return kInvalidValue;
  return std::free(memory), kSuccess;
}
API int cuMemcpyHtoD_v2(uint64_t to, const void* from, std::size_t bytes) {
  ENTER_CONTEXT("MemcpyHtoD");
  if (!lies_in(device_memory, to, bytes)) return kInvalidValue;
  return std::memcpy(reinterpret_cast<void*>(to), from, bytes), kSuccess;
}
API int cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, std::size_t bytes, void*) {
  if (!lies_in(host_memory, reinterpret_cast<uint64_t>(from), bytes)) return kInvalidValue;  // to be asynchronous
  return cuMemcpyHtoD_v2(to, from, bytes);
}
API int cuMemcpyDtoHAsync_v2(void* to, uint64_t from, std::size_t bytes, void*) {
  ENTER_CONTEXT("MemcpyDtoH");
  if (!lies_in(device_memory, from, bytes) || !lies_in(host_memory, reinterpret_cast<uint64_t>(to), bytes))
    return kInvalidValue;
  return std::memcpy(to, reinterpret_cast<const void*>(from), bytes), kSuccess;
}

API int cuModuleLoadData(void** module, const void* image) {
  ENTER_CONTEXT("ModuleLoadData");
  const auto* header = static_cast<const Elf64_Ehdr*>(image);
  if (std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return kInvalidImage;
  char path[] = "/tmp/fake-cubin-XXXXXX";
  const int file = mkstemp(path);
  const std::size_t bytes = header->e_shoff + std::size_t{header->e_shnum} * header->e_shentsize;
  const bool written = write(file, image, bytes) == static_cast<ssize_t>(bytes);
  close(file);
  *module = written ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
  unlink(path);
  return *module != nullptr ? kSuccess : kInvalidImage;
}
API int cuModuleGetFunction(void** function, void* module, const char* name) {
  ENTER_CONTEXT("ModuleGetFunction");
  const std::string symbol(name);
  auto f = new Function{};
  f->bind = reinterpret_cast<decltype(f->bind)>(dlsym(module, (symbol + "__bind").c_str()));
  f->run = reinterpret_cast<decltype(f->run)>(dlsym(module, (symbol + "__run").c_str()));
  f->forget = reinterpret_cast<decltype(f->forget)>(dlsym(module, (symbol + "__forget").c_str()));
  const int* threads = static_cast<const int*>(dlsym(module, (symbol + "__threads").c_str()));
  if (f->bind == nullptr || f->run == nullptr || f->forget == nullptr || threads == nullptr) return kNotFound;
  f->threads = *threads;
  return *function = f, kSuccess;
}

API int cuFuncSetAttribute(Function* function, int attribute, int value) {
  ENTER_CONTEXT("FuncSetAttribute");
  if (attribute != 8 || value < 0 || value > shared_limit()) return kInvalidValue;
  return function->shared_bytes = value, kSuccess;
}
API int cuLaunchKernel(Function* f, unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by, unsigned bz,
                       unsigned shared_bytes, void*, void** args, void**) {
  ENTER_CONTEXT("LaunchKernel");
  if (x == 0 || y != 1 || z != 1 || by != 1 || bz != 1 || !f->takes(bx, shared_bytes)) return kInvalidValue;
  const Launch launch = bound(f, x, bx, shared_bytes, args);
  const int code = launch.carry_out();
  launch.forget(launch.call);
  return code;
}
API int cuStreamCreate(void** stream, unsigned) {
  ENTER_CONTEXT("StreamCreate");
  return *stream = new int, kSuccess;
}
API int cuStreamSynchronize(void*) {
  ENTER_CONTEXT("StreamSynchronize");
  return kSuccess;
}
API int cuStreamDestroy_v2(void* stream) {
  ENTER_CONTEXT("StreamDestroy");
  return delete static_cast<int*>(stream), kSuccess;
}
API int cuEventCreate(void** event, unsigned) { return *event = new int, kSuccess; }
API int cuEventRecord(void*, void*) { return kSuccess; }
API int cuEventElapsedTime(float* ms, void*, void*) { return *ms = 0.25F, kSuccess; }
API int cuEventDestroy_v2(void* event) { return delete static_cast<int*>(event), kSuccess; }

struct KernelNode {
  Function* function;
  unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
  void** params;
  void** extra;
};

struct Graph {
  std::vector<Launch> launches;
  int users = 1;
};

void forget(Graph* graph) {
  if (--graph->users > 0) return;
  for (const Launch& launch : graph->launches) launch.forget(launch.call);
  delete graph;
}

API int cuGraphCreate(Graph** graph, unsigned) {
  ENTER_CONTEXT("GraphCreate");
  return *graph = new Graph, kSuccess;
}
API int cuGraphAddKernelNode(void** node, Graph* graph, void* const* after, std::size_t n, const KernelNode* kernel) {
  ENTER_CONTEXT("GraphAddKernelNode");
  const auto made = reinterpret_cast<void*>(graph->launches.size() + 1);
  // A chain: each node waits for the one before.
  if (n > 1 || (n == 1) != (!graph->launches.empty()) || (n == 1 && after[0] != reinterpret_cast<void*>(graph->launches.size())))
    return kInvalidValue;
  if (!kernel->function->takes(kernel->block_x, kernel->shared_bytes)) return kInvalidValue;
  graph->launches.push_back(
      bound(kernel->function, kernel->grid_x, kernel->block_x, kernel->shared_bytes, kernel->params));
  return *node = made, kSuccess;
}
API int cuGraphInstantiateWithFlags(Graph** executable, Graph* graph, unsigned long long) {
  ENTER_CONTEXT("GraphInstantiate");
  ++graph->users;
  return *executable = graph, kSuccess;
}
API int cuGraphLaunch(Graph* executable, void*) {
  ENTER_CONTEXT("GraphLaunch");
  for (const Launch& launch : executable->launches) {
    if (const int code = launch.carry_out(); code != kSuccess) return code;
  }
  return kSuccess;
}
API int cuGraphExecDestroy(Graph* executable) { return forget(executable), kSuccess; }
API int cuGraphDestroy(Graph* graph) { return forget(graph), kSuccess; }

// How often a call was made; "device" and "host": allocations that are left.
API long fake_cuda_count(const char* name) {
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  const std::string what(name);
  if (what == "device") return static_cast<long>(device_memory.size());
  if (what == "host") return static_cast<long>(host_memory.size());
  return counts[what];
}
