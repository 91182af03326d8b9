#include <metal_stdlib>
using namespace metal;
struct alignas(16) xy_f32x4 { float e[4]; };
[[max_total_threads_per_threadgroup(256)]] kernel void transpose(device const float *b_x0 [[buffer(0)]], device float *b_y1 [[buffer(1)]], constant int *xy_sizes [[buffer(2)]], uint xy_block [[threadgroup_position_in_grid]], uint xy_thread [[thread_position_in_threadgroup]]) {
  const int p_0 = xy_sizes[0];
  const int p_1 = xy_sizes[1];
  const int block = (int)xy_block;
  const int thread_number = (int)xy_thread;
  alignas(16) threadgroup float tile_[1024];
  const int across_ = (p_1 / 32);
  const int top_ = ((block / across_) * 32);
  const int left_ = ((block % across_) * 32);
  const int c_ = ((thread_number & 7) * 4);
  const int r_ = (thread_number >> 3);
  const xy_f32x4 packet1 = *(device const xy_f32x4 *)(b_x0 + ((((top_ + r_) * p_1) + left_) + c_));
  const float v_ = packet1.e[0];
  const float v1 = packet1.e[1];
  const float v2 = packet1.e[2];
  const float v3 = packet1.e[3];
  *(threadgroup xy_f32x4 *)(tile_ + ((r_ * 32) + (c_ ^ ((r_ & 12) << 1)))) = xy_f32x4{{v_, v1, v2, v3}};
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const int c1 = ((thread_number & 7) + ((thread_number >> 6) * 8));
  const int r1 = (((thread_number >> 3) & 7) * 4);
  const float w_ = *(tile_ + ((r1 * 32) + (c1 ^ ((r1 & 12) << 1))));
  const float w1 = *(tile_ + (((r1 + 1) * 32) + (c1 ^ (((r1 + 1) & 12) << 1))));
  const float w2 = *(tile_ + (((r1 + 2) * 32) + (c1 ^ (((r1 + 2) & 12) << 1))));
  const float w3 = *(tile_ + (((r1 + 3) * 32) + (c1 ^ (((r1 + 3) & 12) << 1))));
  *(device xy_f32x4 *)(b_y1 + ((((left_ + c1) * p_0) + top_) + r1)) = xy_f32x4{{w_, w1, w2, w3}};
}
