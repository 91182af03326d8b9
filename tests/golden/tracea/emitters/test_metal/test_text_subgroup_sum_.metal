#include <metal_stdlib>
using namespace metal;
static inline int xy_exchange(int v, ushort mask) { return simd_shuffle_xor(v, mask); }
static inline float xy_exchange(float v, ushort mask) { return simd_shuffle_xor(v, mask); }
static inline long xy_exchange(long v, ushort mask) { return as_type<long>(simd_shuffle_xor(as_type<int2>(v), mask)); }
[[max_total_threads_per_threadgroup(32)]] kernel void subgroup_sum(device const float *b_x0 [[buffer(0)]], device float *b_y1 [[buffer(1)]], uint xy_block [[threadgroup_position_in_grid]], uint xy_thread [[thread_position_in_threadgroup]]) {
  const int block = (int)xy_block;
  const int thread_number = (int)xy_thread;
  float total_ = *(b_x0 + ((block * 32) + thread_number));
  total_ = (total_ + xy_exchange(total_, 16));
  total_ = (total_ + xy_exchange(total_, 8));
  total_ = (total_ + xy_exchange(total_, 4));
  total_ = (total_ + xy_exchange(total_, 2));
  total_ = (total_ + xy_exchange(total_, 1));
  if ((thread_number < 1)) {
    *(b_y1 + block) = total_;
  }
}
