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

// An 8 x 8 matrix, of which a lane has two elements side by side: in the layout that MLX relies on, for Apple documents none.
template <class T>
class simdgroup_matrix {
 public:
  struct Two {
    T of[2];
    T& operator[](int i) { return of[i]; }
  };
  Two& thread_elements() { return elements_; }

 private:
  Two elements_ = {};
};
using simdgroup_half8x8 = simdgroup_matrix<half>;
using simdgroup_float8x8 = simdgroup_matrix<float>;

inline unsigned matrix_row(unsigned lane) { return (lane / 4 & 4) + lane / 2 % 4; }
inline unsigned matrix_column(unsigned lane) { return (lane / 4 & 2) * 2 + lane % 2 * 2; }

// d = a b + c: all lanes show what they have, and each gathers what its own two elements are made of.
template <class T>
void simdgroup_multiply_accumulate(simdgroup_float8x8& d, simdgroup_matrix<T>& a, simdgroup_matrix<T>& b, simdgroup_float8x8& c) {
  Block& all = block_of_threads;
  const unsigned lane = all.now % 32, first = all.now - lane;
  for (int i = 0; i < 2; ++i) {
    all.fragments[all.now][i] = as_type<int>(static_cast<float>(a.thread_elements()[i]));
    all.fragments[all.now][2 + i] = as_type<int>(static_cast<float>(b.thread_elements()[i]));
  }
  __syncthreads();
  float left[8][8], right[8][8];
  for (unsigned other = 0; other < 32; ++other)
    for (unsigned i = 0; i < 2; ++i) {
      const auto& shown = all.fragments[first + other];
      left[matrix_row(other)][matrix_column(other) + i] = as_type<float>(shown[i]);
      right[matrix_row(other)][matrix_column(other) + i] = as_type<float>(shown[2 + i]);
    }
  for (unsigned i = 0; i < 2; ++i) {
    float sum = c.thread_elements()[i];
    for (unsigned k = 0; k < 8; ++k) sum += left[matrix_row(lane)][k] * right[k][matrix_column(lane) + i];
    d.thread_elements()[i] = sum;
  }
  __syncthreads();
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
