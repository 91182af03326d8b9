// A CUDA driver for machines without a GPU, as far as native/cuda/cuda_api.h asks for one: devices whose programs are shared objects of
// CUDA text behind block.h. Streams do at once what they are given. Tests put it in the driver's place (LD_LIBRARY_PATH).
//
// It is strict where a driver is: calls without a current context, foreign or freed addresses, copies beyond an allocation are
// errors, and what is left at the end is counted. A device's memory can be touched only while the driver copies or a kernel runs;
// else the process ends by a signal. What cuMemcpyHtoD took from ordinary memory, and what cuMemcpyDtoD moves, is there when
// somebody has waited for it, and not before. FAKE_CUDA_DEVICES and FAKE_CUDA_CAPABILITY (as 80) say what there is.
//
// FAKE_CUDA_FAIL="MemAlloc:3" makes the third such call run out of memory, and "MemAlloc:*" all of them; "MemAlloc:3=719" has it
// say that number, and if it is that of an error that lasts, every call of the context says it from then on. Of kernels whose
// name contains FAKE_CUDA_STRAY, one leaves its buffers: its launch succeeds, and from then on every call of the context reports it,
// as a driver does. One with FAKE_CUDA_HANG never ends: who waits for it waits for ever. The stand-in's time flies meanwhile, so that
// an alarm that is set goes off at once.
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <elf.h>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#define API extern "C" __attribute__((visibility("default")))

