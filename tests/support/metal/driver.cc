// Metal and the Objective-C runtime for machines without them, as far as native/metal asks for them. Programs are shared objects of
// Metal's text behind shim.h. Tests load this before libxyntra_ep.so opens the libraries whose name it has.
//
// It is strict where Metal is with validation switched on: an index or an offset that is too large, an encoder that was not ended, a
// kernel with other threads than its text says, an unknown message end the process. A kernel runs when somebody waits for its
// command buffer, and not before. Objects are counted, by class; those that no pool takes are never released.
//
// FAKE_METAL_FAIL="newBufferWithLength:options::3" lets the third such message answer nil, and "commit:3=8" a command buffer end
// with that code (MTLCommandBufferError); after an error that lasts all others do, too. FAKE_METAL_COMPILE is the command that
// compiles a program, with the headers in FAKE_METAL_HEADERS, and FAKE_METAL_FOLDER where those are kept. FAKE_METAL_DEVICES and FAKE_METAL_FAMILY say what there is.
#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#define API extern "C" __attribute__((visibility("default")))

namespace {

using Selector = const char*;  // one for each name

std::recursive_mutex mutex;
std::map<std::string, long> living, sent;
bool revoked = false;

[[noreturn]] void refuse(const std::string& what) {
  std::fprintf(stderr, "fake metal: %s\n", what.c_str());
  std::abort();
}

long number(const char* name, long otherwise) {
  const char* const text = std::getenv(name);
  return text != nullptr ? std::atol(text) : otherwise;
}

// Counts the message; the code that FAKE_METAL_FAIL has for it, 0 when all is well.
long failure(const std::string& message) {
  const long n = ++sent[message];
  const char* const told = std::getenv("FAKE_METAL_FAIL");
  if (told == nullptr) return 0;
  const std::string wanted(told), which = message + ":" + std::to_string(n);
  if (wanted.compare(0, wanted.find('='), which) != 0) return 0;
  return wanted.find('=') != std::string::npos ? std::atol(wanted.c_str() + wanted.find('=') + 1) : -1;
}

struct Object {
  const char* const kind;
  long count = 1;

  explicit Object(const char* k) : kind(k) { ++living[k]; }
  virtual ~Object() { --living[kind]; }
};

thread_local std::vector<std::vector<Object*>> pools;

Object* retained(Object* object) {
  if (object != nullptr) ++object->count;
  return object;
}

void released(Object* object) {
  if (object != nullptr && --object->count == 0) delete object;
}

template <class T>
T* autoreleased(T* object) {
  if (!pools.empty()) pools.back().push_back(object);
  return object;
}

template <class T>
class Held {
 public:
  explicit Held(T* object) : object_(object) { retained(object); }
  ~Held() { released(object_); }
  Held(const Held& other) : Held(other.object_) {}
  Held& operator=(const Held&) = delete;
  T* operator->() const { return object_; }

