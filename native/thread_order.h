// What ThreadSanitizer cannot see: ONNX Runtime is not built with it, so how its threads hand work to each other, by atomics of
// its own, has to be said. In other builds these are nothing.
#pragma once

#if defined(__SANITIZE_THREAD__)
#define XYNTRA_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define XYNTRA_THREAD_SANITIZER 1
#endif
#endif

#ifdef XYNTRA_THREAD_SANITIZER
extern "C" void __tsan_acquire(void* address);
extern "C" void __tsan_release(void* address);
#endif

namespace xyntra {

// What this thread has done so far comes before what another does after taken_over() of the same object.
inline void handed_over([[maybe_unused]] const void* object) noexcept {
#ifdef XYNTRA_THREAD_SANITIZER
  __tsan_release(const_cast<void*>(object));
#endif
}

inline void taken_over([[maybe_unused]] const void* object) noexcept {
#ifdef XYNTRA_THREAD_SANITIZER
  __tsan_acquire(const_cast<void*>(object));
#endif
}

}  // namespace xyntra