namespace {

constexpr int kSuccess = 0, kInvalidValue = 1, kOutOfMemory = 2, kNoDevice = 100, kInvalidContext = 201, kInvalidImage = 200,
              kNotFound = 500, kNotReady = 600, kIllegalAddress = 700, kUncorrectable = 214, kLaunchFailed = 719;

// A device's clock, which events read: what it does takes as long as this. A kernel of a graph takes less than one that is
// launched by itself. Differences that a float has exactly.
constexpr double kKernelMs = 0.25, kNodeMs = 0.125, kCopyMs = 2;
double clock_ms = 0;  // under the mutex
int sticky = 0;           // what a kernel has left behind
bool hangs = false;       // one that is under way

std::recursive_mutex mutex;
std::map<std::string, long> counts;
std::map<uint64_t, std::size_t> device_memory, host_memory;
std::vector<std::function<void()>> under_way;  // copies that nobody has waited for
constexpr std::size_t kMemoryBytes = std::size_t{1} << 30;  // of each device
constexpr int kMostDevices = 4;
struct Context {
  int device;
} primary[kMostDevices] = {{0}, {1}, {2}, {3}};
thread_local std::vector<Context*> contexts;

// All devices' memory, one behind the other.
char* memory_of(int device) {
  static char* const all = static_cast<char*>(
      mmap(nullptr, kMostDevices * kMemoryBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  return all + static_cast<std::size_t>(device) * kMemoryBytes;
}

std::size_t used_bytes[kMostDevices] = {};  // up to the end of the last allocation that there ever was

// Memory of the devices is memory for as long as one of these lives.
class Touching {
 public:
  Touching() { if (depth_++ == 0) protect(PROT_READ | PROT_WRITE); }
  ~Touching() { if (--depth_ == 0) protect(PROT_NONE); }

 private:
  static void protect(int how) {
    for (int d = 0; d < kMostDevices; ++d) {
      if (used_bytes[d] > 0) mprotect(memory_of(d), used_bytes[d], how);
    }
  }
  static int depth_;  // under the mutex
};
int Touching::depth_ = 0;

void arrive() {
  const Touching touching;
  for (const auto& copy : under_way) copy();
  under_way.clear();
}

// The lowest place between the allocations of a device.
char* place_for(int device, std::size_t bytes) {
  uint64_t at = reinterpret_cast<uint64_t>(memory_of(device));
  const uint64_t end = at + kMemoryBytes;
  for (auto next = device_memory.lower_bound(at); next != device_memory.end() && next->first < at + bytes; ++next)
    at = (next->first + next->second + 255) / 256 * 256;
  return at + bytes <= end ? reinterpret_cast<char*>(at) : nullptr;
}

int device_of(uint64_t address) {
  const uint64_t begin = reinterpret_cast<uint64_t>(memory_of(0));
  return address < begin ? -1 : static_cast<int>((address - begin) / kMemoryBytes);
}

int number(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::atoi(text) : otherwise;
}

// Counts the call; what it fails with.
int failure(const std::string& name) {
  const long n = ++counts[name];
  const char* const told = std::getenv("FAKE_CUDA_FAIL");
  if (told == nullptr) return kSuccess;
  const std::string wanted(told);
  const std::size_t end = std::min(wanted.find('='), wanted.size());
  const std::string which = wanted.substr(0, end);
  if (which != name + ":" + std::to_string(n) && which != name + ":*") return kSuccess;
  const int code = end < wanted.size() ? std::atoi(wanted.c_str() + end + 1) : kOutOfMemory;
  if (code == kUncorrectable || code >= kIllegalAddress) sticky = code;
  return code;
}

// Whether a kernel is one of those that such a variable names.
bool is_named(const std::string& kernel, const char* variable) {
  const char* const part = std::getenv(variable);
  return part != nullptr && *part != '\0' && kernel.find(part) != std::string::npos;
}

void wait_for_kernels() {
  if (!hangs) return;
  itimerval left{};
  getitimer(ITIMER_REAL, &left);
  if (left.it_value.tv_sec > 0 || left.it_value.tv_usec > 0) {
    left.it_value = {0, 1};
    setitimer(ITIMER_REAL, &left, nullptr);
  }
  while (true) pause();
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
  std::shared_ptr<void> call;
  Run run;
  unsigned blocks, threads, shared_bytes;
  const std::string* name;

  // What becomes of it is told by those who come later.
  void carry_out() const {
    hangs = hangs || is_named(*name, "FAKE_CUDA_HANG");
    if (hangs || sticky != kSuccess) return;
    const bool strays = is_named(*name, "FAKE_CUDA_STRAY");
    // Whether the block kept to the memory that it was given.
    if (run(call.get(), blocks, threads, shared_bytes) != 0 || strays) sticky = kIllegalAddress;
  }
};

struct Function {
  std::string name;
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
  return {std::shared_ptr<void>(f->bind(args), f->forget), f->run, blocks, threads, shared_bytes, &f->name};
}

}  // namespace

#define ENTER(name)                                             \
  const std::lock_guard<std::recursive_mutex> lock(mutex);      \
  if (const int code = failure(name)) return code
#define ENTER_CONTEXT(name) \
  ENTER(name);              \
  if (contexts.empty()) return kInvalidContext; \
  if (sticky != kSuccess) return sticky

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
    case kNotReady: *name = "CUDA_ERROR_NOT_READY"; break;
    case kUncorrectable: *name = "CUDA_ERROR_ECC_UNCORRECTABLE"; break;
    case kLaunchFailed: *name = "CUDA_ERROR_LAUNCH_FAILED"; break;
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
API int cuDeviceTotalMem_v2(std::size_t* bytes, int) { return *bytes = kMemoryBytes, kSuccess; }
API int cuDevicePrimaryCtxRetain(Context** context, int device) { return *context = &primary[device], kSuccess; }
API int cuCtxPushCurrent_v2(Context* context) {
  ENTER("CtxPushCurrent");
  return contexts.push_back(context), kSuccess;
}
API int cuCtxPopCurrent_v2(Context** context) {
  if (contexts.empty()) return kInvalidContext;
  *context = contexts.back();
  contexts.pop_back();
  return kSuccess;
}

API int cuMemAlloc_v2(uint64_t* address, std::size_t bytes) {
  ENTER_CONTEXT("MemAlloc");
  if (bytes == 0) return kInvalidValue;
  const int device = contexts.back()->device;
  char* const memory = place_for(device, bytes);
  if (memory == nullptr) return kOutOfMemory;
  const std::size_t end = static_cast<std::size_t>(memory - memory_of(device)) + bytes;
  used_bytes[device] = std::max(used_bytes[device], (end + 4095) / 4096 * 4096);
  const Touching touching;
  std::memset(memory, 0xff, bytes);  // NaN to floats
  *address = reinterpret_cast<uint64_t>(memory);
  device_memory[*address] = bytes;
  return kSuccess;
}
API int cuMemGetInfo_v2(std::size_t* free, std::size_t* all) {
  ENTER_CONTEXT("MemGetInfo");
  *free = *all = kMemoryBytes;
  for (const auto& [address, bytes] : device_memory) {
    if (device_of(address) == contexts.back()->device) *free -= bytes;
  }
  const int most = number("FAKE_CUDA_FREE_BYTES", -1);
  if (most >= 0) *free = static_cast<std::size_t>(most);
  return kSuccess;
}
API int cuPointerGetAttribute(void* value, int which, uint64_t address) {
  ENTER("PointerGetAttribute");
  if (which != 9 || !lies_in(device_memory, address, 1)) return kInvalidValue;  // CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
  return *static_cast<int*>(value) = device_of(address), kSuccess;
}
API int cuMemFree_v2(uint64_t address) {
  ENTER_CONTEXT("MemFree");
  arrive();  // setting memory free waits for the device
  if (device_memory.erase(address) == 0) return kInvalidValue;
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
  const auto* const begin = static_cast<const char*>(from);
  under_way.emplace_back([to, content = std::vector<char>(begin, begin + bytes)] {
    std::memcpy(reinterpret_cast<void*>(to), content.data(), content.size());
  });
  return kSuccess;
}
API int cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, std::size_t bytes, void*) {
  ENTER_CONTEXT("MemcpyHtoDAsync");
  if (!lies_in(host_memory, reinterpret_cast<uint64_t>(from), bytes)) return kInvalidValue;  // to be asynchronous
  if (!lies_in(device_memory, to, bytes)) return kInvalidValue;
  const Touching touching;
  clock_ms += kCopyMs;
  return std::memcpy(reinterpret_cast<void*>(to), from, bytes), kSuccess;
}
API int cuMemcpyDtoH_v2(void* to, uint64_t from, std::size_t bytes) {
  ENTER_CONTEXT("MemcpyDtoH");
  if (!lies_in(device_memory, from, bytes)) return kInvalidValue;
  arrive();
  const Touching touching;
  return std::memcpy(to, reinterpret_cast<const void*>(from), bytes), kSuccess;
}
int copy_within(uint64_t to, uint64_t from, std::size_t bytes, bool by_host) {
  if (!lies_in(device_memory, from, bytes) || !lies_in(device_memory, to, bytes)) return kInvalidValue;
  const auto copy = [=] { std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes); };
  if (by_host) return under_way.emplace_back(copy), kSuccess;
  const Touching touching;
  return copy(), kSuccess;
}
API int cuMemcpyDtoD_v2(uint64_t to, uint64_t from, std::size_t bytes) {
  ENTER_CONTEXT("MemcpyDtoD");
  return copy_within(to, from, bytes, true);
}
API int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, std::size_t bytes, void*) {
  ENTER_CONTEXT("MemcpyDtoDAsync");
  return copy_within(to, from, bytes, false);
}
API int cuCtxSynchronize() {
  ENTER_CONTEXT("CtxSynchronize");
  wait_for_kernels();
  return arrive(), sticky;
}
API int cuMemcpyDtoHAsync_v2(void* to, uint64_t from, std::size_t bytes, void*) {
  ENTER_CONTEXT("MemcpyDtoHAsync");
  const Touching touching;
  clock_ms += kCopyMs;
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
  f->name = symbol;
  f->bind = reinterpret_cast<decltype(f->bind)>(dlsym(module, (symbol + "__bind").c_str()));
  f->run = reinterpret_cast<decltype(f->run)>(dlsym(module, (symbol + "__run").c_str()));
  f->forget = reinterpret_cast<decltype(f->forget)>(dlsym(module, (symbol + "__forget").c_str()));
  const int* threads = static_cast<const int*>(dlsym(module, (symbol + "__threads").c_str()));
  if (f->bind == nullptr || f->run == nullptr || f->forget == nullptr || threads == nullptr) return kNotFound;
  f->threads = *threads;
  return *function = f, kSuccess;
}