 private:
  T* object_;
};

struct String : Object {
  std::string text;
  explicit String(std::string t) : Object("NSString"), text(std::move(t)) {}
};

struct Failure : Object {
  long code;
  std::string what;
  Failure(long c, std::string w) : Object("NSError"), code(c), what(std::move(w)) {}
};

struct Plain : Object {
  using Object::Object;
};

struct Options : Object {
  bool fast = true;
  Options() : Object("MTLCompileOptions") {}
};

struct Device : Object {
  std::string name;
  std::size_t allocated = 0;
  explicit Device(std::string n) : Object("MTLDevice"), name(std::move(n)) {}
};

struct Array : Object {
  std::vector<Held<Device>> of;
  Array() : Object("NSArray") {}
};

constexpr std::size_t kMemoryBytes = std::size_t{1} << 30, kMostBufferBytes = kMemoryBytes / 2, kMargin = 64;

struct Buffer : Object {
  Held<Device> device;
  std::size_t bytes;
  char* contents;
  Buffer(Device* d, std::size_t b) : Object("MTLBuffer"), device(d), bytes(b) {
    contents = static_cast<char*>(std::aligned_alloc(256, (b + kMargin + 255) / 256 * 256));
    std::memset(contents, 0xff, b + kMargin);  // NaN to floats
    d->allocated += b;
  }
  ~Buffer() override {
    for (std::size_t i = bytes; i < bytes + kMargin; ++i)
      if (contents[i] != '\xff') refuse("a buffer was written past its end");
    device->allocated -= bytes;
    std::free(contents);
  }
};

struct Library : Object {
  void* handle;
  explicit Library(void* h) : Object("MTLLibrary"), handle(h) {}
};

struct Function : Object {
  int (*run)(void* const* buffers, unsigned groups);
  unsigned threads;
  Function(int (*r)(void* const*, unsigned), unsigned t) : Object("MTLFunction"), run(r), threads(t) {}
};

struct Pipeline : Object {
  Held<Function> function;
  explicit Pipeline(Function* f) : Object("MTLComputePipelineState"), function(f) {}
};

struct Dispatch {
  Held<Pipeline> pipeline;
  std::vector<Held<Buffer>> kept;
  std::vector<void*> arguments;
  std::vector<char> bytes;
  std::size_t bytes_index;
  unsigned groups;
};

struct Queue : Object {
  Queue() : Object("MTLCommandQueue") {}
};

struct Commands : Object {
  std::vector<Dispatch> dispatches;
  std::size_t status = 0;
  long code = 0;
  bool open = false;
  Commands() : Object("MTLCommandBuffer") {}
};

struct Encoder : Object {
  Held<Commands> commands;
  Pipeline* pipeline = nullptr;
  std::map<std::size_t, std::pair<Buffer*, std::size_t>> buffers;
  std::vector<char> bytes;
  std::size_t bytes_index = 0;
  explicit Encoder(Commands* c) : Object("MTLComputeCommandEncoder"), commands(c) { commands->open = true; }
  ~Encoder() override {
    if (commands->open) refuse("an encoder that was not ended");
  }
};

struct Size {
  std::size_t width, height, depth;
};

constexpr double kKernelSeconds = 0.00025;
constexpr std::size_t kMostBuffers = 31, kMostBytes = 4096;

// -- methods

Object* new_options(Object*, Selector) { return new Options; }
void set_fast(Options* options, Selector, bool fast) { options->fast = fast; }
Object* string_of(Object*, Selector, const char* text) { return autoreleased(new String(text)); }
const char* utf8(String* string, Selector) { return string->text.c_str(); }
Object* process_info(Object*, Selector) { return autoreleased(new Plain("NSProcessInfo")); }
Object* system_version(Object*, Selector) { return autoreleased(new String("Version 0.0 (simulated)")); }
std::size_t count_of(Array* array, Selector) { return array->of.size(); }
Object* object_at(Array* array, Selector, std::size_t i) { return array->of[i].operator->(); }

Object* device_name(Device* device, Selector) { return autoreleased(new String(device->name)); }
bool supports(Device*, Selector, long family) { return family > 1000 && family <= 1000 + number("FAKE_METAL_FAMILY", 7); }
std::size_t shared_bytes(Device*, Selector) { return 32 << 10; }
uint64_t working_set(Device*, Selector) { return kMemoryBytes; }
std::size_t allocated(Device* device, Selector) { return device->allocated; }
std::size_t most_bytes(Device*, Selector) { return kMostBufferBytes; }

Object* new_buffer(Device* device, Selector, std::size_t bytes, std::size_t options) {
  if (options != 0 || bytes == 0 || bytes > kMostBufferBytes) refuse("a buffer that cannot be");
  if (failure("newBufferWithLength:options:") != 0) return nullptr;
  return device->allocated + bytes <= kMemoryBytes ? new Buffer(device, bytes) : nullptr;
}
char* contents(Buffer* buffer, Selector) { return buffer->contents; }

std::string read_file(const std::string& path) {
  std::stringstream all;
  all << std::ifstream(path).rdbuf();
  return all.str();
}

Object* new_library(Device*, Selector, String* source, Options* options, Object** error) {
  if (options->fast) refuse("fast mathematics");
  if (const long code = failure("newLibraryWithSource:options:error:"); code != 0)
    return *error = autoreleased(new Failure(code, "the compiler is not well")), nullptr;
  const std::string folder = std::getenv("FAKE_METAL_FOLDER");
  char name[64];
  std::snprintf(name, sizeof(name), "/%016zx-%zu", std::hash<std::string>()(source->text), source->text.size());
  const std::string made = folder + name + ".so", own = folder + name + "." + std::to_string(getpid());
  if (access(made.c_str(), R_OK) != 0) {
    std::ofstream(own + ".metal") << source->text;
    const std::string command =
        std::string(std::getenv("FAKE_METAL_COMPILE")) + " " + own + ".metal " + own + ".so " + std::getenv("FAKE_METAL_HEADERS") + " 2>" +
        own + ".log";
    if (std::system(("env -u LD_PRELOAD " + command).c_str()) != 0)
      return *error = autoreleased(new Failure(3, read_file(own + ".log"))), nullptr;
    std::rename((own + ".so").c_str(), made.c_str());
  }
  void* const handle = dlopen(made.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) refuse(dlerror());
  return new Library(handle);
}

Object* new_function(Library* library, Selector, String* name) {
  const auto run = reinterpret_cast<int (*)(void* const*, unsigned)>(dlsym(library->handle, (name->text + "__run").c_str()));
  const auto* const threads = static_cast<const unsigned*>(dlsym(library->handle, (name->text + "__threads").c_str()));
  return run != nullptr && threads != nullptr ? new Function(run, *threads) : nullptr;
}

Object* new_pipeline(Device*, Selector, Function* function, Object** error) {
  if (const long code = failure("newComputePipelineStateWithFunction:error:"); code != 0)
    return *error = autoreleased(new Failure(code, "no registers are left")), nullptr;
  return new Pipeline(function);
}
std::size_t most_threads(Pipeline* pipeline, Selector) {
  return static_cast<std::size_t>(number("FAKE_METAL_THREADS", pipeline->function->threads));
}
std::size_t width(Pipeline*, Selector) { return static_cast<std::size_t>(number("FAKE_METAL_WIDTH", 32)); }

Object* new_queue(Device*, Selector) { return failure("newCommandQueue") != 0 ? nullptr : new Queue; }
Object* command_buffer(Queue*, Selector) { return autoreleased(new Commands); }
Object* encoder_of(Commands* commands, Selector) { return autoreleased(new Encoder(commands)); }

void set_pipeline(Encoder* encoder, Selector, Pipeline* pipeline) { encoder->pipeline = pipeline; }
void set_buffer(Encoder* encoder, Selector, Buffer* buffer, std::size_t offset, std::size_t index) {
  if (buffer == nullptr || offset >= buffer->bytes || index >= kMostBuffers) refuse("an argument that cannot be");
  encoder->buffers[index] = {buffer, offset};
}
void set_bytes(Encoder* encoder, Selector, const char* bytes, std::size_t count, std::size_t index) {
  if (count == 0 || count > kMostBytes || index >= kMostBuffers) refuse("bytes that cannot be");
  encoder->bytes.assign(bytes, bytes + count);
  encoder->bytes_index = index;
}
void dispatch(Encoder* encoder, Selector, Size groups, Size threads) {
  if (groups.width == 0 || groups.height != 1 || groups.depth != 1) refuse("a grid that cannot be");
  if (encoder->pipeline == nullptr || threads.width != encoder->pipeline->function->threads || threads.height != 1 ||
      threads.depth != 1)
    refuse("threads that are not the kernel's");
  Dispatch made{Held<Pipeline>(encoder->pipeline), {}, std::vector<void*>(kMostBuffers), encoder->bytes, encoder->bytes_index,
                static_cast<unsigned>(groups.width)};
  for (const auto& [index, place] : encoder->buffers) {
    made.kept.emplace_back(place.first);
    made.arguments[index] = place.first->contents + place.second;
  }
  encoder->commands->dispatches.push_back(made);
  encoder->bytes.clear();
  encoder->buffers.clear();
}
void end_encoding(Encoder* encoder, Selector) { encoder->commands->open = false; }
void commit(Commands* commands, Selector) {
  if (commands->open || commands->status != 0) refuse("a commit that cannot be");
  commands->code = failure("commit");
  commands->status = 2;
}
void wait(Commands* commands, Selector) {
  if (commands->status < 2) refuse("waiting for what was not committed");
  if (commands->status > 2) return;
  if (revoked) commands->code = 4;
  revoked = revoked || commands->code == 4;
  for (Dispatch& it : commands->dispatches) {
    if (commands->code != 0) break;
    if (!it.bytes.empty()) it.arguments[it.bytes_index] = it.bytes.data();
    if (it.pipeline->function->run(it.arguments.data(), it.groups) != 0) commands->code = 3;
  }
  commands->status = commands->code != 0 ? 5 : 4;
}
std::size_t status(Commands* commands, Selector) { return commands->status; }
Object* error_of(Commands* commands, Selector) {
  return commands->code != 0 ? autoreleased(new Failure(commands->code, "it was made to fail")) : nullptr;
}
long code_of(Failure* failure, Selector) { return failure->code; }
Object* description(Failure* failure, Selector) { return autoreleased(new String(failure->what)); }
double start_time(Commands*, Selector) { return 1.0; }
double end_time(Commands* commands, Selector) { return 1.0 + kKernelSeconds * static_cast<double>(commands->dispatches.size()); }

using Method = void (*)();

// One at a time, whatever threads send: kernels share what runs them.
template <auto function>
struct Locked;
template <class Result, class... A, Result (*function)(A...)>
struct Locked<function> {
  static Result call(A... arguments) {
    const std::lock_guard lock(mutex);
    return function(arguments...);
  }
};
template <auto function>
const auto method = reinterpret_cast<Method>(&Locked<function>::call);

// By class and message; what is sent to a class has its name with a + before.
const std::map<std::pair<std::string, std::string>, Method>& methods() {
  static const auto* const all = new std::map<std::pair<std::string, std::string>, Method>{
      {{"+MTLCompileOptions", "new"}, method<new_options>},
      {{"MTLCompileOptions", "setFastMathEnabled:"}, method<set_fast>},
      {{"+NSString", "stringWithUTF8String:"}, method<string_of>},
      {{"NSString", "UTF8String"}, method<utf8>},
      {{"+NSProcessInfo", "processInfo"}, method<process_info>},
      {{"NSProcessInfo", "operatingSystemVersionString"}, method<system_version>},
      {{"NSArray", "count"}, method<count_of>},
      {{"NSArray", "objectAtIndex:"}, method<object_at>},
      {{"NSError", "code"}, method<code_of>},
      {{"NSError", "localizedDescription"}, method<description>},
      {{"MTLDevice", "name"}, method<device_name>},
      {{"MTLDevice", "supportsFamily:"}, method<supports>},
      {{"MTLDevice", "maxThreadgroupMemoryLength"}, method<shared_bytes>},
      {{"MTLDevice", "recommendedMaxWorkingSetSize"}, method<working_set>},
      {{"MTLDevice", "currentAllocatedSize"}, method<allocated>},
      {{"MTLDevice", "maxBufferLength"}, method<most_bytes>},
      {{"MTLDevice", "newBufferWithLength:options:"}, method<new_buffer>},
      {{"MTLDevice", "newLibraryWithSource:options:error:"}, method<new_library>},
      {{"MTLDevice", "newComputePipelineStateWithFunction:error:"}, method<new_pipeline>},
      {{"MTLDevice", "newCommandQueue"}, method<new_queue>},
      {{"MTLBuffer", "contents"}, method<contents>},
      {{"MTLLibrary", "newFunctionWithName:"}, method<new_function>},
      {{"MTLComputePipelineState", "maxTotalThreadsPerThreadgroup"}, method<most_threads>},
      {{"MTLComputePipelineState", "threadExecutionWidth"}, method<width>},
      {{"MTLCommandQueue", "commandBuffer"}, method<command_buffer>},
      {{"MTLCommandBuffer", "computeCommandEncoder"}, method<encoder_of>},
      {{"MTLCommandBuffer", "commit"}, method<commit>},
      {{"MTLCommandBuffer", "waitUntilCompleted"}, method<wait>},
      {{"MTLCommandBuffer", "status"}, method<status>},
      {{"MTLCommandBuffer", "error"}, method<error_of>},
      {{"MTLCommandBuffer", "GPUStartTime"}, method<start_time>},
      {{"MTLCommandBuffer", "GPUEndTime"}, method<end_time>},
      {{"MTLComputeCommandEncoder", "setComputePipelineState:"}, method<set_pipeline>},
      {{"MTLComputeCommandEncoder", "setBuffer:offset:atIndex:"}, method<set_buffer>},
      {{"MTLComputeCommandEncoder", "setBytes:length:atIndex:"}, method<set_bytes>},
      {{"MTLComputeCommandEncoder", "dispatchThreadgroups:threadsPerThreadgroup:"}, method<dispatch>},
      {{"MTLComputeCommandEncoder", "endEncoding"}, method<end_encoding>},
  };
  return *all;
}

}  // namespace

