// A device that is not the CPU, as islands see it: memory, kernels, a queue. What an API of devices must say is here; each has a
// class for it, and a DeviceApi beside that, and nobody else knows of it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "live.h"
#include "ort.h"
#include "plan.h"

namespace xyntra {

class Device;
struct LoadedKernel;

// Memory on a device, set free when it goes. What get() gives is for the device only: an address of its own, or the API's
// object.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  // Without a device: a part of what somebody else sets free.
  DeviceMemory(const Device* device, void* memory) : device_(device), memory_(memory) {
    if (is_owned()) count(Live::kDeviceBuffers, 1);
  }
  ~DeviceMemory();
  DeviceMemory(DeviceMemory&& other) noexcept : device_(other.device_), memory_(other.memory_) { other.memory_ = nullptr; }
  DeviceMemory& operator=(DeviceMemory&& other) noexcept;
  void* get() const noexcept { return memory_; }

 private:
  bool is_owned() const noexcept { return device_ != nullptr && memory_ != nullptr; }

  const Device* device_ = nullptr;
  void* memory_ = nullptr;
};

// See CopiedTensor.
struct DeviceTensor {
  std::size_t buffer = 0;  // of the call
  uint32_t element_bytes = 0;
  int64_t offset = 0;
  std::vector<uint64_t> extents, strides;
  std::vector<uint32_t> box;
};

// A kernel with all that a launch of it takes: it gets `buffers`, then maps of `tensors`, then `params`. A unit is a block of
// threads, or a group of work items; there is at least one.
struct DeviceCall {
  const LoadedKernel* kernel = nullptr;
  int64_t units = 0;
  std::vector<void*> buffers;
  std::vector<DeviceTensor> tensors;
  std::vector<int32_t> params;

  // Throws when the device cannot count that far.
  void add(int64_t param);
  // `value`: of an expression of the plan.
  template <class Value>
  void add(const CopiedTensor& tensor, const Value& value) {
    DeviceTensor& added = tensors.emplace_back();
    added.buffer = tensor.buffer;
    added.element_bytes = tensor.element_bytes;
    added.offset = value(tensor.offset_expr);
    for (const uint32_t expr : tensor.extents) added.extents.push_back(static_cast<uint64_t>(value(expr)));
    for (const uint32_t expr : tensor.strides) added.strides.push_back(static_cast<uint64_t>(value(expr)));
    added.box = tensor.box;
  }
};

// Calls in their order, ready to be started again and again.
class DeviceCalls {
 public:
  virtual ~DeviceCalls() = default;
  // From the next start on, `memory` as the buffer at `place` of a call. Only where memory has addresses.
  virtual void replace(std::size_t call, std::size_t place, void* memory);
};

// What a queue takes the time of: of nothing, of each call by itself, or of all calls of a start(), which are then started as they
// are without a clock.
enum class Timing { kNone, kEach, kWhole };

// What is put into it is done in order. What was read has arrived after finish().
class DeviceQueue {
 public:
  virtual ~DeviceQueue() = default;
  virtual void write(void* memory, const void* from, std::size_t bytes) = 0;
  virtual void read(void* to, void* memory, std::size_t bytes) = 0;
  // On the device. Only where memory has addresses.
  virtual void copy(void* to, const void* from, std::size_t bytes);
  virtual void start(DeviceCalls& calls) = 0;
  // Waits; throws when something has failed.
  virtual void finish() = 0;
  // Waits, whatever has failed: nothing of a run may go on when its memory goes.
  virtual void abandon() noexcept = 0;
  // Of a queue that takes times, after finish(): nanoseconds of each call of the last start(), or of all of them as one.
  virtual std::vector<int64_t> times() const = 0;
};

// Opened once per process and never closed, as kernels of the CPU are. A lost one is opened anew for the next session, which
// has nothing in common with those that are on the old one.
class Device {
 public:
  // Plans and kernels are made for one identity: it tells a device, and a driver, from others.
  struct Found {
    const Device* device = nullptr;
    std::string error;  // why there is none
  };
  static Found find(const std::string& identity);

  // The same, of those that were opened already, lost or not; null where none was.
  static const Device* latest(const std::string& identity);