// Words of a map as warpgroups.h takes them apart. Limits are those of the driver API's cuTensorMapEncodeTiled.
struct TensorMap {
  uint64_t magic, address, rank, extents[5], strides[4], box[3];
};

API int cuTensorMapEncodeTiled(void* map, int type, uint32_t rank, void* address, const uint64_t* extents,
                               const uint64_t* strides, const uint32_t* box, const uint32_t* steps, int interleave, int swizzle,
                               int, int fill) {
  ENTER_CONTEXT("TensorMapEncodeTiled");
  const auto at = reinterpret_cast<uint64_t>(address);
  if (reinterpret_cast<uint64_t>(map) % 64 != 0 || at % 16 != 0 || rank < 1 || rank > 5) return kInvalidValue;
  if (type != 1 || interleave != 0 || swizzle != 3 || fill != 0) return kInvalidValue;  // what warpgroups.h carries out
  TensorMap made{0x58594d4150000001, at, rank, {}, {}, {}};
  uint64_t bytes = 2 * extents[0];
  for (uint32_t i = 0; i < rank; ++i) {
    if (extents[i] == 0 || extents[i] > uint64_t{1} << 32 || box[i] == 0 || box[i] > 256 || steps[i] != 1) return kInvalidValue;
    made.extents[i] = extents[i];
    made.box[i / 4] |= uint64_t{box[i]} << 16 * (i % 4);
    if (i == 0) continue;
    if (strides[i - 1] % 16 != 0 || strides[i - 1] >= uint64_t{1} << 40) return kInvalidValue;
    made.strides[i - 1] = strides[i - 1];
    bytes += (extents[i] - 1) * strides[i - 1];
  }
  if (2 * box[0] > 128 || 2 * box[0] % 16 != 0) return kInvalidValue;
  if (!lies_in(device_memory, at, bytes)) return kInvalidValue;  // a real driver does not look
  std::memset(map, 0, 128);
  std::memcpy(map, &made, sizeof(made));
  return kSuccess;
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
  const Touching touching;
  clock_ms += kKernelMs;
  return bound(f, x, bx, shared_bytes, args).carry_out(), kSuccess;
}
API int cuStreamCreate(void** stream, unsigned) {
  ENTER_CONTEXT("StreamCreate");
  return *stream = new int, kSuccess;
}
API int cuStreamSynchronize(void* stream) {
  ENTER_CONTEXT("StreamSynchronize");
  wait_for_kernels();
  if (stream == nullptr) arrive();
  return sticky;
}
API int cuLaunchHostFunc(void*, void (*work)(void*), void* with) {
  ENTER_CONTEXT("LaunchHostFunc");
  return work(with), kSuccess;
}
API int cuStreamDestroy_v2(void* stream) {
  ENTER_CONTEXT("StreamDestroy");
  return delete static_cast<int*>(stream), kSuccess;
}
API int cuEventCreate(double** event, unsigned) {
  ENTER_CONTEXT("EventCreate");
  return *event = new double{0}, kSuccess;
}
API int cuEventRecord(double* event, void*) {
  ENTER_CONTEXT("EventRecord");
  return *event = clock_ms, kSuccess;
}
API int cuEventElapsedTime(float* ms, const double* begin, const double* end) {
  ENTER_CONTEXT("EventElapsedTime");
  return *ms = static_cast<float>(*end - *begin), kSuccess;
}
API int cuEventDestroy_v2(double* event) {
  ENTER_CONTEXT("EventDestroy");
  return delete event, kSuccess;
}

