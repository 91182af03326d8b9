struct __align__(8) xy_f16x4 { unsigned short e[4]; };
static __device__ __forceinline__ float xy_widen_f16(unsigned short h) { float v; asm("cvt.f32.f16 %0, %1;" : "=f"(v) : "h"(h)); return v; }
static __device__ __forceinline__ unsigned short xy_narrow_f16(float v) { unsigned short h; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(v)); return h; }
static __device__ __forceinline__ float xy_round_f16(float v) { return xy_widen_f16(xy_narrow_f16(v)); }
struct __align__(8) xy_bf16x4 { unsigned short e[4]; };
static __device__ __forceinline__ unsigned short xy_narrow_bf16(float v) { unsigned short h; asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(v)); return h; }
struct __align__(4) xy_boolx4 { unsigned char e[4]; };
struct __align__(2) xy_i8x2 { signed char e[2]; };
struct __align__(16) xy_i64x2 { long long e[2]; };
extern "C" __global__ void __launch_bounds__(32) convert_4(const unsigned short *b_x0, const unsigned char *b_x1, const signed char *b_x2, unsigned short *b_y3, unsigned char *b_y4, long long *b_y5) {
  const int block = (int)blockIdx.x;
  const int thread = (int)threadIdx.x;
  const int at_ = (((block * 32) + thread) * 4);
  for (int i_ = 0; i_ < 4; i_ += 4) {
    const xy_f16x4 packet1 = *(const xy_f16x4 *)(b_x0 + (at_ + i_));
    const float v_ = xy_widen_f16(packet1.e[0]);
    const float v1 = xy_widen_f16(packet1.e[1]);
    const float v2 = xy_widen_f16(packet1.e[2]);
    const float v3 = xy_widen_f16(packet1.e[3]);
    *(xy_bf16x4 *)(b_y3 + (at_ + i_)) = xy_bf16x4{{xy_narrow_bf16(xy_round_f16(v_)), xy_narrow_bf16(xy_round_f16(v1)), xy_narrow_bf16(xy_round_f16(v2)), xy_narrow_bf16(xy_round_f16(v3))}};
  }
  for (int i1 = 0; i1 < 4; i1 += 4) {
    const xy_boolx4 packet2 = *(const xy_boolx4 *)(b_x1 + (at_ + i1));
    const int v4 = (-(packet2.e[0] != 0));
    const int v5 = (-(packet2.e[1] != 0));
    const int v6 = (-(packet2.e[2] != 0));
    const int v7 = (-(packet2.e[3] != 0));
    *(xy_boolx4 *)(b_y4 + (at_ + i1)) = xy_boolx4{{(unsigned char)(v4 & 1), (unsigned char)(v5 & 1), (unsigned char)(v6 & 1), (unsigned char)(v7 & 1)}};
  }
  for (int i2 = 0; i2 < 4; i2 += 2) {
    const xy_i8x2 packet3 = *(const xy_i8x2 *)(b_x2 + (at_ + i2));
    const long long v8 = ((long long)packet3.e[0]);
    const long long v9 = ((long long)packet3.e[1]);
    *(xy_i64x2 *)(b_y5 + (at_ + i2)) = xy_i64x2{{v8, v9}};
  }
}
