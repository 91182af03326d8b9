// k = 5, n = 12
typedef __INT64_TYPE__ i64;
typedef float f32x4 __attribute__((vector_size(16), aligned(4), may_alias));
typedef int i32x4 __attribute__((vector_size(16), aligned(4), may_alias));
typedef signed char s_i8x4 __attribute__((vector_size(4), aligned(1), may_alias));
typedef short s_i16x4 __attribute__((vector_size(8), aligned(2), may_alias));
static inline __attribute__((always_inline)) i64 xy_min_index(i64 a, i64 b) { return a < b ? a : b; }
static inline __attribute__((always_inline)) f32x4 xy_load_n_f32_f32x4(const float *p, i64 n) { f32x4 r = (f32x4){0}; for (int l = 0; l < 4; l++) if (l < n) r[l] = p[l]; return r; }
static inline __attribute__((always_inline)) f32x4 xy_abs_f32x4(f32x4 a) { return (f32x4)((i32x4)a & 0x7fffffff); }
static inline __attribute__((always_inline)) f32x4 xy_max_f32x4(f32x4 a, f32x4 b) { i32x4 m = (i32x4)(a > b); return (f32x4)((m & (i32x4)a) | (~m & (i32x4)b)); }
static inline __attribute__((always_inline)) f32x4 xy_select_f32x4(i32x4 m, f32x4 a, f32x4 b) { return (f32x4)((m & (i32x4)a) | (~m & (i32x4)b)); }
static inline __attribute__((always_inline)) f32x4 xy_rint_f32x4(f32x4 a) { f32x4 r; for (int l = 0; l < 4; l++) r[l] = __builtin_rintf(a[l]); return r; }
static inline __attribute__((always_inline)) f32x4 xy_min_f32x4(f32x4 a, f32x4 b) { i32x4 m = (i32x4)(a < b); return (f32x4)((m & (i32x4)a) | (~m & (i32x4)b)); }
static inline __attribute__((always_inline)) void xy_store_i8_i32x4(signed char *p, i32x4 v) { *(s_i8x4 *)p = __builtin_convertvector(__builtin_convertvector(__builtin_convertvector(v, i32x4), s_i16x4), s_i8x4); }
__attribute__((visibility("default")))
void xy_gemm_quantise_f32_12_neon(void *const *buffers, const i64 *params, i64 begin, i64 end) {
  const float *const b_b0 = (const float *)buffers[0];
  signed char *const b_panels1 = (signed char *)buffers[1];
  float *const b_scales2 = (float *)buffers[2];
  (void)params;
  float piece_[3072] __attribute__((aligned(64)));
  float largest_[12] __attribute__((aligned(64)));
  float broken_[12] __attribute__((aligned(64)));
  for (i64 unit_ = begin; unit_ < end; unit_ += 1) {
    const i64 column_ = (unit_ * 12);
    *(f32x4 *)(largest_) = (f32x4){0};
    *(f32x4 *)(broken_) = (f32x4){0};
    *(f32x4 *)(largest_ + 4) = (f32x4){0};
    *(f32x4 *)(broken_ + 4) = (f32x4){0};
    *(f32x4 *)(largest_ + 8) = (f32x4){0};
    *(f32x4 *)(broken_ + 8) = (f32x4){0};
    for (i64 turn_ = 0; turn_ < 2; turn_ += 1) {
      for (i64 first_ = 0; first_ < 5; first_ += 256) {
        const i64 rows_ = xy_min_index((5 - first_), 256);
        const i64 from_ = (column_ + (first_ * 12));
        const i64 valid_ = (12 - column_);
        if ((valid_ < 12)) {
          for (i64 k_ = 0; k_ < rows_; k_ += 1) {
            *(f32x4 *)(piece_ + (k_ * 12)) = xy_load_n_f32_f32x4(b_b0 + from_ + (k_ * 12), valid_);
            *(f32x4 *)(piece_ + ((k_ * 12) + 4)) = xy_load_n_f32_f32x4(b_b0 + from_ + ((k_ * 12) + 4), (valid_ - 4));
            *(f32x4 *)(piece_ + ((k_ * 12) + 8)) = xy_load_n_f32_f32x4(b_b0 + from_ + ((k_ * 12) + 8), (valid_ - 8));
          }
        } else {
          for (i64 k1 = 0; k1 < rows_; k1 += 1) {
            *(f32x4 *)(piece_ + (k1 * 12)) = (*(const f32x4 *)(b_b0 + from_ + (k1 * 12)));
            *(f32x4 *)(piece_ + ((k1 * 12) + 4)) = (*(const f32x4 *)(b_b0 + from_ + ((k1 * 12) + 4)));
            *(f32x4 *)(piece_ + ((k1 * 12) + 8)) = (*(const f32x4 *)(b_b0 + from_ + ((k1 * 12) + 8)));
          }
        }
        if ((turn_ < 1)) {
          f32x4 most_ = (*(const f32x4 *)(largest_));
          f32x4 wrong_ = (*(const f32x4 *)(broken_));
          for (i64 k2 = 0; k2 < rows_; k2 += 1) {
            const f32x4 x_ = (*(const f32x4 *)(piece_ + (k2 * 12)));
            most_ = xy_max_f32x4(xy_abs_f32x4(x_), most_);
            wrong_ = (wrong_ + (x_ * (f32x4){0}));
          }
          *(f32x4 *)(largest_) = most_;
          *(f32x4 *)(broken_) = wrong_;
          f32x4 most1 = (*(const f32x4 *)(largest_ + 4));
          f32x4 wrong1 = (*(const f32x4 *)(broken_ + 4));
          for (i64 k3 = 0; k3 < rows_; k3 += 1) {
            const f32x4 x1 = (*(const f32x4 *)(piece_ + ((k3 * 12) + 4)));
            most1 = xy_max_f32x4(xy_abs_f32x4(x1), most1);
            wrong1 = (wrong1 + (x1 * (f32x4){0}));
          }
          *(f32x4 *)(largest_ + 4) = most1;
          *(f32x4 *)(broken_ + 4) = wrong1;
          f32x4 most2 = (*(const f32x4 *)(largest_ + 8));
          f32x4 wrong2 = (*(const f32x4 *)(broken_ + 8));
          for (i64 k4 = 0; k4 < rows_; k4 += 1) {
            const f32x4 x2 = (*(const f32x4 *)(piece_ + ((k4 * 12) + 8)));
            most2 = xy_max_f32x4(xy_abs_f32x4(x2), most2);
            wrong2 = (wrong2 + (x2 * (f32x4){0}));
          }
          *(f32x4 *)(largest_ + 8) = most2;
          *(f32x4 *)(broken_ + 8) = wrong2;
        } else {
          const f32x4 scale_ = ((*(const f32x4 *)(largest_)) * (f32x4){0x1.0204080000000p-7f, 0x1.0204080000000p-7f, 0x1.0204080000000p-7f, 0x1.0204080000000p-7f});
          const f32x4 divisor_ = xy_select_f32x4(((i32x4)((f32x4){0} < scale_)), scale_, (f32x4){0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f});
          for (i64 k5 = 0; k5 < rows_; k5 += 1) {
            const f32x4 level_ = xy_max_f32x4(xy_min_f32x4((f32x4){0x1.fc00000000000p+6f, 0x1.fc00000000000p+6f, 0x1.fc00000000000p+6f, 0x1.fc00000000000p+6f}, xy_rint_f32x4(((*(const f32x4 *)(piece_ + (k5 * 12))) / divisor_))), (f32x4){(-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f)});
            xy_store_i8_i32x4(b_panels1 + ((((unit_ * 5) + first_) * 12) + (k5 * 12)), __builtin_convertvector(level_, i32x4));
          }
          const f32x4 scale1 = ((*(const f32x4 *)(largest_ + 4)) * (f32x4){0x1.0204080000000p-7f, 0x1.0204080000000p-7f, 0x1.0204080000000p-7f, 0x1.0204080000000p-7f});
          const f32x4 divisor1 = xy_select_f32x4(((i32x4)((f32x4){0} < scale1)), scale1, (f32x4){0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f});
          for (i64 k6 = 0; k6 < rows_; k6 += 1) {
            const f32x4 level1 = xy_max_f32x4(xy_min_f32x4((f32x4){0x1.fc00000000000p+6f, 0x1.fc00000000000p+6f, 0x1.fc00000000000p+6f, 0x1.fc00000000000p+6f}, xy_rint_f32x4(((*(const f32x4 *)(piece_ + ((k6 * 12) + 4))) / divisor1))), (f32x4){(-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f)});
            xy_store_i8_i32x4(b_panels1 + (((((unit_ * 5) + first_) * 12) + (k6 * 12)) + 4), __builtin_convertvector(level1, i32x4));
          }
          const f32x4 scale2 = ((*(const f32x4 *)(largest_ + 8)) * (f32x4){0x1.0204080000000p-7f, 0x1.0204080000000p-7f, 0x1.0204080000000p-7f, 0x1.0204080000000p-7f});
          const f32x4 divisor2 = xy_select_f32x4(((i32x4)((f32x4){0} < scale2)), scale2, (f32x4){0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p+0f});
          for (i64 k7 = 0; k7 < rows_; k7 += 1) {
            const f32x4 level2 = xy_max_f32x4(xy_min_f32x4((f32x4){0x1.fc00000000000p+6f, 0x1.fc00000000000p+6f, 0x1.fc00000000000p+6f, 0x1.fc00000000000p+6f}, xy_rint_f32x4(((*(const f32x4 *)(piece_ + ((k7 * 12) + 8))) / divisor2))), (f32x4){(-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f), (-0x1.fc00000000000p+6f)});
            xy_store_i8_i32x4(b_panels1 + (((((unit_ * 5) + first_) * 12) + (k7 * 12)) + 8), __builtin_convertvector(level2, i32x4));
          }
        }
      }
      if ((turn_ < 1)) {
        *(f32x4 *)(b_scales2 + column_) = (((*(const f32x4 *)(largest_)) * (f32x4){0x1.0204080000000p-7f, 0x1.0204080000000p-7f, 0x1.0204080000000p-7f, 0x1.0204080000000p-7f}) + (*(const f32x4 *)(broken_)));
        *(f32x4 *)(b_scales2 + (column_ + 4)) = (((*(const f32x4 *)(largest_ + 4)) * (f32x4){0x1.0204080000000p-7f, 0x1.0204080000000p-7f, 0x1.0204080000000p-7f, 0x1.0204080000000p-7f}) + (*(const f32x4 *)(broken_ + 4)));
        *(f32x4 *)(b_scales2 + (column_ + 8)) = (((*(const f32x4 *)(largest_ + 8)) * (f32x4){0x1.0204080000000p-7f, 0x1.0204080000000p-7f, 0x1.0204080000000p-7f, 0x1.0204080000000p-7f}) + (*(const f32x4 *)(broken_ + 8)));
      }
    }
  }
}

