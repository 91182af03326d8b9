// CUDA text as C++ of the host: each thread of a block is a fiber, which others take over from at a barrier. Put before a kernel's
// text; XY_KERNEL(name, threads) behind it exports what driver.cc calls.
#include <math.h>
#include <stdio.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <functional>
#include <tuple>
#include <utility>
#include <vector>

#define __global__
#define __device__
#define __constant__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))
#define __shared__ static

namespace {

struct Number {
  unsigned x;
} blockIdx, threadIdx;

struct Fiber {
  ucontext_t context;
  std::vector<char> stack;
  bool done = false;
};

struct Block {
  std::vector<Fiber> fibers;
  ucontext_t home;
  unsigned now = 0;
  std::vector<long long> exchanged;
  std::vector<const unsigned short*> pointers;
  std::vector<std::array<int, 6>> fragments;
  std::function<void()> body;
  std::vector<unsigned char> given;  // shared memory by the launch, of each block of a cluster, aligned
  std::size_t given_bytes = 0;       // of a block
  unsigned threads = 0, cluster = 1; // of a block; blocks
  unsigned waiting = 0, moves = 0;   // of a round: fibers at mbarriers, and what may let them go on
  bool failed = false;
} block_of_threads;

constexpr std::size_t kGivenAlignment = 1024, kGivenMargin = 64;

void fail(const char* what) {
  if (!block_of_threads.failed) fprintf(stderr, "fake_cuda: %s (thread %u)\n", what, block_of_threads.now);
  block_of_threads.failed = true;
}

// From one block's shared memory to the next one's.
inline std::size_t given_apart() {
  return (block_of_threads.given_bytes + kGivenMargin + kGivenAlignment - 1) / kGivenAlignment * kGivenAlignment;
}

// Shared memory that the launch gives (extern __shared__), of a block of the cluster.
inline unsigned char* given_shared(unsigned rank) {
  const auto at = reinterpret_cast<uintptr_t>(block_of_threads.given.data());
  return reinterpret_cast<unsigned char*>((at + kGivenAlignment - 1) / kGivenAlignment * kGivenAlignment) + rank * given_apart();
}

inline unsigned char* given_shared() { return given_shared(block_of_threads.now / block_of_threads.threads); }

// What another block of the cluster has in the same place.
template <class T>
T* of_block(T* own, unsigned rank) {
  return reinterpret_cast<T*>(given_shared(rank) + (reinterpret_cast<unsigned char*>(own) - given_shared()));
}

void begin_fiber() {
  Block& b = block_of_threads;
  b.body();
  b.fibers[b.now].done = true;
  swapcontext(&b.fibers[b.now].context, &b.home);
}

inline void __syncwarp() {}

inline void __syncthreads() {
  Block& b = block_of_threads;
  const unsigned me = b.now;
  swapcontext(&b.fibers[me].context, &b.home);
}

template <class T>
T __shfl_xor_sync(unsigned, T value, int mask) {
  Block& b = block_of_threads;
  static_assert(sizeof(T) == sizeof(int) || sizeof(T) == sizeof(long long), "one register, or two");
  memcpy(&b.exchanged[b.now], &value, sizeof(T));
  __syncthreads();
  T other;
  memcpy(&other, &b.exchanged[b.now ^ static_cast<unsigned>(mask)], sizeof(T));
  __syncthreads();
  return other;
}

template <class T>
T __shfl_sync(unsigned, T value, int lane) {
  Block& b = block_of_threads;
  static_assert(sizeof(T) == sizeof(int), "one register");
  memcpy(&b.exchanged[b.now], &value, sizeof(T));
  __syncthreads();
  T other;
  memcpy(&other, &b.exchanged[b.now - b.now % 32 + static_cast<unsigned>(lane)], sizeof(T));
  __syncthreads();
  return other;
}

// Row i of the m-th of four matrices of 8 x 8 halves is where lane 8 m + i points; lane l gets two elements of row l / 4, or with
// `turned` of column l / 4, of each (PTX: ldmatrix).
inline void load_fragments(bool turned, int* const (&into)[4], const void* from) {
  Block& b = block_of_threads;
  const unsigned lane = b.now % 32, warp = b.now - lane;
  b.pointers[b.now] = static_cast<const unsigned short*>(from);
  __syncthreads();
  for (unsigned m = 0; m < 4; ++m) {
    unsigned both = 0;
    for (unsigned e = 0; e < 2; ++e) {
      const unsigned along = lane % 4 * 2 + e, across = lane / 4;
      const unsigned short* row = b.pointers[warp + 8 * m + (turned ? along : across)];
      both |= static_cast<unsigned>(row[turned ? across : along]) << (16 * e);
    }
    *into[m] = static_cast<int>(both);
  }
  __syncthreads();
}

// To the nearest, of two the even one (PTX: cvt.rn.f16.f32).
inline unsigned short narrow_f16(float v) {
  const _Float16 half = static_cast<_Float16>(v);
  unsigned short bits;
  memcpy(&bits, &half, sizeof(bits));
  return bits;
}
inline float widen_f16(unsigned short bits) {
  _Float16 half;
  memcpy(&half, &bits, sizeof(half));
  return static_cast<float>(half);
}

// The same for bfloat16 (PTX: cvt.rn.bf16x2.f32), whose NaN has all bits but the sign.
inline unsigned short narrow_bf16(float v) {
  if (v != v) return 0x7fff;
  unsigned bits;
  memcpy(&bits, &v, sizeof(bits));
  return static_cast<unsigned short>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// Two of them in a register; PTX names the upper one first, the text of ours the lower.
inline int pair_of(unsigned short (*narrow)(float), float low, float high) {
  return static_cast<int>(static_cast<unsigned>(narrow(low)) | static_cast<unsigned>(narrow(high)) << 16);
}

// As far from 2^x as PTX allows (ex2.approx.ftz.f32): off by 2^-22 of it, up or down; what is subnormal is 0.
inline float approximate_exp2(float x) {
  const double exact = exp2(fabsf(x) < 0x1p-126f ? 0.0 : x);
  const float y = static_cast<float>(exact * (1 + (static_cast<long>(x * 1024) % 2 ? 0x1p-22 : -0x1p-22)));
  return exact < 0x1p-126 ? 0.0f : x == 0 ? 1.0f : y;
}

// One of the two halves in a register.
inline float f16_of(int both, unsigned which) {
  return widen_f16(static_cast<unsigned short>(static_cast<unsigned>(both) >> (16 * which)));
}
inline float bf16_of(int both, unsigned which) {
  const unsigned bits = (static_cast<unsigned>(both) >> (16 * which)) << 16;
  float f;
  memcpy(&f, &bits, sizeof(f));
  return f;
}

// To the nearest with 10 bits behind the leading one, of two the larger (PTX: cvt.rna.tf32.f32).
inline float round_tf32(float v) {
  if (v != v) return v;
  unsigned bits;
  memcpy(&bits, &v, sizeof(bits));
  bits = (bits + 0x1000) & ~0x1fffu;
  memcpy(&v, &bits, sizeof(v));
  return v;
}

// What matrix units take of an f32: the bits below are cut off.
inline float tf32_of(int word, unsigned) {
  word &= ~0x1fff;
  float f;
  memcpy(&f, &word, sizeof(f));
  return f;
}

// c (16 x 8) += a (16 x depth) b (depth x 8), spread over a warp as PTX spreads mma.m16n8k16 of halves and mma.m16n8k8 of tf32.
template <unsigned depth>
inline void fragment_dot(float (*element_of)(int, unsigned), float* const (&c)[4], const int (&registers)[6]) {
  constexpr unsigned together = depth / 8;  // elements in a register
  Block& b = block_of_threads;
  const unsigned lane = b.now % 32, warp = b.now - lane;
  memcpy(b.fragments[b.now].data(), registers, sizeof(registers));
  __syncthreads();
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned row = lane / 4 + 8 * (i / 2), column = lane % 4 * 2 + i % 2;
    float sum = *c[i];
    for (unsigned k = 0; k < depth; ++k) {
      const unsigned half = k / (depth / 2), thread = k % (depth / 2) / together;
      const int of_a = b.fragments[warp + row % 8 * 4 + thread][row / 8 + 2 * half];
      const int of_b = b.fragments[warp + column * 4 + thread][4 + half];
      sum += element_of(of_a, k % together) * element_of(of_b, k % together);
    }
    *c[i] = sum;
  }
  __syncthreads();
}

// What another thread of the wave has; an address is 4 for each thread, and threads beyond the wave come round.
inline int exchange_by_address(int from, int value) {
  constexpr unsigned wave = 64;  // of less, whose own threads are asked
  Block& b = block_of_threads;
  b.exchanged[b.now] = value;
  __syncthreads();
  const auto found = static_cast<int>(b.exchanged[b.now - b.now % wave + static_cast<unsigned>(from) / 4 % wave]);
  __syncthreads();
  return found;
}

inline float widen_bf16(unsigned short bits) {
  const unsigned wide = static_cast<unsigned>(bits) << 16;
  float f;
  memcpy(&f, &wide, sizeof(f));
  return f;
}
inline float whole_f32(float v) { return v; }
inline float tf32_bits(float v) {
  int word;
  memcpy(&word, &v, sizeof(word));
  return tf32_of(word, 0);
}

// c += a b by the threads of a wave. `of_a`: by row and k, `of_b`: by column and k, who has that element, times what each has, and
// which it is; `of_c`: where in the matrix each one's elements are.
template <unsigned lanes, unsigned held_a, unsigned held_b, unsigned held_c, unsigned n, unsigned depth, class T>
void matrix_dot(float (*value)(T), float* c, const void* a, const void* b, const int* of_a, const int* of_b, const int* of_c) {
  static std::vector<std::array<T, held_a + held_b>> parts;
  const unsigned now = block_of_threads.now, wave = now - now % lanes;
  if (parts.size() < block_of_threads.threads) parts.resize(block_of_threads.threads);
  memcpy(parts[now].data(), a, held_a * sizeof(T));
  memcpy(parts[now].data() + held_a, b, held_b * sizeof(T));
  __syncthreads();
  for (unsigned i = 0; i < held_c; ++i) {
    const unsigned place = static_cast<unsigned>(of_c[now % lanes * held_c + i]), row = place / n, column = place % n;
    float sum = c[i];
    for (unsigned k = 0; k < depth; ++k) {
      const auto at_a = static_cast<unsigned>(of_a[row * depth + k]), at_b = static_cast<unsigned>(of_b[column * depth + k]);
      sum += value(parts[wave + at_a / held_a][at_a % held_a]) * value(parts[wave + at_b / held_b][held_a + at_b % held_b]);
    }
    c[i] = sum;
  }
  __syncthreads();
}

inline float __int_as_float(int v) {
  float f;
  memcpy(&f, &v, sizeof(f));
  return f;
}
inline int __float_as_int(float v) {
  int i;
  memcpy(&i, &v, sizeof(i));
  return i;
}

}  // namespace