struct KernelNode {
  Function* function;
  unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
  void** params;
  void** extra;

  Launch launch() const { return bound(function, grid_x, block_x, shared_bytes, params); }
};

struct Graph;

struct Node {
  Graph* graph;
  std::size_t index;
};

struct Graph {
  std::vector<Launch> launches;
  std::deque<Node> nodes;
};

struct Executable {
  std::vector<Launch> launches;
  Graph* made_from;
};

std::set<const Graph*> graphs;
long graphs_left = 0;  // that can be launched

API int cuGraphCreate(Graph** graph, unsigned) {
  ENTER_CONTEXT("GraphCreate");
  graphs.insert(*graph = new Graph);
  return kSuccess;
}
API int cuGraphAddKernelNode(Node** node, Graph* graph, Node* const* after, std::size_t n, const KernelNode* kernel) {
  ENTER_CONTEXT("GraphAddKernelNode");
  // A chain: each node waits for the one before.
  if (n > 1 || (n == 1) != (!graph->nodes.empty()) || (n == 1 && after[0] != &graph->nodes.back())) return kInvalidValue;
  if (!kernel->function->takes(kernel->block_x, kernel->shared_bytes)) return kInvalidValue;
  graph->launches.push_back(kernel->launch());
  return *node = &graph->nodes.emplace_back(Node{graph, graph->nodes.size()}), kSuccess;
}
API int cuGraphInstantiateWithFlags(Executable** executable, Graph* graph, unsigned long long) {
  ENTER_CONTEXT("GraphInstantiate");
  graphs_left += 1;
  return *executable = new Executable{graph->launches, graph}, kSuccess;
}
// The node is one of the graph that was instantiated, which is still there; what runs already is not changed.
API int cuGraphExecKernelNodeSetParams(Executable* executable, Node* node, const KernelNode* kernel) {
  ENTER_CONTEXT("GraphExecKernelNodeSetParams");
  if (graphs.count(executable->made_from) == 0 || node->graph != executable->made_from) return kInvalidValue;
  if (!kernel->function->takes(kernel->block_x, kernel->shared_bytes)) return kInvalidValue;
  executable->launches[node->index] = kernel->launch();
  return kSuccess;
}
API int cuGraphLaunch(Executable* executable, void*) {
  ENTER_CONTEXT("GraphLaunch");
  const Touching touching;
  for (const Launch& launch : executable->launches) {
    clock_ms += kNodeMs;
    launch.carry_out();
  }
  return kSuccess;
}
API int cuGraphExecDestroy(Executable* executable) {
  ENTER_CONTEXT("GraphExecDestroy");
  graphs_left -= 1;
  return delete executable, kSuccess;
}
API int cuGraphDestroy(Graph* graph) {
  ENTER_CONTEXT("GraphDestroy");
  if (graphs.erase(graph) == 0) return kInvalidValue;
  return delete graph, kSuccess;
}

// How often a call was made; "all": any that needs the device; "device" and "host": allocations that are left; "graphs": those,
// as made and as launched.
API long fake_cuda_count(const char* name) {
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  const std::string what(name);
  if (what == "device") return static_cast<long>(device_memory.size());
  if (what == "host") return static_cast<long>(host_memory.size());
  if (what == "graphs") return static_cast<long>(graphs.size()) + graphs_left;
  if (what == "all") {
    long all = 0;
    for (const auto& [call, n] : counts) all += n;
    return all;
  }
  return counts[what];
}

// Whoever owns the device has reset it: all that was on it is gone, and calls work again.
API void fake_cuda_reset() {
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  sticky = kSuccess;
  device_memory.clear();
  under_way.clear();
}