  virtual ~Device() = default;
  // Whether a call has said that nothing works on it any more: for sessions that are on it, that is final.
  bool is_lost() const noexcept { return lost_.load(std::memory_order_acquire) != nullptr; }
  // Throws DeviceLost where it is, always with the sentence of the call that has said so first, and without asking the driver.
  void require_alive() const;
  // Whether nobody has asked this before: who was told first that it is lost says so in the log.
  bool is_first_told() const noexcept { return !told_.exchange(true, std::memory_order_relaxed); }
  // Its number in ONNX Runtime's memory of the same device, whose addresses kernels then take; -1: ORT has none of it.
  virtual int ordinal() const noexcept { return -1; }
  // How many bytes may be used from an address on that ORT gave: SIZE_MAX when that is not known. Throws Error when the address
  // is none of this device.
  virtual std::size_t room_at(const void* memory) const;
  // SIZE_MAX where that cannot be known.
  virtual std::size_t free_bytes() const { return SIZE_MAX; }
  // To what the address of a buffer is aligned at least.
  virtual std::size_t alignment() const noexcept = 0;
  // With the spare bytes behind that kernels may read, so never empty.
  virtual DeviceMemory buffer(std::size_t bytes) const = 0;
  // A part of a buffer, from a multiple of alignment() on; to go before it.
  virtual DeviceMemory part(const DeviceMemory& whole, std::size_t at, std::size_t bytes) const = 0;
  virtual DeviceMemory buffer_of(const void* data, std::size_t bytes) const = 0;
  // Compiled code that stays; throws Error when it is not for this device.
  virtual void* load(std::string_view binary) const = 0;
  // Throws Error when code that was loaded has no such kernel, or the device not what it takes.
  virtual void require(const LoadedKernel& kernel) const = 0;
  virtual std::unique_ptr<DeviceCalls> ready(const std::vector<DeviceCall>& calls) const = 0;
  virtual std::unique_ptr<DeviceQueue> queue(Timing timing) const = 0;
  // The binary of a program that the device's own driver compiles; throws Error with the compiler's log, and where another
  // compiler makes its kernels.
  virtual std::string compile(const std::string& source, const std::string& options) const;

 protected:
  // Throws what a failed call says. After a fatal one the device is lost.
  [[noreturn]] void fail(FailureKind kind, const std::string& sentence) const;

 private:
  friend class DeviceMemory;
  virtual void release(void* memory) const noexcept = 0;

  mutable std::atomic<const std::string*> lost_{nullptr};  // the sentence, which stays as the device does
  mutable std::atomic<bool> told_{false};
};

// How devices of an API are opened. The file of each class has one, which lives as long as the library.
class DeviceApi {
 public:
  // Throws Error when the device is not there.
  using Open = std::unique_ptr<const Device> (*)(const std::string& identity);

  // Throws Error when there is none of this number.
  using Numbered = std::string (*)(int ordinal);

  using List = std::string (*)();

  // `prefix`: with what the identities of its devices begin. `numbered`: the identity of a device that ONNX Runtime knows by a
  // number, for an API whose devices are TensorDevices (tensor_device.h). `list`: its devices, as JSON.
  DeviceApi(std::string_view prefix, Open open, Numbered numbered = nullptr, List list = nullptr) noexcept
      : prefix_(prefix), open_(open), numbered_(numbered), list_(list), next_(first_) {
    first_ = this;
  }
  DeviceApi(const DeviceApi&) = delete;
  DeviceApi& operator=(const DeviceApi&) = delete;
  // By the API that knows the identity; throws Error where none does.
  static std::unique_ptr<const Device> open(const std::string& identity);
  // Throws Error where no API has a device of this number.
  static std::string identity_of(int ordinal);
  // The devices of the API with this prefix; empty where none has it, or it does not list them.
  static std::string list(std::string_view prefix);

 private:
  std::string_view prefix_;
  Open open_;
  Numbered numbered_;
  List list_;
  const DeviceApi* next_;
  static inline const DeviceApi* first_ = nullptr;  // set while the library is loaded
};

}  // namespace xyntra
