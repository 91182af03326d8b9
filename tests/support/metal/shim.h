// Metal's shading language as C++17 of the host, as far as our kernels speak it. The threads of a group are the fibers of
// fake_cuda/block.h: they take turns at barriers and at exchanges between registers. XY_METAL_KERNEL behind a kernel's
// text exports what runs it.
//
// Words for address spaces say nothing here, so that a pointer into the wrong one is not seen; compile.py makes arrays of a
// threadgroup `static`. Attributes are ignored (-Wno-attributes).
#pragma once

#include <cmath>

#include "../fake_cuda/block.h"

#define kernel
#define device
#define constant const
#define threadgroup
#define thread

typedef _Float16 half;

namespace metal {

struct alignas(8) int2 {
  int x, y;
};

template <class To, class From>
To as_type(From from) {
  static_assert(sizeof(To) == sizeof(From), "the same bits");
  To to;
  memcpy(&to, &from, sizeof(to));
  return to;
}

enum class mem_flags { mem_none, mem_device, mem_threadgroup };

inline void threadgroup_barrier(mem_flags) { __syncthreads(); }
inline void simdgroup_barrier(mem_flags) { __syncwarp(); }

// Values are of 32 bits, or vectors of these.
template <class T>
T simd_shuffle_xor(T value, ushort mask) {
  static_assert(sizeof(T) == sizeof(int), "one register");
  return __shfl_xor_sync(0, value, mask);
}
inline int2 simd_shuffle_xor(int2 value, ushort mask) {
  return {simd_shuffle_xor(value.x, mask), simd_shuffle_xor(value.y, mask)};
}

}  // namespace metal

// A kernel whose last two arguments are the numbers of group and thread; those before point into buffers.
template <class... A, size_t... I>
std::function<void()> bind_groups(void (*run)(A...), void* const* buffers, std::index_sequence<I...>) {
  using Arguments = std::tuple<A...>;
  return [=] { run(static_cast<std::tuple_element_t<I, Arguments>>(buffers[I])..., blockIdx.x, threadIdx.x); };
}

template <class... A>
int run_groups(void (*run)(A...), void* const* buffers, unsigned groups, unsigned threads) {
  return run_blocks(bind_groups(run, buffers, std::make_index_sequence<sizeof...(A) - 2>()), groups, threads, 0, 1);
}

#define XY_METAL_KERNEL(exported, name, count)                                                         \
  extern "C" const unsigned exported##__threads = count;                                               \
  extern "C" int exported##__run(void* const* buffers, unsigned groups) {                              \
    return run_groups(name, buffers, groups, count);                                                   \
  }