// m = 2, k = 5, n = 12, epilogue: add(acc0, in2[i1])
typedef __INT64_TYPE__ i64;
typedef float f32x4 __attribute__((vector_size(16), aligned(4), may_alias));
typedef signed char s_i8x4 __attribute__((vector_size(4), aligned(1), may_alias));
typedef int i32x4 __attribute__((vector_size(16), aligned(4), may_alias));
typedef short s_i16x4 __attribute__((vector_size(8), aligned(2), may_alias));
static inline __attribute__((always_inline)) f32x4 xy_load_i8_f32x4(const signed char *p) { return __builtin_convertvector(__builtin_convertvector(__builtin_convertvector(*(const s_i8x4 *)p, s_i16x4), i32x4), f32x4); }
static inline __attribute__((always_inline)) f32x4 xy_splat_f32x4(float a) { return (f32x4){a, a, a, a}; }
static inline __attribute__((always_inline)) i64 xy_min_index(i64 a, i64 b) { return a < b ? a : b; }
static __attribute__((noinline)) void direct_12_2(const float *a, const signed char *w, i64 row, i64 column, const float *b_scales2, const float *b_i4, float *b_out3) {
  f32x4 c_ = (f32x4){0};
  f32x4 c1 = (f32x4){0};
  f32x4 c2 = (f32x4){0};
  f32x4 c3 = (f32x4){0};
  f32x4 c4 = (f32x4){0};
  f32x4 c5 = (f32x4){0};
  f32x4 c6 = (f32x4){0};
  f32x4 c7 = (f32x4){0};
  f32x4 c8 = (f32x4){0};
  f32x4 c9 = (f32x4){0};
  f32x4 c10 = (f32x4){0};
  f32x4 c11 = (f32x4){0};
  for (i64 k_ = 0; k_ < 4; k_ += 4) {
    const i64 line_ = (k_ * 16);
    const f32x4 w_ = xy_load_i8_f32x4(w + (k_ * 12));
    const f32x4 w1 = xy_load_i8_f32x4(w + ((k_ * 12) + 4));
    const f32x4 w2 = xy_load_i8_f32x4(w + ((k_ * 12) + 8));
    const f32x4 x_ = xy_splat_f32x4(((float)*(a + k_)));
    c_ = (x_ * w_ + c_);
    c1 = (x_ * w1 + c1);
    c2 = (x_ * w2 + c2);
    const f32x4 x1 = xy_splat_f32x4(((float)*(a + (5 + k_))));
    c3 = (x1 * w_ + c3);
    c4 = (x1 * w1 + c4);
    c5 = (x1 * w2 + c5);
    const f32x4 w3 = xy_load_i8_f32x4(w + ((k_ + 1) * 12));
    const f32x4 w4 = xy_load_i8_f32x4(w + (((k_ + 1) * 12) + 4));
    const f32x4 w5 = xy_load_i8_f32x4(w + (((k_ + 1) * 12) + 8));
    const f32x4 x2 = xy_splat_f32x4(((float)*(a + (k_ + 1))));
    c6 = (x2 * w3 + c6);
    c7 = (x2 * w4 + c7);
    c8 = (x2 * w5 + c8);
    const f32x4 x3 = xy_splat_f32x4(((float)*(a + (5 + (k_ + 1)))));
    c9 = (x3 * w3 + c9);
    c10 = (x3 * w4 + c10);
    c11 = (x3 * w5 + c11);
    const f32x4 w6 = xy_load_i8_f32x4(w + ((k_ + 2) * 12));
    const f32x4 w7 = xy_load_i8_f32x4(w + (((k_ + 2) * 12) + 4));
    const f32x4 w8 = xy_load_i8_f32x4(w + (((k_ + 2) * 12) + 8));
    const f32x4 x4 = xy_splat_f32x4(((float)*(a + (k_ + 2))));
    c_ = (x4 * w6 + c_);
    c1 = (x4 * w7 + c1);
    c2 = (x4 * w8 + c2);
    const f32x4 x5 = xy_splat_f32x4(((float)*(a + (5 + (k_ + 2)))));
    c3 = (x5 * w6 + c3);
    c4 = (x5 * w7 + c4);
    c5 = (x5 * w8 + c5);
    const f32x4 w9 = xy_load_i8_f32x4(w + ((k_ + 3) * 12));
    const f32x4 w10 = xy_load_i8_f32x4(w + (((k_ + 3) * 12) + 4));
    const f32x4 w11 = xy_load_i8_f32x4(w + (((k_ + 3) * 12) + 8));
    const f32x4 x6 = xy_splat_f32x4(((float)*(a + (k_ + 3))));
    c6 = (x6 * w9 + c6);
    c7 = (x6 * w10 + c7);
    c8 = (x6 * w11 + c8);
    const f32x4 x7 = xy_splat_f32x4(((float)*(a + (5 + (k_ + 3)))));
    c9 = (x7 * w9 + c9);
    c10 = (x7 * w10 + c10);
    c11 = (x7 * w11 + c11);
    __builtin_prefetch(w + 512 + line_, 0, 3);
  }
  for (i64 k1 = 4; k1 < 5; k1 += 1) {
    const f32x4 w12 = xy_load_i8_f32x4(w + (k1 * 12));
    const f32x4 w13 = xy_load_i8_f32x4(w + ((k1 * 12) + 4));
    const f32x4 w14 = xy_load_i8_f32x4(w + ((k1 * 12) + 8));
    const f32x4 x8 = xy_splat_f32x4(((float)*(a + k1)));
    c_ = (x8 * w12 + c_);
    c1 = (x8 * w13 + c1);
    c2 = (x8 * w14 + c2);
    const f32x4 x9 = xy_splat_f32x4(((float)*(a + (5 + k1))));
    c3 = (x9 * w12 + c3);
    c4 = (x9 * w13 + c4);
    c5 = (x9 * w14 + c5);
  }
  c_ = (c_ + c6);
  c1 = (c1 + c7);
  c2 = (c2 + c8);
  c3 = (c3 + c9);
  c4 = (c4 + c10);
  c5 = (c5 + c11);
  const f32x4 scale_ = (*(const f32x4 *)(b_scales2 + column));
  const f32x4 sum_ = (c_ * scale_);
  const f32x4 x10 = (*(const f32x4 *)(b_i4 + column));
  const f32x4 v_ = (sum_ + x10);
  *(f32x4 *)(b_out3 + ((row * 12) + column)) = v_;
  const f32x4 sum1 = (c3 * scale_);
  const f32x4 v1 = (sum1 + x10);
  *(f32x4 *)(b_out3 + (((row + 1) * 12) + column)) = v1;
  const f32x4 scale1 = (*(const f32x4 *)(b_scales2 + (column + 4)));
  const f32x4 sum2 = (c1 * scale1);
  const f32x4 x11 = (*(const f32x4 *)(b_i4 + (column + 4)));
  const f32x4 v2 = (sum2 + x11);
  *(f32x4 *)(b_out3 + ((row * 12) + (column + 4))) = v2;
  const f32x4 sum3 = (c4 * scale1);
  const f32x4 v3 = (sum3 + x11);
  *(f32x4 *)(b_out3 + (((row + 1) * 12) + (column + 4))) = v3;
  const f32x4 scale2 = (*(const f32x4 *)(b_scales2 + (column + 8)));
  const f32x4 sum4 = (c2 * scale2);
  const f32x4 x12 = (*(const f32x4 *)(b_i4 + (column + 8)));
  const f32x4 v4 = (sum4 + x12);
  *(f32x4 *)(b_out3 + ((row * 12) + (column + 8))) = v4;
  const f32x4 sum5 = (c5 * scale2);
  const f32x4 v5 = (sum5 + x12);
  *(f32x4 *)(b_out3 + (((row + 1) * 12) + (column + 8))) = v5;
}
__attribute__((visibility("default")))
void xy_gemm_f32_int8_8x12_neon(void *const *buffers, const i64 *params, i64 begin, i64 end) {
  const float *const b_a0 = (const float *)buffers[0];
  const signed char *const b_w1 = (const signed char *)buffers[1];
  const float *const b_scales2 = (const float *)buffers[2];
  float *const b_out3 = (float *)buffers[3];
  const float *const b_i4 = (const float *)buffers[4];
  (void)params;
  for (i64 unit_ = begin; unit_ < end; unit_ += 1) {
    const i64 w_at_ = (unit_ * 60);
    const i64 column_ = (unit_ * 12);
    for (i64 block_ = 0; block_ < 1; block_ += 1) {
      const i64 row_ = ((block_ * 2) + xy_min_index(block_, 0));
      direct_12_2(b_a0 + (row_ * 5), b_w1 + w_at_, row_, column_, b_scales2, b_i4, b_out3);
    }
  }
}
