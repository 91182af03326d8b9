// The part of Metal that islands need, by messages of the Objective-C runtime: no SDK is wanted to build, and a machine without
// Metal loses nothing. Names of messages are those of Metal's headers, numbers those of its enumerations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "ort.h"

namespace xyntra::metal {

using Id = void*;  // an object; a message to none answers 0
using Selector = const void*;

struct Size {  // MTLSize
  std::size_t width, height, depth;
};

inline constexpr std::size_t kStorageShared = 0;          // MTLResourceStorageModeShared
inline constexpr std::size_t kCompleted = 4, kError = 5;  // MTLCommandBufferStatus
inline constexpr long kFamilyApple = 1000;                // MTLGPUFamilyApple1 is one more
inline constexpr long kMostFamily = 20;                   // of which there is none yet
inline constexpr std::size_t kMostBuffers = 31;           // that a kernel may have
inline constexpr std::size_t kMostBytes = 4096;           // that setBytes takes
inline constexpr std::size_t kSimdWidth = 32;             // that kernels are made for

struct Api {
  Id (*getClass)(const char* name);
  Selector (*registerName)(const char* name);
  void (*msgSend)();  // of the type that the message has
  Id (*retain)(Id);
  void (*release)(Id);
  void* (*autoreleasePoolPush)();
  void (*autoreleasePoolPop)(void*);
  Id (*CopyAllDevices)();

  // Arguments must have exactly the types of the method's.
  template <class Result = Id, class... Arguments>
  Result send(Id to, const char* message, Arguments... arguments) const {
    return reinterpret_cast<Result (*)(Id, Selector, Arguments...)>(msgSend)(to, registerName(message), arguments...);
  }
  std::string text(Id string) const;  // of an NSString, empty of none
  Id string(const std::string& text) const;  // which a pool releases
};

// Opened once; null, with `why`, on machines without Metal.
const Api* api(std::string* why = nullptr);

// An object that is released when this goes.
class Owned {
 public:
  Owned() = default;
  explicit Owned(Id id) noexcept : id_(id) {}
  ~Owned() {
    if (id_ != nullptr) api()->release(id_);
  }
  Owned(Owned&& other) noexcept : id_(std::exchange(other.id_, nullptr)) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(id_, other.id_);
    return *this;
  }
  // Of one that somebody else owns, too.
  static Owned shared(Id id) { return Owned(id != nullptr ? api()->retain(id) : nullptr); }
  Id get() const noexcept { return id_; }

 private:
  Id id_ = nullptr;
};

// What messages answer without our owning it lives until this goes.
class Pool {
 public:
  explicit Pool(const Api& api) : api_(api), pool_(api.autoreleasePoolPush()) {}
  ~Pool() { api_.autoreleasePoolPop(pool_); }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

 private:
  const Api& api_;
  void* pool_;
};

// Of a command buffer that has failed (MTLCommandBufferError).
std::string error_name(long code);
FailureKind kind_of(long code);

}  // namespace xyntra::metal
