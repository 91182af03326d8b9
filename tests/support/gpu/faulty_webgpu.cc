// Stands before wgpu-native (XYNTRA_WGPU_LIBRARY) and lets calls fail that a test has told to: it is linked with the real library, so
// that every other function is found there.
#include <dlfcn.h>

#include <cstring>

#include "webgpu_api.h"

#define API extern "C" __attribute__((visibility("default")))

namespace {

using namespace xyntra::wgpu;

const char* failing = "";
char name_of_failing[64];
int lasting, kind;  // 0: the device is lost; else the type of an error
long calls;
ErrorCallback on_error;
Callback<OnLost> on_lost;

template <class F>
F real(F, const char* name) {
  return reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
}

// Whether the call is not to be passed on.
bool fails(const char* name) {
  calls += 1;
  if (std::strcmp(name, failing) != 0) return false;
  if (lasting == 0) failing = "";
  if (kind == 0) {
    on_lost.function(nullptr, 1, {"the GPU went away"}, on_lost.first, on_lost.second);
  } else {
    on_error.function(nullptr, static_cast<Enum>(kind), {"told to fail"}, on_error.first, on_error.second);
  }
  return true;
}

}  // namespace

API void faulty_webgpu_fail(const char* name, int what, int lasts) {
  std::strncpy(name_of_failing, name, sizeof(name_of_failing) - 1);
  failing = name_of_failing;
  kind = what;
  lasting = lasts;
}

API long faulty_webgpu_calls() { return calls; }

API uint64_t wgpuAdapterRequestDevice(Adapter adapter, const DeviceDescriptor* wanted, Callback<OnDevice> then) {
  on_error = wanted->error;
  on_lost = wanted->lost;
  return real(wgpuAdapterRequestDevice, "wgpuAdapterRequestDevice")(adapter, wanted, then);
}

// What the library gives where a call fails is an object that is not valid, but one.
API Buffer wgpuDeviceCreateBuffer(DeviceId device, const BufferDescriptor* wanted) {
  fails("wgpuDeviceCreateBuffer");
  return real(wgpuDeviceCreateBuffer, "wgpuDeviceCreateBuffer")(device, wanted);
}

API Group wgpuDeviceCreateBindGroup(DeviceId device, const GroupDescriptor* wanted) {
  fails("wgpuDeviceCreateBindGroup");
  return real(wgpuDeviceCreateBindGroup, "wgpuDeviceCreateBindGroup")(device, wanted);
}

API void wgpuQueueWriteBuffer(Queue queue, Buffer buffer, uint64_t at, const void* data, std::size_t bytes) {
  if (!fails("wgpuQueueWriteBuffer")) real(wgpuQueueWriteBuffer, "wgpuQueueWriteBuffer")(queue, buffer, at, data, bytes);
}

API Submission wgpuQueueSubmitForIndex(Queue queue, std::size_t count, const Commands* commands) {
  if (fails("wgpuQueueSubmitForIndex")) return 0;
  return real(wgpuQueueSubmitForIndex, "wgpuQueueSubmitForIndex")(queue, count, commands);
}

API Bool wgpuDevicePoll(DeviceId device, Bool wait, const Submission* until) {
  if (fails("wgpuDevicePoll")) return 0;
  return real(wgpuDevicePoll, "wgpuDevicePoll")(device, wait, until);
}
