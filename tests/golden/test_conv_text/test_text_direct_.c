// a unit is one panel and one block of input channels
typedef __INT64_TYPE__ i64;
__attribute__((visibility("default")))
void xy_conv_pack16(void *const *buffers, const i64 *params, i64 begin, i64 end) {
  const float *const b_w0 = (const float *)buffers[0];
  float *const b_packed1 = (float *)buffers[1];
  (void)params;
  for (i64 unit_ = begin; unit_ < end; unit_ += 1) {
    const i64 m_ = (unit_ * 16);
    for (i64 ky_ = 0; ky_ < 3; ky_ += 1) {
      for (i64 kx_ = 0; kx_ < 3; kx_ += 1) {
        const i64 tap_ = (((((unit_ * 3) + ky_) * 3) + kx_) * 16);
        const i64 from_ = (((m_ * 144) + (ky_ * 3)) + kx_);
        for (i64 c_ = 0; c_ < 16; c_ += 1) {
          const i64 to_ = ((tap_ + c_) * 16);
          const i64 from1 = (from_ + (c_ * 9));
          for (i64 j_ = 0; j_ < 16; j_ += 1) {
            *(b_packed1 + (to_ + j_)) = (float)((float)*(b_w0 + (from1 + (j_ * 144))));
          }
          for (i64 j1 = 16; j1 < 16; j1 += 1) {
            *(b_packed1 + (to_ + j1)) = (float)0x0.0p+0f;
          }
        }
      }
    }
  }
}

typedef __INT64_TYPE__ i64;
typedef float f32x16 __attribute__((vector_size(64), aligned(4), may_alias));
static inline __attribute__((always_inline)) f32x16 xy_splat_f32x16(float a) { return (f32x16){a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a}; }
static inline __attribute__((always_inline)) f32x16 xy_max_f32x16(f32x16 a, f32x16 b) { 
#ifdef __clang__
 return __builtin_ia32_maxps512(a, b, 4);
#else
 return __builtin_ia32_maxps512_mask(a, b, a, -1, 4);
#endif
 }
