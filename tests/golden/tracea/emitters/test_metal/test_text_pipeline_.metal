#include <metal_stdlib>
using namespace metal;
struct alignas(16) xy_f32x4 { float e[4]; };
[[max_total_threads_per_threadgroup(64)]] kernel void pipeline(device const float *b_x0 [[buffer(0)]], device float *b_y1 [[buffer(1)]], constant int *xy_sizes [[buffer(2)]], uint xy_block [[threadgroup_position_in_grid]], uint xy_thread [[thread_position_in_threadgroup]]) {
  const int p_0 = xy_sizes[0];
  const int block = (int)xy_block;
  const int thread_number = (int)xy_thread;
  alignas(16) threadgroup float stage_[768];
  for (int ahead_ = 0; ahead_ < 2; ahead_ += 1) {
    if ((ahead_ < p_0)) {
      *(threadgroup xy_f32x4 *)(stage_ + ((ahead_ % 3) * 256) + (thread_number * 4)) = *(device const xy_f32x4 *)(b_x0 + ((ahead_ * 256) + (thread_number * 4)));
    }
  }
  for (int step_ = 0; step_ < p_0; step_ += 1) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const xy_f32x4 packet1 = *(threadgroup const xy_f32x4 *)(stage_ + ((step_ % 3) * 256) + (((thread_number + 1) % 64) * 4));
    const float v_ = packet1.e[0];
    const float v1 = packet1.e[1];
    const float v2 = packet1.e[2];
    const float v3 = packet1.e[3];
    *(b_y1 + ((step_ * 64) + thread_number)) = (((v_ + v1) + v2) + v3);
    if (((step_ + 2) < p_0)) {
      *(threadgroup xy_f32x4 *)(stage_ + (((step_ + 2) % 3) * 256) + (thread_number * 4)) = *(device const xy_f32x4 *)(b_x0 + (((step_ + 2) * 256) + (thread_number * 4)));
    }
  }
}
