typedef __INT64_TYPE__ i64;
typedef float f32x16 __attribute__((vector_size(64), aligned(4), may_alias));
typedef int i32x16 __attribute__((vector_size(64), aligned(4), may_alias));
typedef float f32x8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef float f32x4 __attribute__((vector_size(16), aligned(4), may_alias));
typedef int i32x4 __attribute__((vector_size(16), aligned(4), may_alias));
static inline __attribute__((always_inline)) f32x16 xy_max_f32x16(f32x16 a, f32x16 b) { 
#ifdef __clang__
 return __builtin_ia32_maxps512(a, b, 4);
#else
 return __builtin_ia32_maxps512_mask(a, b, a, -1, 4);
#endif
 }
static inline __attribute__((always_inline)) i64 xy_min_index(i64 a, i64 b) { return a < b ? a : b; }
static inline __attribute__((always_inline)) f32x8 xy_max_f32x8(f32x8 a, f32x8 b) { return __builtin_ia32_maxps256(a, b); }
static inline __attribute__((always_inline)) f32x4 xy_max_f32x4(f32x4 a, f32x4 b) { i32x4 m = (i32x4)(a > b); return (f32x4)((m & (i32x4)a) | (~m & (i32x4)b)); }
static inline __attribute__((always_inline)) float xy_max_f32x1(float a, float b) { return a > b ? a : b; }
static inline __attribute__((always_inline)) float xy_reduce_max_f32x16(f32x16 a) { f32x8 h16 = xy_max_f32x8(__builtin_shufflevector(a, a, 0, 1, 2, 3, 4, 5, 6, 7), __builtin_shufflevector(a, a, 8, 9, 10, 11, 12, 13, 14, 15)); f32x4 h8 = xy_max_f32x4(__builtin_shufflevector(h16, h16, 0, 1, 2, 3), __builtin_shufflevector(h16, h16, 4, 5, 6, 7)); f32x4 h4 = xy_max_f32x4(__builtin_shufflevector(h8, h8, 0, 1, 2, 3), __builtin_shufflevector(h8, h8, 2, 3, 2, 3)); float h2 = xy_max_f32x1(h4[0], h4[1]); return h2; }
static inline __attribute__((always_inline)) float xy_reduce_add_f32x16(f32x16 a) { f32x8 h16 = __builtin_shufflevector(a, a, 0, 1, 2, 3, 4, 5, 6, 7) + __builtin_shufflevector(a, a, 8, 9, 10, 11, 12, 13, 14, 15); f32x4 h8 = __builtin_shufflevector(h16, h16, 0, 1, 2, 3) + __builtin_shufflevector(h16, h16, 4, 5, 6, 7); f32x4 h4 = __builtin_shufflevector(h8, h8, 0, 1, 2, 3) + __builtin_shufflevector(h8, h8, 2, 3, 2, 3); float h2 = h4[0] + h4[1]; return h2; }
static inline __attribute__((always_inline)) f32x16 xm_exp_nonpositive_16(f32x16 x) {
  const f32x16 z_ = (x * (f32x16){0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f, 0x1.7154760000000p+0f});
  const f32x16 y_ = xy_max_f32x16((f32x16){(-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f)}, z_);
  const f32x16 t_ = (y_ + (f32x16){0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f});
  const f32x16 n_ = (t_ - (f32x16){0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f, 0x1.8000000000000p+23f});
  const f32x16 f_ = (y_ - n_);
  const f32x16 p_ = ((((((f32x16){0x1.5bba140000000p-10f, 0x1.5bba140000000p-10f, 0x1.5bba140000000p-10f, 0x1.5bba140000000p-10f, 0x1.5bba140000000p-10f, 0x1.5bba140000000p-10f, 0x1.5bba140000000p-10f, 0x1.5bba140000000p-10f, 0x1.5bba140000000p-10f, 0x1.5bba140000000p-10f, 0x1.5bba140000000p-10f, 0x1.5bba140000000p-10f, 0x1.5bba140000000p-10f, 0x1.5bba140000000p-10f, 0x1.5bba140000000p-10f, 0x1.5bba140000000p-10f} * f_ + (f32x16){0x1.3cea880000000p-7f, 0x1.3cea880000000p-7f, 0x1.3cea880000000p-7f, 0x1.3cea880000000p-7f, 0x1.3cea880000000p-7f, 0x1.3cea880000000p-7f, 0x1.3cea880000000p-7f, 0x1.3cea880000000p-7f, 0x1.3cea880000000p-7f, 0x1.3cea880000000p-7f, 0x1.3cea880000000p-7f, 0x1.3cea880000000p-7f, 0x1.3cea880000000p-7f, 0x1.3cea880000000p-7f, 0x1.3cea880000000p-7f, 0x1.3cea880000000p-7f}) * f_ + (f32x16){0x1.c6b7520000000p-5f, 0x1.c6b7520000000p-5f, 0x1.c6b7520000000p-5f, 0x1.c6b7520000000p-5f, 0x1.c6b7520000000p-5f, 0x1.c6b7520000000p-5f, 0x1.c6b7520000000p-5f, 0x1.c6b7520000000p-5f, 0x1.c6b7520000000p-5f, 0x1.c6b7520000000p-5f, 0x1.c6b7520000000p-5f, 0x1.c6b7520000000p-5f, 0x1.c6b7520000000p-5f, 0x1.c6b7520000000p-5f, 0x1.c6b7520000000p-5f, 0x1.c6b7520000000p-5f}) * f_ + (f32x16){0x1.ebf9bc0000000p-3f, 0x1.ebf9bc0000000p-3f, 0x1.ebf9bc0000000p-3f, 0x1.ebf9bc0000000p-3f, 0x1.ebf9bc0000000p-3f, 0x1.ebf9bc0000000p-3f, 0x1.ebf9bc0000000p-3f, 0x1.ebf9bc0000000p-3f, 0x1.ebf9bc0000000p-3f, 0x1.ebf9bc0000000p-3f, 0x1.ebf9bc0000000p-3f, 0x1.ebf9bc0000000p-3f, 0x1.ebf9bc0000000p-3f, 0x1.ebf9bc0000000p-3f, 0x1.ebf9bc0000000p-3f, 0x1.ebf9bc0000000p-3f}) * f_ + (f32x16){0x1.62e42a0000000p-1f, 0x1.62e42a0000000p-1f, 0x1.62e42a0000000p-1f, 0x1.62e42a0000000p-1f, 0x1.62e42a0000000p-1f, 0x1.62e42a0000000p-1f, 0x1.62e42a0000000p-1f, 0x1.62e42a0000000p-1f, 0x1.62e42a0000000p-1f, 0x1.62e42a0000000p-1f, 0x1.62e42a0000000p-1f, 0x1.62e42a0000000p-1f, 0x1.62e42a0000000p-1f, 0x1.62e42a0000000p-1f, 0x1.62e42a0000000p-1f, 0x1.62e42a0000000p-1f}) * f_ + (f32x16){0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f});
  return ((f32x16)(((i32x16)p_) + (((i32x16)t_) << (i32x16){23, 23, 23, 23, 23, 23, 23, 23, 23, 23, 23, 23, 23, 23, 23, 23})));
}
__attribute__((visibility("default")))
void xy_rows_f32_x16(void *const *buffers, const i64 *params, i64 begin, i64 end) {
  const float *const b_i0 = (const float *)buffers[0];
  float *const b_o1 = (float *)buffers[1];
  (void)params;
  float kept_[768] __attribute__((aligned(64)));
  for (i64 unit_ = begin; unit_ < end; unit_ += 1) {
    const i64 first_ = (unit_ * 5);
    const i64 last_ = xy_min_index((first_ + 5), 128);
    for (i64 row_ = first_; row_ < last_; row_ += 1) {
      const i64 h_ = (((i64)row_) * 768ll);
      float acc_ = (-__builtin_inff());
      f32x16 acc1 = (f32x16){(-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff())};
      f32x16 acc2 = (f32x16){(-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff())};
      f32x16 acc3 = (f32x16){(-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff())};
      f32x16 acc4 = (f32x16){(-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff()), (-__builtin_inff())};
      for (i64 i_ = 0; i_ < 768; i_ += 64) {
        const f32x16 v_ = (*(const f32x16 *)(b_i0 + (((i64)h_) + i_)));
        acc1 = xy_max_f32x16(v_, acc1);
        const f32x16 v1 = (*(const f32x16 *)(b_i0 + (((i64)h_) + (i_ + 16))));
        acc2 = xy_max_f32x16(v1, acc2);
        const f32x16 v2 = (*(const f32x16 *)(b_i0 + (((i64)h_) + (i_ + 32))));
        acc3 = xy_max_f32x16(v2, acc3);
        const f32x16 v3 = (*(const f32x16 *)(b_i0 + (((i64)h_) + (i_ + 48))));
        acc4 = xy_max_f32x16(v3, acc4);
      }
      acc1 = xy_max_f32x16(acc2, acc1);
      acc3 = xy_max_f32x16(acc4, acc3);
      acc1 = xy_max_f32x16(acc3, acc1);
      acc_ = xy_max_f32x1(xy_reduce_max_f32x16(acc1), acc_);
      float acc5 = 0x0.0p+0f;
      f32x16 acc6 = (f32x16){0};
      f32x16 acc7 = (f32x16){0};
      f32x16 acc8 = (f32x16){0};
      f32x16 acc9 = (f32x16){0};
      for (i64 i1 = 0; i1 < 768; i1 += 64) {
        const f32x16 v4 = (*(const f32x16 *)(b_i0 + (((i64)h_) + i1)));
        const f32x16 v5 = (v4 - (f32x16){acc_, acc_, acc_, acc_, acc_, acc_, acc_, acc_, acc_, acc_, acc_, acc_, acc_, acc_, acc_, acc_});
        const f32x16 v6 = xm_exp_nonpositive_16(v5);
        *(f32x16 *)(kept_ + i1) = v6;
        acc6 = (acc6 + v6);
        const f32x16 v7 = (*(const f32x16 *)(b_i0 + (((i64)h_) + (i1 + 16))));
        const f32x16 v8 = (v7 - (f32x16){acc_, acc_, acc_, acc_, acc_, acc_, acc_, acc_, acc_, acc_, acc_, acc_, acc_, acc_, acc_, acc_});
        const f32x16 v9 = xm_exp_nonpositive_16(v8);
        *(f32x16 *)(kept_ + (i1 + 16)) = v9;
        acc7 = (acc7 + v9);
        const f32x16 v10 = (*(const f32x16 *)(b_i0 + (((i64)h_) + (i1 + 32))));
        const f32x16 v11 = (v10 - (f32x16){acc_, acc_, acc_, acc_, acc_, acc_, acc_, acc_, acc_, acc_, acc_, acc_, acc_, acc_, acc_, acc_});
        const f32x16 v12 = xm_exp_nonpositive_16(v11);
        *(f32x16 *)(kept_ + (i1 + 32)) = v12;
        acc8 = (acc8 + v12);
        const f32x16 v13 = (*(const f32x16 *)(b_i0 + (((i64)h_) + (i1 + 48))));
        const f32x16 v14 = (v13 - (f32x16){acc_, acc_, acc_, acc_, acc_, acc_, acc_, acc_, acc_, acc_, acc_, acc_, acc_, acc_, acc_, acc_});
        const f32x16 v15 = xm_exp_nonpositive_16(v14);
        *(f32x16 *)(kept_ + (i1 + 48)) = v15;
        acc9 = (acc9 + v15);
      }
      acc6 = (acc6 + acc7);
      acc8 = (acc8 + acc9);
      acc6 = (acc6 + acc8);
      acc5 = (acc5 + xy_reduce_add_f32x16(acc6));
      const float h1 = (0x1.0000000000000p+0f / acc5);
      for (i64 i2 = 0; i2 < 768; i2 += 16) {
        const f32x16 v16 = (*(const f32x16 *)(kept_ + i2));
        const f32x16 v17 = (v16 * (f32x16){h1, h1, h1, h1, h1, h1, h1, h1, h1, h1, h1, h1, h1, h1, h1, h1});
        *(f32x16 *)(b_o1 + (((i64)h_) + i2)) = v17;
      }
    }
  }
}
__attribute__((visibility("default"))) const unsigned xy_rows_f32_x16_takes[2] = {2, 0};