#include "warpgroups.h"

namespace {

// In turns, so that all reach a barrier before one goes on. Not 0 when a block did what no device does, or wrote behind the
// memory it was given, which begins as NaN.
int run_blocks(const std::function<void()>& body, unsigned blocks, unsigned threads, unsigned shared_bytes, unsigned cluster) {
  Block& b = block_of_threads;
  b.body = body;
  b.given_bytes = shared_bytes;
  b.given.assign(cluster * given_apart() + kGivenAlignment, 0xff);
  b.threads = threads;
  b.cluster = cluster;
  b.failed = false;
  if (blocks % cluster != 0) return fail("a launch that is not of whole clusters"), 1;
  const unsigned all = cluster * threads, lanes = (all + 31) / 32 * 32;
  b.exchanged.assign(lanes, 0);
  b.pointers.assign(lanes, nullptr);
  b.fragments.assign(lanes, {});
  if (b.fibers.size() < all) b.fibers.resize(all);
  for (unsigned i = 0; i < blocks; i += cluster) {
    for (unsigned t = 0; t < all; ++t) {
      Fiber& fiber = b.fibers[t];
      if (fiber.stack.empty()) fiber.stack.resize(64 << 10);
      getcontext(&fiber.context);
      fiber.context.uc_stack.ss_sp = fiber.stack.data();
      fiber.context.uc_stack.ss_size = fiber.stack.size();
      fiber.context.uc_link = nullptr;
      fiber.done = false;
      makecontext(&fiber.context, begin_fiber, 0);
    }
    for (unsigned left = all; left > 0;) {
      const unsigned before = b.moves;
      b.waiting = 0;
      for (unsigned t = 0; t < all; ++t) {
        if (b.fibers[t].done) continue;
        b.now = t;
        threadIdx.x = t % threads;
        blockIdx.x = i + t / threads;
        swapcontext(&b.home, &b.fibers[t].context);
        if (b.fibers[t].done) --left;
      }
      const bool stuck = left > 0 && b.waiting == left && b.moves == before;
      if (stuck && !land_copies()) fail("warpgroups wait for each other for ever");
      if (b.failed) return 1;
    }
    end_warpgroups();
    if (b.failed) return 1;
    for (unsigned rank = 0; rank < cluster; ++rank) {
      const unsigned char* const margin = given_shared(rank) + shared_bytes;
      if (std::any_of(margin, margin + kGivenMargin, [](unsigned char byte) { return byte != 0xff; })) return 1;
      memset(given_shared(rank), 0xff, shared_bytes);
    }
  }
  return 0;
}

template <class... A, size_t... I>
std::function<void()>* bind_call(void (*kernel)(A...), void** args, std::index_sequence<I...>) {
  std::tuple<A...> values(*static_cast<std::remove_reference_t<A>*>(args[I])...);
  return new std::function<void()>([kernel, values] { std::apply(kernel, values); });
}

template <class... A>
std::function<void()>* bind_call(void (*kernel)(A...), void** args) {
  return bind_call(kernel, args, std::index_sequence_for<A...>());
}

}  // namespace

#define XY_KERNEL(name, count, cluster)                                                                                 \
  extern "C" int name##__threads;                                                                                \
  int name##__threads = count;                                                                                   \
  extern "C" void* name##__bind(void** args) { return bind_call(name, args); }                                   \
  extern "C" int name##__run(void* call, unsigned blocks, unsigned threads, unsigned shared_bytes) {             \
    return run_blocks(*static_cast<std::function<void()>*>(call), blocks, threads, shared_bytes, cluster);       \
  }                                                                                                              \
  extern "C" void name##__forget(void* call) { delete static_cast<std::function<void()>*>(call); }