API Method fake_metal_method(Object* to, Selector message) {
  const auto found = methods().find({to->kind, message});
  if (found == methods().end()) refuse(std::string("no message ") + message + " to " + to->kind);
  return found->second;
}

// Goes on to the method with all arguments as they were, as the real one does; nobody answers 0.
__asm__(
    ".globl objc_msgSend\n"
    ".type objc_msgSend, @function\n"
    "objc_msgSend:\n"
    "  testq %rdi, %rdi\n"
    "  jne 1f\n"
    "  xorl %eax, %eax\n"
    "  xorps %xmm0, %xmm0\n"
    "  ret\n"
    "1:\n"
    "  pushq %rdi\n  pushq %rsi\n  pushq %rdx\n  pushq %rcx\n  pushq %r8\n"
    "  call fake_metal_method@PLT\n"
    "  popq %r8\n  popq %rcx\n  popq %rdx\n  popq %rsi\n  popq %rdi\n"
    "  jmp *%rax\n");

API Object* objc_getClass(const char* name) {
  const std::lock_guard lock(mutex);
  static auto* const classes = new std::map<std::string, Object*>;
  Object*& known = (*classes)["+" + std::string(name)];
  if (known == nullptr) known = new Plain(classes->find("+" + std::string(name))->first.c_str());
  return known;
}
API Selector sel_registerName(const char* name) {
  const std::lock_guard lock(mutex);
  static auto* const names = new std::set<std::string>;
  return names->insert(name).first->c_str();
}
API Object* objc_retain(Object* object) {
  const std::lock_guard lock(mutex);
  return retained(object);
}
API void objc_release(Object* object) {
  const std::lock_guard lock(mutex);
  released(object);
}
API void* objc_autoreleasePoolPush() {
  pools.emplace_back();
  return reinterpret_cast<void*>(pools.size());
}
API void objc_autoreleasePoolPop(void* pool) {
  const std::lock_guard lock(mutex);
  if (reinterpret_cast<std::size_t>(pool) != pools.size()) refuse("a pool that is not the last one");
  for (Object* const object : pools.back()) released(object);
  pools.pop_back();
}
API Object* MTLCopyAllDevices() {
  const std::lock_guard lock(mutex);
  static auto* const devices = new std::vector<Device*>;
  auto* const all = new Array;
  for (std::size_t i = 0; i < static_cast<std::size_t>(number("FAKE_METAL_DEVICES", 1)); ++i) {
    if (devices->size() == i) devices->push_back(new Device("Simulated M1"));
    all->of.emplace_back((*devices)[i]);
  }
  return all;
}

// Objects of a class that live, and how often a message was sent that can fail.
API long fake_metal_living(const char* kind) {
  const std::lock_guard lock(mutex);
  return living[kind];
}
API long fake_metal_sent(const char* message) {
  const std::lock_guard lock(mutex);
  return sent[message];
}
API void fake_metal_reset() {
  const std::lock_guard lock(mutex);
  revoked = false;
}