static inline __attribute__((always_inline)) i64 xy_max_index(i64 a, i64 b) { return a > b ? a : b; }
static inline __attribute__((always_inline)) i64 xy_min_index(i64 a, i64 b) { return a < b ? a : b; }
static __attribute__((noinline)) void tile0_4x1(i64 at, i64 panel, i64 image, i64 m, i64 row, i64 pixel, i64 first, i64 stop, const float *b_w1, const float *b_x0, const float *b_x3, float *b_out2) {
  f32x16 acc_ = (f32x16){0};
  f32x16 acc1 = (f32x16){0};
  f32x16 acc2 = (f32x16){0};
  f32x16 acc3 = (f32x16){0};
  for (i64 ky_ = first; ky_ < stop; ky_ += 1) {
    const i64 x_row_ = (at + (ky_ * 64));
    const i64 k0_ = (ky_ * 48);
    const i64 w_ = (panel + (k0_ * 16));
    for (i64 k_ = 0; k_ < 16; k_ += 1) {
      const f32x16 b_ = (*(const f32x16 *)(b_w1 + w_ + (k_ * 16)));
      const f32x16 a_ = xy_splat_f32x16(((float)*(b_x0 + x_row_ + (k_ + 16))));
      acc1 = (a_ * b_ + acc1);
      const f32x16 a1 = xy_splat_f32x16(((float)*(b_x0 + x_row_ + (k_ + 32))));
      acc2 = (a1 * b_ + acc2);
      const f32x16 a2 = xy_splat_f32x16(((float)*(b_x0 + x_row_ + (k_ + 48))));
      acc3 = (a2 * b_ + acc3);
    }
    const i64 k01 = ((ky_ * 48) + 16);
    const i64 x_ = (x_row_ + 16);
    const i64 w1 = (panel + (k01 * 16));
    for (i64 k1 = 0; k1 < 16; k1 += 1) {
      const f32x16 b1 = (*(const f32x16 *)(b_w1 + w1 + (k1 * 16)));
      const f32x16 a3 = xy_splat_f32x16(((float)*(b_x0 + x_ + k1)));
      acc_ = (a3 * b1 + acc_);
      const f32x16 a4 = xy_splat_f32x16(((float)*(b_x0 + x_ + (k1 + 16))));
      acc1 = (a4 * b1 + acc1);
      const f32x16 a5 = xy_splat_f32x16(((float)*(b_x0 + x_ + (k1 + 32))));
      acc2 = (a5 * b1 + acc2);
      const f32x16 a6 = xy_splat_f32x16(((float)*(b_x0 + x_ + (k1 + 48))));
      acc3 = (a6 * b1 + acc3);
    }
    const i64 k02 = ((ky_ * 48) + 32);
    const i64 x1 = (x_row_ + 32);
    const i64 w2 = (panel + (k02 * 16));
    for (i64 k2 = 0; k2 < 16; k2 += 1) {
      const f32x16 b2 = (*(const f32x16 *)(b_w1 + w2 + (k2 * 16)));
      const f32x16 a7 = xy_splat_f32x16(((float)*(b_x0 + x1 + k2)));
      acc_ = (a7 * b2 + acc_);
      const f32x16 a8 = xy_splat_f32x16(((float)*(b_x0 + x1 + (k2 + 16))));
      acc1 = (a8 * b2 + acc1);
      const f32x16 a9 = xy_splat_f32x16(((float)*(b_x0 + x1 + (k2 + 32))));
      acc2 = (a9 * b2 + acc2);
    }
  }
  const f32x16 x2 = (*(const f32x16 *)(b_x3 + m));
  const f32x16 v_ = (acc_ + x2);
  const f32x16 v1 = xy_max_f32x16((f32x16){0}, v_);
  *(f32x16 *)(b_out2 + ((m + (row * 64)) + (pixel * 16))) = v1;
  const f32x16 v2 = (acc1 + x2);
  const f32x16 v3 = xy_max_f32x16((f32x16){0}, v2);
  *(f32x16 *)(b_out2 + ((m + (row * 64)) + ((pixel + 1) * 16))) = v3;
  const f32x16 v4 = (acc2 + x2);
  const f32x16 v5 = xy_max_f32x16((f32x16){0}, v4);
  *(f32x16 *)(b_out2 + ((m + (row * 64)) + ((pixel + 2) * 16))) = v5;
  const f32x16 v6 = (acc3 + x2);
  const f32x16 v7 = xy_max_f32x16((f32x16){0}, v6);
  *(f32x16 *)(b_out2 + ((m + (row * 64)) + ((pixel + 3) * 16))) = v7;
}
__attribute__((visibility("default")))
void xy_conv_3x3_f32_12x1(void *const *buffers, const i64 *params, i64 begin, i64 end) {
  const float *const b_x0 = (const float *)buffers[0];
  const float *const b_w1 = (const float *)buffers[1];
  float *const b_out2 = (float *)buffers[2];
  const float *const b_x3 = (const float *)buffers[3];
  (void)params;
  for (i64 unit_ = begin; unit_ < end; unit_ += 1) {
    const i64 x_image_ = (unit_ * 256);
    for (i64 panel_ = 0; panel_ < 1; panel_ += 1) {
      const i64 m_ = (panel_ * 16);
      const i64 w_panel_ = (panel_ * 2304);
      for (i64 y_ = 0; y_ < 4; y_ += 1) {
        const i64 x_y_ = (y_ - 1);
        const i64 ky_first_ = xy_max_index(0, (0 - x_y_));
        const i64 ky_stop_ = xy_min_index(3, xy_max_index(0, (4 - x_y_)));
        const i64 x_row_ = (x_image_ + (x_y_ * 64));
        for (i64 t_ = 0; t_ < 1; t_ += 1) {
          const i64 pixel_ = (t_ * 4);
          const i64 at_ = (x_row_ + ((pixel_ - 1) * 16));
          tile0_4x1(at_, w_panel_, unit_, m_, y_, pixel_, ky_first_, ky_stop_, b_w1, b_x0, b_x3, b_out2);
        }
      }
    }
  }
}
