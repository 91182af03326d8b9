#include <metal_stdlib>
using namespace metal;
struct alignas(8) xy_f16x4 { unsigned short e[4]; };
static inline float xy_round_f16(float v) { return (float)(half)v; }
struct alignas(8) xy_bf16x4 { unsigned short e[4]; };
static inline unsigned short xy_narrow_bf16(float v) { unsigned b = (unsigned)as_type<int>(v); return (unsigned short)(v != v ? (b >> 16) | 0x40 : (b + 0x7fff + ((b >> 16) & 1)) >> 16); }
struct alignas(4) xy_boolx4 { unsigned char e[4]; };
struct alignas(2) xy_i8x2 { signed char e[2]; };
struct alignas(16) xy_i64x2 { long e[2]; };
[[max_total_threads_per_threadgroup(32)]] kernel void convert_4(device const unsigned short *b_x0 [[buffer(0)]], device const unsigned char *b_x1 [[buffer(1)]], device const signed char *b_x2 [[buffer(2)]], device unsigned short *b_y3 [[buffer(3)]], device unsigned char *b_y4 [[buffer(4)]], device long *b_y5 [[buffer(5)]], uint xy_block [[threadgroup_position_in_grid]], uint xy_thread [[thread_position_in_threadgroup]]) {
  const int block = (int)xy_block;
  const int thread_number = (int)xy_thread;
  const int at_ = (((block * 32) + thread_number) * 4);
  for (int i_ = 0; i_ < 4; i_ += 4) {
    const xy_f16x4 packet1 = *(device const xy_f16x4 *)(b_x0 + (at_ + i_));
    const float v_ = ((float)as_type<half>(packet1.e[0]));
    const float v1 = ((float)as_type<half>(packet1.e[1]));
    const float v2 = ((float)as_type<half>(packet1.e[2]));
    const float v3 = ((float)as_type<half>(packet1.e[3]));
    *(device xy_bf16x4 *)(b_y3 + (at_ + i_)) = xy_bf16x4{{xy_narrow_bf16(xy_round_f16(v_)), xy_narrow_bf16(xy_round_f16(v1)), xy_narrow_bf16(xy_round_f16(v2)), xy_narrow_bf16(xy_round_f16(v3))}};
  }
  for (int i1 = 0; i1 < 4; i1 += 4) {
    const xy_boolx4 packet2 = *(device const xy_boolx4 *)(b_x1 + (at_ + i1));
    const int v4 = (-(packet2.e[0] != 0));
    const int v5 = (-(packet2.e[1] != 0));
    const int v6 = (-(packet2.e[2] != 0));
    const int v7 = (-(packet2.e[3] != 0));
    *(device xy_boolx4 *)(b_y4 + (at_ + i1)) = xy_boolx4{{(unsigned char)(v4 & 1), (unsigned char)(v5 & 1), (unsigned char)(v6 & 1), (unsigned char)(v7 & 1)}};
  }
  for (int i2 = 0; i2 < 4; i2 += 2) {
    const xy_i8x2 packet3 = *(device const xy_i8x2 *)(b_x2 + (at_ + i2));
    const long v8 = ((long)packet3.e[0]);
    const long v9 = ((long)packet3.e[1]);
    *(device xy_i64x2 *)(b_y5 + (at_ + i2)) = xy_i64x2{{v8, v9}};
  }
}
