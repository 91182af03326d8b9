#include <metal_stdlib>
using namespace metal;
static inline float xy_min_f32(float a, float b) { return a < b ? a : b; }
static inline float xy_max_f32(float a, float b) { return a > b ? a : b; }
static inline float xm_exp2_1(float x) {
  const float y_ = xy_max_f32((-0x1.2e00000000000p+7f), xy_min_f32(0x1.0400000000000p+7f, x));
  const float t_ = (y_ + 0x1.8000000000000p+23f);
  const float n_ = (t_ - 0x1.8000000000000p+23f);
  const float f_ = (y_ - n_);
  const float p_ = ((((((0x1.41fbbc0000000p-13f * f_ + 0x1.5f3e520000000p-10f) * f_ + 0x1.3b2d4c0000000p-7f) * f_ + 0x1.c6aee80000000p-5f) * f_ + 0x1.ebfbdc0000000p-3f) * f_ + 0x1.62e4300000000p-1f) * f_ + 0x1.0000000000000p+0f);
  const int k_ = ((int)((unsigned)as_type<int>(t_) - (unsigned)1262485504));
  const int h_ = (k_ >> 1);
  const int r_ = ((int)((unsigned)k_ - (unsigned)h_));
  return ((p_ * as_type<float>((((int)((unsigned)h_ + (unsigned)127)) << 23))) * as_type<float>((((int)((unsigned)r_ + (unsigned)127)) << 23)));
}
static inline float xm_exp2_nonpositive_1(float x) {
  const float y_ = xy_max_f32((-0x1.fc00000000000p+6f), x);
  const float t_ = (y_ + 0x1.8000000000000p+23f);
  const float n_ = (t_ - 0x1.8000000000000p+23f);
  const float f_ = (y_ - n_);
  const float p_ = ((((((0x1.41fbbc0000000p-13f * f_ + 0x1.5f3e520000000p-10f) * f_ + 0x1.3b2d4c0000000p-7f) * f_ + 0x1.c6aee80000000p-5f) * f_ + 0x1.ebfbdc0000000p-3f) * f_ + 0x1.62e4300000000p-1f) * f_ + 0x1.0000000000000p+0f);
  return as_type<float>(((int)((unsigned)as_type<int>(p_) + (unsigned)(as_type<int>(t_) << 23))));
}
static inline float xm_exp2_weight_1(float x) {
  const float y_ = xy_max_f32((-0x1.fc00000000000p+6f), x);
  const float t_ = (y_ + 0x1.8000000000000p+23f);
  const float n_ = (t_ - 0x1.8000000000000p+23f);
  const float f_ = (y_ - n_);
  const float p_ = (((((0x1.5bba140000000p-10f * f_ + 0x1.3cea880000000p-7f) * f_ + 0x1.c6b7520000000p-5f) * f_ + 0x1.ebf9bc0000000p-3f) * f_ + 0x1.62e42a0000000p-1f) * f_ + 0x1.0000000000000p+0f);
  return as_type<float>(((int)((unsigned)as_type<int>(p_) + (unsigned)(as_type<int>(t_) << 23))));
}
static inline float xm_exp2_weight_bf16_1(float x) { return exp2(x); }
static inline float xm_exp_nonpositive_1(float x) {
  const float z_ = (x * 0x1.7154760000000p+0f);
  const float y_ = xy_max_f32((-0x1.fc00000000000p+6f), z_);
  const float t_ = (y_ + 0x1.8000000000000p+23f);
  const float n_ = (t_ - 0x1.8000000000000p+23f);
  const float f_ = (y_ - n_);
  const float p_ = (((((0x1.5bba140000000p-10f * f_ + 0x1.3cea880000000p-7f) * f_ + 0x1.c6b7520000000p-5f) * f_ + 0x1.ebf9bc0000000p-3f) * f_ + 0x1.62e42a0000000p-1f) * f_ + 0x1.0000000000000p+0f);
  return as_type<float>(((int)((unsigned)as_type<int>(p_) + (unsigned)(as_type<int>(t_) << 23))));
}
[[max_total_threads_per_threadgroup(64)]] kernel void exponentials(device const float *b_x0 [[buffer(0)]], device float *b_y1 [[buffer(1)]], uint xy_block [[threadgroup_position_in_grid]], uint xy_thread [[thread_position_in_threadgroup]]) {
  const int block = (int)xy_block;
  const int thread_number = (int)xy_thread;
  const int at_ = (((block * 5) * 64) + thread_number);
  *(b_y1 + at_) = xm_exp2_1(*(b_x0 + at_));
  const int at1 = ((((block * 5) + 1) * 64) + thread_number);
  *(b_y1 + at1) = xm_exp2_nonpositive_1(*(b_x0 + at1));
  const int at2 = ((((block * 5) + 2) * 64) + thread_number);
  *(b_y1 + at2) = xm_exp2_weight_1(*(b_x0 + at2));
  const int at3 = ((((block * 5) + 3) * 64) + thread_number);
  *(b_y1 + at3) = xm_exp2_weight_bf16_1(*(b_x0 + at3));
  const int at4 = ((((block * 5) + 4) * 64) + thread_number);
  *(b_y1 + at4) = xm_exp_nonpositive_1(*(b_x0 + at4));
}
